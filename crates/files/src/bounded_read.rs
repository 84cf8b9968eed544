//! Reading a whole file that may be something else than it seems.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::Mode;
use rustix::io::Errno;

use crate::confined_open::READ;

/// Why a file or a folder is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error("it is not a regular file")]
    NotRegular,
    #[error("it has more than {0} bytes")]
    TooLarge(u64),
    /// Its path or a link on the way leads out of the folder that it must stay in.
    #[error("it leads out of the folder")]
    Outside,
    #[error("there is no such file or folder")]
    Missing,
    #[error("it is not a folder")]
    NotAFolder,
    /// What the system says.
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

/// The whole of a regular file of at most `most` bytes. Pipes and devices, which never end, are refused.
pub fn read_bounded(path: &Path, most: u64) -> Result<Vec<u8>, ReadError> {
    read_bounded_fd(rustix::fs::open(path, READ, Mode::empty())?, most)
}

/// The same of what was opened with [`READ`]. What it is, is looked up behind opening it: nobody can exchange it then.
pub(crate) fn read_bounded_fd(opened: OwnedFd, most: u64) -> Result<Vec<u8>, ReadError> {
    let failed = |error: io::Error| ReadError::Failed(error.to_string());
    let file = File::from(opened);
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(ReadError::NotRegular);
    }
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > most {
        return Err(ReadError::TooLarge(most));
    }
    Ok(bytes)
}
