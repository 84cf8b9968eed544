//! Reserved disk space. Deleting rows needs some space before it frees any, so a full disk would
//! otherwise prevent deletion.

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Enough space to delete the largest event, page by page.
const RESERVE_BYTES: u64 = 4 << 20;

/// A placeholder file next to the store that occupies [`RESERVE_BYTES`].
pub(crate) struct DiskReserve {
    file: PathBuf,
}

impl DiskReserve {
    pub fn for_store(store: &Path) -> Self {
        let mut name = store.as_os_str().to_owned();
        name.push("-reserve");
        Self {
            file: PathBuf::from(name),
        }
    }

    /// Creates the reserve file if it is missing. Leaves no file if the disk is too full for it.
    pub fn ensure(&self) {
        if fs::metadata(&self.file).is_ok_and(|metadata| metadata.len() == RESERVE_BYTES) {
            return;
        }
        if let Err(error) = self.allocate() {
            tracing::debug!(%error, "could not reserve disk space for deletions");
            let _ = fs::remove_file(&self.file);
        }
    }

    fn allocate(&self) -> io::Result<()> {
        let file = fs::OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&self.file)?;
        match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, RESERVE_BYTES) {
            Err(rustix::io::Errno::OPNOTSUPP) => io::copy(
                &mut io::Read::take(io::repeat(0), RESERVE_BYTES),
                &mut &file,
            )
            .map(drop),
            allocated => allocated.map_err(io::Error::from),
        }
    }

    /// Removes the reserve file. Returns true if this freed space.
    pub fn release(&self) -> bool {
        fs::remove_file(&self.file).is_ok()
    }
}
