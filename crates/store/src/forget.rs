//! Forgetting across facts, knowledge, learnings, inquiries and memories, in one transaction.

use std::sync::Arc;

use futures::future::FutureExt;
use lango_domain::StoreError;
use lango_domain::event::{Event, Principal, SessionId};
use lango_domain::forget::{FactBatchChange, ForgetStore, Removal};
use lango_domain::session::StoreFuture;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use crate::event_rows;
use crate::memory;
use crate::reserve::DiskReserve;
use crate::store::SqliteStore;

impl ForgetStore for SqliteStore {
    fn remove<'a>(&'a self, principal: &'a Principal, removal: Removal) -> StoreFuture<'a, ()> {
        let principal = principal.to_string();
        async move {
            let (retry_principal, retry_removal) = (principal.clone(), removal.clone());
            match self
                .write(move |connection| remove(connection, &principal, &removal))
                .await
            {
                Err(StoreError::DiskFull) if self.reserve().is_some_and(DiskReserve::release) => {
                    self.write(move |connection| {
                        remove(connection, &retry_principal, &retry_removal)
                    })
                    .await?;
                }
                removed => removed?,
            }
            // Even if nothing was left to remove: an earlier process may have exited after the
            // removal and before its checkpoint.
            self.checkpoint_wal().await;
            self.reserve().into_iter().for_each(DiskReserve::ensure);
            Ok(())
        }
        .boxed()
    }

    fn unobserved_events<'a>(
        &'a self,
        principal: &'a Principal,
    ) -> StoreFuture<'a, Vec<Arc<Event>>> {
        let principal = principal.to_string();
        async move {
            let found = self.read(move |connection| {
                let sql = format!(
                    "SELECT {}, name FROM events JOIN sessions ON id = session
                    WHERE principal = ?1 AND seq > coalesce((SELECT max(last) FROM observed_pieces o
                        WHERE o.session = events.session), 0)
                    ORDER BY session, seq",
                    event_rows::COLUMNS
                );
                connection.query_rows(
                    &sql,
                    params![principal],
                    event_rows::joined_event_name,
                    |row| event_rows::event(row, &SessionId::new(row.get::<_, String>(6)?)),
                )
            });
            found.await
        }
        .boxed()
    }
}

fn remove(connection: &mut Connection, principal: &str, removal: &Removal) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for batch in &removal.batches {
        replace_batch(&transaction, principal, batch)?;
    }
    for (key, version) in &removal.entries {
        let sql = "DELETE FROM knowledge WHERE principal = ?1 AND key = ?2 AND version = ?3";
        transaction
            .prepare_cached(sql)?
            .execute(params![principal, key, version])?;
    }
    for table in ["learnings", "inquiries"] {
        let ids = if table == "learnings" {
            &removal.learnings
        } else {
            &removal.inquiries
        };
        for id in ids {
            let sql = format!("DELETE FROM {table} WHERE principal = ?1 AND id = ?2");
            transaction
                .prepare_cached(&sql)?
                .execute(params![principal, *id as i64])?;
        }
    }
    for (session, seq) in &removal.events {
        memory::mark_forgotten(&transaction, principal, session, *seq)?;
    }
    memory::delete_rows(&transaction, principal, &removal.memories)?;
    transaction.commit()
}

/// Replaces a batch by its remaining facts. They keep the label and number of the batch, so that
/// the order of facts and of their ends does not change. The delete trigger notifies readers.
fn replace_batch(
    transaction: &Connection,
    principal: &str,
    batch: &FactBatchChange,
) -> rusqlite::Result<()> {
    let number = batch.number as i64;
    let sql = "SELECT source, label FROM graph_batches WHERE principal = ?1 AND number = ?2";
    let stored =
        |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?));
    let stored = transaction
        .prepare_cached(sql)?
        .query_row(params![principal, number], stored)
        .optional()?;
    let Some((source, label)) = stored else {
        return Ok(());
    };
    transaction
        .prepare_cached("DELETE FROM graph_batches WHERE number = ?1")?
        .execute([number])?;
    if let Some(remaining) = &batch.remaining {
        let sql = "INSERT INTO graph_batches (number, principal, source, label, body)
            VALUES (?1, ?2, ?3, ?4, ?5)";
        transaction
            .prepare_cached(sql)?
            .execute(params![number, principal, source, label, remaining])?;
    }
    Ok(())
}
