//! The lock file of the process that holds the scheduler's lease. The kernel releases it when the process
//! ends, so that the next one need not wait for the lease to expire.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use lango_domain::automation::LeaseNumber;

pub(crate) struct SchedulerLock {
    /// `None` for a store in memory, which other processes cannot open.
    path: Option<PathBuf>,
    held: Mutex<Option<(LeaseNumber, File)>>,
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
    pub fn try_take(&self) -> Option<File> {
        if self.held().is_some() {
            return None;
        }
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(self.path.as_ref()?)
            .ok()?;
        file.try_lock().ok().map(|()| file)
    }

    /// Keeps a lock for a lease that was acquired. Without a new one, the lock of an earlier lease of this
    /// process is kept.
    pub fn keep(&self, lease: LeaseNumber, lock: Option<File>) {
        let mut held = self.held();
        let earlier = held.take().map(|(_, lock)| lock);
        *held = lock.or(earlier).map(|lock| (lease, lock));
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
