//! The log of what a command writes to its standard error. Its size is limited: old text is removed.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ChildStderr;
use std::sync::mpsc::Receiver;

use rustix::fs::OFlags;

/// The largest size of a log.
const MAX_BYTES: u64 = 1024 * 1024;
/// The newest text, which stays when older text is removed.
const KEPT_BYTES: usize = 256 * 1024;
const READ_BUFFER_BYTES: usize = 16 * 1024;

pub(super) struct ErrorLog {
    file: File,
    size: u64,
    newest: VecDeque<u8>,
}

impl ErrorLog {
    /// Opens the log for appending. A link is not followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(path)?;
        let size = file.seek(SeekFrom::End(0))?;
        Ok(Self {
            file,
            size,
            newest: VecDeque::new(),
        })
    }

    /// Copies everything in a thread. The receiver hears when that is done.
    pub fn copy_in_background(self, from: ChildStderr) -> Option<Receiver<()>> {
        let (done, copied) = std::sync::mpsc::channel();
        let copy = move || {
            self.copy_from(from);
            let _ = done.send(());
        };
        let started = std::thread::Builder::new().spawn(copy);
        started.ok().map(|_| copied)
    }

    /// Copies everything until the end. Errors of the file are ignored, since the command must not wait for
    /// a reader.
    fn copy_from(mut self, mut from: impl Read) {
        let mut piece = [0; READ_BUFFER_BYTES];
        loop {
            match from.read(&mut piece) {
                Ok(0) => return,
                Ok(length) => _ = self.write(&piece[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.newest.extend(piece);
        let excess = self.newest.len().saturating_sub(KEPT_BYTES);
        self.newest.drain(..excess);
        if self.size + piece.len() as u64 <= MAX_BYTES {
            self.size += piece.len() as u64;
            return self.file.write_all(piece);
        }
        self.file.set_len(0)?;
        self.size = self.newest.len() as u64;
        self.file.write_all(self.newest.make_contiguous())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_newest_text_within_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.log");
        std::fs::write(&path, "before\n").unwrap();
        ErrorLog::open(&path).unwrap().copy_from(&b"small\n"[..]);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "before\nsmall\n");
        let long = format!("{}last line\n", "x".repeat(5 * MAX_BYTES as usize));
        ErrorLog::open(&path).unwrap().copy_from(long.as_bytes());
        let kept = std::fs::read_to_string(&path).unwrap();
        assert!(kept.len() as u64 <= MAX_BYTES && kept.ends_with("last line\n"));
        assert!(kept.len() >= KEPT_BYTES);
        let link = folder.path().join("link.log");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(ErrorLog::open(&link).is_err());
    }
}
