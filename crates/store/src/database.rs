//! The file: how it is opened, what is in it, who may read it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};

use crate::a2a_tasks;
use crate::access_tokens;
use crate::documents;
use crate::error::SqliteStoreError;
use crate::graph;
use crate::knowledge;
use crate::memory;

/// "Lang" in the header: what else is no store of Lango's.
const APPLICATION_ID: i64 = 0x4c61_6e67;
/// How long a connection waits for another process before it says that it is busy.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(60);

/// Each step brings a file from one format to the next; steps are never changed, only added.
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
    -- What sessions took that are gone.
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
    -- What is derived from this file knows by it that it is this one.
    CREATE TABLE identity (id TEXT NOT NULL) STRICT;
    INSERT INTO identity (id) VALUES (lower(hex(randomblob(8))));
",
    // What entries were made from. Nothing where they are older than labels.
    "
    ALTER TABLE observations ADD COLUMN label TEXT;
    ALTER TABLE reflections ADD COLUMN label TEXT;
    ALTER TABLE knowledge ADD COLUMN label TEXT;
    ALTER TABLE learnings ADD COLUMN label TEXT;
    ALTER TABLE graph_batches ADD COLUMN label TEXT;
",
];

/// Where sessions are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreLocation {
    File(PathBuf),
    /// For as long as the process lives.
    Memory,
}

impl StoreLocation {
    /// `:memory:` is no file.
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

/// The connection that writes; brings the file to the newest format.
pub(crate) fn open_writer(place: &StoreLocation) -> Result<Connection, SqliteStoreError> {
    let file = place.path();
    if let StoreLocation::File(file) = place {
        create_private(file)?;
    }
    let trouble = |error| SqliteStoreError::from_sqlite(error, file);
    let mut connection = Connection::open(file).map_err(trouble)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(trouble)?;
    retry_while_busy(|| prepare(&mut connection, file))?;
    Ok(connection)
}

fn prepare(connection: &mut Connection, file: &Path) -> Result<(), SqliteStoreError> {
    if schema_version(connection, file)?.is_some() {
        restrict_permissions(file)?;
    } else {
        // Only before there is anything in it: what is deleted can be given back to the disk.
        connection
            .execute_batch("PRAGMA auto_vacuum = INCREMENTAL;")
            .map_err(|error| SqliteStoreError::from_sqlite(error, file))?;
    }
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON;",
        )
        .map_err(|error| SqliteStoreError::from_sqlite(error, file))?;
    migrate(connection, file)
}

/// SQLite does not wait by itself where two processes both turn a new file to WAL; so whoever is told "busy" comes again.
fn retry_while_busy(
    mut step: impl FnMut() -> Result<(), SqliteStoreError>,
) -> Result<(), SqliteStoreError> {
    let until = Instant::now() + BUSY_TIMEOUT;
    loop {
        match step() {
            Err(SqliteStoreError::Busy) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(5))
            }
            done => return done,
        }
    }
}

/// What no other file has; a copy has it too.
pub(crate) fn identity(
    connection: &Connection,
    place: &StoreLocation,
) -> Result<String, SqliteStoreError> {
    let found = connection.query_row("SELECT id FROM identity", [], |row| row.get(0));
    found.map_err(|error| SqliteStoreError::from_sqlite(error, place.path()))
}

/// Who else may use the file while it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// Others may write to it.
    Shared,
    /// Nobody can: where neither the file nor its folder can be written, SQLite has no place for the memory that it shares
    /// with writers.
    Immutable,
}

/// A connection that cannot write.
pub(crate) fn open_reader(file: &Path, sharing: ReadMode) -> Result<Connection, SqliteStoreError> {
    let trouble = |error| SqliteStoreError::from_sqlite(error, file);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match sharing {
        ReadMode::Shared => Connection::open_with_flags(file, flags),
        ReadMode::Immutable => {
            Connection::open_with_flags(immutable_uri(file), flags | OpenFlags::SQLITE_OPEN_URI)
        }
    };
    let connection = connection.map_err(trouble)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(trouble)?;
    Ok(connection)
}

/// The address of a file that does not change.
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

/// How a file of ours can be read that cannot be written.
pub(crate) fn open_read_only(file: &Path) -> Result<(Connection, ReadMode), SqliteStoreError> {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    let has_log = fs::metadata(log).is_ok_and(|log| log.len() > 0);
    let opened = |sharing: ReadMode| {
        let connection = open_reader(file, sharing)?;
        match schema_version(&connection, file)? {
            Some(format) if format == MIGRATIONS.len() as i64 => Ok((connection, sharing)),
            _ => Err(SqliteStoreError::ReadOnly {
                file: file.to_path_buf(),
                reason: "it has an older format, and bringing it to the newest one needs writing"
                    .to_owned(),
            }),
        }
    };
    match opened(ReadMode::Shared) {
        // What stands in a log would be passed over.
        Err(SqliteStoreError::ReadOnly { .. } | SqliteStoreError::DiskFull) if !has_log => {
            opened(ReadMode::Immutable)
        }
        opened => opened,
    }
}

fn open_error(file: &Path, error: &std::io::Error) -> SqliteStoreError {
    match error.kind() {
        std::io::ErrorKind::StorageFull => SqliteStoreError::DiskFull,
        _ => SqliteStoreError::ReadOnly {
            file: file.to_path_buf(),
            reason: error.to_string(),
        },
    }
}

/// A new folder and a new file are the user's alone, from the first moment.
fn create_private(file: &Path) -> Result<(), SqliteStoreError> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    if let Some(folder) = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty() && !folder.exists())
    {
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder);
        made.map_err(|error| open_error(file, &error))?;
    }
    let opened = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(file);
    opened.map(drop).map_err(|error| open_error(file, &error))
}

/// A file of ours that others can read is closed to them; nobody else's file is touched.
fn restrict_permissions(file: &Path) -> Result<(), SqliteStoreError> {
    use std::os::unix::fs::PermissionsExt;
    let Ok(found) = fs::metadata(file) else {
        return Ok(());
    };
    if found.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(file, fs::Permissions::from_mode(0o600))
        .map_err(|error| open_error(file, &error))
}

/// The format of a file of ours, nothing for an empty one; a file of somebody else's or of a newer Lango is refused.
pub(crate) fn schema_version(
    connection: &Connection,
    file: &Path,
) -> Result<Option<i64>, SqliteStoreError> {
    // In one look: another process may be making the file at this moment.
    let look = || -> rusqlite::Result<(i64, i64, bool)> {
        let look = connection.unchecked_transaction()?;
        let number =
            |pragma: &str| look.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
        Ok((
            number("application_id")?,
            number("user_version")?,
            number("schema_version")? == 0,
        ))
    };
    let (owner, format, is_empty) =
        look().map_err(|error| SqliteStoreError::from_sqlite(error, file))?;
    if is_empty && owner == 0 {
        return Ok(None);
    }
    if owner != APPLICATION_ID {
        return Err(SqliteStoreError::Corrupt {
            file: file.to_path_buf(),
        });
    }
    let known = MIGRATIONS.len() as i64;
    if format > known {
        return Err(SqliteStoreError::NewerSchema {
            file: file.to_path_buf(),
            found: format,
            known,
        });
    }
    Ok(Some(format))
}

/// In one transaction: another process that opens the file at the same moment finds all of it or nothing.
fn migrate(connection: &mut Connection, file: &Path) -> Result<(), SqliteStoreError> {
    let run = |connection: &mut Connection| -> rusqlite::Result<()> {
        let known = MIGRATIONS.len() as i64;
        if connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))? == known
        {
            return Ok(());
        }
        let change =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let format: i64 = change.pragma_query_value(None, "user_version", |row| row.get(0))?;
        for step in MIGRATIONS.iter().skip(format.max(0) as usize) {
            change.execute_batch(step)?;
        }
        change.pragma_update(None, "application_id", APPLICATION_ID)?;
        change.pragma_update(None, "user_version", known)?;
        change.commit()
    };
    run(connection).map_err(|error| SqliteStoreError::from_sqlite(error, file))
}
