//! Backup, restore and health checks.

use std::path::{Path, PathBuf};

use lango_domain::StoreError;
use lango_domain::maintenance::{DamagedRow, StoreHealth, StoreMaintenance};
use lango_domain::session::StoreFuture;
use rusqlite::{Connection, TransactionBehavior};

use crate::blobs;
use crate::database::{self, ReadMode, StoreLocation};

use crate::inquiries;
use crate::knowledge;
use crate::memory;
use crate::sessions;
use crate::store::SqliteStore;

impl SqliteStore {
    /// Replaces the content of the store with a backup, in one transaction. The previous content is
    /// saved to `keep` first. A file that cannot be opened is moved there unchanged.
    pub async fn restore(
        location: StoreLocation,
        from: &Path,
        keep: &Path,
    ) -> Result<(), StoreError> {
        check_backup(from)?;
        let store = match Self::open(location.clone()) {
            Ok(store) => {
                if store.locks().is_any_held() {
                    return Err(StoreError::TurnsRunning);
                }
                store.back_up(keep).await?;
                store
            }
            Err(StoreError::Corrupt { .. } | StoreError::NewerSchema { .. }) => {
                quarantine(location.path(), keep)?;
                Self::open(location)?
            }
            Err(error) => return Err(error),
        };
        let from = from.to_path_buf();
        store
            .write(move |connection| replace(connection, &from))
            .await
    }

    /// Limits the size of the file, which simulates a full disk.
    #[doc(hidden)]
    pub async fn limit_pages_for_tests(&self, pages: Option<u32>) -> Result<(), StoreError> {
        let sql = format!("PRAGMA max_page_count = {}", pages.unwrap_or(u32::MAX - 1));
        self.write(move |connection| connection.query_row(&sql, [], |_| Ok(())))
            .await
    }
}

impl StoreMaintenance for SqliteStore {
    fn identity(&self) -> &str {
        self.store_identity()
    }

    fn is_in_memory(&self) -> bool {
        *self.location() == StoreLocation::Memory
    }

    fn damaged_rows(&self) -> Vec<DamagedRow> {
        self.skipped_rows()
    }

    fn back_up<'a>(&'a self, into: &'a Path) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            create_private(into)?;
            let target = into.to_string_lossy().into_owned();
            let copied = self
                .write(move |connection| connection.execute("VACUUM INTO ?1", [target]))
                .await;
            let synced = copied.and_then(|_| {
                let synced = std::fs::File::open(into).and_then(|file| file.sync_all());
                synced.map_err(|error| StoreError::Io {
                    file: into.to_path_buf(),
                    reason: error.to_string(),
                })
            });
            synced.inspect_err(|_| _ = std::fs::remove_file(into))
        })
    }

    fn check_writable(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.write(|connection| {
                let transaction =
                    connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                let format: i64 =
                    transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
                transaction.pragma_update(None, "user_version", format)?;
                transaction.commit()
            })
            .await
        })
    }

    fn find_damaged_rows(&self) -> StoreFuture<'_, Vec<DamagedRow>> {
        Box::pin(async move {
            self.read(|reader| {
                sessions::read_all(reader)?;
                blobs::read_all(reader)?;
                memory::read_all(reader)?;
                knowledge::read_all(reader)?;
                inquiries::read_all(reader)
            })
            .await?;
            Ok(self.skipped_rows())
        })
    }

    fn health(&self) -> StoreFuture<'_, StoreHealth> {
        Box::pin(async move {
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
        })
    }
}

fn problems(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut query = connection.prepare("PRAGMA quick_check(20)")?;
    let lines: Vec<String> = query
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

/// Checks that a file is an intact Lango store.
fn check_backup(from: &Path) -> Result<(), StoreError> {
    let invalid = |reason: String| StoreError::InvalidBackup {
        file: from.to_path_buf(),
        reason,
    };
    let source = database::open_reader(from, ReadMode::Shared)
        .map_err(|error| invalid(error.to_string()))?;
    match database::schema_version(&source, from) {
        Ok(Some(_)) => {}
        Ok(None) => return Err(invalid("the file is empty".to_owned())),
        Err(error) => return Err(invalid(error.to_string())),
    }
    let problems = problems(&source).map_err(|error| invalid(error.to_string()))?;
    if problems.is_empty() {
        Ok(())
    } else {
        Err(invalid(problems.join("; ")))
    }
}

fn replace(connection: &mut Connection, from: &Path) -> rusqlite::Result<()> {
    connection.execute("ATTACH ?1 AS backup", [from.to_string_lossy()])?;
    let replaced = (|| {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(
            "DELETE FROM sessions; DELETE FROM usage;
            INSERT INTO sessions SELECT * FROM backup.sessions;
            INSERT INTO events SELECT * FROM backup.events;
            INSERT INTO usage SELECT * FROM backup.usage;
            DELETE FROM documents; DELETE FROM vectors; DELETE FROM graph_batches;
            DELETE FROM knowledge; DELETE FROM learnings; DELETE FROM observations; DELETE
            FROM reflections;",
        )?;
        // A backup of an older version may lack some tables.
        let has = |table: &str| {
            let sql = "SELECT count(*) FROM backup.sqlite_master WHERE name = ?1";
            transaction
                .query_row(sql, [table], |row| row.get::<_, i64>(0))
                .map(|count| count > 0)
        };
        if has("blobs")? {
            transaction.execute_batch(blobs::RESTORE)?;
        }
        if has("knowledge")? {
            transaction.execute_batch(knowledge::RESTORE)?;
        }
        if has("observations")? {
            transaction.execute_batch(memory::RESTORE)?;
        }
        if has("documents")? {
            transaction.execute_batch(
                "INSERT INTO documents SELECT * FROM backup.documents;
                INSERT INTO pieces SELECT * FROM backup.pieces;
                INSERT INTO vectors SELECT * FROM backup.vectors;",
            )?;
        }
        if has("graph_batches")? {
            // With new numbers, so that graphs in memory notice the change. An older backup has no labels.
            let sql = "SELECT count(*) FROM pragma_table_info('graph_batches', 'backup') WHERE name = 'label'";
            let has_labels: i64 = transaction.query_row(sql, [], |row| row.get(0))?;
            let label = if has_labels > 0 { "label" } else { "NULL" };
            transaction.execute_batch(&format!(
                "INSERT INTO graph_batches (principal, source, body, label)
                SELECT principal, source, body, {label} FROM backup.graph_batches ORDER BY number;"
            ))?;
        }
        transaction.commit()
    })();
    connection.execute("DETACH backup", [])?;
    replaced
}

/// Creates a new file that only the user can read.
fn create_private(file: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::OpenOptionsExt;
    let created = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file);
    created.map(drop).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => StoreError::FileExists(file.to_path_buf()),
        std::io::ErrorKind::StorageFull => StoreError::DiskFull,
        _ => StoreError::ReadOnly {
            file: file.to_path_buf(),
            reason: error.to_string(),
        },
    })
}

/// Moves an unusable store file to `keep`, together with its WAL and shared memory file.
fn quarantine(file: &Path, keep: &Path) -> Result<(), StoreError> {
    for suffix in ["", "-wal", "-shm"] {
        let with_suffix = |path: &Path| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        match std::fs::rename(with_suffix(file), with_suffix(keep)) {
            Err(error) if suffix.is_empty() || error.kind() != std::io::ErrorKind::NotFound => {
                return Err(StoreError::ReadOnly {
                    file: file.to_path_buf(),
                    reason: error.to_string(),
                });
            }
            _ => {}
        }
    }
    Ok(())
}
