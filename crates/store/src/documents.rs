//! Storage of documents: chunks (table `pieces`), vectors, and a log of changes for the derived
//! indexes.

use futures::future::FutureExt;
use lango_domain::documents::{
    ChunkChange, ChunkOwner, CollectionInfo, DocumentFilter, DocumentSource, DocumentSpan,
    DocumentStore, NewChunk, NewDocument, SpanUnit, StoredChunk,
};
use lango_domain::event::{Principal, SessionId};
use lango_domain::session::StoreFuture;
use rusqlite::{Connection, Row, TransactionBehavior, params};

use crate::store::SqliteStore;

/// The tables. Triggers log every change.
pub(crate) const TABLES: &str = "
    CREATE TABLE documents (
        id INTEGER PRIMARY KEY,
        principal TEXT NOT NULL,
        collection TEXT NOT NULL,
        source TEXT NOT NULL,
        root TEXT NOT NULL,
        title TEXT NOT NULL,
        hash TEXT NOT NULL,
        session TEXT,
        UNIQUE (principal, collection, source)
    ) STRICT;
    CREATE TABLE pieces (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        document INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        heading TEXT NOT NULL,
        unit TEXT NOT NULL,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        hash TEXT NOT NULL,
        text TEXT NOT NULL
    ) STRICT;
    CREATE INDEX pieces_of ON pieces (document, number);
    -- Keyed by the hash of the text: equal texts are embedded once.
    CREATE TABLE vectors (
        id INTEGER PRIMARY KEY,
        embedder TEXT NOT NULL,
        hash TEXT NOT NULL,
        vector BLOB NOT NULL
    ) STRICT;
    -- A separate index: most lookups only check whether a vector exists.
    CREATE UNIQUE INDEX vectors_by_hash ON vectors (embedder, hash);
    CREATE TABLE piece_changes (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        piece INTEGER NOT NULL,
        is_there INTEGER NOT NULL
    ) STRICT;
    CREATE TRIGGER piece_put AFTER INSERT ON pieces BEGIN
        INSERT INTO piece_changes (piece, is_there) VALUES (new.id, 1);
    END;
    CREATE TRIGGER piece_removed AFTER DELETE ON pieces BEGIN
        DELETE FROM piece_changes WHERE piece = old.id;
        INSERT INTO piece_changes (piece, is_there) VALUES (old.id, 0);
    END;
    CREATE INDEX changes_of ON piece_changes (piece);
";

impl DocumentStore for SqliteStore {
    fn collections<'a>(&'a self, principal: &'a Principal) -> StoreFuture<'a, Vec<CollectionInfo>> {
        let principal = principal.to_string();
        async move {
            self.read(move |connection| collections(connection, &principal))
                .await
        }
        .boxed()
    }

    fn sources<'a>(
        &'a self,
        principal: &'a Principal,
        collection: &'a str,
    ) -> StoreFuture<'a, Vec<DocumentSource>> {
        let (principal, collection) = (principal.to_string(), collection.to_owned());
        async move {
            let found = self.read(move |connection| {
                let sql = "SELECT source, root, hash FROM documents
                    WHERE principal = ?1 AND collection = ?2 ORDER BY source";
                let source = |row: &Row<'_>| {
                    Ok(DocumentSource {
                        source: row.get(0)?,
                        root: row.get(1)?,
                        hash: row.get(2)?,
                    })
                };
                connection
                    .prepare_cached(sql)?
                    .query_map(params![principal, collection], source)?
                    .collect()
            });
            found.await
        }
        .boxed()
    }

    fn put<'a>(
        &'a self,
        principal: &'a Principal,
        documents: Vec<NewDocument>,
    ) -> StoreFuture<'a, ()> {
        let principal = principal.to_string();
        async move {
            self.write(move |connection| put(connection, &principal, &documents))
                .await
        }
        .boxed()
    }

    fn remove<'a>(
        &'a self,
        principal: &'a Principal,
        collection: &'a str,
        sources: DocumentFilter,
    ) -> StoreFuture<'a, usize> {
        let (principal, collection) = (principal.to_string(), collection.to_owned());
        async move {
            self.write(move |connection| remove(connection, &principal, &collection, &sources))
                .await
        }
        .boxed()
    }

    fn chunks(&self, ids: Vec<u64>) -> StoreFuture<'_, Vec<StoredChunk>> {
        async move { self.read(move |connection| chunks(connection, &ids)).await }.boxed()
    }

    fn changes(&self, after: u64, limit: usize) -> StoreFuture<'_, Vec<ChunkChange>> {
        async move {
            let found = self.read(move |connection| {
                let sql = "SELECT number, piece, is_there FROM piece_changes WHERE number > ?1
                    ORDER BY number LIMIT ?2";
                let change = |row: &Row<'_>| {
                    Ok(ChunkChange {
                        number: row.get::<_, i64>(0)? as u64,
                        chunk: row.get::<_, i64>(1)? as u64,
                        is_present: row.get(2)?,
                    })
                };
                connection
                    .prepare_cached(sql)?
                    .query_map(params![after as i64, limit as i64], change)?
                    .collect()
            });
            found.await
        }
        .boxed()
    }

    fn put_vectors<'a>(
        &'a self,
        embedder: &'a str,
        vectors: Vec<(String, Vec<u8>)>,
    ) -> StoreFuture<'a, ()> {
        let embedder = embedder.to_owned();
        async move {
            self.write(move |connection| put_vectors(connection, &embedder, &vectors))
                .await
        }
        .boxed()
    }

    fn vectors<'a>(
        &'a self,
        embedder: &'a str,
        ids: Vec<u64>,
    ) -> StoreFuture<'a, Vec<(u64, Vec<u8>)>> {
        let embedder = embedder.to_owned();
        async move {
            self.read(move |connection| vectors(connection, &embedder, &ids))
                .await
        }
        .boxed()
    }

    fn delete_unused_vectors(&self) -> StoreFuture<'_, ()> {
        async move {
            let sql = "DELETE FROM vectors WHERE hash NOT IN (SELECT hash FROM pieces)";
            self.write(move |connection| connection.execute(sql, []))
                .await
                .map(drop)
        }
        .boxed()
    }
}

fn collections(connection: &Connection, principal: &str) -> rusqlite::Result<Vec<CollectionInfo>> {
    let sql = "SELECT collection, count(DISTINCT d.id), count(p.id),
        coalesce(sum(octet_length(p.text)), 0),
        (SELECT json_group_array(root) FROM (SELECT DISTINCT root FROM documents r
            WHERE r.principal = ?1 AND r.collection = d.collection ORDER BY root))
        FROM documents d LEFT JOIN pieces p ON p.document = d.id
        WHERE principal = ?1 GROUP BY collection ORDER BY collection";
    let info = |row: &Row<'_>| {
        Ok(CollectionInfo {
            name: row.get(0)?,
            documents: row.get::<_, i64>(1)? as u64,
            pieces: row.get::<_, i64>(2)? as u64,
            bytes: row.get::<_, i64>(3)? as u64,
            roots: serde_json::from_str(row.get_ref(4)?.as_str()?).unwrap_or_default(),
        })
    };
    connection
        .prepare_cached(sql)?
        .query_map([principal], info)?
        .collect()
}

fn put(
    connection: &mut Connection,
    principal: &str,
    documents: &[NewDocument],
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for document in documents {
        transaction
            .prepare_cached(
                "DELETE FROM documents WHERE principal = ?1 AND collection = ?2 AND source = ?3",
            )?
            .execute(params![principal, document.collection, document.source])?;
        let sql =
            "INSERT INTO documents (principal, collection, source, root, title, hash, session)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let session = document.session.as_ref().map(SessionId::as_str);
        let NewDocument {
            collection,
            source,
            root,
            title,
            hash,
            ..
        } = document;
        transaction.prepare_cached(sql)?.execute(params![
            principal, collection, source, root, title, hash, session
        ])?;
        let id = transaction.last_insert_rowid();
        let sql = "INSERT INTO pieces (document, number, heading, unit, first, last, hash, text)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let mut insert = transaction.prepare_cached(sql)?;
        for (number, chunk) in document.chunks.iter().enumerate() {
            let unit = match chunk.span.unit {
                SpanUnit::Lines => "lines",
                SpanUnit::Pages => "pages",
            };
            let (first, last) = (chunk.span.first, chunk.span.last);
            let NewChunk {
                heading,
                hash,
                text,
                ..
            } = chunk;
            insert.execute(params![
                id,
                number as i64,
                heading,
                unit,
                first,
                last,
                hash,
                text
            ])?;
        }
    }
    transaction.commit()
}

fn remove(
    connection: &mut Connection,
    principal: &str,
    collection: &str,
    filter: &DocumentFilter,
) -> rusqlite::Result<usize> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let deleted = match filter {
        DocumentFilter::All => transaction.execute(
            "DELETE FROM documents WHERE principal = ?1 AND collection = ?2",
            params![principal, collection],
        )?,
        DocumentFilter::Sources(sources) => {
            let sql =
                "DELETE FROM documents WHERE principal = ?1 AND collection = ?2 AND source = ?3";
            let mut delete = transaction.prepare_cached(sql)?;
            let counts = sources
                .iter()
                .map(|source| delete.execute(params![principal, collection, source]));
            counts.sum::<rusqlite::Result<usize>>()?
        }
    };
    transaction.commit()?;
    Ok(deleted)
}

fn chunks(connection: &Connection, ids: &[u64]) -> rusqlite::Result<Vec<StoredChunk>> {
    let sql =
        "SELECT p.id, d.principal, d.collection, d.session, d.id, p.number, d.source, d.title,
        p.heading, p.unit, p.first, p.last, p.text
        FROM pieces p JOIN documents d ON d.id = p.document WHERE p.id = ?1";
    let mut query = connection.prepare_cached(sql)?;
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        found.extend(query.query_map([*id as i64], chunk)?.next().transpose()?);
    }
    Ok(found)
}

fn chunk(row: &Row<'_>) -> rusqlite::Result<StoredChunk> {
    let unit = if row.get_ref(9)?.as_str()? == "pages" {
        SpanUnit::Pages
    } else {
        SpanUnit::Lines
    };
    Ok(StoredChunk {
        id: row.get::<_, i64>(0)? as u64,
        owner: owner(row)?,
        document: row.get::<_, i64>(4)? as u64,
        number: row.get(5)?,
        source: row.get(6)?,
        title: row.get(7)?,
        heading: row.get(8)?,
        span: DocumentSpan {
            unit,
            first: row.get(10)?,
            last: row.get(11)?,
        },
        text: row.get(12)?,
    })
}

/// Reads the owner of a chunk from the columns 1 to 3.
fn owner(row: &Row<'_>) -> rusqlite::Result<ChunkOwner> {
    Ok(ChunkOwner {
        principal: Principal::new(row.get::<_, String>(1)?),
        collection: row.get(2)?,
        session: row.get::<_, Option<String>>(3)?.map(SessionId::new),
    })
}

fn vectors(
    connection: &Connection,
    embedder: &str,
    ids: &[u64],
) -> rusqlite::Result<Vec<(u64, Vec<u8>)>> {
    let sql = "SELECT v.vector FROM pieces p JOIN vectors v ON v.embedder = ?1 AND v.hash = p.hash
        WHERE p.id = ?2";
    let mut query = connection.prepare_cached(sql)?;
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        let vector = query
            .query_map(params![embedder, *id as i64], |row| row.get(0))?
            .next()
            .transpose()?;
        found.extend(vector.map(|vector| (*id, vector)));
    }
    Ok(found)
}

fn put_vectors(
    connection: &mut Connection,
    embedder: &str,
    vectors: &[(String, Vec<u8>)],
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let sql = "INSERT OR REPLACE INTO vectors (embedder, hash, vector) VALUES (?1, ?2, ?3)";
    let mut insert = transaction.prepare_cached(sql)?;
    for (hash, vector) in vectors {
        insert.execute(params![embedder, hash, vector])?;
    }
    drop(insert);
    transaction.commit()
}
