//! Observations of a session, and the progress of observing it.

use std::sync::Arc;

use jiff::Timestamp;
use lango_domain::Content;
use lango_domain::event::{Event, EventBody, TurnId, Usage};
use lango_domain::memory::{
    MemoryWrite, NewMemory, ObservationProgress, ObservedSpan, ObserverBackoff,
};
use lango_domain::session::SessionKey;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

use super::{forget, rows};
use crate::damage::RowReader;
use crate::event_rows;

pub fn progress(
    connection: &Connection,
    key: &SessionKey,
) -> rusqlite::Result<ObservationProgress> {
    let Some(session_row) =
        event_rows::find_session(connection, key.principal.as_str(), key.session.as_str())?
    else {
        return Ok(ObservationProgress::default());
    };
    let sql = "SELECT active, generation, failures, unusable, not_before FROM memory_progress
        WHERE session = ?1";
    let state = |row: &Row<'_>| {
        let not_before: Option<String> = row.get(4)?;
        let backoff = not_before
            .and_then(|at| at.parse().ok())
            .map(|not_before: Timestamp| {
                Ok::<_, rusqlite::Error>(ObserverBackoff {
                    failures: row.get(2)?,
                    unusable: row.get(3)?,
                    not_before,
                })
            });
        Ok((
            row.get::<_, i64>(0)? as u64,
            row.get(1)?,
            backoff.transpose()?,
        ))
    };
    let state = connection
        .prepare_cached(sql)?
        .query_row([session_row.id], state)
        .optional()?;
    let (active, generation, backoff) = state.unwrap_or_default();
    let sql =
        "SELECT last, tokens FROM observed_pieces WHERE session = ?1 AND last > ?2 ORDER BY last";
    let span = |row: &Row<'_>| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as usize));
    let pending: Vec<(u64, usize)> = connection
        .prepare_cached(sql)?
        .query_map(params![session_row.id, active as i64], span)?
        .collect::<Result<_, _>>()?;
    let sql = "SELECT coalesce(sum(tokens), 0) FROM observations
        WHERE principal = ?1 AND session = ?2 AND through <= ?3 AND is_condensed = 0";
    let tokens: i64 = connection.prepare_cached(sql)?.query_row(
        params![key.principal.as_str(), key.session.as_str(), active as i64],
        |row| row.get(0),
    )?;
    let observed = pending.last().map_or(active, |(last, _)| *last);
    Ok(ObservationProgress {
        observed_through: observed,
        active_through: active,
        pending,
        generation,
        tokens: tokens as usize,
        backoff,
    })
}

/// Returns complete turns after event `seq`, until they have at least `min_bytes`.
pub fn turns_after(
    connection: &RowReader<'_>,
    key: &SessionKey,
    seq: u64,
    min_bytes: usize,
) -> rusqlite::Result<Vec<Arc<Event>>> {
    let Some(session_row) =
        event_rows::find_session(connection, key.principal.as_str(), key.session.as_str())?
    else {
        return Ok(Vec::new());
    };
    let session = key.session.clone();
    let sql = format!(
        "SELECT {} FROM events WHERE session = ?1 AND seq > ?2 ORDER BY seq",
        event_rows::COLUMNS
    );
    let mut query = connection.prepare_cached(&sql)?;
    let mut rows = query.query(params![session_row.id, seq as i64])?;
    let (mut events, mut bytes_read, mut whole) = (Vec::new(), 0, 0);
    while let Some(row) = rows.next()? {
        bytes_read += row.get_ref(5)?.as_str().map_or(0, str::len);
        let event = connection.check_row(
            row,
            event_rows::event_name(session.as_str()),
            event_rows::event(row, &session),
        )?;
        let Some(event) = event else { continue };
        let is_end = event.body.is_turn_end();
        events.push(event);
        if is_end {
            whole = events.len();
            if bytes_read >= min_bytes {
                break;
            }
        }
    }
    events.truncate(whole);
    Ok(events)
}

/// Returns number and text of the request of a turn. Searches backwards, because it is almost
/// always the newest.
pub fn request(
    connection: &Connection,
    key: &SessionKey,
    turn: &TurnId,
) -> rusqlite::Result<Option<(u64, String)>> {
    let Some(session_row) =
        event_rows::find_session(connection, key.principal.as_str(), key.session.as_str())?
    else {
        return Ok(None);
    };
    let session = key.session.clone();
    let sql = format!(
        "SELECT {} FROM events WHERE session = ?1 AND kind = 'user' AND turn = ?2
            ORDER BY seq DESC LIMIT 1",
        event_rows::COLUMNS
    );
    let event = |row: &Row<'_>| event_rows::event(row, &session);
    let found = connection
        .prepare_cached(&sql)?
        .query_row(params![session_row.id, turn.as_str()], event)
        .optional()?;
    Ok(found.and_then(|event| match &event.body {
        EventBody::User(Content { text, .. }) => Some((event.seq, text.clone())),
        _ => None,
    }))
}

pub fn events(
    connection: &RowReader<'_>,
    key: &SessionKey,
    seqs: &[u64],
) -> rusqlite::Result<Vec<Arc<Event>>> {
    let Some(session_row) =
        event_rows::find_session(connection, key.principal.as_str(), key.session.as_str())?
    else {
        return Ok(Vec::new());
    };
    let session = key.session.clone();
    let sql = format!(
        "SELECT {} FROM events WHERE session = ?1 AND seq = ?2",
        event_rows::COLUMNS
    );
    let mut events = Vec::new();
    for seq in seqs {
        let (values, name) = (
            params![session_row.id, *seq as i64],
            event_rows::event_name(session.as_str()),
        );
        events.extend(
            connection.query_rows(&sql, values, name, |row| event_rows::event(row, &session))?,
        );
    }
    Ok(events)
}

/// Saves an observed span. Invariant: spans follow each other without gaps, so that every event is
/// observed exactly once.
pub fn save_span(
    connection: &mut Connection,
    key: &SessionKey,
    span: &ObservedSpan,
) -> rusqlite::Result<MemoryWrite> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let Some(session_row) =
        event_rows::find_session(&transaction, key.principal.as_str(), key.session.as_str())?
    else {
        return Ok(MemoryWrite::Conflict);
    };
    let observed: i64 = transaction.query_row(
        "SELECT coalesce(max(last), 0) FROM observed_pieces WHERE session = ?1",
        [session_row.id],
        |row| row.get(0),
    )?;
    if observed as u64 != span.after || span.last <= span.after || span.last > session_row.last {
        return Ok(MemoryWrite::Conflict);
    }
    let sql = "INSERT INTO observed_pieces (session, last, tokens, origin)
        VALUES (?1, ?2, ?3, ?4)";
    transaction.execute(
        sql,
        params![
            session_row.id,
            span.last as i64,
            span.tokens as i64,
            span.origin.to_string()
        ],
    )?;
    for observation in &span.observations {
        if is_new_observation(&transaction, key, observation)? {
            rows::insert(
                &transaction,
                key,
                observation,
                &span.origin,
                Some(span.last),
            )?;
        }
    }
    let sql = "UPDATE memory_progress SET failures = 0, unusable = 0, not_before = NULL
        WHERE session = ?1";
    transaction.execute(sql, [session_row.id])?;
    transaction.commit()?;
    Ok(MemoryWrite::Written)
}

/// Returns true unless the observation cites a forgotten event or exists with the same text.
fn is_new_observation(
    connection: &Connection,
    key: &SessionKey,
    new: &NewMemory,
) -> rusqlite::Result<bool> {
    if forget::has_forgotten_events(connection, key, &new.sources)? {
        return Ok(false);
    }
    let sql = "SELECT count(*) FROM observations
        WHERE principal = ?1 AND session = ?2 AND lower(text) = lower(?3)";
    let same: i64 = connection.prepare_cached(sql)?.query_row(
        params![key.principal.as_str(), key.session.as_str(), new.note.text],
        |row| row.get(0),
    )?;
    Ok(same == 0)
}

/// Activates observations through an event. Only moves forward, and only to the end of a span.
pub fn activate(
    connection: &mut Connection,
    key: &SessionKey,
    through: u64,
) -> rusqlite::Result<()> {
    let Some(session_row) =
        event_rows::find_session(connection, key.principal.as_str(), key.session.as_str())?
    else {
        return Ok(());
    };
    let sql =
        "INSERT INTO memory_progress (session, active) SELECT session, last FROM observed_pieces
        WHERE session = ?1 AND last = ?2
        ON CONFLICT (session) DO UPDATE SET active = max(active, excluded.active)";
    connection
        .execute(sql, params![session_row.id, through as i64])
        .map(drop)
}

pub fn save_backoff(
    connection: &mut Connection,
    key: &SessionKey,
    backoff: &ObserverBackoff,
) -> rusqlite::Result<()> {
    let Some(session_row) =
        event_rows::find_session(connection, key.principal.as_str(), key.session.as_str())?
    else {
        return Ok(());
    };
    let sql = "INSERT INTO memory_progress (session, failures, unusable, not_before)
        VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (session) DO UPDATE SET
        failures = excluded.failures, unusable = excluded.unusable,
        not_before = excluded.not_before";
    let at = backoff.not_before.to_string();
    connection
        .execute(
            sql,
            params![session_row.id, backoff.failures, backoff.unusable, at],
        )
        .map(drop)
}

/// Records usage of the observer, which has no event in the session.
pub fn record_usage(
    connection: &mut Connection,
    principal: &str,
    turn: &TurnId,
    usage: &Usage,
) -> rusqlite::Result<()> {
    let body = serde_json::to_string(usage)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    let sql = "INSERT INTO usage (principal, turn, agent, branch, body)
        VALUES (?1, ?2, 'chronicler', 'observer', ?3)";
    connection
        .execute(sql, params![principal, turn.as_str(), body])
        .map(drop)
}
