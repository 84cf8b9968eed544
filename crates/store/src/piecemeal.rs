//! Deleting on a full disk. What is deleted is overwritten, and that goes through a log that needs as much room again; so
//! it is done in pieces, each small enough for the room that is kept in reserve, and the log is emptied after each.

use jiff::Timestamp;
use lango_domain::event::{Principal, SessionId};
use rusqlite::{Connection, TransactionBehavior, params};

use crate::catalogue::{delete, try_to_empty_log};
use crate::error::Trouble;
use crate::reserve::Reserve;
use crate::rows;
use crate::store::SqliteStore;

/// So many bytes of events go at once; one event at least.
const BYTES_AT_ONCE: i64 = 256 << 10;
/// So many pages are given back to the disk at once.
const PAGES_AT_ONCE: u32 = 64;

impl SqliteStore {
    /// The newest events first, so that whatever is left when it is interrupted is the beginning of a session, and can be
    /// deleted again.
    pub(crate) async fn delete_by_pieces(
        &self,
        principal: &Principal,
        session: &SessionId,
        before: Option<Timestamp>,
    ) -> Result<bool, Trouble> {
        self.reserve().map(Reserve::give_up);
        let (owner, name) = (principal.to_string(), session.to_string());
        let deleted = self
            .change(move |connection| {
                try_to_empty_log(connection);
                while delete_newest(connection, &owner, &name, before)? {
                    try_to_empty_log(connection);
                }
                delete(connection, &owner, &name, before)
            })
            .await?;
        self.change(|connection| give_back(connection)).await?;
        Ok(deleted)
    }
}

/// Whether there may be more.
fn delete_newest(
    connection: &mut Connection,
    principal: &str,
    name: &str,
    before: Option<Timestamp>,
) -> rusqlite::Result<bool> {
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let limit = before.map(rows::sortable);
    let sql = "SELECT e.seq, length(e.body) FROM events e JOIN sessions s ON s.id = e.session
        WHERE s.principal = ?1 AND s.name = ?2 AND (?3 IS NULL OR s.updated < ?3) ORDER BY e.seq DESC";
    let mut query = change.prepare(sql)?;
    let mut found = query.query(params![principal, name, limit])?;
    let (mut first, mut bytes) = (None, 0);
    while let Some(row) = found.next()? {
        bytes += row.get::<_, Option<i64>>(1)?.unwrap_or_default();
        if first.is_some() && bytes > BYTES_AT_ONCE {
            break;
        }
        first = Some(row.get::<_, i64>(0)?);
    }
    drop(found);
    drop(query);
    let Some(first) = first else { return Ok(false) };
    rows::keep_usage(&change, principal, name, first)?;
    let sql = "DELETE FROM events WHERE seq >= ?3
        AND session = (SELECT id FROM sessions WHERE principal = ?1 AND name = ?2)";
    change.execute(sql, params![principal, name, first])?;
    change.commit()?;
    Ok(true)
}

/// The end of the file is cut off, as far as nothing stands there; a file of an older Lango keeps its size.
fn give_back(connection: &Connection) -> rusqlite::Result<()> {
    let free = || connection.query_row("PRAGMA freelist_count", [], |row| row.get::<_, i64>(0));
    let mut left = free()?;
    while left > 0 {
        connection.execute_batch(&format!("PRAGMA incremental_vacuum({PAGES_AT_ONCE})"))?;
        try_to_empty_log(connection);
        let now = free()?;
        if now >= left {
            break;
        }
        left = now;
    }
    Ok(())
}
