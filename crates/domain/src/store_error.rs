//! Errors of stores, classified by who can act on them.

use std::path::PathBuf;

/// An error of a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("the disk is full; stored data is intact, but nothing more can be written")]
    DiskFull,
    #[error("{} cannot be written: {reason}", file.display())]
    ReadOnly { file: PathBuf, reason: String },
    #[error("{} is corrupt or not a Lango store; it was not modified", file.display())]
    Corrupt { file: PathBuf },
    #[error("{} was written by a newer version of Lango (schema {found}, supported up to {known}); it was not modified", file.display())]
    NewerSchema {
        file: PathBuf,
        found: i64,
        known: i64,
    },
    #[error("the store is locked by another process; nothing was changed")]
    Busy,
    #[error("disk error on {}: {reason}", file.display())]
    Io { file: PathBuf, reason: String },
    #[error("a turn of session `{0}` is running; nothing was changed")]
    TurnRunning(String),
    #[error("turns are running; nothing was changed")]
    TurnsRunning,
    #[error("{} already exists", .0.display())]
    FileExists(PathBuf),
    #[error("{} is not a usable backup: {reason}", file.display())]
    InvalidBackup { file: PathBuf, reason: String },
    #[error("session `{0}` not found")]
    SessionNotFound(String),
    #[error("no complete turn ends at or before event {0}")]
    NoCompleteTurn(u64),
    #[error("session `{0}` already exists")]
    SessionExists(String),
    #[error("token `{0}` not found")]
    TokenNotFound(String),
    #[error("token `{0}` already exists")]
    TokenExists(String),
    #[error("job `{0}` not found")]
    JobNotFound(String),
    #[error("job `{0}` already exists")]
    JobExists(String),
    #[error("there are already {0} jobs, which is the limit; nothing was changed")]
    TooManyJobs(usize),
    #[error("another process runs the scheduler now; nothing was changed")]
    LeaseLost,
    #[error("{0}")]
    Other(String),
}

impl StoreError {
    /// Returns what the user can do about the error.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::DiskFull => "free some disk space, then try again",
            Self::ReadOnly { .. } => {
                "make the data folder writable, or set store.path or LANGO_HOME to a writable one"
            }
            Self::Corrupt { .. } => {
                "restore a backup with `lango restore FILE`, or move the file away to start with an empty store; see `lango doctor`"
            }
            Self::NewerSchema { .. } => "use a newer version of Lango, or set another store.path",
            Self::Busy => "try again, or stop other processes that use the same store",
            Self::Io { .. } => "check whether the disk is full or failing",
            Self::TurnRunning(_) | Self::TurnsRunning => {
                "wait until it ends, or stop the process that runs it"
            }
            Self::FileExists(_) => "choose another file name",
            Self::InvalidBackup { .. } => "pass a file that was written by `lango backup`",
            Self::SessionNotFound(_) => "list sessions with `lango session list`",
            Self::NoCompleteTurn(_) => "see the event numbers with `lango session show S --json`",
            Self::SessionExists(_) | Self::TokenExists(_) | Self::JobExists(_) => {
                "choose another name"
            }
            Self::JobNotFound(_) => "list jobs with `lango cron list`",
            Self::TooManyJobs(_) => "remove jobs with `lango cron remove`, or raise cron.maxJobs",
            Self::LeaseLost => "see `lango doctor` for the process that runs it",
            Self::TokenNotFound(_) => "list tokens with `lango token list`",
            Self::Other(_) => "run `lango doctor` to check the store",
        }
    }
}
