//! Room on the disk that is kept for the day when there is none: deleting needs some before it gives any back.

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Enough to delete the largest event, page by page.
const RESERVE_BYTES: u64 = 4 << 20;

/// A file beside the store that holds nothing and takes room.
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

    /// Takes the room, where there is any; a disk that has none left needs what there is for other things.
    pub fn ensure(&self) {
        if fs::metadata(&self.file).is_ok_and(|found| found.len() == RESERVE_BYTES) {
            return;
        }
        if let Err(error) = self.allocate() {
            tracing::debug!(%error, "no room is kept for deleting");
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
            taken => taken.map_err(io::Error::from),
        }
    }

    /// Whether there is more room now.
    pub fn release(&self) -> bool {
        fs::remove_file(&self.file).is_ok()
    }
}
