//! Listing, searching, forking and importing sessions, and their usage.

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

/// Metadata of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    pub id: SessionId,
    pub title: String,
    pub events: u64,
    pub created: Timestamp,
    pub updated: Timestamp,
    /// True if the last turn of the session has ended.
    pub is_settled: bool,
}

impl SessionInfo {
    /// Returns the state as a word: `settled` or `interrupted`.
    pub fn state(&self) -> &'static str {
        if self.is_settled {
            "settled"
        } else {
            "interrupted"
        }
    }
}

/// An event that matches a search.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionSearchHit {
    pub session: SessionId,
    pub title: String,
    pub event: Arc<Event>,
}

/// Usage of one model call. The session is `None` if it was deleted.
#[derive(Clone, Debug, PartialEq)]
pub struct UsageRow {
    pub session: Option<SessionId>,
    pub turn: String,
    pub agent: String,
    pub branch: String,
    pub usage: Usage,
}

const SELECT_SESSION_INFO: &str = "SELECT name, title,
    (SELECT count(*) FROM events WHERE session = id), created, updated,
    coalesce((SELECT kind = 'end' FROM events WHERE session = id ORDER BY seq DESC LIMIT 1), 1)
    FROM sessions";

impl SqliteStore {
    /// Returns every principal that has sessions.
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

    /// Returns the principal's sessions, most recently used first.
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

    /// Returns up to `limit` events after `seq`, in order. Empty for a session that does not exist.
    pub async fn events_after(
        &self,
        principal: &Principal,
        session: &SessionId,
        seq: u64,
        limit: usize,
    ) -> Result<Vec<Arc<Event>>, SqliteStoreError> {
        let (principal, session) = (principal.clone(), session.clone());
        self.read(move |connection| {
            let Some(session_row) =
                event_rows::find_session(connection, principal.as_str(), session.as_str())?
            else {
                return Ok(Vec::new());
            };
            let sql = format!(
                "SELECT {} FROM events WHERE session = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
                event_rows::COLUMNS
            );
            let (after, limit) = (i64::try_from(seq).unwrap_or(i64::MAX), limit as i64);
            let (values, name) = (
                params![session_row.id, after, limit],
                event_rows::event_name(session.as_str()),
            );
            connection.query_rows(&sql, values, name, |row| event_rows::event(row, &session))
        })
        .await
    }

    /// Returns the newest sessions of the principal whose names start with `prefix`.
    pub async fn sessions_with_prefix(
        &self,
        principal: &Principal,
        prefix: &str,
        limit: usize,
    ) -> Result<Vec<SessionId>, SqliteStoreError> {
        let (principal, prefix) = (principal.to_string(), prefix.to_owned());
        self.read(move |connection| {
            let sql = "SELECT name FROM sessions
                WHERE principal = ?1 AND name >= ?2 AND name < ?2 || char(1114111)
                ORDER BY id DESC LIMIT ?3";
            let name = |row: &rusqlite::Row<'_>| Ok(SessionId::new(row.get::<_, String>(0)?));
            let mut query = connection.prepare_cached(sql)?;
            query
                .query_map(params![principal, prefix, limit as i64], name)?
                .collect()
        })
        .await
    }

    /// Returns requests and answers that contain every word of `text`, newest first. Ignores case.
    pub async fn search(
        &self,
        principal: &Principal,
        text: &str,
        limit: usize,
    ) -> Result<Vec<SessionSearchHit>, SqliteStoreError> {
        let words: Vec<String> = text
            .to_lowercase()
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        let principal = principal.to_string();
        self.read(move |connection| search(connection, &principal, &words, limit))
            .await
    }

    /// Copies the complete turns of `from` up to event `at` into the new session `into`. Returns
    /// the number of copied events.
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

    /// Creates a session from existing events, renumbered from 1.
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

    /// Returns the usage of one session, or of all sessions including deleted ones, in order.
    pub async fn usage(
        &self,
        principal: &Principal,
        session: Option<&SessionId>,
    ) -> Result<Vec<UsageRow>, SqliteStoreError> {
        let (principal, session) = (principal.to_string(), session.map(SessionId::to_string));
        self.read(move |connection| {
            let sql = "SELECT NULL, turn, agent, branch, body, 0 AS age, rowid AS place FROM usage
                WHERE principal = ?1 AND ?2 IS NULL
                UNION ALL SELECT s.name, e.turn, e.author, e.branch, e.body, s.id, e.seq
                FROM sessions s
                JOIN events e ON e.session = s.id AND e.kind = 'usage'
                WHERE s.principal = ?1 AND (?2 IS NULL OR s.name = ?2) ORDER BY age, place";
            connection.query_rows(sql, params![principal, session], usage_name, usage_row)
        })
        .await
    }
}

/// Reads every session, event and usage row to find damaged ones.
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
    format!("usage of turn {}", display_column(row, 1))
}

/// Reads a session's metadata. A session with an unreadable title is still listed.
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
    limit: usize,
) -> rusqlite::Result<Vec<SessionSearchHit>> {
    let sql =
        "SELECT e.seq, e.turn, e.author, e.branch, e.at, e.body, s.name, s.title FROM events e
        JOIN sessions s ON s.id = e.session
        WHERE s.principal = ?1 AND e.kind IN ('user', 'answer')
        ORDER BY s.updated DESC, e.seq DESC";
    let mut query = connection.prepare(sql)?;
    let mut rows = query.query(params![principal])?;
    let mut hits = Vec::new();
    while let Some(row) = rows.next()? {
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
        if hits.len() == limit {
            break;
        }
    }
    Ok(hits)
}

/// Truncates the events after the last turn that ended at or before `at`.
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

/// Inserts a session with its events. Returns false if a session of that name exists.
fn insert_session(
    connection: &mut Connection,
    principal: &str,
    session: &SessionId,
    events: &[Arc<Event>],
) -> rusqlite::Result<bool> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if event_rows::find_session(&transaction, principal, session.as_str())?.is_some() {
        return Ok(false);
    }
    let at = events
        .first()
        .map_or(Timestamp::UNIX_EPOCH, |event| event.at);
    let session_row = event_rows::create_session(
        &transaction,
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
        event_rows::insert_event(&transaction, session_row.id, event)?;
    }
    event_rows::update_session(&transaction, session_row.id, &events)?;
    knowledge::mark_as_counted(&transaction, session_row.id, events.len())?;
    transaction.commit()?;
    Ok(true)
}
