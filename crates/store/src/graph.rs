//! Facts in the same file as sessions: batches that are written once, and a list of those that were taken out.

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

/// Numbers are never used again, and the trigger sees to it that nothing goes unnoticed.
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

/// So many bytes are read at one look.
const MAX_BYTES: usize = 8 << 20;
/// A log that was written to less than this ago may be written to again without looking different: clocks of file systems
/// are coarse.
const WAL_QUIET_PERIOD: Duration = Duration::from_millis(50);

impl GraphStore for SqliteStore {
    fn append<'a>(&'a self, of: &'a Principal, batches: Vec<NewFactBatch>) -> StoreFuture<'a, ()> {
        let of = of.to_string();
        async move {
            Ok(self
                .write(move |connection| append(connection, &of, &batches))
                .await?)
        }
        .boxed()
    }

    fn changes<'a>(
        &'a self,
        of: &'a Principal,
        seen: FactLogPosition,
    ) -> StoreFuture<'a, FactChanges> {
        let of = of.to_string();
        async move {
            Ok(self
                .read(move |connection| changes(connection, &of, seen))
                .await?)
        }
        .boxed()
    }

    fn forget<'a>(&'a self, of: &'a Principal, range: FactSourceFilter) -> StoreFuture<'a, usize> {
        let of = of.to_string();
        async move {
            let gone = self.write(move |connection| {
                let change =
                    connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                let gone = forget(&change, &of, &range)?;
                change.commit()?;
                Ok(gone)
            });
            let gone = gone.await?;
            if gone > 0 {
                self.checkpoint_wal().await;
            }
            Ok(gone)
        }
        .boxed()
    }

    fn log_version(&self) -> Option<FactLogVersion> {
        let StoreLocation::File(file) = self.location() else {
            return None;
        };
        let mut log = file.clone().into_os_string();
        log.push("-wal");
        let found = std::fs::metadata(log).ok()?;
        let modified = found.modified().ok()?;
        if SystemTime::now().duration_since(modified).ok()? < WAL_QUIET_PERIOD {
            return None;
        }
        let nanoseconds = modified
            .duration_since(SystemTime::UNIX_EPOCH)
            .ok()?
            .as_nanos();
        Some(FactLogVersion(nanoseconds << 48 | u128::from(found.len())))
    }
}

fn append(connection: &mut Connection, of: &str, batches: &[NewFactBatch]) -> rusqlite::Result<()> {
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for batch in batches {
        let sql =
            "INSERT INTO graph_batches (principal, source, body, label) VALUES (?1, ?2, ?3, ?4)";
        let (source, label) = (
            batch.source.to_string(),
            event_rows::label_json(&batch.label),
        );
        change
            .prepare_cached(sql)?
            .execute(params![of, source, batch.body, label])?;
    }
    change.commit()
}

fn changes(
    connection: &Connection,
    of: &str,
    seen: FactLogPosition,
) -> rusqlite::Result<FactChanges> {
    let look = connection.unchecked_transaction()?;
    let mut found = FactChanges {
        position: seen,
        ..FactChanges::default()
    };
    let sql = "SELECT number, source, body, label FROM graph_batches WHERE principal = ?1 AND number > ?2 ORDER BY number";
    let mut query = look.prepare_cached(sql)?;
    let mut rows = query.query(params![of, seen.batch as i64])?;
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let (number, body) = (row.get::<_, i64>(0)? as u64, row.get::<_, Vec<u8>>(2)?);
        bytes += body.len();
        let source = FactSource::from(row.get_ref(1)?.as_str()?);
        let label = event_rows::label_column(row, 3)?
            .unwrap_or_else(|| FactProvenance::from(source.clone()).label);
        found.batches.push(FactBatch {
            number,
            source,
            label,
            body,
        });
        found.position.batch = number;
        if bytes > MAX_BYTES {
            break;
        }
    }
    let sql =
        "SELECT number, batch FROM graph_gone WHERE principal = ?1 AND number > ?2 ORDER BY number";
    let mut query = look.prepare_cached(sql)?;
    let mut rows = query.query(params![of, seen.removed as i64])?;
    while let Some(row) = rows.next()? {
        found.position.removed = row.get::<_, i64>(0)? as u64;
        found.removed.push(row.get::<_, i64>(1)? as u64);
    }
    Ok(found)
}

/// Within a change of somebody's: a session that is deleted takes its facts along.
pub(crate) fn forget(
    connection: &Connection,
    of: &str,
    range: &FactSourceFilter,
) -> rusqlite::Result<usize> {
    match range.text() {
        FactSourceText::Exact(text) => connection
            .execute("DELETE FROM graph_batches WHERE principal = ?1 AND source = ?2", params![of, text]),
        FactSourceText::Prefix(text) => connection.execute(
            "DELETE FROM graph_batches WHERE principal = ?1 AND source > ?2 AND source < ?2 || char(0x10ffff)
                AND instr(substr(source, length(?2) + 1), '#') = 0",
            params![of, text],
        ),
    }
}
