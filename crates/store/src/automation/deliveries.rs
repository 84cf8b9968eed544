//! The outbox and the inbox.

use futures::future::FutureExt;
use lango_domain::automation::{
    ClaimDeliveries, Delivery, DeliveryEnd, DeliveryId, DeliveryQuery, DeliveryStore, InboxEntry,
    InboxSelection, LeaseNumber, NewDelivery, NewInboxEntry,
};
use lango_domain::event::{Principal, SessionId};
use lango_domain::session::StoreFuture;
use rusqlite::{Connection, params};

use super::lease;
use super::rows::{
    DELIVERY_COLUMNS, INBOX_COLUMNS, delivery, inbox_entry, number, row_name, to_json,
};
use crate::damage::is_row_error;
use crate::event_rows::sortable_time;
use crate::store::SqliteStore;

impl DeliveryStore for SqliteStore {
    fn enqueue(
        &self,
        lease_number: LeaseNumber,
        new: Vec<NewDelivery>,
    ) -> StoreFuture<'_, Vec<DeliveryId>> {
        async move {
            self.batch(move |connection| {
                lease::check(connection, lease_number)?;
                Ok(insert(connection, &new)?)
            })
            .await
        }
        .boxed()
    }

    fn claim_deliveries(
        &self,
        lease_number: LeaseNumber,
        claim: ClaimDeliveries,
    ) -> StoreFuture<'_, Vec<Delivery>> {
        async move {
            self.batch(move |connection| {
                lease::check(connection, lease_number)?;
                Ok(claim_due(connection, claim)?)
            })
            .await
        }
        .boxed()
    }

    fn finish_attempt(
        &self,
        lease_number: LeaseNumber,
        id: DeliveryId,
        end: DeliveryEnd,
    ) -> StoreFuture<'_, bool> {
        async move {
            self.batch(move |connection| {
                lease::check(connection, lease_number)?;
                Ok(finish(connection, id, &end)?)
            })
            .await
        }
        .boxed()
    }

    fn deliveries(&self, query: DeliveryQuery) -> StoreFuture<'_, Vec<Delivery>> {
        async move {
            self.read(move |connection| {
                let sql = format!(
                    "SELECT {DELIVERY_COLUMNS} FROM deliveries
                    WHERE principal = ?1 AND (?2 IS NULL OR run = ?2) AND (?3 IS NULL OR state = ?3)
                    ORDER BY id DESC LIMIT ?4"
                );
                let values = params![
                    query.principal.as_str(),
                    query.run.map(|run| run.get() as i64),
                    query.state.map(|state| state.as_str()),
                    query.limit as i64,
                ];
                connection.query_rows(&sql, values, row_name("delivery"), delivery)
            })
            .await
        }
        .boxed()
    }

    fn add_inbox_entry(&self, entry: NewInboxEntry) -> StoreFuture<'_, InboxEntry> {
        async move {
            self.batch(move |connection| Ok(insert_inbox_entry(connection, &entry)?))
                .await
        }
        .boxed()
    }

    fn inbox<'a>(
        &'a self,
        principal: &'a Principal,
        selection: InboxSelection,
        limit: usize,
    ) -> StoreFuture<'a, Vec<InboxEntry>> {
        let principal = principal.to_string();
        async move {
            self.read(move |connection| {
                let (filter, ids) = filter(&selection)?;
                let sql = format!(
                    "SELECT {INBOX_COLUMNS} FROM inbox WHERE principal = ?1 AND {filter}
                    ORDER BY id DESC LIMIT ?3"
                );
                let values = params![principal, ids, limit as i64];
                connection.query_rows(&sql, values, row_name("inbox entry"), inbox_entry)
            })
            .await
        }
        .boxed()
    }

    fn mark_read<'a>(
        &'a self,
        principal: &'a Principal,
        selection: InboxSelection,
    ) -> StoreFuture<'a, usize> {
        let principal = principal.to_string();
        async move {
            self.batch(move |connection| {
                let (filter, ids) = filter(&selection)?;
                let sql = format!(
                    "UPDATE inbox SET is_read = 1 WHERE principal = ?1 AND NOT is_read AND {filter}"
                );
                Ok(connection.execute(&sql, params![principal, ids])?)
            })
            .await
        }
        .boxed()
    }

    fn clear_inbox<'a>(
        &'a self,
        principal: &'a Principal,
        selection: InboxSelection,
    ) -> StoreFuture<'a, usize> {
        let principal = principal.to_string();
        async move {
            self.batch(move |connection| {
                let (filter, ids) = filter(&selection)?;
                let sql = format!("DELETE FROM inbox WHERE principal = ?1 AND {filter}");
                Ok(connection.execute(&sql, params![principal, ids])?)
            })
            .await
        }
        .boxed()
    }
}

/// Returns a condition on the inbox, and its parameter `?2`: a JSON array of ids.
fn filter(selection: &InboxSelection) -> rusqlite::Result<(&'static str, Option<String>)> {
    Ok(match selection {
        InboxSelection::All => ("?2 IS NULL", None),
        InboxSelection::Read => ("?2 IS NULL AND is_read", None),
        InboxSelection::Unread => ("?2 IS NULL AND NOT is_read", None),
        InboxSelection::Entries(ids) => {
            let ids = to_json(ids)?;
            ("id IN (SELECT value FROM json_each(?2))", Some(ids))
        }
    })
}

pub(super) fn insert(
    connection: &Connection,
    new: &[NewDelivery],
) -> rusqlite::Result<Vec<DeliveryId>> {
    let sql = "INSERT INTO deliveries
            (run, principal, occasion, target, message, state, created, next_try)
        VALUES (?1, ?2, ?3, ?4, ?5, 'pending', ?6, ?6) RETURNING id";
    let mut insert = connection.prepare_cached(sql)?;
    new.iter()
        .map(|new| {
            let values = params![
                new.run.map(|run| run.get() as i64),
                new.principal.as_str(),
                new.occasion.as_str(),
                new.target,
                to_json(&new.message)?,
                sortable_time(new.created),
            ];
            insert.query_row(values, |row| number(row, 0).map(DeliveryId::new))
        })
        .collect()
}

fn claim_due(connection: &Connection, claim: ClaimDeliveries) -> rusqlite::Result<Vec<Delivery>> {
    let sql = "SELECT id FROM deliveries WHERE state = 'pending' AND next_try <= ?1
        ORDER BY next_try, id LIMIT ?2";
    let values = params![sortable_time(claim.at), claim.limit as i64];
    let ids: Vec<i64> = connection
        .prepare_cached(sql)?
        .query_map(values, |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let sql = format!(
        "UPDATE deliveries SET attempts = attempts + 1, next_try = ?2 WHERE id = ?1
        RETURNING {DELIVERY_COLUMNS}"
    );
    let retry_at = sortable_time(claim.retry_at);
    let mut update = connection.prepare_cached(&sql)?;
    let claimed = ids.into_iter().map(|id| {
        match update.query_row(params![id, retry_at], delivery) {
            // A row that cannot be read must not hold up all others.
            Err(error) if is_row_error(&error) => {
                tracing::error!(delivery = id, %error, "a delivery cannot be read; it has failed");
                let sql = "UPDATE deliveries SET state = 'failed',
                    last_error = 'the stored delivery is damaged' WHERE id = ?1";
                connection.execute(sql, [id]).map(|_| None)
            }
            read => read.map(Some),
        }
    });
    claimed.filter_map(Result::transpose).collect()
}

fn finish(connection: &Connection, id: DeliveryId, end: &DeliveryEnd) -> rusqlite::Result<bool> {
    let (state, next_try, error) = match end {
        DeliveryEnd::Delivered { .. } => ("delivered", None, None),
        DeliveryEnd::Retry { at, error } => ("pending", Some(sortable_time(*at)), Some(error)),
        DeliveryEnd::Failed { error, .. } => ("failed", None, Some(error)),
    };
    let sql = "UPDATE deliveries SET state = ?2, next_try = coalesce(?3, next_try), last_error = ?4
        WHERE id = ?1 AND state = 'pending'";
    let mut update = connection.prepare_cached(sql)?;
    let is_pending = update.execute(params![id.get() as i64, state, next_try, error])? > 0;
    if let DeliveryEnd::Delivered { inbox } | DeliveryEnd::Failed { inbox, .. } = end
        && let (true, Some(entry)) = (is_pending, inbox)
    {
        insert_inbox_entry(connection, entry)?;
    }
    Ok(is_pending)
}

fn insert_inbox_entry(
    connection: &Connection,
    entry: &NewInboxEntry,
) -> rusqlite::Result<InboxEntry> {
    let sql = format!(
        "INSERT INTO inbox (principal, at, message, session) VALUES (?1, ?2, ?3, ?4)
        RETURNING {INBOX_COLUMNS}"
    );
    // The session has a column of its own, which a deleted session leaves empty.
    let mut message = entry.message.clone();
    let session = message.session.take();
    let values = params![
        entry.principal.as_str(),
        sortable_time(entry.at),
        to_json(&message)?,
        session.as_ref().map(SessionId::as_str),
    ];
    connection
        .prepare_cached(&sql)?
        .query_row(values, inbox_entry)
}
