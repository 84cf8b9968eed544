//! Backups, and what can be wrong with a file.

use std::path::Path;

use rusqlite::Connection;

use crate::error::Trouble;
use crate::file;
use crate::store::SqliteStore;

/// What a look at the file found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    pub sessions: u64,
    pub events: u64,
    pub bytes: u64,
    /// What SQLite's own check complains about; nothing when all is well.
    pub complaints: Vec<String>,
}

impl SqliteStore {
    /// A whole copy in one file, while others go on.
    pub async fn back_up(&self, into: &Path) -> Result<(), Trouble> {
        create_alone(into)?;
        let (target, place) = (into.to_path_buf(), self.place().clone());
        let copied = self
            .writer()
            .run(move |connection| {
                let copy = connection.execute("VACUUM INTO ?1", [target.to_string_lossy()]);
                copy.map_err(|error| Trouble::of(error, place.file()))?;
                let synced = std::fs::File::open(&target).and_then(|file| file.sync_all());
                synced.map_err(|error| Trouble::Disk { file: target, why: error.to_string() })
            })
            .await;
        if copied.is_err() {
            let _ = std::fs::remove_file(into);
        }
        copied
    }

    /// Replaces everything by a backup, in one change that others see whole; what was there is kept in `keep`.
    pub async fn restore(&self, from: &Path, keep: &Path) -> Result<(), Trouble> {
        check_backup(from)?;
        if self.locks().any_held() {
            return Err(Trouble::TurnsRunning);
        }
        self.back_up(keep).await?;
        self.restore_into_new(from).await
    }

    /// The same for a store that was just made: there is nothing to keep.
    pub async fn restore_into_new(&self, from: &Path) -> Result<(), Trouble> {
        let (from, place) = (from.to_path_buf(), self.place().clone());
        let replaced = move |connection: &mut Connection| {
            replace(connection, &from).map_err(|error| Trouble::of(error, place.file()))
        };
        self.writer().run(replaced).await
    }

    /// Whether a file is a whole backup.
    pub fn check_backup(file: &Path) -> Result<(), Trouble> {
        check_backup(file)
    }

    /// Whether something can be written at this moment.
    pub async fn try_to_write(&self) -> Result<(), Trouble> {
        let place = self.place().clone();
        let written = move |connection: &mut Connection| {
            let mut write = || -> rusqlite::Result<()> {
                let change =
                    connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
                let format: i64 = change.pragma_query_value(None, "user_version", |row| row.get(0))?;
                change.pragma_update(None, "user_version", format)?;
                change.commit()
            };
            write().map_err(|error| Trouble::of(error, place.file()))
        };
        self.writer().run(written).await
    }

    /// The file may not grow beyond so many pages: what a full disk looks like to it.
    #[doc(hidden)]
    pub async fn limit_pages_for_tests(&self, pages: Option<u32>) -> Result<(), Trouble> {
        let most = pages.unwrap_or(u32::MAX - 1);
        self.writer()
            .run(move |connection| {
                let set = connection.query_row(&format!("PRAGMA max_page_count = {most}"), [], |_| Ok(()));
                set.map_err(|error| Trouble::Other(error.to_string()))
            })
            .await
    }

    pub async fn health(&self) -> Result<Health, Trouble> {
        self.read(|connection| {
            let number =
                |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map(|n| n as u64);
            Ok(Health {
                sessions: number("SELECT count(*) FROM sessions")?,
                events: number("SELECT count(*) FROM events")?,
                bytes: number("PRAGMA page_count")? * number("PRAGMA page_size")?,
                complaints: complaints(connection)?,
            })
        })
        .await
    }
}

fn complaints(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut query = connection.prepare("PRAGMA quick_check(20)")?;
    let lines: Vec<String> = query.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

/// A backup is a whole file of ours.
fn check_backup(from: &Path) -> Result<(), Trouble> {
    let no = |why: String| Trouble::NoBackup { file: from.to_path_buf(), why };
    let source = file::open_to_read(from).map_err(|trouble| no(trouble.to_string()))?;
    match file::format_of(&source, from) {
        Ok(Some(_)) => {}
        Ok(None) => return Err(no("there is nothing in it".to_owned())),
        Err(trouble) => return Err(no(trouble.to_string())),
    }
    let complaints = complaints(&source).map_err(|error| no(error.to_string()))?;
    if complaints.is_empty() { Ok(()) } else { Err(no(complaints.join("; "))) }
}

fn replace(connection: &mut Connection, from: &Path) -> rusqlite::Result<()> {
    connection.execute("ATTACH ?1 AS backup", [from.to_string_lossy()])?;
    let replaced = (|| {
        let change = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        change.execute_batch(
            "DELETE FROM sessions; DELETE FROM usage;
            INSERT INTO sessions SELECT * FROM backup.sessions;
            INSERT INTO events SELECT * FROM backup.events;
            INSERT INTO usage SELECT * FROM backup.usage;",
        )?;
        change.commit()
    })();
    connection.execute("DETACH backup", [])?;
    replaced
}

/// A new file that only the user can read.
fn create_alone(file: &Path) -> Result<(), Trouble> {
    use std::os::unix::fs::OpenOptionsExt;
    let created = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    created.map(drop).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => Trouble::FileExists(file.to_path_buf()),
        std::io::ErrorKind::StorageFull => Trouble::DiskFull,
        _ => Trouble::ReadOnly { file: file.to_path_buf(), why: error.to_string() },
    })
}

/// Moves a file that cannot be used out of the way, byte for byte, with what belongs to it.
pub fn move_aside(file: &Path, keep: &Path) -> std::io::Result<()> {
    for ending in ["", "-wal", "-shm"] {
        let named = |path: &Path| {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            std::path::PathBuf::from(name)
        };
        match std::fs::rename(named(file), named(keep)) {
            Err(error) if ending.is_empty() || error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error);
            }
            _ => {}
        }
    }
    Ok(())
}
