//! Storage of inquiries. The tables are created with those of the knowledge base.

use futures::future::FutureExt;
use jiff::Timestamp;
use lango_domain::event::{Principal, SessionId, TurnId, Usage};
use lango_domain::inquiries::{
    Finder, Inquiry, InquiryStore, LastOffer, NewInquiry, Resolution, ScanPosition, ScanProgress,
    ScanResult,
};
use lango_domain::session::SessionKey;
use lango_domain::session::StoreFuture;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::damage::{RowReader, display_column};
use crate::event_rows;
use crate::knowledge::{timestamp, upsert_entry};
use crate::store::SqliteStore;

/// Agent and branch of usage that is recorded after a turn has ended.
const USAGE_AGENT: &str = "librarian";
const USAGE_BRANCH: &str = "afterwards";

const SELECT_INQUIRY: &str =
    "SELECT i.id, i.topic, i.question, i.why, i.priority, i.found_by, i.status, s.name, i.turn,
    i.created, i.offers, o.name, i.offered_at, i.answer, i.knowledge_key, i.closed FROM inquiries i
    JOIN sessions s ON s.id = i.session LEFT JOIN sessions o ON o.id = i.offered_in";

impl InquiryStore for SqliteStore {
    fn pending<'a>(&'a self, principal: &'a Principal) -> StoreFuture<'a, Vec<Inquiry>> {
        let principal = principal.to_string();
        async move {
            let found = self.read(move |connection| {
                let sql = format!(
                    "{SELECT_INQUIRY} WHERE i.principal = ?1 AND i.status = 'pending'
                        ORDER BY i.id"
                );
                connection.query_rows(&sql, [principal], inquiry_name, inquiry)
            });
            found.await
        }
        .boxed()
    }

    fn inquiries<'a>(&'a self, principal: &'a Principal) -> StoreFuture<'a, Vec<Inquiry>> {
        let principal = principal.to_string();
        async move {
            let found = self.read(move |connection| {
                let sql = format!("{SELECT_INQUIRY} WHERE i.principal = ?1 ORDER BY i.id DESC");
                connection.query_rows(&sql, [principal], inquiry_name, inquiry)
            });
            found.await
        }
        .boxed()
    }

    fn offer<'a>(
        &'a self,
        key: &'a SessionKey,
        inquiry: u64,
        at: Timestamp,
    ) -> StoreFuture<'a, bool> {
        let key = key.clone();
        async move {
            let offered = self.write(move |connection| {
                let sql = "UPDATE inquiries SET offers = offers + 1, offered_at = ?4,
                    offered_in = (SELECT id FROM sessions WHERE principal = ?1 AND name = ?2)
                    WHERE principal = ?1 AND id = ?3 AND status = 'pending'";
                let (principal, session) = (key.principal.as_str(), key.session.as_str());
                let changed = connection.execute(
                    sql,
                    params![
                        principal,
                        session,
                        inquiry as i64,
                        event_rows::sortable_time(at)
                    ],
                )?;
                Ok(changed > 0)
            });
            offered.await
        }
        .boxed()
    }

    fn dismiss<'a>(
        &'a self,
        principal: &'a Principal,
        inquiry: u64,
        at: Timestamp,
    ) -> StoreFuture<'a, bool> {
        let principal = principal.to_string();
        async move {
            let dismissed = self.write(move |connection| {
                let sql = "UPDATE inquiries SET status = 'dismissed', closed = ?3
                    WHERE principal = ?1 AND id = ?2 AND status = 'pending'";
                Ok(connection.execute(
                    sql,
                    params![principal, inquiry as i64, event_rows::sortable_time(at)],
                )? > 0)
            });
            dismissed.await
        }
        .boxed()
    }

    fn progress<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, ScanProgress> {
        let key = key.clone();
        async move {
            self.read(move |connection| progress(connection, &key))
                .await
        }
        .boxed()
    }

    fn save_scan<'a>(&'a self, key: &'a SessionKey, result: ScanResult) -> StoreFuture<'a, ()> {
        let key = key.clone();
        async move {
            self.write(move |connection| apply_scan(connection, &key, &result))
                .await
        }
        .boxed()
    }

    fn record_usage<'a>(
        &'a self,
        key: &'a SessionKey,
        turn: TurnId,
        usage: Usage,
    ) -> StoreFuture<'a, ()> {
        let principal = key.principal.to_string();
        async move {
            let recorded = self.write(move |connection| {
                let body = serde_json::to_string(&usage)
                    .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
                let sql = "INSERT INTO usage (principal, turn, agent, branch, body)
                    VALUES (?1, ?2, ?3, ?4, ?5)";
                connection
                    .execute(
                        sql,
                        params![principal, turn.as_str(), USAGE_AGENT, USAGE_BRANCH, body],
                    )
                    .map(drop)
            });
            recorded.await
        }
        .boxed()
    }
}

/// Reads every inquiry to find damaged rows.
pub(crate) fn read_all(reader: &RowReader<'_>) -> rusqlite::Result<()> {
    reader
        .query_rows(SELECT_INQUIRY, [], inquiry_name, inquiry)
        .map(drop)
}

fn inquiry_name(row: &Row<'_>) -> String {
    format!("inquiry {}", display_column(row, 0))
}

fn inquiry(row: &Row<'_>) -> rusqlite::Result<Inquiry> {
    let optional_time = |at: usize| match row.get_ref(at)? {
        rusqlite::types::ValueRef::Null => Ok(None),
        _ => timestamp(row, at).map(Some),
    };
    let offered_in: Option<String> = row.get(11)?;
    let offered_at = optional_time(12)?;
    Ok(Inquiry {
        id: row.get::<_, i64>(0)? as u64,
        topic: row.get(1)?,
        question: row.get(2)?,
        why: row.get(3)?,
        priority: from_name(row, 4)?,
        found_by: from_name(row, 5)?,
        status: from_name(row, 6)?,
        session: SessionId::new(row.get::<_, String>(7)?),
        turn: TurnId::new(row.get::<_, String>(8)?),
        created: timestamp(row, 9)?,
        offers: row.get(10)?,
        offered: offered_at.map(|at| LastOffer {
            session: offered_in.map(SessionId::new),
            at,
        }),
        answer: row.get(13)?,
        knowledge_key: row.get(14)?,
        closed: optional_time(15)?,
    })
}

/// Reads an enum value that is stored under its serialized name.
fn from_name<T: DeserializeOwned>(row: &Row<'_>, at: usize) -> rusqlite::Result<T> {
    serde_json::from_value(Value::from(row.get_ref(at)?.as_str()?))
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(at, Type::Text, error.into()))
}

fn to_name(value: impl Serialize) -> rusqlite::Result<String> {
    match serde_json::to_value(value) {
        Ok(Value::String(name)) => Ok(name),
        other => Err(rusqlite::Error::ToSqlConversionFailure(
            format!("not serialized as a name: {other:?}").into(),
        )),
    }
}

fn progress(connection: &Connection, key: &SessionKey) -> rusqlite::Result<ScanProgress> {
    let (principal, session) = (key.principal.as_str(), key.session.as_str());
    let sql = "SELECT max(l.asked) FROM looked_at l JOIN sessions s ON s.id = l.session
        WHERE s.principal = ?1";
    let asked: Option<String> = connection
        .prepare_cached(sql)?
        .query_row([principal], |row| row.get(0))?;
    let asked = asked.and_then(|at| at.parse().ok());
    Ok(ScanProgress {
        position: scan_position(connection, principal, session)?,
        last_model_call: asked,
    })
}

fn scan_position(
    connection: &Connection,
    principal: &str,
    session: &str,
) -> rusqlite::Result<ScanPosition> {
    let sql = "SELECT l.answers, l.gaps FROM looked_at l JOIN sessions s ON s.id = l.session
        WHERE s.principal = ?1 AND s.name = ?2";
    let position = |row: &Row<'_>| {
        Ok(ScanPosition {
            answers: row.get::<_, i64>(0)? as u64,
            gaps: row.get::<_, i64>(1)? as u64,
        })
    };
    let found = connection
        .prepare_cached(sql)?
        .query_row(params![principal, session], position)
        .optional()?;
    Ok(found.unwrap_or_default())
}

/// Applies a scan in one transaction. Does nothing if the session is gone or another scan was saved
/// since the one that this scan started from.
fn apply_scan(
    connection: &mut Connection,
    key: &SessionKey,
    result: &ScanResult,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (principal, session) = (key.principal.as_str(), key.session.as_str());
    let Some(session_row) = event_rows::find_session(&transaction, principal, session)? else {
        return Ok(());
    };
    if scan_position(&transaction, principal, session)? != result.after {
        return Ok(());
    }
    let at = event_rows::sortable_time(result.at);
    let asked = (result.by == Finder::Model).then_some(&at);
    let sql = "INSERT INTO looked_at (session, answers, gaps, asked)
        VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (session) DO UPDATE SET answers = ?2, gaps = ?3, asked = coalesce(?4, asked)";
    let ScanPosition { answers, gaps } = result.through;
    transaction.execute(
        sql,
        params![session_row.id, answers as i64, gaps as i64, asked],
    )?;
    for resolution in &result.resolutions {
        resolve(&transaction, principal, resolution, &at)?;
    }
    let sql = "UPDATE inquiries SET status = 'lapsed', closed = ?2
        WHERE principal = ?1 AND status = 'pending' AND offers >= ?3 AND offered_at < ?4";
    let before = event_rows::sortable_time(result.expiry.before);
    transaction.execute(sql, params![principal, at, result.expiry.offers, before])?;
    for inquiry in &result.new_inquiries {
        insert_inquiry(
            &transaction,
            (principal, session_row.id),
            inquiry,
            (&at, result.max_pending),
        )?;
    }
    transaction.commit()
}

/// Resolves a pending inquiry and saves the knowledge entry of its answer.
fn resolve(
    transaction: &Connection,
    principal: &str,
    resolution: &Resolution,
    at: &str,
) -> rusqlite::Result<()> {
    let sql =
        "UPDATE inquiries SET status = 'resolved', answer = ?3, knowledge_key = ?4, closed = ?5
        WHERE principal = ?1 AND id = ?2 AND status = 'pending'";
    let key = resolution.entry.as_ref().map(|entry| entry.key.as_str());
    let changed = transaction.execute(
        sql,
        params![
            principal,
            resolution.inquiry as i64,
            resolution.answer,
            key,
            at
        ],
    )?;
    match &resolution.entry {
        Some(entry) if changed > 0 => upsert_entry(transaction, principal, entry).map(drop),
        _ => Ok(()),
    }
}

/// Inserts an inquiry, unless too many are pending or its topic was asked about before.
fn insert_inquiry(
    transaction: &Connection,
    (principal, session): (&str, i64),
    new: &NewInquiry,
    (at, limit): (&str, usize),
) -> rusqlite::Result<()> {
    let sql = "INSERT OR IGNORE INTO inquiries
        (principal, session, turn, topic, question, why, priority, found_by, created)
        SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9
        WHERE (SELECT count(*) FROM inquiries WHERE principal = ?1 AND status = 'pending') < ?10";
    let (priority, found_by) = (to_name(new.priority)?, to_name(new.found_by)?);
    let NewInquiry {
        topic,
        question,
        reason,
        turn,
        ..
    } = new;
    let turn = turn.as_str();
    let limit = limit as i64;
    transaction
        .prepare_cached(sql)?
        .execute(params![
            principal, session, turn, topic, question, reason, priority, found_by, at, limit
        ])
        .map(drop)
}
