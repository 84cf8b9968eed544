//! Reads a whole file up to a size limit, and rejects everything that is not a regular file.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::Mode;
use rustix::io::Errno;

use crate::confined_open::READ;

/// The reason why a file or folder could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error("it is not a regular file")]
    NotRegular,
    #[error("it has more than {0} bytes")]
    TooLarge(u64),
    /// The path, or a link in it, leads out of the folder it is confined to.
    #[error("it leads out of the folder")]
    Outside,
    #[error("no such file or folder")]
    Missing,
    #[error("it is not a folder")]
    NotAFolder,
    /// The message of the operating system.
    #[error("{0}")]
    Failed(String),
}

impl From<Errno> for ReadError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::XDEV => Self::Outside,
            Errno::NOENT => Self::Missing,
            Errno::NOTDIR => Self::NotAFolder,
            // A socket, or a device without a driver.
            Errno::NXIO | Errno::NODEV => Self::NotRegular,
            other => Self::Failed(io::Error::from(other).to_string()),
        }
    }
}

/// Reads a regular file of at most `max_bytes`. Rejects pipes and devices, which may never end.
pub fn read_bounded(path: &Path, max_bytes: u64) -> Result<Vec<u8>, ReadError> {
    read_bounded_fd(rustix::fs::open(path, READ, Mode::empty())?, max_bytes)
}

/// Like [`read_bounded`], for a descriptor opened with [`READ`]. The file type is checked after
/// opening, so the file cannot be swapped in between.
pub(crate) fn read_bounded_fd(opened: OwnedFd, max_bytes: u64) -> Result<Vec<u8>, ReadError> {
    let failed = |error: io::Error| ReadError::Failed(error.to_string());
    let file = File::from(opened);
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(ReadError::NotRegular);
    }
    let mut bytes = Vec::new();
    file.take(max_bytes.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > max_bytes {
        return Err(ReadError::TooLarge(max_bytes));
    }
    Ok(bytes)
}
