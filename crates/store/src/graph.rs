//! Storage of graph facts: a log of immutable batches, and a log of deleted batches.

use std::time::{Duration, SystemTime};

use futures::future::FutureExt;
use lango_domain::event::Principal;
use lango_domain::graph::FactProvenance;
use lango_domain::graph::{
    FactBatch, FactChanges, FactLogPosition, FactLogVersion, FactSource, FactSourceFilter,
    FactSourceText, GraphStore, NewFactBatch,
};
use lango_domain::session::StoreFuture;
use rusqlite::{Connection, TransactionBehavior, params};

use crate::database::StoreLocation;
use crate::event_rows;
use crate::store::SqliteStore;

/// The tables. Numbers are never reused, and a trigger logs every deletion.
pub(crate) const TABLES: &str = "
    CREATE TABLE graph_batches (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        principal TEXT NOT NULL,
        source TEXT NOT NULL,
        body BLOB NOT NULL
    ) STRICT;
    CREATE INDEX graph_batches_of ON graph_batches (principal);
    CREATE INDEX graph_batches_from ON graph_batches (source);
    CREATE TABLE graph_gone (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        principal TEXT NOT NULL,
        batch INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX graph_gone_of ON graph_gone (principal);
    CREATE TRIGGER graph_batch_gone AFTER DELETE ON graph_batches BEGIN
        INSERT INTO graph_gone (principal, batch) VALUES (old.principal, old.number);
    END;
";

/// One call of `changes` stops reading batches once they exceed this size.
const MAX_BYTES: usize = 8 << 20;
/// A WAL that was modified less than this long ago may change again without a new timestamp,
/// because file system clocks are coarse.
const WAL_QUIET_PERIOD: Duration = Duration::from_millis(50);

impl GraphStore for SqliteStore {
    fn append<'a>(
        &'a self,
        principal: &'a Principal,
        batches: Vec<NewFactBatch>,
    ) -> StoreFuture<'a, ()> {
        let principal = principal.to_string();
        async move {
            self.write(move |connection| append(connection, &principal, &batches))
                .await
        }
        .boxed()
    }

    fn changes<'a>(
        &'a self,
        principal: &'a Principal,
        seen: FactLogPosition,
    ) -> StoreFuture<'a, FactChanges> {
        let principal = principal.to_string();
        async move {
            self.read(move |connection| changes(connection, &principal, seen))
                .await
        }
        .boxed()
    }

    fn forget<'a>(
        &'a self,
        principal: &'a Principal,
        filter: FactSourceFilter,
    ) -> StoreFuture<'a, usize> {
        let principal = principal.to_string();
        async move {
            let deleted = self.write(move |connection| {
                let transaction =
                    connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                let deleted = forget(&transaction, &principal, &filter)?;
                transaction.commit()?;
                Ok(deleted)
            });
            let deleted = deleted.await?;
            if deleted > 0 {
                self.checkpoint_wal().await;
            }
            Ok(deleted)
        }
        .boxed()
    }

    fn log_version(&self) -> Option<FactLogVersion> {
        let StoreLocation::File(file) = self.location() else {
            return None;
        };
        let mut log = file.clone().into_os_string();
        log.push("-wal");
        let metadata = std::fs::metadata(log).ok()?;
        let modified = metadata.modified().ok()?;
        if SystemTime::now().duration_since(modified).ok()? < WAL_QUIET_PERIOD {
            return None;
        }
        let nanoseconds = modified
            .duration_since(SystemTime::UNIX_EPOCH)
            .ok()?
            .as_nanos();
        Some(FactLogVersion(
            nanoseconds << 48 | u128::from(metadata.len()),
        ))
    }
}

fn append(
    connection: &mut Connection,
    principal: &str,
    batches: &[NewFactBatch],
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for batch in batches {
        let sql =
            "INSERT INTO graph_batches (principal, source, body, label) VALUES (?1, ?2, ?3, ?4)";
        let (source, label) = (
            batch.source.to_string(),
            event_rows::label_json(&batch.label),
        );
        transaction
            .prepare_cached(sql)?
            .execute(params![principal, source, batch.body, label])?;
    }
    transaction.commit()
}

fn changes(
    connection: &Connection,
    principal: &str,
    seen: FactLogPosition,
) -> rusqlite::Result<FactChanges> {
    let transaction = connection.unchecked_transaction()?;
    let mut changes = FactChanges {
        position: seen,
        ..FactChanges::default()
    };
    let sql = "SELECT number, source, body, label FROM graph_batches
        WHERE principal = ?1 AND number > ?2 ORDER BY number";
    let mut query = transaction.prepare_cached(sql)?;
    let mut rows = query.query(params![principal, seen.batch as i64])?;
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let (number, body) = (row.get::<_, i64>(0)? as u64, row.get::<_, Vec<u8>>(2)?);
        bytes += body.len();
        let source = FactSource::from(row.get_ref(1)?.as_str()?);
        let label = event_rows::label_column(row, 3)?
            .unwrap_or_else(|| FactProvenance::from(source.clone()).label);
        changes.batches.push(FactBatch {
            number,
            source,
            label,
            body,
        });
        changes.position.batch = number;
        if bytes > MAX_BYTES {
            break;
        }
    }
    let sql = "SELECT number, batch FROM graph_gone WHERE principal = ?1 AND number > ?2
        ORDER BY number";
    let mut query = transaction.prepare_cached(sql)?;
    let mut rows = query.query(params![principal, seen.removed as i64])?;
    while let Some(row) = rows.next()? {
        changes.position.removed = row.get::<_, i64>(0)? as u64;
        changes.removed.push(row.get::<_, i64>(1)? as u64);
    }
    Ok(changes)
}

/// Deletes batches within the caller's transaction. Deleting a session deletes its facts this way.
pub(crate) fn forget(
    connection: &Connection,
    principal: &str,
    filter: &FactSourceFilter,
) -> rusqlite::Result<usize> {
    match filter.text() {
        FactSourceText::Exact(text) => connection.execute(
            "DELETE FROM graph_batches WHERE principal = ?1 AND source = ?2",
            params![principal, text],
        ),
        FactSourceText::Prefix(text) => connection.execute(
            "DELETE FROM graph_batches WHERE principal = ?1 AND source > ?2 AND source < ?2 ||
                char(0x10ffff)
                AND instr(substr(source, length(?2) + 1), '#') = 0",
            params![principal, text],
        ),
    }
}
