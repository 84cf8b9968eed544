//! Opening, migrating and protecting the database file.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lango_domain::StoreError;
use rusqlite::{Connection, OpenFlags};

use crate::a2a_tasks;
use crate::access_tokens;
use crate::automation;
use crate::blobs;
use crate::documents;
use crate::error::sqlite_error;

use crate::graph;
use crate::knowledge;
use crate::memory;
use crate::payments;
use crate::vault;

/// SQLite's application id of a Lango store: "Lang". Files with another id are refused.
const APPLICATION_ID: i64 = 0x4c61_6e67;
/// Time that a connection waits for another process before it fails with `Busy`.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(60);

/// Schema migrations in order. Released migrations are never changed; new ones are appended.
const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE sessions (
        id INTEGER PRIMARY KEY,
        principal TEXT NOT NULL,
        name TEXT NOT NULL,
        title TEXT NOT NULL DEFAULT '',
        created TEXT NOT NULL,
        updated TEXT NOT NULL,
        UNIQUE (principal, name)
    ) STRICT;
    CREATE INDEX sessions_by_use ON sessions (principal, updated);
    CREATE TABLE events (
        session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        turn TEXT NOT NULL,
        author TEXT NOT NULL,
        branch TEXT NOT NULL,
        at TEXT NOT NULL,
        kind TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (session, seq)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX usage_events ON events (session, seq) WHERE kind = 'usage';
    -- Usage of deleted sessions.
    CREATE TABLE usage (
        principal TEXT NOT NULL,
        turn TEXT NOT NULL,
        agent TEXT NOT NULL,
        branch TEXT NOT NULL,
        body TEXT NOT NULL
    ) STRICT;
",
    documents::TABLES,
    graph::TABLES,
    access_tokens::TABLES,
    memory::TABLES,
    knowledge::TABLES,
    a2a_tasks::TABLES,
    "
    -- Identifies this file to the indexes that are derived from it.
    CREATE TABLE identity (id TEXT NOT NULL) STRICT;
    INSERT INTO identity (id) VALUES (lower(hex(randomblob(8))));
",
    // Labels of the sources of entries. NULL in rows that are older than labels.
    "
    ALTER TABLE observations ADD COLUMN label TEXT;
    ALTER TABLE reflections ADD COLUMN label TEXT;
    ALTER TABLE knowledge ADD COLUMN label TEXT;
    ALTER TABLE learnings ADD COLUMN label TEXT;
    ALTER TABLE graph_batches ADD COLUMN label TEXT;
",
    blobs::TABLES,
    automation::TABLES,
    vault::TABLES,
    payments::TABLES,
    automation::QUESTIONS_AND_ACTIVE_TIME,
];

/// The location of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreLocation {
    File(PathBuf),
    /// In memory, for the lifetime of the process.
    Memory,
}

impl StoreLocation {
    /// Returns `Memory` for `:memory:`, and `File` for any other path.
    pub fn from_path(path: &Path) -> Self {
        if path == Path::new(":memory:") {
            Self::Memory
        } else {
            Self::File(path.to_path_buf())
        }
    }

    pub fn path(&self) -> &Path {
        match self {
            Self::File(file) => file,
            Self::Memory => Path::new(":memory:"),
        }
    }
}

/// Opens the writing connection. Creates the file if needed and runs the migrations.
pub(crate) fn open_writer(location: &StoreLocation) -> Result<Connection, StoreError> {
    let file = location.path();
    if let StoreLocation::File(file) = location {
        create_private(file)?;
    }
    let to_store_error = |error| sqlite_error(error, file);
    let mut connection = Connection::open(file).map_err(to_store_error)?;
    connection
        .busy_timeout(BUSY_TIMEOUT)
        .map_err(to_store_error)?;
    retry_while_busy(|| prepare(&mut connection, file))?;
    Ok(connection)
}

fn prepare(connection: &mut Connection, file: &Path) -> Result<(), StoreError> {
    if schema_version(connection, file)?.is_some() {
        restrict_permissions(file)?;
    } else {
        // Can only be set before the first table exists. Lets deletions shrink the file.
        connection
            .execute_batch("PRAGMA auto_vacuum = INCREMENTAL;")
            .map_err(|error| sqlite_error(error, file))?;
    }
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON;",
        )
        .map_err(|error| sqlite_error(error, file))?;
    migrate(connection, file)
}

/// Retries a step that fails with `Busy`. The busy timeout does not apply when two processes switch
/// a new file to WAL at the same time.
fn retry_while_busy(mut step: impl FnMut() -> Result<(), StoreError>) -> Result<(), StoreError> {
    let until = Instant::now() + BUSY_TIMEOUT;
    loop {
        match step() {
            Err(StoreError::Busy) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(5))
            }
            done => return done,
        }
    }
}

/// Reads the random id of the file. Copies of the file share it.
pub(crate) fn identity(
    connection: &Connection,
    location: &StoreLocation,
) -> Result<String, StoreError> {
    let found = connection.query_row("SELECT id FROM identity", [], |row| row.get(0));
    found.map_err(|error| sqlite_error(error, location.path()))
}

/// The assumption about other users of a file that is opened for reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// Other connections may write to the file.
    Shared,
    /// No connection can write to the file. Needed when neither the file nor its folder is
    /// writable, because SQLite cannot create its shared memory file then.
    Immutable,
}

/// Opens a read-only connection.
pub(crate) fn open_reader(file: &Path, read_mode: ReadMode) -> Result<Connection, StoreError> {
    let to_store_error = |error| sqlite_error(error, file);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match read_mode {
        ReadMode::Shared => Connection::open_with_flags(file, flags),
        ReadMode::Immutable => {
            Connection::open_with_flags(immutable_uri(file), flags | OpenFlags::SQLITE_OPEN_URI)
        }
    };
    let connection = connection.map_err(to_store_error)?;
    connection
        .busy_timeout(BUSY_TIMEOUT)
        .map_err(to_store_error)?;
    Ok(connection)
}

/// Returns the URI that opens a file as immutable.
fn immutable_uri(file: &Path) -> PathBuf {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let mut address = b"file:".to_vec();
    for byte in file.as_os_str().as_bytes() {
        match byte {
            b'%' | b'?' | b'#' => address.extend(format!("%{byte:02x}").bytes()),
            byte => address.push(*byte),
        }
    }
    address.extend(b"?immutable=1");
    std::ffi::OsString::from_vec(address).into()
}

/// Returns the file that every write to a store changes.
pub fn log_file(store: &Path) -> PathBuf {
    let mut log = store.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}

/// Opens a store file that cannot be written. Returns the read mode for further connections.
pub(crate) fn open_read_only(file: &Path) -> Result<(Connection, ReadMode), StoreError> {
    let has_log = fs::metadata(log_file(file)).is_ok_and(|log| log.len() > 0);
    let open = |read_mode: ReadMode| {
        let connection = open_reader(file, read_mode)?;
        match schema_version(&connection, file)? {
            Some(format) if format == MIGRATIONS.len() as i64 => Ok((connection, read_mode)),
            _ => Err(StoreError::ReadOnly {
                file: file.to_path_buf(),
                reason: "it has an older schema, and migrating it requires write access".to_owned(),
            }),
        }
    };
    match open(ReadMode::Shared) {
        // An immutable connection ignores the WAL, so it is only used when the WAL is empty.
        Err(StoreError::ReadOnly { .. } | StoreError::DiskFull) if !has_log => {
            open(ReadMode::Immutable)
        }
        opened => opened,
    }
}

fn open_error(file: &Path, error: &std::io::Error) -> StoreError {
    match error.kind() {
        std::io::ErrorKind::StorageFull => StoreError::DiskFull,
        _ => StoreError::ReadOnly {
            file: file.to_path_buf(),
            reason: error.to_string(),
        },
    }
}

/// Creates missing folders and the file, accessible only to the user from the start.
fn create_private(file: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    if let Some(folder) = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty() && !folder.exists())
    {
        let created = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder);
        created.map_err(|error| open_error(file, &error))?;
    }
    let opened = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(file);
    opened.map(drop).map_err(|error| open_error(file, &error))
}

/// Removes the permissions of group and others. Called only for files with our application id.
fn restrict_permissions(file: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::PermissionsExt;
    let Ok(metadata) = fs::metadata(file) else {
        return Ok(());
    };
    if metadata.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(file, fs::Permissions::from_mode(0o600))
        .map_err(|error| open_error(file, &error))
}

/// Returns the schema version of a store, or `None` for an empty file. Fails for a file of another
/// application or with a newer schema.
pub(crate) fn schema_version(
    connection: &Connection,
    file: &Path,
) -> Result<Option<i64>, StoreError> {
    // In one transaction, because another process may be creating the file at the same time.
    let read = || -> rusqlite::Result<(i64, i64, bool)> {
        let transaction = connection.unchecked_transaction()?;
        let number =
            |pragma: &str| transaction.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
        Ok((
            number("application_id")?,
            number("user_version")?,
            number("schema_version")? == 0,
        ))
    };
    let (owner, format, is_empty) = read().map_err(|error| sqlite_error(error, file))?;
    if is_empty && owner == 0 {
        return Ok(None);
    }
    if owner != APPLICATION_ID {
        return Err(StoreError::Corrupt {
            file: file.to_path_buf(),
        });
    }
    let known = MIGRATIONS.len() as i64;
    if format > known {
        return Err(StoreError::NewerSchema {
            file: file.to_path_buf(),
            found: format,
            known,
        });
    }
    Ok(Some(format))
}

/// Runs the missing migrations in one transaction, so that another process sees all or none of
/// them.
fn migrate(connection: &mut Connection, file: &Path) -> Result<(), StoreError> {
    let run = |connection: &mut Connection| -> rusqlite::Result<()> {
        let known = MIGRATIONS.len() as i64;
        if connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))? == known
        {
            return Ok(());
        }
        let transaction =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let format: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        for step in MIGRATIONS.iter().skip(format.max(0) as usize) {
            transaction.execute_batch(step)?;
        }
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", known)?;
        transaction.commit()
    };
    run(connection).map_err(|error| sqlite_error(error, file))
}
