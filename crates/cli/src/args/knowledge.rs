//! Arguments of `lango knowledge` and `lango inquiry`.

use clap::Subcommand;

#[derive(Subcommand)]
pub enum KnowledgeCommand {
    /// List entries, newest first.
    List {
        /// Only this category: rule, definition, preference, fact, pattern or correction.
        #[arg(long)]
        category: Option<String>,
        /// List learnings (fixes for failures) with their confidence instead.
        #[arg(long, conflicts_with = "category")]
        learnings: bool,
    },
    /// Show the entry of a key, and its source.
    Show {
        /// The key of the entry.
        key: String,
    },
    /// Show every version of an entry.
    History {
        /// The key of the entry.
        key: String,
    },
    /// Permanently delete entries with their history.
    Delete {
        /// The keys of the entries.
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
    },
}

#[derive(Subcommand)]
pub enum InquiryCommand {
    /// List pending inquiries.
    List {
        /// Also list inquiries that were answered, dismissed or given up.
        #[arg(long)]
        all: bool,
    },
    /// Dismiss inquiries; they are not asked again.
    Dismiss {
        /// The ids of the inquiries: numbers, as `lango inquiry list` shows them.
        #[arg(required = true, value_name = "ID", value_parser = inquiry_id)]
        ids: Vec<u64>,
    },
}

fn inquiry_id(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| "an id is a number, as `lango inquiry list` shows it".to_owned())
}
