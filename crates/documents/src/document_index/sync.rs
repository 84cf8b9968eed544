//! Updates the lexical index and the vector file from the store's list of changes. Each records
//! the last change it applied, so that either can be deleted, and an interrupted sync continues.

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use lango_domain::documents::{ChunkChange, ChunkOwner, StoredChunk};
use tokio::sync::OwnedMutexGuard;

use super::{DocumentIndex, DocumentIndexError, run_blocking};
use crate::embedding::{EmbedError, EmbedPurpose, Embedder, VectorPersistence};
use crate::lexical::{LexicalEntry, LexicalIndex, LexicalWriter};
use crate::parse::content_hash;
use crate::vectors::{VectorFile, VectorRecord, from_bytes, to_bytes};

/// Changes that are read, and vectors that are computed, at a time.
const BATCH_SIZE: usize = 1_000;
/// Lexical changes per commit. Small segments of the index would have to be merged later.
const CHANGES_PER_COMMIT: usize = 25_000;
/// Vectors that a search waits for if a provider computes them.
const INLINE_REMOTE_VECTORS: usize = 64;
/// Vectors that a search waits for if they are computed locally, in less than a second.
const INLINE_LOCAL_VECTORS: usize = 5_000;
/// Vectors of a provider that are stored at a time, so that a failed request does not lose the
/// vectors paid for before.
const REMOTE_BATCH_SIZE: usize = 96;
/// Up to this many texts may all be rejected because of their content.
const MAX_REJECTED_TEXTS: usize = 8;

impl DocumentIndex {
    /// Updates the lexical index and the vectors from the store. A failure in one does not stop the
    /// other.
    pub async fn sync(&self) -> Result<(), DocumentIndexError> {
        let (lexical, vectors) = tokio::join!(self.sync_lexical(), self.sync_vectors());
        lexical.and(vectors)
    }

    /// Like `sync`, but computes vectors that take longer in the background.
    pub(super) async fn sync_briefly(&self) -> Result<(), DocumentIndexError> {
        let (lexical, vectors) = tokio::join!(self.sync_lexical(), self.sync_vectors_briefly());
        lexical.and(vectors)
    }

    async fn sync_vectors_briefly(&self) -> Result<(), DocumentIndexError> {
        let Some(file) = self.vector_file().await? else {
            return Ok(());
        };
        let applied = file.applied_through();
        drop(file);
        let max_inline = match self
            .inner
            .embedder
            .as_ref()
            .map(|embedder| embedder.persistence())
        {
            Some(VectorPersistence::Recompute) => INLINE_LOCAL_VECTORS,
            _ => INLINE_REMOTE_VECTORS,
        };
        let pending = self
            .inner
            .store
            .changes(applied, max_inline + 1)
            .await?
            .len();
        if pending == 0 {
            return Ok(());
        }
        if pending <= max_inline {
            return self.sync_vectors().await;
        }
        let Ok(guard) = Arc::clone(&self.inner.embedding_lock).try_lock_owned() else {
            return Ok(());
        };
        let index = self.clone();
        tokio::spawn(async move {
            if let Err(error) = index.sync_vectors().await {
                tracing::warn!(%error, "some chunks have no vectors yet");
            }
            drop(guard);
        });
        Ok(())
    }

    /// Applies all changes to the lexical index. Does nothing if another process holds the writer,
    /// because that process applies all changes too.
    pub(super) async fn sync_lexical(&self) -> Result<(), DocumentIndexError> {
        let lexical = self.lexical().await?;
        let applied = lexical.applied_through()?;
        if self.inner.store.changes(applied, 1).await?.is_empty() {
            return Ok(());
        }
        let Some(mut writer) = open_writer(lexical).await? else {
            return Ok(());
        };
        let (mut applied, mut uncommitted) = (writer.applied_through(), 0);
        loop {
            let changes = self.inner.store.changes(applied, BATCH_SIZE).await?;
            let is_last = changes.len() < BATCH_SIZE;
            applied = changes.last().map_or(applied, |change| change.number);
            uncommitted += changes.len();
            let is_full = uncommitted >= CHANGES_PER_COMMIT;
            let chunks = self.inner.store.chunks(added_ids(&changes)).await?;
            writer = run_blocking(move || {
                removed_ids(&changes).for_each(|chunk| writer.remove(chunk));
                chunks
                    .into_iter()
                    .try_for_each(|chunk| writer.put(lexical_entry(chunk)))?;
                if uncommitted > 0 && (is_last || is_full) {
                    writer.commit(applied)?;
                }
                Ok(writer)
            })
            .await?;
            if is_last {
                return run_blocking(move || Ok(writer.close()?)).await;
            }
            uncommitted = if is_full { 0 } else { uncommitted };
        }
    }

    /// Applies all changes to the vector file. Does nothing if another process holds its lock.
    async fn sync_vectors(&self) -> Result<(), DocumentIndexError> {
        let (Some(embedder), Some(file)) = (&self.inner.embedder, self.vector_file().await?) else {
            return Ok(());
        };
        let Some(mut lock) = file.try_lock()? else {
            return Ok(());
        };
        drop(file);
        loop {
            // Read again under the lock: no other process changes the file from here on.
            let Some(file) = self.vector_file().await? else {
                return Ok(());
            };
            let before = file.applied_through();
            drop(file);
            let changes = self.inner.store.changes(before, BATCH_SIZE).await?;
            let Some(last) = changes.last().map(|change| change.number) else {
                return Ok(());
            };
            let records = self
                .load_or_embed(embedder.as_ref(), added_ids(&changes))
                .await?;
            let removed = removed_ids(&changes).collect();
            let Some(mut file) = self.vector_file().await? else {
                return Ok(());
            };
            let appended = run_blocking(move || {
                file.append(&lock, last, removed, records)?;
                Ok((lock, file.applied_through()))
            });
            let after: u64;
            (lock, after) = appended.await?;
            if after == before {
                return Ok(());
            }
        }
    }

    /// Returns the vectors of these chunks: loads those in the store and computes the others.
    async fn load_or_embed(
        &self,
        embedder: &dyn Embedder,
        ids: Vec<u64>,
    ) -> Result<Vec<VectorRecord>, DocumentIndexError> {
        let chunks = self.inner.store.chunks(ids.clone()).await?;
        let identity = embedder.identity();
        let mut vectors = HashMap::new();
        if embedder.persistence() == VectorPersistence::Store {
            for (id, bytes) in self.inner.store.vectors(&identity, ids).await? {
                vectors.insert(id, from_bytes(&bytes)?);
            }
        }
        let missing: Vec<&StoredChunk> = chunks
            .iter()
            .filter(|chunk| !vectors.contains_key(&chunk.id))
            .collect();
        let batch_size = match embedder.persistence() {
            VectorPersistence::Store => REMOTE_BATCH_SIZE,
            VectorPersistence::Recompute => BATCH_SIZE,
        };
        let mut computed = Vec::with_capacity(missing.len());
        for batch in missing.chunks(batch_size) {
            computed.extend(self.embed_chunks(embedder, batch).await?);
        }
        vectors.extend(computed);
        let records = chunks
            .into_iter()
            .filter_map(|StoredChunk { id, owner, .. }| {
                let vector = vectors.remove(&id)?;
                Some(VectorRecord { id, owner, vector })
            });
        Ok(records.collect())
    }

    /// Computes the vectors of these chunks and stores them if they are persistent. A chunk that the
    /// provider rejects gets no vector and does not block the others.
    async fn embed_chunks(
        &self,
        embedder: &dyn Embedder,
        chunks: &[&StoredChunk],
    ) -> Result<Vec<(u64, Vec<f32>)>, DocumentIndexError> {
        let texts: Vec<String> = chunks.iter().map(|chunk| embedded_text(chunk)).collect();
        let vectors = embed_texts(embedder, &texts).await?;
        let (mut computed, mut rows) = (Vec::with_capacity(chunks.len()), Vec::new());
        for ((chunk, text), vector) in chunks.iter().zip(texts).zip(vectors) {
            let Some(vector) = vector else {
                tracing::warn!(source = chunk.source, span = ?chunk.span, "the embedding provider rejected a chunk; it gets no vector");
                continue;
            };
            if embedder.persistence() == VectorPersistence::Store {
                rows.push((content_hash(text.as_bytes()), to_bytes(&vector)));
            }
            computed.push((chunk.id, vector));
        }
        if !rows.is_empty() {
            self.inner
                .store
                .put_vectors(&embedder.identity(), rows)
                .await?;
        }
        Ok(computed)
    }

    /// Returns the vector file, refreshed with the writes of all processes, or `None` without an
    /// embedder.
    pub(super) async fn vector_file(
        &self,
    ) -> Result<Option<OwnedMutexGuard<VectorFile>>, DocumentIndexError> {
        let Some(file) = &self.inner.vector_file else {
            return Ok(None);
        };
        let mut file = Arc::clone(file).lock_owned().await;
        if file.is_current() {
            return Ok(Some(file));
        }
        run_blocking(move || {
            file.refresh()?;
            Ok(Some(file))
        })
        .await
    }
}

/// Returns a vector for each text. Splits a rejected request in halves until the rejected texts
/// are found. If all of many texts are rejected, the cause is not a text, and the error is
/// returned.
fn embed_texts<'a>(
    embedder: &'a dyn Embedder,
    texts: &'a [String],
) -> BoxFuture<'a, Result<Vec<Option<Vec<f32>>>, EmbedError>> {
    async move {
        let rejected = match embedder.embed(texts.to_vec(), EmbedPurpose::Passage).await {
            Ok(vectors) => return Ok(vectors.into_iter().map(Some).collect()),
            Err(rejected @ (EmbedError::TooLong | EmbedError::Refused(_))) => rejected,
            Err(error) => return Err(error),
        };
        if texts.len() < 2 {
            return Ok(vec![None; texts.len()]);
        }
        let (first, second) = texts.split_at(texts.len() / 2);
        let mut all = embed_texts(embedder, first).await?;
        if texts.len() > MAX_REJECTED_TEXTS && all.iter().all(Option::is_none) {
            return Err(rejected);
        }
        all.extend(embed_texts(embedder, second).await?);
        Ok(all)
    }
    .boxed()
}

async fn open_writer(
    lexical: Arc<LexicalIndex>,
) -> Result<Option<LexicalWriter>, DocumentIndexError> {
    run_blocking(move || Ok(lexical.try_writer()?)).await
}

fn added_ids(changes: &[ChunkChange]) -> Vec<u64> {
    changes
        .iter()
        .filter(|change| change.is_present)
        .map(|change| change.chunk)
        .collect()
}

/// Returns the removed ids. Apply these first: a chunk that was added again after its removal
/// exists.
fn removed_ids(changes: &[ChunkChange]) -> impl Iterator<Item = u64> {
    changes
        .iter()
        .filter(|change| !change.is_present)
        .map(|change| change.chunk)
}

/// Returns the text whose hash is the hash of the chunk.
fn embedded_text(chunk: &StoredChunk) -> String {
    super::ingest::embedding_input(&chunk.title, &chunk.heading, &chunk.text)
}

fn lexical_entry(chunk: StoredChunk) -> LexicalEntry {
    let collection = owner_key(&chunk.owner);
    LexicalEntry {
        id: chunk.id,
        collection,
        text: chunk.text,
        heading: chunk.heading,
        title: chunk.title,
    }
}

const SEPARATOR: char = '\u{1f}';

/// Encodes everything that decides the visibility of a chunk in one key.
fn owner_key(owner: &ChunkOwner) -> String {
    let session = owner
        .session
        .as_ref()
        .map_or("", |session| session.as_str());
    format!(
        "{}{SEPARATOR}{}{SEPARATOR}{session}",
        owner.principal, owner.collection
    )
}

/// Returns the parts of a key: principal, collection, session.
pub(super) fn split_owner_key(key: &str) -> Option<(&str, &str, &str)> {
    let (principal, rest) = key.split_once(SEPARATOR)?;
    let (collection, session) = rest.split_once(SEPARATOR)?;
    Some((principal, collection, session))
}
