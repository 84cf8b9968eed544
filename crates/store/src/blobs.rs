//! The bytes of attachments, each stored once.
//!
//! A reference ties the bytes to the event that names them. A trigger deletes the bytes with the last
//! reference, so that deleting a session needs no list of its attachments.

use std::sync::Arc;

use jiff::Timestamp;
use lango_domain::blobs::{BlobStore, BlobTotals};
use lango_domain::content::{Attachment, BlobId, MAX_ATTACHMENT_BYTES};
use lango_domain::event::Event;
use lango_domain::session::{SessionKeyRef, StoreFuture};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::damage::{RowReader, display_column};
use crate::event_rows;
use crate::store::SqliteStore;

/// The bytes of one row. Small rows can be deleted one by one on a full disk.
const CHUNK_BYTES: usize = 256 << 10;

pub(crate) const TABLES: &str = "
    CREATE TABLE blobs (
        id TEXT PRIMARY KEY,
        size INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE blob_chunks (
        blob TEXT NOT NULL REFERENCES blobs (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        bytes BLOB NOT NULL,
        UNIQUE (blob, number)
    ) STRICT;
    CREATE TABLE blob_references (
        session INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        blob TEXT NOT NULL REFERENCES blobs (id),
        PRIMARY KEY (session, seq, blob),
        FOREIGN KEY (session, seq) REFERENCES events (session, seq) ON DELETE CASCADE
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX references_by_blob ON blob_references (blob);
    CREATE TRIGGER delete_unused_blob AFTER DELETE ON blob_references
    WHEN NOT EXISTS (SELECT 1 FROM blob_references WHERE blob = OLD.blob)
    BEGIN
        DELETE FROM blobs WHERE id = OLD.blob;
    END;
";

/// Copies the bytes of a backup, after its events.
pub(crate) const RESTORE: &str = "
    INSERT INTO blobs SELECT * FROM backup.blobs;
    INSERT INTO blob_chunks SELECT * FROM backup.blob_chunks;
    INSERT INTO blob_references SELECT * FROM backup.blob_references;
";

impl BlobStore for SqliteStore {
    fn blob<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        blob: &'a BlobId,
    ) -> StoreFuture<'a, Option<Arc<[u8]>>> {
        Box::pin(async move {
            let (key, blob) = (key.to_owned(), blob.clone());
            self.read(move |connection| {
                let sql = "SELECT b.size FROM blobs b WHERE b.id = ?3 AND EXISTS (
                    SELECT 1 FROM blob_references r JOIN sessions s ON s.id = r.session
                    WHERE r.blob = b.id AND s.principal = ?1 AND s.name = ?2)";
                let values = params![key.principal.as_str(), key.session.as_str(), blob.as_str()];
                let size: Option<i64> = connection
                    .prepare_cached(sql)?
                    .query_row(values, |row| row.get(0))
                    .optional()?;
                match size {
                    Some(size) => read_chunks(connection, &blob, size),
                    None => Ok(None),
                }
            })
            .await
        })
    }

    fn blob_totals(&self) -> StoreFuture<'_, BlobTotals> {
        Box::pin(self.read(|connection| {
            let sql = "SELECT count(*), coalesce(sum(size), 0) FROM blobs";
            connection.query_row(sql, [], |row| {
                Ok(BlobTotals {
                    blobs: row.get::<_, i64>(0)? as u64,
                    bytes: row.get::<_, i64>(1)? as u64,
                })
            })
        }))
    }
}

/// Reads the size of every blob to find damaged ones.
pub(crate) fn read_all(reader: &RowReader<'_>) -> rusqlite::Result<()> {
    let sql =
        "SELECT id, size, (SELECT coalesce(sum(length(bytes)), 0) FROM blob_chunks WHERE blob = id)
        FROM blobs";
    let name = |row: &Row<'_>| format!("the attachment {}", display_column(row, 0));
    let check = |row: &Row<'_>| {
        let (size, stored) = (row.get::<_, i64>(1)?, row.get::<_, i64>(2)?);
        if size == stored {
            return Ok(());
        }
        let error = format!("{stored} of {size} bytes are stored");
        Err(rusqlite::Error::FromSqlConversionFailure(
            2,
            Type::Blob,
            error.into(),
        ))
    };
    reader.query_rows(sql, [], name, check)?;
    Ok(())
}

/// Returns the bytes, or `None` if they are damaged.
fn read_chunks(
    connection: &Connection,
    blob: &BlobId,
    size: i64,
) -> rusqlite::Result<Option<Arc<[u8]>>> {
    let max_bytes = MAX_ATTACHMENT_BYTES as i64;
    if !(0..=max_bytes).contains(&size) {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(size as usize);
    let sql = "SELECT bytes FROM blob_chunks WHERE blob = ?1 ORDER BY number";
    let mut query = connection.prepare_cached(sql)?;
    let mut rows = query.query([blob.as_str()])?;
    while let Some(row) = rows.next()? {
        let chunk = row.get_ref(0)?.as_blob()?;
        if (bytes.len() + chunk.len()) as i64 > size {
            return Ok(None);
        }
        bytes.extend_from_slice(chunk);
    }
    Ok((BlobId::of(&bytes) == *blob).then(|| bytes.into()))
}

/// Stores the bytes that an event brings, and ties them to the event.
///
/// An event without bytes, such as one of a copied session, gets a reference only if its principal
/// already has the bytes: the name of another principal's bytes must not give access to them (B74).
pub(crate) fn insert_blobs(
    connection: &Connection,
    session: i64,
    event: &Event,
) -> rusqlite::Result<()> {
    for attachment in event.attachments() {
        let sql = match attachment.data.bytes() {
            Some(bytes) => {
                insert_blob(connection, attachment, bytes)?;
                "INSERT OR IGNORE INTO blob_references (session, seq, blob) VALUES (?1, ?2, ?3)"
            }
            None => {
                "INSERT OR IGNORE INTO blob_references (session, seq, blob)
                SELECT ?1, ?2, ?3 WHERE EXISTS (
                    SELECT 1 FROM blob_references r JOIN sessions s ON s.id = r.session
                    WHERE r.blob = ?3
                    AND s.principal = (SELECT principal FROM sessions WHERE id = ?1))"
            }
        };
        let values = params![session, event.seq as i64, attachment.blob.as_str()];
        connection.prepare_cached(sql)?.execute(values)?;
    }
    Ok(())
}

/// Stores the bytes of a changed event, and deletes those that it no longer has.
pub(crate) fn replace_blobs(
    connection: &Connection,
    session: i64,
    before: &Event,
    after: &Event,
) -> rusqlite::Result<()> {
    insert_blobs(connection, session, after)?;
    let sql = "DELETE FROM blob_references WHERE session = ?1 AND seq = ?2 AND blob = ?3";
    for Attachment { blob, .. } in before.attachments() {
        if !after.attachments().iter().any(|kept| kept.blob == *blob) {
            connection.execute(sql, params![session, before.seq as i64, blob.as_str()])?;
        }
    }
    Ok(())
}

/// Returns the bytes, or `None` if they are not stored or damaged.
pub(crate) fn read_blob(
    connection: &Connection,
    blob: &BlobId,
) -> rusqlite::Result<Option<Arc<[u8]>>> {
    let size: Option<i64> = connection
        .prepare_cached("SELECT size FROM blobs WHERE id = ?1")?
        .query_row([blob.as_str()], |row| row.get(0))
        .optional()?;
    match size {
        Some(size) => read_chunks(connection, blob, size),
        None => Ok(None),
    }
}

fn insert_blob(
    connection: &Connection,
    attachment: &Attachment,
    bytes: &[u8],
) -> rusqlite::Result<()> {
    let id = attachment.blob.as_str();
    let sql = "SELECT size = ?2 AND ?2 = (SELECT coalesce(sum(length(bytes)), 0) FROM blob_chunks
        WHERE blob = id) FROM blobs WHERE id = ?1";
    let size = bytes.len() as i64;
    let is_complete: Option<bool> = connection
        .prepare_cached(sql)?
        .query_row(params![id, size], |row| row.get(0))
        .optional()?;
    if is_complete == Some(true) {
        return Ok(());
    }
    // A deletion that was interrupted on a full disk leaves a part of the rows.
    connection
        .prepare_cached("DELETE FROM blob_chunks WHERE blob = ?1")?
        .execute([id])?;
    let sql =
        "INSERT INTO blobs (id, size) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET size = ?2";
    connection.prepare_cached(sql)?.execute(params![id, size])?;
    let sql = "INSERT INTO blob_chunks (blob, number, bytes) VALUES (?1, ?2, ?3)";
    let mut insert = connection.prepare_cached(sql)?;
    for (number, chunk) in (0_i64..).zip(bytes.chunks(CHUNK_BYTES)) {
        insert.execute(params![id, number, chunk])?;
    }
    Ok(())
}

/// Deletes one row of bytes that only this session uses, if it was last used before `before`. Returns
/// false if it has none.
pub(crate) fn delete_chunk(
    connection: &Connection,
    principal: &str,
    name: &str,
    before: Option<Timestamp>,
) -> rusqlite::Result<bool> {
    let before = before.map(event_rows::sortable_time);
    let sql = "DELETE FROM blob_chunks WHERE rowid = (
        SELECT c.rowid FROM sessions s
        JOIN blob_references r ON r.session = s.id
        JOIN blob_chunks c ON c.blob = r.blob
        WHERE s.principal = ?1 AND s.name = ?2 AND (?3 IS NULL OR s.updated < ?3)
        AND NOT EXISTS (SELECT 1 FROM blob_references o WHERE o.blob = r.blob AND o.session <> s.id)
        LIMIT 1)";
    Ok(connection.execute(sql, params![principal, name, before])? > 0)
}
