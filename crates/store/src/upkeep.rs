//! Backups, and what can be wrong with a file.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use crate::error::Trouble;
use crate::file;
use crate::store::SqliteStore;

/// Pages that are copied before others may write.
const PAGES_AT_ONCE: i32 = 256;

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
        let (into, shown) = (into.to_path_buf(), into.display().to_string());
        if into.exists() {
            return Err(Trouble::Other(format!("{shown} is there already")));
        }
        let place = self.place().clone();
        self.writer()
            .run(move |connection| {
                let copy = connection.execute("VACUUM INTO ?1", [into.to_string_lossy()]);
                copy.map_err(|error| Trouble::of(error, place.file()))?;
                private(&into)
            })
            .await
    }

    /// Replaces everything by a backup; what was there is kept in a file of its own, whose name is given back.
    pub async fn restore(&self, from: &Path, keep: &Path) -> Result<PathBuf, Trouble> {
        let source = file::open_to_read(from)?;
        file::check_format(&source, from)?;
        let complaints = complaints(&source).map_err(|error| Trouble::of(error, from))?;
        if !complaints.is_empty() {
            return Err(Trouble::Damaged { file: from.to_path_buf() });
        }
        self.back_up(keep).await?;
        let place = self.place().clone();
        let copied = move |connection: &mut Connection| {
            copy(&source, connection).map_err(|error| Trouble::of(error, place.file()))
        };
        self.writer().run(copied).await?;
        Ok(keep.to_path_buf())
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

fn copy(from: &Connection, into: &mut Connection) -> rusqlite::Result<()> {
    let copy = Backup::new(from, into)?;
    while copy.step(PAGES_AT_ONCE)? != StepResult::Done {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    Ok(())
}

fn private(file: &Path) -> Result<(), Trouble> {
    use std::os::unix::fs::PermissionsExt;
    let set = std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600));
    set.map_err(|error| Trouble::Other(format!("{}: {error}", file.display())))
}
