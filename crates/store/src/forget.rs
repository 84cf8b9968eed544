//! Forgetting in one change: what was learned in several places is gone from all of them, or from none.

use std::sync::Arc;

use futures::future::FutureExt;
use lango_domain::event::{Event, Principal, SessionId};
use lango_domain::forget::{FactBatchChange, ForgetStore, Removal};
use lango_domain::session::StoreFuture;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use crate::error::SqliteStoreError;
use crate::event_rows;
use crate::memory;
use crate::reserve::DiskReserve;
use crate::store::SqliteStore;

impl ForgetStore for SqliteStore {
    fn remove<'a>(&'a self, of: &'a Principal, removal: Removal) -> StoreFuture<'a, ()> {
        let of = of.to_string();
        async move {
            let (again, whose) = (removal.clone(), of.clone());
            match self
                .write(move |connection| remove(connection, &of, &removal))
                .await
            {
                Err(SqliteStoreError::DiskFull)
                    if self.reserve().is_some_and(DiskReserve::release) =>
                {
                    self.write(move |connection| remove(connection, &whose, &again))
                        .await?;
                }
                removed => removed?,
            }
            // Also where it was removed before: that process may have ended before the log was emptied.
            self.checkpoint_wal().await;
            self.reserve().into_iter().for_each(DiskReserve::ensure);
            Ok(())
        }
        .boxed()
    }

    fn unobserved_events<'a>(&'a self, of: &'a Principal) -> StoreFuture<'a, Vec<Arc<Event>>> {
        let of = of.to_string();
        async move {
            let found = self.read(move |connection| {
                let sql = format!(
                    "SELECT {}, name FROM events JOIN sessions ON id = session WHERE principal = ?1 AND seq >
                        coalesce((SELECT max(last) FROM observed_pieces o WHERE o.session = events.session), 0)
                    ORDER BY session, seq",
                    event_rows::COLUMNS
                );
                connection.query_rows(&sql, params![of], event_rows::joined_event_name, |row| {
                    event_rows::event(row, &SessionId::new(row.get::<_, String>(6)?))
                })
            });
            Ok(found.await?)
        }
        .boxed()
    }
}

fn remove(connection: &mut Connection, of: &str, removal: &Removal) -> rusqlite::Result<()> {
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for batch in &removal.batches {
        replace_batch(&change, of, batch)?;
    }
    for (key, version) in &removal.entries {
        let sql = "DELETE FROM knowledge WHERE principal = ?1 AND key = ?2 AND version = ?3";
        change
            .prepare_cached(sql)?
            .execute(params![of, key, version])?;
    }
    for table in ["learnings", "inquiries"] {
        let ids = if table == "learnings" {
            &removal.learnings
        } else {
            &removal.inquiries
        };
        for id in ids {
            let sql = format!("DELETE FROM {table} WHERE principal = ?1 AND id = ?2");
            change
                .prepare_cached(&sql)?
                .execute(params![of, *id as i64])?;
        }
    }
    for (session, seq) in &removal.events {
        memory::mark_forgotten(&change, of, session, *seq)?;
    }
    memory::delete_rows(&change, of, &removal.memories)?;
    change.commit()
}

/// What stays keeps the label and the number of its batch, so that the order of facts and of their endings stays, too. The trigger tells
/// whoever has read it that it is not what it was.
fn replace_batch(change: &Connection, of: &str, batch: &FactBatchChange) -> rusqlite::Result<()> {
    let number = batch.number as i64;
    let sql = "SELECT source, label FROM graph_batches WHERE principal = ?1 AND number = ?2";
    let told =
        |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?));
    let told = change
        .prepare_cached(sql)?
        .query_row(params![of, number], told)
        .optional()?;
    let Some((source, label)) = told else {
        return Ok(());
    };
    change
        .prepare_cached("DELETE FROM graph_batches WHERE number = ?1")?
        .execute([number])?;
    if let Some(left) = &batch.remaining {
        let sql = "INSERT INTO graph_batches (number, principal, source, label, body) VALUES (?1, ?2, ?3, ?4, ?5)";
        change
            .prepare_cached(sql)?
            .execute(params![number, of, source, label, left])?;
    }
    Ok(())
}
