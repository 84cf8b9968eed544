//! Listing, searching, forking and importing sessions, and their usage.

use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::Timestamp;
use lango_domain::StoreError;
use lango_domain::audit::AuditEntry;
use lango_domain::event::{Event, Principal, SessionId};
use lango_domain::session::{HistoryWindow, SessionKeyRef, StoreFuture};
use lango_domain::session_catalog::{SessionCatalog, SessionInfo, SessionSearchHit, UsageRow};
use rusqlite::{Connection, TransactionBehavior, params};

use crate::audit;
use crate::damage::{RowReader, display_column};

use crate::event_rows;
use crate::knowledge;
use crate::session_log::load;
use crate::session_search;
use crate::store::SqliteStore;

const SELECT_SESSION_INFO: &str = "SELECT name, title,
    (SELECT count(*) FROM events WHERE session = id), created, updated,
    coalesce((SELECT kind = 'end' FROM events WHERE session = id ORDER BY seq DESC LIMIT 1), 1)
    FROM sessions";

impl SessionCatalog for SqliteStore {
    fn principals(&self) -> StoreFuture<'_, Vec<Principal>> {
        Box::pin(async move {
            self.read(|connection| {
                let mut query = connection
                    .prepare("SELECT DISTINCT principal FROM sessions ORDER BY principal")?;
                query
                    .query_map([], |row| Ok(Principal::new(row.get::<_, String>(0)?)))?
                    .collect()
            })
            .await
        })
    }

    fn sessions<'a>(&'a self, principal: &'a Principal) -> StoreFuture<'a, Vec<SessionInfo>> {
        Box::pin(async move {
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
        })
    }

    fn session<'a>(
        &'a self,
        principal: &'a Principal,
        session: &'a SessionId,
    ) -> StoreFuture<'a, SessionInfo> {
        Box::pin(async move {
            let (principal, name) = (principal.to_string(), session.to_string());
            let found = self
                .read(move |connection| {
                    let sql = format!("{SELECT_SESSION_INFO} WHERE principal = ?1 AND name = ?2");
                    let found = connection.query_rows(
                        &sql,
                        params![principal, name],
                        session_name,
                        |row| session_info(connection, row),
                    )?;
                    Ok(found.into_iter().next())
                })
                .await?;
            found.ok_or_else(|| StoreError::SessionNotFound(session.to_string()))
        })
    }

    fn events_after<'a>(
        &'a self,
        principal: &'a Principal,
        session: &'a SessionId,
        seq: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Arc<Event>>> {
        Box::pin(async move {
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
        })
    }

    fn sessions_with_prefix<'a>(
        &'a self,
        principal: &'a Principal,
        prefix: &'a str,
        limit: usize,
    ) -> StoreFuture<'a, Vec<SessionId>> {
        Box::pin(async move {
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
        })
    }

    fn search<'a>(
        &'a self,
        principal: &'a Principal,
        text: &'a str,
        limit: usize,
    ) -> StoreFuture<'a, Vec<SessionSearchHit>> {
        Box::pin(async move {
            let words: Vec<String> = text
                .to_lowercase()
                .split_whitespace()
                .map(str::to_owned)
                .collect();
            let principal = principal.to_string();
            self.read(move |connection| {
                session_search::search(connection, &principal, &words, limit)
            })
            .await
        })
    }

    fn fork<'a>(
        &'a self,
        principal: &'a Principal,
        from: &'a SessionId,
        at: u64,
        into: &'a SessionId,
    ) -> StoreFuture<'a, u64> {
        Box::pin(async move {
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
                return Err(StoreError::NoCompleteTurn(at));
            }
            self.import_session(principal, &into, events).await?;
            Ok(copied)
        })
    }

    fn rename<'a>(
        &'a self,
        principal: &'a Principal,
        session: &'a SessionId,
        title: &'a str,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let (owner, name) = (principal.to_string(), session.to_string());
            let title = event_rows::title(title);
            let renamed = self
                .write(move |connection| {
                    let sql = "UPDATE sessions SET title = ?3 WHERE principal = ?1 AND name = ?2";
                    connection.execute(sql, params![owner, name, title])
                })
                .await?;
            match renamed {
                0 => Err(StoreError::SessionNotFound(session.to_string())),
                _ => Ok(()),
            }
        })
    }

    fn import_session<'a>(
        &'a self,
        principal: &'a Principal,
        session: &'a SessionId,
        events: Vec<Arc<Event>>,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let (owner, name) = (principal.to_string(), session.clone());
            let added = self
                .write(move |connection| insert_session(connection, &owner, &name, &events))
                .await?;
            if added {
                Ok(())
            } else {
                Err(StoreError::SessionExists(session.to_string()))
            }
        })
    }

    fn usage<'a>(
        &'a self,
        principal: &'a Principal,
        session: Option<&'a SessionId>,
    ) -> StoreFuture<'a, Vec<UsageRow>> {
        Box::pin(async move {
            let (principal, session) = (principal.to_string(), session.map(SessionId::to_string));
            self.read(move |connection| {
                let sql =
                    "SELECT NULL, turn, agent, branch, body, 0 AS age, rowid AS place FROM usage
                WHERE principal = ?1 AND ?2 IS NULL
                UNION ALL SELECT s.name, e.turn, e.author, e.branch, e.body, s.id, e.seq
                FROM sessions s
                JOIN events e ON e.session = s.id AND e.kind = 'usage'
                WHERE s.principal = ?1 AND (?2 IS NULL OR s.name = ?2) ORDER BY age, place";
                connection.query_rows(sql, params![principal, session], usage_name, usage_row)
            })
            .await
        })
    }

    fn audit<'a>(
        &'a self,
        principal: &'a Principal,
        session: Option<&'a SessionId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<AuditEntry>> {
        Box::pin(async move {
            let (principal, session) = (principal.to_string(), session.map(ToString::to_string));
            self.read(move |connection| {
                audit::entries(connection, &principal, session.as_deref(), limit)
            })
            .await
        })
    }

    fn delete<'a>(
        &'a self,
        principal: &'a Principal,
        session: &'a SessionId,
    ) -> StoreFuture<'a, ()> {
        Box::pin(self.delete_session(principal, session))
    }

    fn prune<'a>(
        &'a self,
        principal: &'a Principal,
        before: Timestamp,
    ) -> StoreFuture<'a, Vec<SessionId>> {
        Box::pin(self.prune_sessions(principal, before))
    }

    fn is_turn_running<'a>(&'a self, key: SessionKeyRef<'a>) -> BoxFuture<'a, bool> {
        Box::pin(async move { !matches!(self.locks().try_lock(key).await, Ok(Some(_))) })
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

/// Truncates the events after the last turn that ended at or before `at`.
fn whole_turns(mut events: Vec<Arc<Event>>, at: u64) -> Vec<Arc<Event>> {
    let is_end = |event: &Arc<Event>| event.body.is_turn_end();
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
