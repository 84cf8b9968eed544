//! What can be typed about what is known, and about what is asked.

use clap::Subcommand;

#[derive(Subcommand)]
pub enum KnowledgeCommand {
    /// List what is known, the newest first.
    List {
        /// Of this kind only: rule, definition, preference, fact, pattern or correction.
        #[arg(long)]
        category: Option<String>,
        /// What helps when something fails, instead, with how far it can be relied on.
        #[arg(long, conflicts_with = "category")]
        learnings: bool,
    },
    /// Show what is known under a key, and where it comes from.
    Show {
        /// The key.
        key: String,
    },
    /// Show every version of what is known under a key.
    History {
        /// The key.
        key: String,
    },
    /// Delete keys for good, with their history.
    Delete {
        /// The keys.
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
    },
}

#[derive(Subcommand)]
pub enum InquiryCommand {
    /// List those that wait for an answer.
    List {
        /// Those that were answered, dismissed or given up, too.
        #[arg(long)]
        all: bool,
    },
    /// Take inquiries off the list; they are not asked again.
    Dismiss {
        /// Their numbers.
        #[arg(required = true, value_name = "ID")]
        ids: Vec<u64>,
    },
}
