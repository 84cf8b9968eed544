//! What can be wrong with the file, sorted by who can do something about it.

use std::path::PathBuf;

use lango_domain::session::StoreError;
use rusqlite::ErrorCode;

#[derive(Debug, thiserror::Error)]
pub enum SqliteStoreError {
    #[error("the disk is full; nothing was lost, but nothing more can be kept")]
    DiskFull,
    #[error("{} cannot be written: {why}", file.display())]
    ReadOnly { file: PathBuf, why: String },
    #[error("{} is damaged or no store of Lango's; it was left as it is", file.display())]
    Damaged { file: PathBuf },
    #[error("{} was written by a newer Lango (format {found}, this one knows {known}); it was left as it is", file.display())]
    Newer { file: PathBuf, found: i64, known: i64 },
    #[error("another process keeps the store busy; nothing was changed")]
    Busy,
    #[error("the disk of {} cannot be read or written: {why}", file.display())]
    Disk { file: PathBuf, why: String },
    #[error("a turn of the session `{0}` is running; nothing was changed")]
    TurnRunning(String),
    #[error("turns are running; nothing was changed")]
    TurnsRunning,
    #[error("{} is there already", .0.display())]
    FileExists(PathBuf),
    #[error("{} cannot be used: {why}", file.display())]
    NoBackup { file: PathBuf, why: String },
    #[error("there is no session `{0}`")]
    NoSession(String),
    #[error("there is no whole turn up to event {0}")]
    NoWholeTurn(u64),
    #[error("there is a session `{0}` already")]
    SessionExists(String),
    #[error("there is no token `{0}`")]
    NoToken(String),
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
            Self::Damaged { .. } => {
                "restore a backup with `lango restore FILE`, or move the file away to begin anew; `lango doctor` says more"
            }
            Self::Newer { .. } => "use the newer Lango, or another store.path",
            Self::Busy => "try again; end other processes that use the same store",
            Self::Disk { .. } => "look at the disk: is it full, or failing?",
            Self::TurnRunning(_) | Self::TurnsRunning => {
                "wait until it has ended, or end the process that runs it"
            }
            Self::FileExists(_) => "choose another name",
            Self::NoBackup { .. } => "name a file that `lango backup` wrote",
            Self::NoSession(_) => "`lango session list` names them",
            Self::NoWholeTurn(_) => "`lango session show S --json` numbers the events",
            Self::SessionExists(_) | Self::TokenExists(_) => "choose another name",
            Self::NoToken(_) => "`lango token list` names them",
            Self::Other(_) => "`lango doctor` looks into it",
        }
    }

    /// What SQLite says, by its code.
    pub(crate) fn of(error: rusqlite::Error, file: &std::path::Path) -> Self {
        let file = file.to_path_buf();
        let Some(code) = error.sqlite_error_code() else { return Self::Other(error.to_string()) };
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
                Self::ReadOnly { file, why: error.to_string() }
            }
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Self::Damaged { file },
            ErrorCode::SystemIoFailure => Self::Disk { file, why: error.to_string() },
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
