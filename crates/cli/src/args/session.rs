//! Arguments of `lango session`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Subcommand)]
pub enum SessionCommand {
    /// List sessions, most recently used first.
    List,
    /// Show the events of a session.
    Show {
        /// The session's id.
        session: String,
    },
    /// List the images and files of a session, and save them.
    Files {
        /// The session's id.
        session: String,
        /// Save them in this folder; existing files are kept.
        #[arg(long, value_name = "DIR")]
        save: Option<PathBuf>,
    },
    /// Print a session for export.
    Export {
        /// The session's id.
        session: String,
        /// One JSON event per line, or readable Markdown.
        #[arg(long, default_value = "jsonl")]
        format: ExportFormat,
    },
    /// Import a session from exported events, or from messages (role, content, author).
    Import {
        /// A file with one JSON object per line.
        file: PathBuf,
        /// The id of the imported session [default: a new one].
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// Permanently delete sessions and their text in every file.
    Delete {
        /// The session ids.
        #[arg(required = true, value_name = "SESSION")]
        sessions: Vec<String>,
    },
    /// Start a new session with the complete turns of another.
    Fork {
        /// The session's id.
        session: String,
        /// Copy only up to this event number.
        #[arg(long, value_name = "SEQ")]
        at: Option<u64>,
        /// The id of the new session [default: a new one].
        #[arg(long = "as", value_name = "ID")]
        into: Option<String>,
    },
    /// Change the title of a session; its id stays.
    Rename {
        /// The session's id.
        session: String,
        /// The new title.
        #[arg(required = true, value_name = "TITLE")]
        title: Vec<String>,
    },
    /// Find requests and answers that contain all the given words.
    Search {
        /// The words to search for.
        text: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ExportFormat {
    Jsonl,
    Markdown,
}

impl std::fmt::Display for ExportFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Jsonl => "jsonl",
            Self::Markdown => "markdown",
        })
    }
}
