//! The store. Writes go to the writer thread, reads to a pool of connections.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use lango_domain::maintenance::DamagedRow;
use lango_domain::{StoreError, Stores};
use rusqlite::Connection;

use crate::damage::{DamageLog, RowReader};
use crate::database::{self, ReadMode, StoreLocation};
use crate::error::sqlite_error;
use crate::reserve::DiskReserve;
use crate::scheduler_lock::SchedulerLock;
use crate::session_locks::SessionLocks;
use crate::writer::{StoreWriter, WriteError};

/// Maximum number of idle connections in the read pool.
const MAX_READERS: usize = 4;

/// A store in one SQLite file. Cheap to clone.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<SqliteStoreInner>,
}

struct SqliteStoreInner {
    location: StoreLocation,
    identity: String,
    write_access: WriteAccess,
    /// Disk space that makes deleting possible on a full disk. `None` for a store in memory.
    reserve: Option<DiskReserve>,
    readers: Mutex<Vec<Connection>>,
    locks: SessionLocks,
    scheduler_lock: SchedulerLock,
    damage: DamageLog,
}

/// The writer thread, or the reason why there is none.
enum WriteAccess {
    Writer(StoreWriter),
    /// The file cannot be written, only read.
    ReadOnly {
        error: StoreError,
        read_mode: ReadMode,
    },
}

impl SqliteStore {
    /// Opens the store. Creates the file if it does not exist and migrates an older schema. An
    /// existing file that cannot be written is opened read-only.
    pub fn open(location: StoreLocation) -> Result<Self, StoreError> {
        let reserve = match &location {
            StoreLocation::File(file) => Some(DiskReserve::for_store(file)),
            StoreLocation::Memory => None,
        };
        let opened = match database::open_writer(&location) {
            Err(StoreError::DiskFull) if reserve.as_ref().is_some_and(DiskReserve::release) => {
                database::open_writer(&location)
            }
            opened => opened,
        };
        match opened {
            Ok(connection) => Self::with_writer(location, connection, reserve),
            Err(error) => Self::read_only(location, error),
        }
    }

    fn with_writer(
        location: StoreLocation,
        connection: Connection,
        reserve: Option<DiskReserve>,
    ) -> Result<Self, StoreError> {
        let identity = database::identity(&connection, &location)?;
        let writer = StoreWriter::start(connection, location.clone())
            .map_err(|error| StoreError::Other(error.to_string()))?;
        reserve.iter().for_each(DiskReserve::ensure);
        Ok(Self::from_parts(
            location,
            identity,
            WriteAccess::Writer(writer),
            reserve,
        ))
    }

    /// Opens an existing file for reading after opening it for writing failed with `error`. A full
    /// disk counts as not writable.
    fn read_only(location: StoreLocation, error: StoreError) -> Result<Self, StoreError> {
        let (StoreLocation::File(file), StoreError::ReadOnly { .. } | StoreError::DiskFull) =
            (&location, &error)
        else {
            return Err(error);
        };
        if !std::fs::metadata(file).is_ok_and(|found| found.is_file() && found.len() > 0) {
            return Err(error);
        }
        let (connection, read_mode) = database::open_read_only(file)?;
        let identity = database::identity(&connection, &location)?;
        Ok(Self::from_parts(
            location,
            identity,
            WriteAccess::ReadOnly { error, read_mode },
            None,
        ))
    }

    fn from_parts(
        location: StoreLocation,
        identity: String,
        write_access: WriteAccess,
        reserve: Option<DiskReserve>,
    ) -> Self {
        let file_beside = |suffix: &str| match &location {
            StoreLocation::File(file) => Some(path_beside(file, suffix)),
            StoreLocation::Memory => None,
        };
        let folder = file_beside("-locks");
        let scheduler_lock = SchedulerLock::new(file_beside("-scheduler"));
        let (locks, readers, damage) = (
            SessionLocks::new(folder),
            Mutex::default(),
            DamageLog::default(),
        );
        Self {
            inner: Arc::new(SqliteStoreInner {
                location,
                identity,
                write_access,
                reserve,
                readers,
                locks,
                scheduler_lock,
                damage,
            }),
        }
    }

    /// Returns this store as all stores of a process.
    pub fn stores(&self) -> Stores {
        let store = Arc::new(self.clone());
        Stores {
            sessions: store.clone(),
            catalog: store.clone(),
            blobs: store.clone(),
            access_tokens: store.clone(),
            tasks: store.clone(),
            documents: store.clone(),
            graph: store.clone(),
            memory: store.clone(),
            knowledge: store.clone(),
            inquiries: store.clone(),
            automation: store.clone(),
            vault: store.clone(),
            payments: store.clone(),
            learned: store.clone(),
            maintenance: store,
        }
    }

    pub fn location(&self) -> &StoreLocation {
        &self.inner.location
    }

    /// Returns the random id that the file got when it was created. Copies of the file share it.
    pub(crate) fn store_identity(&self) -> &str {
        &self.inner.identity
    }

    /// Returns the rows that were skipped so far because they cannot be read.
    pub(crate) fn skipped_rows(&self) -> Vec<DamagedRow> {
        self.inner.damage.rows()
    }

    pub(crate) fn reserve(&self) -> Option<&DiskReserve> {
        self.inner.reserve.as_ref()
    }

    /// Returns the writer, or an error if the store is read-only.
    pub(crate) fn writer(&self) -> Result<&StoreWriter, StoreError> {
        match &self.inner.write_access {
            WriteAccess::Writer(writer) => Ok(writer),
            WriteAccess::ReadOnly {
                error: StoreError::ReadOnly { file, reason },
                ..
            } => Err(StoreError::ReadOnly {
                file: file.clone(),
                reason: reason.clone(),
            }),
            WriteAccess::ReadOnly { .. } => Err(StoreError::DiskFull),
        }
    }

    pub(crate) fn locks(&self) -> &SessionLocks {
        &self.inner.locks
    }

    pub(crate) fn scheduler_lock(&self) -> &SchedulerLock {
        &self.inner.scheduler_lock
    }

    /// Runs `write` on the writer thread, with exclusive use of its connection.
    pub(crate) async fn write<T, Write>(&self, write: Write) -> Result<T, StoreError>
    where
        T: Send + 'static,
        Write: FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let location = self.inner.location.clone();
        let job = move |connection: &mut Connection| {
            write(connection).map_err(|error| sqlite_error(error, location.path()))
        };
        self.writer()?.run(job).await
    }

    /// Runs a small write in a transaction that it shares with other small writes and appends.
    pub(crate) async fn batch<T, Write>(&self, write: Write) -> Result<T, StoreError>
    where
        T: Send + 'static,
        Write: FnOnce(&Connection) -> Result<T, WriteError> + Send + 'static,
    {
        self.writer()?.batch(write).await
    }

    /// Runs `read` on a pooled connection, concurrently with the writer. A store in memory has only
    /// the writer's connection.
    pub(crate) async fn read<T, Read>(&self, read: Read) -> Result<T, StoreError>
    where
        T: Send + 'static,
        Read: FnOnce(&RowReader<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        let StoreLocation::File(file) = self.inner.location.clone() else {
            let damage = self.inner.damage.clone();
            return self
                .write(move |connection| read(&RowReader::new(connection, &damage)))
                .await;
        };
        let inner = Arc::clone(&self.inner);
        let task = tokio::task::spawn_blocking(move || {
            let connection = match inner.idle_readers().pop() {
                Some(connection) => connection,
                None => database::open_reader(&file, inner.read_mode())?,
            };
            let value = read(&RowReader::new(&connection, &inner.damage))
                .map_err(|error| sqlite_error(error, &file))?;
            let mut idle = inner.idle_readers();
            if idle.len() < MAX_READERS {
                idle.push(connection);
            }
            Ok(value)
        });
        task.await
            .map_err(|error| StoreError::Other(error.to_string()))?
    }
}

impl SqliteStoreInner {
    fn read_mode(&self) -> ReadMode {
        match self.write_access {
            WriteAccess::Writer(_) => ReadMode::Shared,
            WriteAccess::ReadOnly { read_mode, .. } => read_mode,
        }
    }

    fn idle_readers(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the path of a lock file or folder. It is next to the canonical path of the store, so that
/// every process finds the same locks, whichever path it opened.
fn path_beside(file: &std::path::Path, suffix: &str) -> PathBuf {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    file.with_file_name(name)
}
