//! What can be wrong with the file, sorted by who can do something about it.

use std::path::PathBuf;

use lango_domain::session::StoreError;
use rusqlite::ErrorCode;

#[derive(Debug, thiserror::Error)]
pub enum SqliteStoreError {
    #[error("the disk is full; nothing was lost, but nothing more can be kept")]
    DiskFull,
    #[error("{} cannot be written: {reason}", file.display())]
    ReadOnly { file: PathBuf, reason: String },
    #[error("{} is damaged or no store of Lango's; it was left as it is", file.display())]
    Corrupt { file: PathBuf },
    #[error("{} was written by a newer Lango (format {found}, this one knows {known}); it was left as it is", file.display())]
    NewerSchema {
        file: PathBuf,
        found: i64,
        known: i64,
    },
    #[error("another process keeps the store busy; nothing was changed")]
    Busy,
    #[error("the disk of {} cannot be read or written: {reason}", file.display())]
    Io { file: PathBuf, reason: String },
    #[error("a turn of the session `{0}` is running; nothing was changed")]
    TurnRunning(String),
    #[error("turns are running; nothing was changed")]
    TurnsRunning,
    #[error("{} is there already", .0.display())]
    FileExists(PathBuf),
    #[error("{} cannot be used: {reason}", file.display())]
    InvalidBackup { file: PathBuf, reason: String },
    #[error("there is no session `{0}`")]
    SessionNotFound(String),
    #[error("there is no whole turn up to event {0}")]
    NoCompleteTurn(u64),
    #[error("there is a session `{0}` already")]
    SessionExists(String),
    #[error("there is no token `{0}`")]
    TokenNotFound(String),
    #[error("there is a token `{0}` already")]
    TokenExists(String),
    #[error("{0}")]
    Other(String),
}

impl SqliteStoreError {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::DiskFull => "make room on the disk, then go on where you were",
            Self::ReadOnly { .. } => {
                "make the data folder writable, or set store.path or LANGO_HOME to one that is"
            }
            Self::Corrupt { .. } => {
                "restore a backup with `lango restore FILE`, or move the file away to begin anew; `lango doctor` says more"
            }
            Self::NewerSchema { .. } => "use the newer Lango, or another store.path",
            Self::Busy => "try again; end other processes that use the same store",
            Self::Io { .. } => "look at the disk: is it full, or failing?",
            Self::TurnRunning(_) | Self::TurnsRunning => {
                "wait until it has ended, or end the process that runs it"
            }
            Self::FileExists(_) => "choose another name",
            Self::InvalidBackup { .. } => "name a file that `lango backup` wrote",
            Self::SessionNotFound(_) => "`lango session list` names them",
            Self::NoCompleteTurn(_) => "`lango session show S --json` numbers the events",
            Self::SessionExists(_) | Self::TokenExists(_) => "choose another name",
            Self::TokenNotFound(_) => "`lango token list` names them",
            Self::Other(_) => "`lango doctor` looks into it",
        }
    }

    /// What SQLite says, by its code.
    pub(crate) fn from_sqlite(error: rusqlite::Error, file: &std::path::Path) -> Self {
        let file = file.to_path_buf();
        let Some(code) = error.sqlite_error_code() else {
            return Self::Other(error.to_string());
        };
        // The memory that readers and writers share is a file, too.
        let is_without_room = error
            .sqlite_error()
            .is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE);
        if is_without_room {
            return Self::DiskFull;
        }
        match code {
            ErrorCode::DiskFull => Self::DiskFull,
            ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied => {
                Self::ReadOnly {
                    file,
                    reason: error.to_string(),
                }
            }
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Self::Corrupt { file },
            ErrorCode::SystemIoFailure => Self::Io {
                file,
                reason: error.to_string(),
            },
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Busy,
            _ => Self::Other(error.to_string()),
        }
    }
}

impl From<SqliteStoreError> for StoreError {
    fn from(trouble: SqliteStoreError) -> Self {
        Self(trouble.to_string())
    }
}
