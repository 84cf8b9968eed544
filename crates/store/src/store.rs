//! The store itself: appends go to the writer, reads to a pool of connections.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::{BoxFuture, FutureExt};
use lango_domain::event::{Event, EventBody, Grant, NewEvent, Principal, SessionId};
use lango_domain::session::{
    HistoryWindow, SessionKeyRef, SessionStore, StoreError, TurnLock, grant_from_event,
};
use rusqlite::{Connection, params};

use crate::damage::{DamageLog, DamagedRow, RowReader};
use crate::database::{self, ReadMode, StoreLocation};
use crate::error::SqliteStoreError;
use crate::event_rows;
use crate::reserve::DiskReserve;
use crate::session_locks::SessionLocks;
use crate::writer::StoreWriter;

/// So many idle connections are kept for reading.
const MAX_READERS: usize = 4;

/// Sessions in one SQLite file; cheap to clone.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<SqliteStoreInner>,
}

struct SqliteStoreInner {
    location: StoreLocation,
    identity: String,
    write_access: WriteAccess,
    /// Room for deleting on a full disk; a store in memory has none.
    reserve: Option<DiskReserve>,
    readers: Mutex<Vec<Connection>>,
    locks: SessionLocks,
    damage: DamageLog,
}

/// Who writes.
enum WriteAccess {
    Writer(StoreWriter),
    /// Nobody: what is kept can only be looked at.
    ReadOnly {
        error: SqliteStoreError,
        read_mode: ReadMode,
    },
}

impl SqliteStore {
    /// Opens the file, makes it where there is none, and brings an older one to the newest format. A file that is there and
    /// cannot be written is opened to be looked at.
    pub fn open(place: StoreLocation) -> Result<Self, SqliteStoreError> {
        let reserve = match &place {
            StoreLocation::File(file) => Some(DiskReserve::for_store(file)),
            StoreLocation::Memory => None,
        };
        let opened = match database::open_writer(&place) {
            Err(SqliteStoreError::DiskFull)
                if reserve.as_ref().is_some_and(DiskReserve::release) =>
            {
                database::open_writer(&place)
            }
            opened => opened,
        };
        match opened {
            Ok(connection) => Self::with_writer(place, connection, reserve),
            Err(trouble) => Self::read_only(place, trouble),
        }
    }

    fn with_writer(
        place: StoreLocation,
        connection: Connection,
        reserve: Option<DiskReserve>,
    ) -> Result<Self, SqliteStoreError> {
        let identity = database::identity(&connection, &place)?;
        let writer = StoreWriter::start(connection, place.clone())
            .map_err(|error| SqliteStoreError::Other(error.to_string()))?;
        reserve.iter().for_each(DiskReserve::ensure);
        Ok(Self::from_parts(
            place,
            identity,
            WriteAccess::Writer(writer),
            reserve,
        ))
    }

    /// A full disk is one that cannot be written, too.
    fn read_only(
        place: StoreLocation,
        trouble: SqliteStoreError,
    ) -> Result<Self, SqliteStoreError> {
        let (
            StoreLocation::File(file),
            SqliteStoreError::ReadOnly { .. } | SqliteStoreError::DiskFull,
        ) = (&place, &trouble)
        else {
            return Err(trouble);
        };
        if !std::fs::metadata(file).is_ok_and(|found| found.is_file() && found.len() > 0) {
            return Err(trouble);
        }
        let (connection, sharing) = database::open_read_only(file)?;
        let identity = database::identity(&connection, &place)?;
        Ok(Self::from_parts(
            place,
            identity,
            WriteAccess::ReadOnly {
                error: trouble,
                read_mode: sharing,
            },
            None,
        ))
    }

    fn from_parts(
        place: StoreLocation,
        identity: String,
        pen: WriteAccess,
        reserve: Option<DiskReserve>,
    ) -> Self {
        let folder = match &place {
            StoreLocation::File(file) => Some(lock_folder(file)),
            StoreLocation::Memory => None,
        };
        let (locks, readers, damage) = (
            SessionLocks::new(folder),
            Mutex::default(),
            DamageLog::default(),
        );
        Self {
            inner: Arc::new(SqliteStoreInner {
                location: place,
                identity,
                write_access: pen,
                reserve,
                readers,
                locks,
                damage,
            }),
        }
    }

    pub fn location(&self) -> &StoreLocation {
        &self.inner.location
    }

    /// Another file has another one.
    pub fn identity(&self) -> &str {
        &self.inner.identity
    }

    /// Rows that were skipped so far because they cannot be read.
    pub fn damaged_rows(&self) -> Vec<DamagedRow> {
        self.inner.damage.rows()
    }

    pub(crate) fn reserve(&self) -> Option<&DiskReserve> {
        self.inner.reserve.as_ref()
    }

    /// Whoever writes; what cannot be written says so.
    pub(crate) fn writer(&self) -> Result<&StoreWriter, SqliteStoreError> {
        match &self.inner.write_access {
            WriteAccess::Writer(writer) => Ok(writer),
            WriteAccess::ReadOnly {
                error: SqliteStoreError::ReadOnly { file, reason: why },
                ..
            } => Err(SqliteStoreError::ReadOnly {
                file: file.clone(),
                reason: why.clone(),
            }),
            WriteAccess::ReadOnly { .. } => Err(SqliteStoreError::DiskFull),
        }
    }

    pub(crate) fn locks(&self) -> &SessionLocks {
        &self.inner.locks
    }

    /// Changes something that is no append.
    pub(crate) async fn write<T, Change>(&self, change: Change) -> Result<T, SqliteStoreError>
    where
        T: Send + 'static,
        Change: FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let place = self.inner.location.clone();
        let changed = move |connection: &mut Connection| {
            change(connection).map_err(|error| SqliteStoreError::from_sqlite(error, place.path()))
        };
        self.writer()?.run(changed).await
    }

    /// Looks something up beside the writer; in memory there is only its connection.
    pub(crate) async fn read<T, Look>(&self, look: Look) -> Result<T, SqliteStoreError>
    where
        T: Send + 'static,
        Look: FnOnce(&RowReader<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        let StoreLocation::File(file) = self.inner.location.clone() else {
            let damage = self.inner.damage.clone();
            return self
                .write(move |connection| look(&RowReader::new(connection, &damage)))
                .await;
        };
        let shared = Arc::clone(&self.inner);
        let task = tokio::task::spawn_blocking(move || {
            let connection = match shared.idle_readers().pop() {
                Some(connection) => connection,
                None => database::open_reader(&file, shared.read_mode())?,
            };
            let found = look(&RowReader::new(&connection, &shared.damage))
                .map_err(|error| SqliteStoreError::from_sqlite(error, &file))?;
            let mut idle = shared.idle_readers();
            if idle.len() < MAX_READERS {
                idle.push(connection);
            }
            Ok(found)
        });
        task.await
            .map_err(|error| SqliteStoreError::Other(error.to_string()))?
    }
}

impl SqliteStoreInner {
    fn read_mode(&self) -> ReadMode {
        match self.write_access {
            WriteAccess::Writer(_) => ReadMode::Shared,
            WriteAccess::ReadOnly {
                read_mode: sharing, ..
            } => sharing,
        }
    }

    fn idle_readers(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Beside the file, whatever it was called, so that everyone who uses it finds the same locks.
fn lock_folder(file: &std::path::Path) -> PathBuf {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push("-locks");
    file.with_file_name(name)
}

impl SessionStore for SqliteStore {
    fn lock<'a>(&'a self, key: SessionKeyRef<'a>) -> BoxFuture<'a, Result<TurnLock, StoreError>> {
        async move {
            self.writer()?;
            self.inner.locks.lock(key).await
        }
        .boxed()
    }

    fn load<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        reach: HistoryWindow,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        let (principal, session) = (key.principal.clone(), key.session.clone());
        async move {
            Ok(self
                .read(move |connection| load(connection, &principal, &session, reach))
                .await?)
        }
        .boxed()
    }

    fn append<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        drafts: Vec<NewEvent>,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        async move { Ok(self.writer()?.append(key.to_owned(), drafts).await?) }.boxed()
    }

    fn grants<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        tool: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Grant>, StoreError>> {
        let (principal, session, tool) =
            (key.principal.clone(), key.session.clone(), tool.to_owned());
        async move {
            Ok(self
                .read(move |connection| grants(connection, &principal, &session, &tool))
                .await?)
        }
        .boxed()
    }
}

fn grants(
    connection: &RowReader<'_>,
    principal: &Principal,
    session: &SessionId,
    tool: &str,
) -> rusqlite::Result<Vec<Grant>> {
    let Some(place) = event_rows::find_session(connection, principal.as_str(), session.as_str())?
    else {
        return Ok(Vec::new());
    };
    let sql = format!(
        "SELECT {} FROM events WHERE session = ?1 AND kind = 'approval' ORDER BY seq",
        event_rows::COLUMNS
    );
    let mut query = connection.prepare_cached(&sql)?;
    let mut found = query.query(params![place.id])?;
    let mut grants = Vec::new();
    while let Some(row) = found.next()? {
        let event = connection.check_row(
            row,
            event_rows::event_name(session.as_str()),
            event_rows::event(row, session),
        )?;
        grants.extend(event.and_then(|event| grant_from_event(&event, tool)));
    }
    Ok(grants)
}

/// Backwards from the end, and no further than asked for.
pub(crate) fn load(
    connection: &RowReader<'_>,
    principal: &Principal,
    session: &SessionId,
    reach: HistoryWindow,
) -> rusqlite::Result<Vec<Arc<Event>>> {
    let Some(place) = event_rows::find_session(connection, principal.as_str(), session.as_str())?
    else {
        return Ok(Vec::new());
    };
    let sql = format!(
        "SELECT {} FROM events WHERE session = ?1 ORDER BY seq DESC",
        event_rows::COLUMNS
    );
    let mut query = connection.prepare_cached(&sql)?;
    let mut found = query.query(params![place.id])?;
    let (mut events, mut bytes) = (Vec::new(), 0);
    while let Some(row) = found.next()? {
        bytes += row.get_ref(5)?.as_str().map_or(0, str::len);
        let event = connection.check_row(
            row,
            event_rows::event_name(session.as_str()),
            event_rows::event(row, session),
        )?;
        let Some(event) = event else { continue };
        let begins_turn = matches!(event.body, EventBody::User { .. });
        events.push(event);
        if begins_turn && reach.is_satisfied_by(bytes) {
            break;
        }
    }
    events.reverse();
    Ok(events)
}
