//! Deletion of memories.

use std::collections::BTreeSet;

use lango_domain::event::{SessionId, TurnId};
use lango_domain::memory::MemoryId;
use lango_domain::session::SessionKey;
use rusqlite::{Connection, params};

/// Deletes memories, and every reflection of a deleted observation, within the caller's
/// transaction. The remaining observations of such a reflection are no longer condensed.
pub(crate) fn delete_rows(
    transaction: &Connection,
    principal: &str,
    ids: &[MemoryId],
) -> rusqlite::Result<()> {
    let mut reflections = BTreeSet::new();
    for id in ids {
        match id {
            MemoryId::Reflection(id) => _ = reflections.insert(*id as i64),
            MemoryId::Observation(id) => {
                let sql =
                    "SELECT reflection FROM reflection_sources JOIN reflections ON id = reflection
                    WHERE observation = ?1 AND principal = ?2";
                let mut query = transaction.prepare_cached(sql)?;
                for reflection in
                    query.query_map(params![*id as i64, principal], |row| row.get(0))?
                {
                    reflections.insert(reflection?);
                }
            }
        }
    }
    let mut uncondensed: BTreeSet<i64> = BTreeSet::new();
    for id in &reflections {
        let sql = "SELECT observation FROM reflection_sources WHERE reflection = ?1";
        for observation in transaction
            .prepare_cached(sql)?
            .query_map([id], |row| row.get(0))?
        {
            uncondensed.insert(observation?);
        }
        let sql = "DELETE FROM reflections WHERE principal = ?1 AND id = ?2";
        transaction
            .prepare_cached(sql)?
            .execute(params![principal, id])?;
    }
    for id in ids {
        let MemoryId::Observation(id) = id else {
            continue;
        };
        let sql = "DELETE FROM observations WHERE principal = ?1 AND id = ?2";
        transaction
            .prepare_cached(sql)?
            .execute(params![principal, *id as i64])?;
    }
    let sql = "UPDATE observations SET is_condensed = 0 WHERE principal = ?1 AND id = ?2
        AND NOT EXISTS (SELECT 1 FROM reflection_sources WHERE observation = ?2)";
    let mut uncondense = transaction.prepare_cached(sql)?;
    for id in uncondensed {
        uncondense.execute(params![principal, id])?;
    }
    Ok(())
}

/// Marks an event as forgotten, in every copy of its turn, so that it is not observed again.
pub(crate) fn mark_forgotten(
    transaction: &Connection,
    principal: &str,
    session: &SessionId,
    seq: u64,
) -> rusqlite::Result<()> {
    let sql = "INSERT OR IGNORE INTO forgotten_events (principal, turn, seq)
        SELECT ?1, e.turn, e.seq FROM events e JOIN sessions s ON s.id = e.session
        WHERE s.principal = ?1 AND s.name = ?2 AND e.seq = ?3";
    transaction
        .prepare_cached(sql)?
        .execute(params![principal, session.as_str(), seq as i64])
        .map(drop)
}

pub fn forgotten_events(
    connection: &Connection,
    principal: &str,
    events: &[(TurnId, u64)],
) -> rusqlite::Result<Vec<u64>> {
    let sql =
        "SELECT count(*) FROM forgotten_events WHERE principal = ?1 AND turn = ?2 AND seq = ?3";
    let mut query = connection.prepare_cached(sql)?;
    let mut found = Vec::new();
    for (turn, seq) in events {
        let marks: i64 = query
            .query_row(params![principal, turn.as_str(), *seq as i64], |row| {
                row.get(0)
            })?;
        if marks > 0 {
            found.push(*seq);
        }
    }
    Ok(found)
}

/// Returns true if one of a session's events is marked as forgotten.
pub fn has_forgotten_events(
    connection: &Connection,
    key: &SessionKey,
    seqs: &[u64],
) -> rusqlite::Result<bool> {
    let sql =
        "SELECT count(*) FROM forgotten_events f JOIN events e ON e.turn = f.turn AND e.seq = f.seq
        JOIN sessions s ON s.id = e.session
        WHERE f.principal = ?1 AND s.principal = ?1 AND s.name = ?2 AND e.seq = ?3";
    let mut query = connection.prepare_cached(sql)?;
    for seq in seqs {
        let marks: i64 = query.query_row(
            params![key.principal.as_str(), key.session.as_str(), *seq as i64],
            |row| row.get(0),
        )?;
        if marks > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}
