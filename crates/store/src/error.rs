//! Classification of SQLite's errors.

use std::path::Path;

use lango_domain::StoreError;
use rusqlite::ErrorCode;

/// Classifies an SQLite error by its code.
pub(crate) fn sqlite_error(error: rusqlite::Error, file: &Path) -> StoreError {
    let file = file.to_path_buf();
    let Some(code) = error.sqlite_error_code() else {
        return StoreError::Other(error.to_string());
    };
    // SQLite's shared memory is a file as well.
    let is_shm_full = error
        .sqlite_error()
        .is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE);
    if is_shm_full {
        return StoreError::DiskFull;
    }
    match code {
        ErrorCode::DiskFull => StoreError::DiskFull,
        ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied => {
            StoreError::ReadOnly {
                file,
                reason: error.to_string(),
            }
        }
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => StoreError::Corrupt { file },
        ErrorCode::SystemIoFailure => StoreError::Io {
            file,
            reason: error.to_string(),
        },
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Busy,
        _ => StoreError::Other(error.to_string()),
    }
}
