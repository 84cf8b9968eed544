//! Backups, and what can be wrong with a file.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, TransactionBehavior};

use crate::damage::DamagedRow;
use crate::database::{self, ReadMode, StoreLocation};
use crate::error::SqliteStoreError;
use crate::inquiries;
use crate::knowledge;
use crate::memory;
use crate::sessions;
use crate::store::SqliteStore;

/// What a look at the file found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreHealth {
    pub sessions: u64,
    pub events: u64,
    pub bytes: u64,
    /// What SQLite's own check complains about; nothing when all is well.
    pub problems: Vec<String>,
}

impl SqliteStore {
    /// A whole copy in one file, while others go on.
    pub async fn back_up(&self, into: &Path) -> Result<(), SqliteStoreError> {
        create_private(into)?;
        let target = into.to_string_lossy().into_owned();
        let copied = self
            .write(move |connection| connection.execute("VACUUM INTO ?1", [target]))
            .await;
        let synced = copied.and_then(|_| {
            let synced = std::fs::File::open(into).and_then(|file| file.sync_all());
            synced.map_err(|error| SqliteStoreError::Io {
                file: into.to_path_buf(),
                reason: error.to_string(),
            })
        });
        synced.inspect_err(|_| _ = std::fs::remove_file(into))
    }

    /// Replaces everything by a backup, in one change that others see whole; what was there is kept in `keep`. What
    /// cannot be opened is moved there as it is.
    pub async fn restore(
        place: StoreLocation,
        from: &Path,
        keep: &Path,
    ) -> Result<(), SqliteStoreError> {
        check_backup(from)?;
        let store = match Self::open(place.clone()) {
            Ok(store) => {
                if store.locks().is_any_held() {
                    return Err(SqliteStoreError::TurnsRunning);
                }
                store.back_up(keep).await?;
                store
            }
            Err(SqliteStoreError::Corrupt { .. } | SqliteStoreError::NewerSchema { .. }) => {
                quarantine(place.path(), keep)?;
                Self::open(place)?
            }
            Err(trouble) => return Err(trouble),
        };
        let from = from.to_path_buf();
        store
            .write(move |connection| replace(connection, &from))
            .await
    }

    /// Whether something can be written at this moment.
    pub async fn check_writable(&self) -> Result<(), SqliteStoreError> {
        self.write(|connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let format: i64 = change.pragma_query_value(None, "user_version", |row| row.get(0))?;
            change.pragma_update(None, "user_version", format)?;
            change.commit()
        })
        .await
    }

    /// The file may not grow beyond so many pages: what a full disk looks like to it.
    #[doc(hidden)]
    pub async fn limit_pages_for_tests(&self, pages: Option<u32>) -> Result<(), SqliteStoreError> {
        let sql = format!("PRAGMA max_page_count = {}", pages.unwrap_or(u32::MAX - 1));
        self.write(move |connection| connection.query_row(&sql, [], |_| Ok(())))
            .await
    }

    /// Reads every row, of everybody, and gives those that cannot be read.
    pub async fn find_damaged_rows(&self) -> Result<Vec<DamagedRow>, SqliteStoreError> {
        self.read(|reader| {
            sessions::read_all(reader)?;
            memory::read_all(reader)?;
            reader.query_rows(
                knowledge::SELECT_ENTRY,
                [],
                knowledge::entry_name,
                knowledge::entry,
            )?;
            reader.query_rows(
                knowledge::SELECT_LEARNING,
                [],
                knowledge::learning_name,
                knowledge::learning,
            )?;
            reader.query_rows(
                inquiries::SELECT_INQUIRY,
                [],
                inquiries::inquiry_name,
                inquiries::inquiry,
            )?;
            Ok(())
        })
        .await?;
        Ok(self.damaged_rows())
    }

    pub async fn health(&self) -> Result<StoreHealth, SqliteStoreError> {
        self.read(|connection| {
            let number = |sql: &str| {
                connection
                    .query_row(sql, [], |row| row.get::<_, i64>(0))
                    .map(|n| n as u64)
            };
            Ok(StoreHealth {
                sessions: number("SELECT count(*) FROM sessions")?,
                events: number("SELECT count(*) FROM events")?,
                bytes: number("PRAGMA page_count")? * number("PRAGMA page_size")?,
                problems: problems(connection)?,
            })
        })
        .await
    }
}

fn problems(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut query = connection.prepare("PRAGMA quick_check(20)")?;
    let lines: Vec<String> = query
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

/// A backup is a whole file of ours.
fn check_backup(from: &Path) -> Result<(), SqliteStoreError> {
    let no = |why: String| SqliteStoreError::InvalidBackup {
        file: from.to_path_buf(),
        reason: why,
    };
    let source =
        database::open_reader(from, ReadMode::Shared).map_err(|trouble| no(trouble.to_string()))?;
    match database::schema_version(&source, from) {
        Ok(Some(_)) => {}
        Ok(None) => return Err(no("there is nothing in it".to_owned())),
        Err(trouble) => return Err(no(trouble.to_string())),
    }
    let complaints = problems(&source).map_err(|error| no(error.to_string()))?;
    if complaints.is_empty() {
        Ok(())
    } else {
        Err(no(complaints.join("; ")))
    }
}

fn replace(connection: &mut Connection, from: &Path) -> rusqlite::Result<()> {
    connection.execute("ATTACH ?1 AS backup", [from.to_string_lossy()])?;
    let replaced = (|| {
        let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        change.execute_batch(
            "DELETE FROM sessions; DELETE FROM usage;
            INSERT INTO sessions SELECT * FROM backup.sessions;
            INSERT INTO events SELECT * FROM backup.events;
            INSERT INTO usage SELECT * FROM backup.usage;
            DELETE FROM documents; DELETE FROM vectors; DELETE FROM graph_batches;
            DELETE FROM knowledge; DELETE FROM learnings; DELETE FROM observations; DELETE FROM reflections;",
        )?;
        // A backup of an older Lango does not have all.
        let has = |table: &str| {
            let sql = "SELECT count(*) FROM backup.sqlite_master WHERE name = ?1";
            change
                .query_row(sql, [table], |row| row.get::<_, i64>(0))
                .map(|count| count > 0)
        };
        if has("knowledge")? {
            change.execute_batch(knowledge::RESTORE)?;
        }
        if has("observations")? {
            change.execute_batch(memory::RESTORE)?;
        }
        if has("documents")? {
            change.execute_batch(
                "INSERT INTO documents SELECT * FROM backup.documents;
                INSERT INTO pieces SELECT * FROM backup.pieces;
                INSERT INTO vectors SELECT * FROM backup.vectors;",
            )?;
        }
        if has("graph_batches")? {
            // With new numbers, so that whoever holds facts in memory notices.
            change.execute_batch(
                "INSERT INTO graph_batches (principal, source, body)
                SELECT principal, source, body FROM backup.graph_batches ORDER BY number;",
            )?;
        }
        change.commit()
    })();
    connection.execute("DETACH backup", [])?;
    replaced
}

/// A new file that only the user can read.
fn create_private(file: &Path) -> Result<(), SqliteStoreError> {
    use std::os::unix::fs::OpenOptionsExt;
    let created = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file);
    created.map(drop).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => SqliteStoreError::FileExists(file.to_path_buf()),
        std::io::ErrorKind::StorageFull => SqliteStoreError::DiskFull,
        _ => SqliteStoreError::ReadOnly {
            file: file.to_path_buf(),
            reason: error.to_string(),
        },
    })
}

/// Moves a file that cannot be used out of the way, byte for byte, with what belongs to it.
fn quarantine(file: &Path, keep: &Path) -> Result<(), SqliteStoreError> {
    for ending in ["", "-wal", "-shm"] {
        let named = |path: &Path| {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            PathBuf::from(name)
        };
        match std::fs::rename(named(file), named(keep)) {
            Err(error) if ending.is_empty() || error.kind() != std::io::ErrorKind::NotFound => {
                return Err(SqliteStoreError::ReadOnly {
                    file: file.to_path_buf(),
                    reason: error.to_string(),
                });
            }
            _ => {}
        }
    }
    Ok(())
}
