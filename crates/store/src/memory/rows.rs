//! Conversion between memories and rows.

use std::collections::BTreeSet;

use jiff::Timestamp;
use lango_domain::Label;
use lango_domain::event::SessionId;
use lango_domain::memory::{
    Memory, MemoryId, MemoryKind, MemoryLevel, MemoryNote, MemoryOrigin, MemoryPriority,
    MemoryQuery, MemoryRevision, MemorySpeaker, MemoryStats, NewMemory,
};
use lango_domain::session::SessionKey;
use lango_text::token_estimate;
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use crate::damage::{RowReader, display_column};
use crate::event_rows;

/// Tokens for the date, kind and id of a memory, in addition to its text.
const TOKEN_OVERHEAD: usize = 14;

/// The first columns of observations and reflections.
const NOTE_COLUMNS: &str = "id, session, text, kind, priority, words, at, origin, label";

/// Stores a memory that the user asked for. Returns the existing one if its text is the same.
pub fn store(
    connection: &mut Connection,
    key: &SessionKey,
    memory: &NewMemory,
) -> rusqlite::Result<MemoryId> {
    let sql = "SELECT id FROM observations
        WHERE principal = ?1 AND through IS NULL AND lower(text) = lower(?2)";
    let same = connection
        .query_row(
            sql,
            params![key.principal.as_str(), memory.note.text],
            |row| row.get::<_, i64>(0),
        )
        .optional()?;
    let id = match same {
        Some(id) => id as u64,
        None => insert(connection, key, memory, &MemoryOrigin::Asked, None)?,
    };
    Ok(MemoryId::Observation(id))
}

pub fn insert(
    connection: &Connection,
    key: &SessionKey,
    memory: &NewMemory,
    origin: &MemoryOrigin,
    through: Option<u64>,
) -> rusqlite::Result<u64> {
    let sql = "INSERT INTO observations
        (principal, session, through, at, kind, priority, words, origin, text, tokens,
        sources, label)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    let MemoryNote {
        text,
        kind,
        priority,
        speaker,
        label,
        at,
    } = &memory.note;
    connection.prepare_cached(sql)?.execute(params![
        key.principal.as_str(),
        key.session.as_str(),
        through.map(|seq| seq as i64),
        at.to_string(),
        kind.as_str(),
        priority.as_str(),
        speaker.as_str(),
        origin.to_string(),
        text,
        estimate_tokens(text) as i64,
        serde_json::to_string(&memory.sources).unwrap_or_default(),
        event_rows::label_json(label),
    ])?;
    Ok(connection.last_insert_rowid() as u64)
}

pub fn estimate_tokens(text: &str) -> usize {
    token_estimate::estimate(text) + TOKEN_OVERHEAD
}

/// Returns the observations that match a condition.
pub fn observations(
    connection: &RowReader<'_>,
    condition: &str,
    values: impl Params,
) -> rusqlite::Result<Vec<Memory>> {
    let sql = format!("SELECT {NOTE_COLUMNS}, sources FROM observations WHERE {condition}");
    let observation = |row: &Row<'_>| {
        let sources = row
            .get_ref(9)?
            .as_str()
            .ok()
            .and_then(|text| serde_json::from_str(text).ok());
        Ok(Memory {
            id: MemoryId::Observation(row.get::<_, i64>(0)? as u64),
            session: SessionId::new(row.get::<_, String>(1)?),
            note: note(row)?,
            origin: MemoryOrigin::from(row.get::<_, String>(7)?),
            sources: sources.unwrap_or_default(),
            condenses: Vec::new(),
            generation: 0,
        })
    };
    let name = |row: &Row<'_>| format!("observation o{}", display_column(row, 0));
    connection.query_rows(&sql, values, name, observation)
}

/// Returns the reflections that match a condition, with their sources.
pub fn reflections(
    connection: &RowReader<'_>,
    condition: &str,
    values: impl Params,
) -> rusqlite::Result<Vec<Memory>> {
    let sql = format!("SELECT {NOTE_COLUMNS}, generation FROM reflections WHERE {condition}");
    let reflection = |row: &Row<'_>| {
        Ok(Memory {
            id: MemoryId::Reflection(row.get::<_, i64>(0)? as u64),
            session: SessionId::new(row.get::<_, String>(1)?),
            note: note(row)?,
            origin: MemoryOrigin::from(row.get::<_, String>(7)?),
            sources: Vec::new(),
            condenses: Vec::new(),
            generation: row.get(9)?,
        })
    };
    let name = |row: &Row<'_>| format!("reflection r{}", display_column(row, 0));
    let mut found = connection.query_rows(&sql, values, name, reflection)?;
    for memory in &mut found {
        let MemoryId::Reflection(id) = memory.id else {
            continue;
        };
        let condition =
            "id IN (SELECT observation FROM reflection_sources WHERE reflection = ?1) ORDER BY id";
        let mut sources = BTreeSet::new();
        for observation in observations(connection, condition, [id as i64])? {
            sources.extend(observation.sources);
            if let MemoryId::Observation(number) = observation.id {
                memory.condenses.push(number);
            }
        }
        memory.sources = sources.into_iter().collect();
    }
    Ok(found)
}

/// Reads the note of a row. Unknown values of another version are replaced by defaults.
fn note(row: &Row<'_>) -> rusqlite::Result<MemoryNote> {
    let word = |at: usize| row.get_ref(at)?.as_str().map_err(rusqlite::Error::from);
    let speaker = if word(5)? == MemorySpeaker::User.as_str() {
        MemorySpeaker::User
    } else {
        MemorySpeaker::Others
    };
    let label = event_rows::label_column(row, 8)?.unwrap_or_else(|| match speaker {
        MemorySpeaker::User => Label::default(),
        MemorySpeaker::Others => Label::untrusted("an earlier conversation"),
    });
    Ok(MemoryNote {
        text: row.get(2)?,
        kind: MemoryKind::from_name(word(3)?).unwrap_or(MemoryKind::Fact),
        priority: MemoryPriority::from_name(word(4)?).unwrap_or(MemoryPriority::Low),
        speaker,
        label,
        at: word(6)?.parse().unwrap_or(Timestamp::UNIX_EPOCH),
    })
}

pub fn observations_after(
    connection: &RowReader<'_>,
    principal: &str,
    id: u64,
    limit: usize,
) -> rusqlite::Result<Vec<Memory>> {
    let condition = "principal = ?1 AND id > ?2 ORDER BY id LIMIT ?3";
    observations(
        connection,
        condition,
        params![principal, id as i64, limit as i64],
    )
}

pub fn list(
    connection: &RowReader<'_>,
    principal: &str,
    query: &MemoryQuery,
) -> rusqlite::Result<Vec<Memory>> {
    let session = query.session.as_ref().map(SessionId::as_str);
    let condition = "principal = ?1 AND (?2 IS NULL OR session = ?2) ORDER BY id DESC LIMIT ?3";
    let values = params![principal, session, query.limit as i64];
    match query.level {
        MemoryLevel::Observations => observations(connection, condition, values),
        MemoryLevel::Reflections => reflections(connection, condition, values),
    }
}

pub fn memory(
    connection: &RowReader<'_>,
    principal: &str,
    id: MemoryId,
) -> rusqlite::Result<Option<Memory>> {
    let condition = "principal = ?1 AND id = ?2";
    let found = match id {
        MemoryId::Observation(id) => {
            observations(connection, condition, params![principal, id as i64])?
        }
        MemoryId::Reflection(id) => {
            reflections(connection, condition, params![principal, id as i64])?
        }
    };
    Ok(found.into_iter().next())
}

pub fn revision(connection: &Connection, principal: &str) -> rusqlite::Result<MemoryRevision> {
    let sql = "SELECT coalesce((SELECT max(id) FROM observations WHERE principal = ?1), 0),
        coalesce((SELECT count FROM observations_gone WHERE principal = ?1), 0)";
    let revision = |row: &Row<'_>| {
        Ok(MemoryRevision {
            newest: row.get::<_, i64>(0)? as u64,
            removed: row.get::<_, i64>(1)? as u64,
        })
    };
    connection
        .prepare_cached(sql)?
        .query_row([principal], revision)
}

pub fn stats(connection: &Connection, principal: &str) -> rusqlite::Result<MemoryStats> {
    let count = |sql: &str| {
        connection
            .prepare_cached(sql)?
            .query_row([principal], |row| row.get::<_, i64>(0))
            .map(|count| count as u64)
    };
    let progress = "FROM memory_progress JOIN sessions ON id = session WHERE principal = ?1";
    Ok(MemoryStats {
        observations: count("SELECT count(*) FROM observations WHERE principal = ?1")?,
        asked: count("SELECT count(*) FROM observations WHERE principal = ?1 AND through IS NULL")?,
        reflections: count("SELECT count(*) FROM reflections WHERE principal = ?1")?,
        sessions: count(
            "SELECT count(DISTINCT session) FROM observed_pieces JOIN sessions ON id = session
                WHERE principal = ?1",
        )?,
        condensed_sessions: count(&format!("SELECT count(*) {progress} AND active > 0"))?,
        put_off: count(&format!(
            "SELECT count(*) {progress} AND not_before IS NOT NULL"
        ))?,
    })
}
