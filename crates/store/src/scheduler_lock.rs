//! The lock file of the process that holds the scheduler's lease. The kernel releases it when the process
//! ends, so that the next one need not wait for the lease to expire.
//!
//! The file contains the number of the lease that it was taken for. A process that was stopped for long can
//! lose the lease and keep the lock; the free lock of another lease says nothing about the owner of this one.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use lango_domain::automation::LeaseNumber;

pub(crate) struct SchedulerLock {
    /// `None` for a store in memory, which other processes cannot open.
    path: Option<PathBuf>,
    held: Mutex<Option<(LeaseNumber, File)>>,
}

/// The lock, which no other process holds.
pub(crate) struct FreeLock {
    file: File,
    /// The number of the lease that it was last taken for.
    pub lease: Option<LeaseNumber>,
}

impl SchedulerLock {
    pub fn new(path: Option<PathBuf>) -> Self {
        Self {
            path,
            held: Mutex::default(),
        }
    }

    /// Returns the lock if no process holds it. `None` says nothing about the owner of the lease: it may be
    /// in this process, or the file system may not support locks.
    pub fn try_take(&self) -> Option<FreeLock> {
        if self.held().is_some() {
            return None;
        }
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .write(true)
            .truncate(false)
            .mode(0o600)
            .open(self.path.as_ref()?)
            .ok()?;
        file.try_lock().ok()?;
        let mut text = String::new();
        let lease = file
            .read_to_string(&mut text)
            .ok()
            .and_then(|_| text.parse().ok());
        Some(FreeLock { file, lease })
    }

    /// Returns the lease of a process that has ended without releasing it. `None` says nothing.
    pub fn ended_lease(&self) -> Option<LeaseNumber> {
        // A store that was never scheduled has no file, and a question does not create it.
        if self.held().is_some() || !self.path.as_ref()?.exists() {
            return None;
        }
        self.try_take()?.lease
    }

    /// Keeps a lock for a lease that was acquired. Without a new one, the lock of an earlier lease of this
    /// process is kept.
    pub fn keep(&self, lease: LeaseNumber, lock: Option<FreeLock>) {
        let mut held = self.held();
        let earlier = held.take().map(|(_, file)| file);
        let file = lock.map(|lock| lock.file).or(earlier);
        *held = file.map(|mut file| {
            if let Err(error) = write_number(&mut file, lease) {
                tracing::warn!(%error, "the lock file of the scheduler cannot be written");
            }
            (lease, file)
        });
    }

    /// Takes the lock for a lease that was acquired while another process had it.
    pub fn keep_trying(&self, lease: LeaseNumber) {
        if let Some(lock) = self.try_take() {
            self.keep(lease, Some(lock));
        }
    }

    /// Releases the lock if it was taken with this lease.
    pub fn release(&self, lease: LeaseNumber) {
        let mut held = self.held();
        if held.as_ref().is_some_and(|(number, _)| *number == lease) {
            *held = None;
        }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Option<(LeaseNumber, File)>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn write_number(file: &mut File, lease: LeaseNumber) -> std::io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    file.set_len(0)?;
    write!(file, "{lease}")
}
