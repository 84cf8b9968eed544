//! Serializes the turns of a session across processes. Uses kernel file locks, which are released
//! when the process exits.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use lango_domain::StoreError;
use lango_domain::session::{SessionKeyRef, TurnLock};
use tokio::sync::{Mutex as TurnMutex, OwnedMutexGuard};

/// Delays between attempts while another process holds the lock.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(2);
const MAX_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Turn locks of sessions: a queue within this process, then a lock file for other processes.
pub(crate) struct SessionLocks {
    /// `None` for a store in memory, which other processes cannot open.
    folder: Option<PathBuf>,
    in_process: Mutex<HashMap<String, Weak<TurnMutex<()>>>>,
}

/// A lock held for a turn. Fields drop in order: the file lock is released before the queue moves
/// on.
struct HeldLock {
    _file: Option<File>,
    _guard: OwnedMutexGuard<()>,
}

impl SessionLocks {
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self {
            folder,
            in_process: Mutex::default(),
        }
    }

    pub async fn lock(&self, key: SessionKeyRef<'_>) -> Result<TurnLock, StoreError> {
        self.acquire(key)
            .await
            .map_err(|error| lock_error(self.folder.as_deref(), &error))
    }

    /// Returns the lock, or `None` if it is still held after a short wait.
    pub async fn try_lock(&self, key: SessionKeyRef<'_>) -> io::Result<Option<TurnLock>> {
        tokio::time::timeout(FIRST_RETRY_DELAY * 10, self.acquire(key))
            .await
            .ok()
            .transpose()
    }

    async fn acquire(&self, key: SessionKeyRef<'_>) -> io::Result<TurnLock> {
        let name = file_name(key);
        let guard = self.queue(&name).lock_owned().await;
        let file = match &self.folder {
            Some(folder) => Some(lock_file(folder, &name).await?),
            None => None,
        };
        Ok(TurnLock::new(HeldLock {
            _file: file,
            _guard: guard,
        }))
    }

    /// Returns true if a turn is running in any process.
    pub fn is_any_held(&self) -> bool {
        let queues = self
            .in_process
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let is_locked = |queue: &Weak<TurnMutex<()>>| {
            queue
                .upgrade()
                .is_some_and(|queue| queue.try_lock().is_err())
        };
        if queues.values().any(is_locked) {
            return true;
        }
        let files = self
            .folder
            .iter()
            .filter_map(|folder| fs::read_dir(folder).ok())
            .flatten()
            .flatten();
        let is_file_locked =
            |file: fs::DirEntry| open(&file.path()).is_ok_and(|file| file.try_lock().is_err());
        files.into_iter().any(is_file_locked)
    }

    /// Removes the lock file of a deleted session. The caller must hold its lock.
    pub fn remove_lock_file(&self, key: SessionKeyRef<'_>) {
        if let Some(folder) = &self.folder {
            let _ = fs::remove_file(folder.join(file_name(key)));
        }
    }

    fn queue(&self, name: &str) -> Arc<TurnMutex<()>> {
        let mut queues = self
            .in_process
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = queues.get(name).and_then(Weak::upgrade) {
            return queue;
        }
        queues.retain(|_, queue| queue.strong_count() > 0);
        let queue = Arc::new(TurnMutex::new(()));
        queues.insert(name.to_owned(), Arc::downgrade(&queue));
        queue
    }
}

async fn lock_file(folder: &Path, name: &str) -> io::Result<File> {
    let path = folder.join(name);
    let mut delay = FIRST_RETRY_DELAY;
    loop {
        let file = match open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                use std::os::unix::fs::DirBuilderExt;
                fs::DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(folder)?;
                open(&path)?
            }
            opened => opened?,
        };
        match file.try_lock() {
            // The file may have been removed between opening and locking it. Other processes then
            // do not see this lock.
            Ok(()) if is_same_file(&file, &path) => return Ok(file),
            Ok(()) => tokio::time::sleep(delay).await,
            Err(TryLockError::WouldBlock) => {
                tokio::time::sleep(delay).await;
                delay = (delay * 2).min(MAX_RETRY_DELAY);
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)
}

fn is_same_file(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(held), Ok(named)) => held.ino() == named.ino() && held.dev() == named.dev(),
        _ => false,
    }
}

fn lock_error(folder: Option<&Path>, error: &io::Error) -> StoreError {
    let folder = folder.unwrap_or(Path::new(""));
    StoreError::Other(format!(
        "could not lock the session in {}: {error}",
        folder.display()
    ))
}

/// Returns the name of the lock file: a hash, so that it reveals nothing about the session.
fn file_name(key: SessionKeyRef<'_>) -> String {
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    let bytes = key
        .principal
        .as_str()
        .bytes()
        .chain([0])
        .chain(key.session.as_str().bytes());
    for byte in bytes {
        hash = (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
    format!("{hash:032x}.lock")
}
