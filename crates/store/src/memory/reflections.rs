//! What stands for the earlier part of a session, and how it is condensed.

use std::collections::BTreeSet;

use lango_domain::memory::{Memory, MemoryNote, MemoryWrite, NewReflections};
use lango_domain::session::SessionKey;
use rusqlite::{Connection, TransactionBehavior, params};

use super::{observations, rows};
use crate::damage::RowReader;
use crate::event_rows;

pub fn digest_memories(
    connection: &RowReader<'_>,
    of: &SessionKey,
) -> rusqlite::Result<Vec<Memory>> {
    let active = observations::progress(connection, of)?.active_through;
    let values = params![of.principal.as_str(), of.session.as_str()];
    let mut told = rows::reflections(
        connection,
        "principal = ?1 AND session = ?2 ORDER BY id",
        values,
    )?;
    let condition =
        "principal = ?1 AND session = ?2 AND through <= ?3 AND is_condensed = 0 ORDER BY id";
    let values = params![of.principal.as_str(), of.session.as_str(), active as i64];
    told.extend(rows::observations(connection, condition, values)?);
    Ok(told)
}

pub fn uncondensed(connection: &RowReader<'_>, of: &SessionKey) -> rusqlite::Result<Vec<Memory>> {
    let condition =
        "principal = ?1 AND session = ?2 AND through IS NOT NULL AND is_condensed = 0 ORDER BY id";
    rows::observations(
        connection,
        condition,
        params![of.principal.as_str(), of.session.as_str()],
    )
}

/// Nothing is kept where anything that it was made of is gone: what is forgotten does not come back this way.
pub fn save_reflections(
    connection: &mut Connection,
    of: &SessionKey,
    new: &NewReflections,
) -> rusqlite::Result<MemoryWrite> {
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let Some(place) =
        event_rows::find_session(&change, of.principal.as_str(), of.session.as_str())?
    else {
        return Ok(MemoryWrite::Conflict);
    };
    if observations::progress(&change, of)?.generation != new.base_generation
        || !all_exist(&change, of, new)?
    {
        return Ok(MemoryWrite::Conflict);
    }
    let session = params![of.principal.as_str(), of.session.as_str()];
    change.execute(
        "DELETE FROM reflections WHERE principal = ?1 AND session = ?2",
        session,
    )?;
    let sql = "INSERT INTO memory_progress (session, generation) VALUES (?1, ?2)
        ON CONFLICT (session) DO UPDATE SET generation = excluded.generation, failures = 0, unusable = 0, not_before = NULL";
    change.execute(sql, params![place.id, new.base_generation + 1])?;
    insert_reflections(&change, of, new)?;
    let mut condense =
        change.prepare_cached("UPDATE observations SET is_condensed = 1 WHERE id = ?1")?;
    for id in &new.condensed {
        condense.execute([*id as i64])?;
    }
    drop(condense);
    change.commit()?;
    Ok(MemoryWrite::Written)
}

fn all_exist(
    connection: &Connection,
    of: &SessionKey,
    new: &NewReflections,
) -> rusqlite::Result<bool> {
    let cited = new
        .reflections
        .iter()
        .flat_map(|reflection| &reflection.condenses);
    let ids: BTreeSet<u64> = new.condensed.iter().chain(cited).copied().collect();
    let sql = "SELECT count(*) FROM observations WHERE id = ?1 AND principal = ?2 AND session = ?3";
    let mut query = connection.prepare_cached(sql)?;
    for id in ids {
        let found: i64 = query.query_row(
            params![id as i64, of.principal.as_str(), of.session.as_str()],
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
    of: &SessionKey,
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
            speaker: words,
            label,
            at,
        } = &reflection.note;
        insert.execute(params![
            of.principal.as_str(),
            of.session.as_str(),
            new.base_generation + 1,
            at.to_string(),
            kind.as_str(),
            priority.as_str(),
            words.as_str(),
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
