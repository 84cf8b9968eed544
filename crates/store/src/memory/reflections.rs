//! Reflections, which condense the observations of a session.

use std::collections::BTreeSet;

use lango_domain::memory::{Memory, MemoryNote, MemoryWrite, NewReflections};
use lango_domain::session::SessionKey;
use rusqlite::{Connection, TransactionBehavior, params};

use super::{observations, rows};
use crate::damage::RowReader;
use crate::event_rows;

/// Returns the memories that replace the earlier part of a session: its reflections, and active
/// observations that are not condensed.
pub fn digest_memories(
    connection: &RowReader<'_>,
    key: &SessionKey,
) -> rusqlite::Result<Vec<Memory>> {
    let active = observations::progress(connection, key)?.active_through;
    let values = params![key.principal.as_str(), key.session.as_str()];
    let mut memories = rows::reflections(
        connection,
        "principal = ?1 AND session = ?2 ORDER BY id",
        values,
    )?;
    let condition =
        "principal = ?1 AND session = ?2 AND through <= ?3 AND is_condensed = 0 ORDER BY id";
    let values = params![key.principal.as_str(), key.session.as_str(), active as i64];
    memories.extend(rows::observations(connection, condition, values)?);
    Ok(memories)
}

pub fn uncondensed(connection: &RowReader<'_>, key: &SessionKey) -> rusqlite::Result<Vec<Memory>> {
    let condition =
        "principal = ?1 AND session = ?2 AND through IS NOT NULL AND is_condensed = 0 ORDER BY id";
    rows::observations(
        connection,
        condition,
        params![key.principal.as_str(), key.session.as_str()],
    )
}

/// Replaces a session's reflections. Returns `Conflict` if another process was first, or if one of
/// the sources is gone, so that forgotten content does not come back.
pub fn save_reflections(
    connection: &mut Connection,
    key: &SessionKey,
    new: &NewReflections,
) -> rusqlite::Result<MemoryWrite> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let Some(session_row) =
        event_rows::find_session(&transaction, key.principal.as_str(), key.session.as_str())?
    else {
        return Ok(MemoryWrite::Conflict);
    };
    if observations::progress(&transaction, key)?.generation != new.base_generation
        || !all_exist(&transaction, key, new)?
    {
        return Ok(MemoryWrite::Conflict);
    }
    let values = params![key.principal.as_str(), key.session.as_str()];
    transaction.execute(
        "DELETE FROM reflections WHERE principal = ?1 AND session = ?2",
        values,
    )?;
    let sql = "INSERT INTO memory_progress (session, generation) VALUES (?1, ?2)
        ON CONFLICT (session) DO UPDATE SET
        generation = excluded.generation, failures = 0, unusable = 0, not_before = NULL";
    transaction.execute(sql, params![session_row.id, new.base_generation + 1])?;
    insert_reflections(&transaction, key, new)?;
    let mut condense =
        transaction.prepare_cached("UPDATE observations SET is_condensed = 1 WHERE id = ?1")?;
    for id in &new.condensed {
        condense.execute([*id as i64])?;
    }
    drop(condense);
    transaction.commit()?;
    Ok(MemoryWrite::Written)
}

fn all_exist(
    connection: &Connection,
    key: &SessionKey,
    new: &NewReflections,
) -> rusqlite::Result<bool> {
    let cited = new
        .reflections
        .iter()
        .flat_map(|reflection| &reflection.condenses);
    let ids: BTreeSet<u64> = new.condensed.iter().chain(cited).copied().collect();
    let sql = "SELECT count(*) FROM observations
        WHERE id = ?1 AND principal = ?2 AND session = ?3";
    let mut query = connection.prepare_cached(sql)?;
    for id in ids {
        let found: i64 = query.query_row(
            params![id as i64, key.principal.as_str(), key.session.as_str()],
            |row| row.get(0),
        )?;
        if found == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

fn insert_reflections(
    connection: &Connection,
    key: &SessionKey,
    new: &NewReflections,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO reflections
        (principal, session, generation, at, kind, priority, words, origin, text, tokens, label)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    let mut insert = connection.prepare_cached(sql)?;
    let sql = "INSERT OR IGNORE INTO reflection_sources (reflection, observation) VALUES (?1, ?2)";
    let mut cite = connection.prepare_cached(sql)?;
    for reflection in &new.reflections {
        let MemoryNote {
            text,
            kind,
            priority,
            speaker,
            label,
            at,
        } = &reflection.note;
        insert.execute(params![
            key.principal.as_str(),
            key.session.as_str(),
            new.base_generation + 1,
            at.to_string(),
            kind.as_str(),
            priority.as_str(),
            speaker.as_str(),
            new.origin.to_string(),
            text,
            rows::estimate_tokens(text) as i64,
            crate::event_rows::label_json(label),
        ])?;
        let id = connection.last_insert_rowid();
        for observation in &reflection.condenses {
            cite.execute(params![id, *observation as i64])?;
        }
    }
    Ok(())
}
