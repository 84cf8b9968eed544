//! Conversion between events and rows.

use std::sync::Arc;

use jiff::Timestamp;
use lango_domain::event::{Author, Branch, EVENT_VERSION, Event, EventBody, SessionId, TurnId};
use lango_domain::{Content, Label};
use lango_text::sanitize::one_line;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Deserialize;

use crate::blobs;
use crate::damage::display_column;

/// Maximum length of a session title, which is the start of the first request unless it is renamed.
const TITLE_CHARS: usize = 80;

/// Formats a time as text that sorts chronologically.
pub(crate) fn sortable_time(at: Timestamp) -> String {
    format!("{at:.9}")
}

pub(crate) const COLUMNS: &str = "seq, turn, author, branch, at, body";

/// Reads the event of a row with [`COLUMNS`].
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

/// Parses an event body. A label that is not plain is stored as a field of the body's object.
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

/// Serializes a label for a column.
pub(crate) fn label_json(label: &Label) -> String {
    serde_json::to_string(label).unwrap_or_default()
}

/// Reads a label column. Returns `None` if the row is older than labels.
pub(crate) fn label_column(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<Label>> {
    let text = row.get_ref(at)?.as_str_or_null()?;
    // An unreadable label must not count as plain.
    Ok(text.map(|text| {
        serde_json::from_str(text).unwrap_or_else(|_| Label::untrusted("a damaged label"))
    }))
}

/// Names an event in a damage report. The first column must be its number.
pub(crate) fn event_name(session: &str) -> impl Fn(&Row<'_>) -> String {
    move |row| {
        format!(
            "event {} of session `{}`",
            display_column(row, 0),
            one_line(session)
        )
    }
}

/// Names an event in a damage report, for rows with [`COLUMNS`] followed by the session's name.
pub(crate) fn joined_event_name(row: &Row<'_>) -> String {
    format!(
        "event {} of session `{}`",
        display_column(row, 0),
        display_column(row, 6)
    )
}

/// The row id of a session, and the number of its last event.
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
    let session_row = |row: &Row<'_>| {
        Ok(SessionRow {
            id: row.get(0)?,
            last: row.get::<_, i64>(1)? as u64,
        })
    };
    connection
        .prepare_cached(sql)?
        .query_row(params![principal, name], session_row)
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

/// Inserts an event under its own sequence number.
pub(crate) fn insert_event(
    connection: &Connection,
    session: i64,
    event: &Event,
) -> rusqlite::Result<()> {
    let body =
        body_json(event).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    let sql = "INSERT INTO events (session, seq, turn, author, branch, at, kind, body)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
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
    blobs::insert_blobs(connection, session, event)
}

/// Overwrites the body of a stored event.
pub(crate) fn update_event(
    connection: &Connection,
    session: i64,
    event: &Event,
) -> rusqlite::Result<()> {
    let body =
        body_json(event).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    let sql = "UPDATE events SET body = ?3 WHERE session = ?1 AND seq = ?2";
    connection.execute(sql, params![session, event.seq as i64, body])?;
    Ok(())
}

/// Copies the usage of a session's events from number `from` on into the `usage` table, before
/// these events are deleted.
pub(crate) fn detach_usage(
    connection: &Connection,
    principal: &str,
    name: &str,
    from: i64,
) -> rusqlite::Result<usize> {
    let sql = "INSERT INTO usage (principal, turn, agent, branch, body)
        SELECT ?1, turn, author, branch, body FROM events
        WHERE kind = 'usage' AND seq >= ?3
        AND session = (SELECT id FROM sessions WHERE principal = ?1 AND name = ?2)
        -- A damaged row cannot be copied, and must not block the deletion.
        AND typeof(turn) = 'text' AND typeof(author) = 'text'
        AND typeof(branch) = 'text' AND typeof(body) = 'text'";
    connection.execute(sql, params![principal, name, from])
}

/// Updates a session's title and time if one of the events starts or ends a turn. The time never
/// moves backwards, even if the clock does.
pub(crate) fn update_session(
    connection: &Connection,
    session: i64,
    events: &[Arc<Event>],
) -> rusqlite::Result<()> {
    let is_boundary = |event: &&Arc<Event>| matches!(kind(&event.body), "user" | "end");
    let Some(newest) = events.iter().rfind(is_boundary) else {
        return Ok(());
    };
    let sql = "UPDATE sessions SET updated = max(updated, ?2) WHERE id = ?1";
    connection
        .prepare_cached(sql)?
        .execute(params![session, sortable_time(newest.at)])?;
    let request = events.iter().find_map(|event| match &event.body {
        EventBody::User(Content { text, .. }) => Some(text),
        _ => None,
    });
    if let Some(title) = request.map(|text| title(text)) {
        let sql = "UPDATE sessions SET title = ?2 WHERE id = ?1 AND title = ''";
        connection
            .prepare_cached(sql)?
            .execute(params![session, title])?;
    }
    Ok(())
}

/// Returns a text in the form of a title: one line, not too long.
pub(crate) fn title(text: &str) -> String {
    one_line(text).chars().take(TITLE_CHARS).collect()
}

/// Returns the value of the `kind` column, which selects rows without parsing their bodies.
fn kind(body: &EventBody) -> &'static str {
    match body {
        EventBody::User(_) => "user",
        EventBody::Answer(_) | EventBody::Report(_) => "answer",
        EventBody::Usage(_) => "usage",
        EventBody::TurnDone { .. } | EventBody::TurnFailed { .. } => "end",
        EventBody::ToolCall { .. } => "call",
        EventBody::ToolResult { .. } => "result",
        EventBody::Approval { .. } => "approval",
        _ => "step",
    }
}
