//! Deletion of sessions. Their rows are overwritten, so that no file contains them afterwards.

use std::time::Duration;

use jiff::Timestamp;
use lango_domain::StoreError;
use lango_domain::event::{Principal, SessionId};
use lango_domain::graph::FactSourceFilter;
use lango_domain::session::{SessionKeyRef, TurnLock};
use rusqlite::{Connection, TransactionBehavior, params};

use crate::blobs;
use crate::database::BUSY_TIMEOUT;

use crate::event_rows;
use crate::graph;
use crate::memory;
use crate::reserve::DiskReserve;
use crate::store::SqliteStore;

/// Maximum number of attempts to truncate the WAL.
const CHECKPOINT_ATTEMPTS: usize = 100;
const CHECKPOINT_RETRY_DELAY: Duration = Duration::from_millis(50);
/// Maximum size of the events that one batch deletes. A batch has at least one event.
const DELETE_BATCH_BYTES: i64 = 256 << 10;
/// Number of free pages that one vacuum step returns to the file system.
const VACUUM_BATCH_PAGES: u32 = 64;

impl SqliteStore {
    /// Moves the write-ahead log into the file. Attachments make it grow by megabytes, and on a full disk
    /// it could no longer be emptied.
    pub(crate) async fn shrink_log(&self) {
        let sql = "PRAGMA wal_checkpoint(PASSIVE)";
        let shrunk = self.write(move |connection| connection.query_row(sql, [], |_| Ok(())));
        if let Err(error) = shrunk.await {
            tracing::debug!(%error, "the write-ahead log stays as it is");
        }
    }

    /// Deletes a session from every file: its rows are overwritten and the WAL is truncated. Fails
    /// while one of its turns is running.
    pub(crate) async fn delete_session(
        &self,
        principal: &Principal,
        session: &SessionId,
    ) -> Result<(), StoreError> {
        match self.delete_unused(principal, session, None).await? {
            true => Ok(()),
            false => Err(StoreError::SessionNotFound(session.to_string())),
        }
    }

    /// Deletes the sessions that were last used before `before`, except those with a running turn.
    /// Returns their names.
    pub(crate) async fn prune_sessions(
        &self,
        principal: &Principal,
        before: Timestamp,
    ) -> Result<Vec<SessionId>, StoreError> {
        let (owner, cutoff) = (principal.to_string(), event_rows::sortable_time(before));
        let old: Vec<SessionId> = self
            .read(move |connection| {
                let mut query = connection
                    .prepare("SELECT name FROM sessions WHERE principal = ?1 AND updated < ?2")?;
                let name = |row: &rusqlite::Row<'_>| Ok(SessionId::new(row.get::<_, String>(0)?));
                query.query_map(params![owner, cutoff], name)?.collect()
            })
            .await?;
        let mut deleted = Vec::new();
        for session in old {
            match self.delete_unused(principal, &session, Some(before)).await {
                Ok(true) => deleted.push(session),
                Ok(false) | Err(StoreError::TurnRunning(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(deleted)
    }

    /// Deletes a session, if it was last used before `before`. Returns false if it does not exist
    /// or was used since.
    async fn delete_unused(
        &self,
        principal: &Principal,
        session: &SessionId,
        before: Option<Timestamp>,
    ) -> Result<bool, StoreError> {
        let key = SessionKeyRef { session, principal };
        self.writer()?;
        let lock = self.lock_for_delete(key).await?;
        let lock = lock.ok_or_else(|| StoreError::TurnRunning(session.to_string()))?;
        let (owner, name) = (principal.to_string(), session.to_string());
        let deleted = self
            .write(move |connection| delete(connection, &owner, &name, before))
            .await;
        let deleted = match deleted {
            Err(StoreError::DiskFull) => self.delete_in_batches(principal, session, before).await,
            deleted => deleted,
        };
        if deleted.is_err() {
            self.reserve().into_iter().for_each(DiskReserve::ensure);
        }
        let deleted = deleted?;
        if deleted {
            self.checkpoint_wal().await;
        }
        self.locks().remove_lock_file(key);
        drop(lock);
        self.reserve().into_iter().for_each(DiskReserve::ensure);
        Ok(deleted)
    }

    /// Locks a session for deletion. The lock file needs disk space, so a full disk releases the
    /// reserve.
    async fn lock_for_delete(
        &self,
        key: SessionKeyRef<'_>,
    ) -> Result<Option<TurnLock>, StoreError> {
        let file = || self.location().path().to_path_buf();
        let io_error = |error: std::io::Error| StoreError::Io {
            file: file(),
            reason: error.to_string(),
        };
        match self.locks().try_lock(key).await {
            Err(error) if error.kind() == std::io::ErrorKind::StorageFull => {
                if !self.reserve().is_some_and(DiskReserve::release) {
                    return Err(StoreError::DiskFull);
                }
                self.locks().try_lock(key).await.map_err(io_error)
            }
            locked => locked.map_err(io_error),
        }
    }

    /// Moves the content of the WAL into the database file and truncates it. Retries while another
    /// connection reads, without blocking the writer.
    pub(crate) async fn checkpoint_wal(&self) {
        for _ in 0..CHECKPOINT_ATTEMPTS {
            let truncated = self
                .write(|connection| Ok(try_checkpoint_wal(connection)))
                .await;
            if truncated.unwrap_or(false) {
                return;
            }
            tokio::time::sleep(CHECKPOINT_RETRY_DELAY).await;
        }
        tracing::warn!(
            "the WAL could not be truncated because another connection is reading; it will be truncated later"
        );
    }

    /// Deletes a session on a full disk. Overwriting rows writes as much again to the WAL, so this
    /// works in batches that fit into the released reserve, and truncates the WAL after each.
    ///
    /// The newest events are deleted first. If this is interrupted, the rest is the start of a
    /// session, which can be deleted again.
    async fn delete_in_batches(
        &self,
        principal: &Principal,
        session: &SessionId,
        before: Option<Timestamp>,
    ) -> Result<bool, StoreError> {
        self.reserve().map(DiskReserve::release);
        let (owner, name) = (principal.to_string(), session.to_string());
        let deleted = self
            .write(move |connection| {
                try_checkpoint_wal(connection);
                while blobs::delete_chunk(connection, &owner, &name, before)? {
                    try_checkpoint_wal(connection);
                }
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

/// Deletes a session's rows and the facts that come from it. Its usage stays, without the session.
fn delete(
    connection: &mut Connection,
    principal: &str,
    name: &str,
    before: Option<Timestamp>,
) -> rusqlite::Result<bool> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let limit = before.map(event_rows::sortable_time);
    let filter = "principal = ?1 AND name = ?2 AND (?3 IS NULL OR updated < ?3)";
    let found: i64 = transaction.query_row(
        &format!("SELECT count(*) FROM sessions WHERE {filter}"),
        params![principal, name, limit],
        |row| row.get(0),
    )?;
    if found > 0 {
        event_rows::detach_usage(&transaction, principal, name, 0)?;
        if before.is_none() {
            memory::delete_session_observations(&transaction, principal, name)?;
        }
        transaction.execute(
            &format!("DELETE FROM sessions WHERE {filter}"),
            params![principal, name, limit],
        )?;
        graph::forget(
            &transaction,
            principal,
            &FactSourceFilter::Session(SessionId::new(name)),
        )?;
    }
    transaction.commit()?;
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

/// Deletes a batch of a session's newest events. Returns false if it has none left.
fn delete_newest(
    connection: &mut Connection,
    principal: &str,
    name: &str,
    before: Option<Timestamp>,
) -> rusqlite::Result<bool> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let before = before.map(event_rows::sortable_time);
    let sql = "SELECT e.seq, length(e.body) FROM events e JOIN sessions s ON s.id = e.session
        WHERE s.principal = ?1 AND s.name = ?2 AND (?3 IS NULL OR s.updated < ?3)
        ORDER BY e.seq DESC";
    let mut query = transaction.prepare(sql)?;
    let mut rows = query.query(params![principal, name, before])?;
    let (mut first, mut bytes) = (None, 0);
    while let Some(row) = rows.next()? {
        bytes += row.get::<_, Option<i64>>(1)?.unwrap_or_default();
        if first.is_some() && bytes > DELETE_BATCH_BYTES {
            break;
        }
        first = Some(row.get::<_, i64>(0)?);
    }
    drop(rows);
    drop(query);
    let Some(first) = first else { return Ok(false) };
    event_rows::detach_usage(&transaction, principal, name, first)?;
    let sql = "DELETE FROM events WHERE seq >= ?3
        AND session = (SELECT id FROM sessions WHERE principal = ?1 AND name = ?2)";
    transaction.execute(sql, params![principal, name, first])?;
    transaction.commit()?;
    Ok(true)
}

/// Returns free pages at the end of the file to the file system. A file of an older version,
/// without incremental vacuum, keeps its size.
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
