//! Deleting sessions: their rows are overwritten, and no file holds them any more.

use std::time::Duration;

use jiff::Timestamp;
use lango_domain::event::{Principal, SessionId};
use lango_domain::graph::FactSourceFilter;
use lango_domain::session::{SessionKeyRef, TurnLock};
use rusqlite::{Connection, TransactionBehavior, params};

use crate::database::BUSY_TIMEOUT;
use crate::error::SqliteStoreError;
use crate::event_rows;
use crate::graph;
use crate::memory;
use crate::reserve::DiskReserve;
use crate::store::SqliteStore;

/// How often emptying the log is tried.
const CHECKPOINT_ATTEMPTS: usize = 100;
const CHECKPOINT_RETRY_DELAY: Duration = Duration::from_millis(50);
/// So many bytes of events go at once; one event at least.
const DELETE_BATCH_BYTES: i64 = 256 << 10;
/// So many pages are given back to the disk at once.
const VACUUM_BATCH_PAGES: u32 = 64;

impl SqliteStore {
    /// Takes a session out of every file: rows are overwritten, and the log of recent changes is emptied. Not while one
    /// of its turns is running.
    pub async fn delete(
        &self,
        principal: &Principal,
        session: &SessionId,
    ) -> Result<(), SqliteStoreError> {
        match self.delete_unused(principal, session, None).await? {
            true => Ok(()),
            false => Err(SqliteStoreError::SessionNotFound(session.to_string())),
        }
    }

    /// Deletes what nobody used since, except what is in use now; gives their names.
    pub async fn prune(
        &self,
        principal: &Principal,
        before: Timestamp,
    ) -> Result<Vec<SessionId>, SqliteStoreError> {
        let (owner, limit) = (principal.to_string(), event_rows::sortable_time(before));
        let old: Vec<SessionId> = self
            .read(move |connection| {
                let mut query = connection
                    .prepare("SELECT name FROM sessions WHERE principal = ?1 AND updated < ?2")?;
                let name = |row: &rusqlite::Row<'_>| Ok(SessionId::new(row.get::<_, String>(0)?));
                query.query_map(params![owner, limit], name)?.collect()
            })
            .await?;
        let mut gone = Vec::new();
        for session in old {
            match self.delete_unused(principal, &session, Some(before)).await {
                Ok(true) => gone.push(session),
                Ok(false) | Err(SqliteStoreError::TurnRunning(_)) => {}
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(gone)
    }

    async fn delete_unused(
        &self,
        principal: &Principal,
        session: &SessionId,
        before: Option<Timestamp>,
    ) -> Result<bool, SqliteStoreError> {
        let key = SessionKeyRef { session, principal };
        self.writer()?;
        let lock = self.lock_for_delete(key).await?;
        let lock = lock.ok_or_else(|| SqliteStoreError::TurnRunning(session.to_string()))?;
        let (owner, name) = (principal.to_string(), session.to_string());
        let deleted = self
            .write(move |connection| delete(connection, &owner, &name, before))
            .await;
        let deleted = match deleted {
            Err(SqliteStoreError::DiskFull) => {
                self.delete_in_batches(principal, session, before).await?
            }
            deleted => deleted?,
        };
        if deleted {
            self.checkpoint_wal().await;
        }
        self.locks().remove_lock_file(key);
        drop(lock);
        self.reserve().into_iter().for_each(DiskReserve::ensure);
        Ok(deleted)
    }

    /// A lock is a file, and takes room.
    async fn lock_for_delete(
        &self,
        key: SessionKeyRef<'_>,
    ) -> Result<Option<TurnLock>, SqliteStoreError> {
        let file = || self.location().path().to_path_buf();
        let trouble = |error: std::io::Error| SqliteStoreError::Io {
            file: file(),
            reason: error.to_string(),
        };
        match self.locks().try_lock(key).await {
            Err(error) if error.kind() == std::io::ErrorKind::StorageFull => {
                if !self.reserve().is_some_and(DiskReserve::release) {
                    return Err(SqliteStoreError::DiskFull);
                }
                self.locks().try_lock(key).await.map_err(trouble)
            }
            locked => locked.map_err(trouble),
        }
    }

    /// What the log of recent changes still holds goes into the file, and the log is emptied. Where somebody reads at
    /// this very moment it is tried again, without keeping anyone waiting.
    pub(crate) async fn checkpoint_wal(&self) {
        for _ in 0..CHECKPOINT_ATTEMPTS {
            let emptied = self
                .write(|connection| Ok(try_checkpoint_wal(connection)))
                .await;
            if emptied.unwrap_or(false) {
                return;
            }
            tokio::time::sleep(CHECKPOINT_RETRY_DELAY).await;
        }
        tracing::warn!("somebody reads: the log of recent changes is emptied later");
    }

    /// What is deleted is overwritten, and that goes through a log which needs as much room again. On a full disk it is done in
    /// pieces, each small enough for the room that is kept in reserve, and the log is emptied after each.
    ///
    /// The newest events go first, so that whatever is left when it is interrupted is the beginning of a session, and can be
    /// deleted again.
    async fn delete_in_batches(
        &self,
        principal: &Principal,
        session: &SessionId,
        before: Option<Timestamp>,
    ) -> Result<bool, SqliteStoreError> {
        self.reserve().map(DiskReserve::release);
        let (owner, name) = (principal.to_string(), session.to_string());
        let deleted = self
            .write(move |connection| {
                try_checkpoint_wal(connection);
                while delete_newest(connection, &owner, &name, before)? {
                    try_checkpoint_wal(connection);
                }
                delete(connection, &owner, &name, before)
            })
            .await?;
        self.write(|connection| reclaim_free_pages(connection))
            .await?;
        Ok(deleted)
    }
}

/// Rows go, facts that come from the session too; usage stays without the session's name.
fn delete(
    connection: &mut Connection,
    principal: &str,
    name: &str,
    before: Option<Timestamp>,
) -> rusqlite::Result<bool> {
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let limit = before.map(event_rows::sortable_time);
    let unused = "principal = ?1 AND name = ?2 AND (?3 IS NULL OR updated < ?3)";
    let found: i64 = change.query_row(
        &format!("SELECT count(*) FROM sessions WHERE {unused}"),
        params![principal, name, limit],
        |row| row.get(0),
    )?;
    if found > 0 {
        event_rows::detach_usage(&change, principal, name, 0)?;
        if before.is_none() {
            memory::delete_session_observations(&change, principal, name)?;
        }
        change.execute(
            &format!("DELETE FROM sessions WHERE {unused}"),
            params![principal, name, limit],
        )?;
        graph::forget(
            &change,
            principal,
            &FactSourceFilter::Session(SessionId::new(name)),
        )?;
    }
    change.commit()?;
    Ok(found > 0)
}

fn try_checkpoint_wal(connection: &Connection) -> bool {
    let _ = connection.busy_timeout(Duration::ZERO);
    let busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
        row.get::<_, i64>(0)
    });
    let _ = connection.busy_timeout(BUSY_TIMEOUT);
    matches!(busy, Ok(0))
}

/// Whether there may be more.
fn delete_newest(
    connection: &mut Connection,
    principal: &str,
    name: &str,
    before: Option<Timestamp>,
) -> rusqlite::Result<bool> {
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let limit = before.map(event_rows::sortable_time);
    let sql = "SELECT e.seq, length(e.body) FROM events e JOIN sessions s ON s.id = e.session
        WHERE s.principal = ?1 AND s.name = ?2 AND (?3 IS NULL OR s.updated < ?3) ORDER BY e.seq DESC";
    let mut query = change.prepare(sql)?;
    let mut found = query.query(params![principal, name, limit])?;
    let (mut first, mut bytes) = (None, 0);
    while let Some(row) = found.next()? {
        bytes += row.get::<_, Option<i64>>(1)?.unwrap_or_default();
        if first.is_some() && bytes > DELETE_BATCH_BYTES {
            break;
        }
        first = Some(row.get::<_, i64>(0)?);
    }
    drop(found);
    drop(query);
    let Some(first) = first else { return Ok(false) };
    event_rows::detach_usage(&change, principal, name, first)?;
    let sql = "DELETE FROM events WHERE seq >= ?3
        AND session = (SELECT id FROM sessions WHERE principal = ?1 AND name = ?2)";
    change.execute(sql, params![principal, name, first])?;
    change.commit()?;
    Ok(true)
}

/// The end of the file is cut off, as far as nothing stands there; a file of an older Lango keeps its size.
fn reclaim_free_pages(connection: &Connection) -> rusqlite::Result<()> {
    let free = || connection.query_row("PRAGMA freelist_count", [], |row| row.get::<_, i64>(0));
    let mut left = free()?;
    while left > 0 {
        connection.execute_batch(&format!("PRAGMA incremental_vacuum({VACUUM_BATCH_PAGES})"))?;
        try_checkpoint_wal(connection);
        let now = free()?;
        if now >= left {
            break;
        }
        left = now;
    }
    Ok(())
}
