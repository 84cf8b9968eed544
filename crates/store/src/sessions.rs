//! Sessions as things to list, search, copy and delete.

use std::sync::Arc;

use jiff::Timestamp;
use lango_domain::event::{Event, EventBody, Principal, SessionId, Usage};
use lango_domain::session::HistoryWindow;
use rusqlite::{Connection, TransactionBehavior, params};

use crate::damage::{RowReader, display_column};
use crate::error::SqliteStoreError;
use crate::event_rows;
use crate::knowledge;
use crate::store::{SqliteStore, load};

/// What is known about a session without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    pub id: SessionId,
    pub title: String,
    pub events: u64,
    pub created: Timestamp,
    pub updated: Timestamp,
    /// Whether its last turn ended.
    pub is_settled: bool,
}

impl SessionInfo {
    /// In one word.
    pub fn state(&self) -> &'static str {
        if self.is_settled {
            "settled"
        } else {
            "interrupted"
        }
    }
}

/// An event in which something was found.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionSearchHit {
    pub session: SessionId,
    pub title: String,
    pub event: Arc<Event>,
}

/// What one call of a model took.
#[derive(Clone, Debug, PartialEq)]
pub struct UsageRow {
    pub session: Option<SessionId>,
    pub turn: String,
    pub agent: String,
    pub branch: String,
    pub usage: Usage,
}

const SELECT_SESSION_INFO: &str = "SELECT name, title, (SELECT count(*) FROM events WHERE session = id), created, updated,
    coalesce((SELECT kind = 'end' FROM events WHERE session = id ORDER BY seq DESC LIMIT 1), 1) FROM sessions";

impl SqliteStore {
    /// Everybody who has sessions.
    pub async fn principals(&self) -> Result<Vec<Principal>, SqliteStoreError> {
        self.read(|connection| {
            let mut query =
                connection.prepare("SELECT DISTINCT principal FROM sessions ORDER BY principal")?;
            query
                .query_map([], |row| Ok(Principal::new(row.get::<_, String>(0)?)))?
                .collect()
        })
        .await
    }

    /// The principal's sessions, the one used last first.
    pub async fn sessions(
        &self,
        principal: &Principal,
    ) -> Result<Vec<SessionInfo>, SqliteStoreError> {
        let principal = principal.to_string();
        self.read(move |connection| {
            let sql = format!(
                "{SELECT_SESSION_INFO} WHERE principal = ?1 ORDER BY updated DESC, id DESC"
            );
            connection.query_rows(&sql, params![principal], session_name, |row| {
                session_info(connection, row)
            })
        })
        .await
    }

    pub async fn session(
        &self,
        principal: &Principal,
        session: &SessionId,
    ) -> Result<SessionInfo, SqliteStoreError> {
        let (principal, name) = (principal.to_string(), session.to_string());
        let found = self
            .read(move |connection| {
                let sql = format!("{SELECT_SESSION_INFO} WHERE principal = ?1 AND name = ?2");
                let found =
                    connection.query_rows(&sql, params![principal, name], session_name, |row| {
                        session_info(connection, row)
                    })?;
                Ok(found.into_iter().next())
            })
            .await?;
        found.ok_or_else(|| SqliteStoreError::SessionNotFound(session.to_string()))
    }

    /// Events behind a number, in order; none for a session that does not exist.
    pub async fn events_after(
        &self,
        principal: &Principal,
        session: &SessionId,
        seq: u64,
        most: usize,
    ) -> Result<Vec<Arc<Event>>, SqliteStoreError> {
        let (principal, session) = (principal.clone(), session.clone());
        self.read(move |connection| {
            let Some(place) =
                event_rows::find_session(connection, principal.as_str(), session.as_str())?
            else {
                return Ok(Vec::new());
            };
            let sql = format!(
                "SELECT {} FROM events WHERE session = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
                event_rows::COLUMNS
            );
            let (after, most) = (i64::try_from(seq).unwrap_or(i64::MAX), most as i64);
            let (values, name) = (
                params![place.id, after, most],
                event_rows::event_name(session.as_str()),
            );
            connection.query_rows(&sql, values, name, |row| event_rows::event(row, &session))
        })
        .await
    }

    /// The newest of the principal's sessions whose names begin so.
    pub async fn sessions_with_prefix(
        &self,
        principal: &Principal,
        beginning: &str,
        most: usize,
    ) -> Result<Vec<SessionId>, SqliteStoreError> {
        let (principal, from) = (principal.to_string(), beginning.to_owned());
        self.read(move |connection| {
            let sql =
                "SELECT name FROM sessions WHERE principal = ?1 AND name >= ?2 AND name < ?2 || char(1114111)
                ORDER BY id DESC LIMIT ?3";
            let name = |row: &rusqlite::Row<'_>| Ok(SessionId::new(row.get::<_, String>(0)?));
            let mut query = connection.prepare_cached(sql)?;
            query.query_map(params![principal, from, most as i64], name)?.collect()
        })
        .await
    }

    /// Requests and answers that hold every word of `text`, in any case and script, newest first.
    pub async fn search(
        &self,
        principal: &Principal,
        text: &str,
        most: usize,
    ) -> Result<Vec<SessionSearchHit>, SqliteStoreError> {
        let words: Vec<String> = text
            .to_lowercase()
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        let principal = principal.to_string();
        self.read(move |connection| search(connection, &principal, &words, most))
            .await
    }

    /// A new session with the events of another up to a number, without the turn that it cuts in two.
    pub async fn fork(
        &self,
        principal: &Principal,
        from: &SessionId,
        at: u64,
        into: &SessionId,
    ) -> Result<u64, SqliteStoreError> {
        let source = self.session(principal, from).await?;
        let (owner, from, into) = (principal.clone(), source.id, into.clone());
        let events = self
            .read(move |connection| {
                Ok(whole_turns(
                    load(connection, &owner, &from, HistoryWindow::Everything)?,
                    at,
                ))
            })
            .await?;
        let copied = events.len() as u64;
        if copied == 0 {
            return Err(SqliteStoreError::NoCompleteTurn(at));
        }
        self.import_session(principal, &into, events).await?;
        Ok(copied)
    }

    /// A session made of events from elsewhere, numbered anew.
    pub async fn import_session(
        &self,
        principal: &Principal,
        session: &SessionId,
        events: Vec<Arc<Event>>,
    ) -> Result<(), SqliteStoreError> {
        let (owner, name) = (principal.to_string(), session.clone());
        let added = self
            .write(move |connection| insert_session(connection, &owner, &name, &events))
            .await?;
        if added {
            Ok(())
        } else {
            Err(SqliteStoreError::SessionExists(session.to_string()))
        }
    }

    /// What models took, of one session or of all, in order.
    pub async fn usage(
        &self,
        principal: &Principal,
        session: Option<&SessionId>,
    ) -> Result<Vec<UsageRow>, SqliteStoreError> {
        let (principal, session) = (principal.to_string(), session.map(SessionId::to_string));
        self.read(move |connection| {
            let sql = "SELECT NULL, turn, agent, branch, body, 0 AS age, rowid AS place FROM usage
                WHERE principal = ?1 AND ?2 IS NULL
                UNION ALL SELECT s.name, e.turn, e.author, e.branch, e.body, s.id, e.seq FROM sessions s
                JOIN events e ON e.session = s.id AND e.kind = 'usage'
                WHERE s.principal = ?1 AND (?2 IS NULL OR s.name = ?2) ORDER BY age, place";
            connection.query_rows(sql, params![principal, session], usage_name, usage_row)
        })
        .await
    }
}

/// Every session, every event and what calls took, only to see whether they can be read.
pub(crate) fn read_all(reader: &RowReader<'_>) -> rusqlite::Result<()> {
    reader.query_rows(SELECT_SESSION_INFO, [], session_name, |row| {
        session_info(reader, row)
    })?;
    let sql = format!(
        "SELECT {}, name FROM events JOIN sessions ON id = session",
        event_rows::COLUMNS
    );
    let event = |row: &rusqlite::Row<'_>| {
        event_rows::event(row, &SessionId::new(display_column(row, 6))).map(drop)
    };
    reader.query_rows(&sql, [], event_rows::joined_event_name, event)?;
    let sql = "SELECT NULL, turn, agent, branch, body FROM usage";
    reader.query_rows(sql, [], usage_name, |row| usage_row(row).map(drop))?;
    Ok(())
}

fn session_name(row: &rusqlite::Row<'_>) -> String {
    format!("session `{}`", display_column(row, 0))
}

fn usage_name(row: &rusqlite::Row<'_>) -> String {
    format!("what turn {} took", display_column(row, 1))
}

/// A session whose title cannot be read is still there.
fn session_info(reader: &RowReader<'_>, row: &rusqlite::Row<'_>) -> rusqlite::Result<SessionInfo> {
    let time =
        |at: usize| Ok::<_, rusqlite::Error>(row.get::<_, String>(at)?.parse().unwrap_or_default());
    Ok(SessionInfo {
        id: SessionId::new(row.get::<_, String>(0)?),
        title: reader.read_text(row, 1, session_name)?,
        events: row.get::<_, i64>(2)? as u64,
        created: time(3)?,
        updated: time(4)?,
        is_settled: row.get(5)?,
    })
}

fn usage_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<UsageRow> {
    Ok(UsageRow {
        session: row.get::<_, Option<String>>(0)?.map(SessionId::new),
        turn: row.get(1)?,
        agent: row.get(2)?,
        branch: row.get(3)?,
        usage: serde_json::from_str(row.get_ref(4)?.as_str()?).map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(4, rusqlite::types::Type::Text, error.into())
        })?,
    })
}

fn search(
    connection: &RowReader<'_>,
    principal: &str,
    words: &[String],
    most: usize,
) -> rusqlite::Result<Vec<SessionSearchHit>> {
    let sql = "SELECT e.seq, e.turn, e.author, e.branch, e.at, e.body, s.name, s.title FROM events e
        JOIN sessions s ON s.id = e.session
        WHERE s.principal = ?1 AND e.kind IN ('user', 'answer') ORDER BY s.updated DESC, e.seq DESC";
    let mut query = connection.prepare(sql)?;
    let mut found = query.query(params![principal])?;
    let mut hits = Vec::new();
    while let Some(row) = found.next()? {
        let session = SessionId::new(display_column(row, 6));
        let event = connection.check_row(
            row,
            event_rows::joined_event_name,
            event_rows::event(row, &session),
        )?;
        let Some(event) = event else { continue };
        let (EventBody::User { text } | EventBody::Answer { text } | EventBody::Report { text }) =
            &event.body
        else {
            continue;
        };
        let text = text.to_lowercase();
        if words.iter().all(|word| text.contains(word)) {
            hits.push(SessionSearchHit {
                session,
                title: display_column(row, 7),
                event,
            });
        }
        if hits.len() == most {
            break;
        }
    }
    Ok(hits)
}

/// Everything up to the last turn that ended at or before `at`.
fn whole_turns(mut events: Vec<Arc<Event>>, at: u64) -> Vec<Arc<Event>> {
    let is_end = |event: &Arc<Event>| {
        matches!(
            event.body,
            EventBody::TurnDone | EventBody::TurnFailed { .. }
        )
    };
    let end = events
        .iter()
        .rposition(|event| event.seq <= at && is_end(event));
    events.truncate(end.map_or(0, |end| end + 1));
    events
}

/// Whether it was added: there may be one of that name already.
fn insert_session(
    connection: &mut Connection,
    principal: &str,
    session: &SessionId,
    events: &[Arc<Event>],
) -> rusqlite::Result<bool> {
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if event_rows::find_session(&change, principal, session.as_str())?.is_some() {
        return Ok(false);
    }
    let at = events
        .first()
        .map_or(Timestamp::UNIX_EPOCH, |event| event.at);
    let place = event_rows::create_session(
        &change,
        principal,
        session.as_str(),
        &event_rows::sortable_time(at),
    )?;
    let events: Vec<Arc<Event>> = (1..)
        .zip(events)
        .map(|(seq, event)| {
            Arc::new(Event {
                seq,
                session: session.clone(),
                ..Event::clone(event)
            })
        })
        .collect();
    for event in &events {
        event_rows::insert_event(&change, place.id, event)?;
    }
    event_rows::update_session(&change, place.id, &events)?;
    knowledge::mark_as_counted(&change, place.id, events.len())?;
    change.commit()?;
    Ok(true)
}
