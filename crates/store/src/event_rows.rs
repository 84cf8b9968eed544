//! Events as rows, and rows as events.

use std::sync::Arc;

use jiff::Timestamp;
use lango_domain::Label;
use lango_domain::event::{Author, Branch, EVENT_VERSION, Event, EventBody, SessionId, TurnId};
use lango_domain::text::one_line;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Deserialize;

use crate::damage::display_column;

/// A title is the first request, up to so many characters.
const TITLE_CHARS: usize = 80;

/// A time as text that sorts as times do.
pub(crate) fn sortable_time(at: Timestamp) -> String {
    format!("{at:.9}")
}

pub(crate) const COLUMNS: &str = "seq, turn, author, branch, at, body";

/// The event of a row with [`COLUMNS`].
pub(crate) fn event(row: &Row<'_>, session: &SessionId) -> rusqlite::Result<Arc<Event>> {
    let text = |at: usize| row.get_ref(at)?.as_str().map_err(rusqlite::Error::from);
    let unreadable = |at: usize, error: Box<dyn std::error::Error + Send + Sync>| {
        rusqlite::Error::FromSqlConversionFailure(at, Type::Text, error)
    };
    let at: Timestamp = text(4)?
        .parse()
        .map_err(|error: jiff::Error| unreadable(4, error.into()))?;
    let (body, label) = parse_body(text(5)?).map_err(|error| unreadable(5, error.into()))?;
    Ok(Arc::new(Event {
        v: EVENT_VERSION,
        seq: row.get::<_, i64>(0)? as u64,
        turn: TurnId::new(text(1)?),
        session: session.clone(),
        author: Author::from(text(2)?.to_owned()),
        branch: Branch::new(text(3)?),
        at,
        label,
        body,
    }))
}

/// A label stands in the body's own object, where it is not plain.
fn parse_body(text: &str) -> serde_json::Result<(EventBody, Label)> {
    #[derive(Deserialize)]
    struct LabelField {
        #[serde(default)]
        label: Label,
    }
    let has_label = text.contains(LABEL_KEY);
    let label = has_label
        .then(|| serde_json::from_str::<LabelField>(text))
        .transpose()?;
    Ok((
        serde_json::from_str(text)?,
        label.map_or_else(Label::default, |labelled| labelled.label),
    ))
}

const LABEL_KEY: &str = "\"label\":";

fn body_json(event: &Event) -> serde_json::Result<String> {
    let mut text = serde_json::to_string(&event.body)?;
    if !event.label.is_plain() && text.ends_with('}') {
        text.pop();
        text = format!(
            "{text},{LABEL_KEY}{}}}",
            serde_json::to_string(&event.label)?
        );
    }
    Ok(text)
}

/// A label as a column.
pub(crate) fn label_json(label: &Label) -> String {
    serde_json::to_string(label).unwrap_or_default()
}

/// The label of a column; nothing where the row is older than labels.
pub(crate) fn label_column(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<Label>> {
    let text = row.get_ref(at)?.as_str_or_null()?;
    // What cannot be read is not taken for plain.
    Ok(text.map(|text| {
        serde_json::from_str(text).unwrap_or_else(|_| Label::untrusted("a damaged label"))
    }))
}

/// What an event is called where it cannot be read; the first column is its number.
pub(crate) fn event_name(session: &str) -> impl Fn(&Row<'_>) -> String {
    move |row| {
        format!(
            "event {} of session `{}`",
            display_column(row, 0),
            one_line(session)
        )
    }
}

/// The same, where the session's name stands behind [`COLUMNS`].
pub(crate) fn joined_event_name(row: &Row<'_>) -> String {
    format!(
        "event {} of session `{}`",
        display_column(row, 0),
        display_column(row, 6)
    )
}

/// Where a session's rows hang, and the number of the last one.
#[derive(Clone, Copy)]
pub(crate) struct SessionRow {
    pub id: i64,
    pub last: u64,
}

pub(crate) fn find_session(
    connection: &Connection,
    principal: &str,
    name: &str,
) -> rusqlite::Result<Option<SessionRow>> {
    let sql =
        "SELECT id, coalesce((SELECT max(seq) FROM events WHERE session = id), 0) FROM sessions
        WHERE principal = ?1 AND name = ?2";
    let place = |row: &Row<'_>| {
        Ok(SessionRow {
            id: row.get(0)?,
            last: row.get::<_, i64>(1)? as u64,
        })
    };
    connection
        .prepare_cached(sql)?
        .query_row(params![principal, name], place)
        .optional()
}

pub(crate) fn create_session(
    connection: &Connection,
    principal: &str,
    name: &str,
    at: &str,
) -> rusqlite::Result<SessionRow> {
    let sql = "INSERT INTO sessions (principal, name, created, updated) VALUES (?1, ?2, ?3, ?3)";
    connection
        .prepare_cached(sql)?
        .execute(params![principal, name, at])?;
    Ok(SessionRow {
        id: connection.last_insert_rowid(),
        last: 0,
    })
}

/// Writes one event; the caller gave it its number.
pub(crate) fn insert_event(
    connection: &Connection,
    session: i64,
    event: &Event,
) -> rusqlite::Result<()> {
    let body =
        body_json(event).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    let sql = "INSERT INTO events (session, seq, turn, author, branch, at, kind, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    connection.prepare_cached(sql)?.execute(params![
        session,
        event.seq as i64,
        event.turn.as_str(),
        event.author.to_string(),
        event.branch.as_str(),
        event.at.to_string(),
        kind(&event.body),
        body,
    ])?;
    Ok(())
}

/// What calls took stays known when the events of their session from this number on are gone.
pub(crate) fn detach_usage(
    connection: &Connection,
    principal: &str,
    name: &str,
    from: i64,
) -> rusqlite::Result<usize> {
    let sql = "INSERT INTO usage (principal, turn, agent, branch, body)
        SELECT ?1, turn, author, branch, body FROM events
        WHERE kind = 'usage' AND seq >= ?3 AND session = (SELECT id FROM sessions WHERE principal = ?1 AND name = ?2)
        -- What is damaged cannot be kept, and keeps nothing from being deleted.
        AND typeof(turn) = 'text' AND typeof(author) = 'text' AND typeof(branch) = 'text' AND typeof(body) = 'text'";
    connection.execute(sql, params![principal, name, from])
}

/// The session's title and time, where a turn begins or ends: in between only events are written. A clock that goes
/// backwards does not take the time along.
pub(crate) fn update_session(
    connection: &Connection,
    session: i64,
    events: &[Arc<Event>],
) -> rusqlite::Result<()> {
    let is_edge = |event: &&Arc<Event>| matches!(kind(&event.body), "user" | "end");
    let Some(newest) = events.iter().rfind(is_edge) else {
        return Ok(());
    };
    let sql = "UPDATE sessions SET updated = max(updated, ?2) WHERE id = ?1";
    connection
        .prepare_cached(sql)?
        .execute(params![session, sortable_time(newest.at)])?;
    if let Some(title) = events.iter().find_map(|event| title(&event.body)) {
        let sql = "UPDATE sessions SET title = ?2 WHERE id = ?1 AND title = ''";
        connection
            .prepare_cached(sql)?
            .execute(params![session, title])?;
    }
    Ok(())
}

fn title(body: &EventBody) -> Option<String> {
    match body {
        EventBody::User { text } => Some(one_line(text).chars().take(TITLE_CHARS).collect()),
        _ => None,
    }
}

/// What rows are told apart by without reading their bodies.
fn kind(body: &EventBody) -> &'static str {
    match body {
        EventBody::User { .. } => "user",
        EventBody::Answer { .. } | EventBody::Report { .. } => "answer",
        EventBody::Usage(_) => "usage",
        EventBody::TurnDone | EventBody::TurnFailed { .. } => "end",
        EventBody::ToolCall { .. } => "call",
        EventBody::ToolResult { .. } => "result",
        EventBody::Approval { .. } => "approval",
        _ => "step",
    }
}
