//! What is derived from the store follows its list of changes: the index of words, and the file of vectors. Each knows
//! how far it came, so that either can be deleted, and whoever is interrupted goes on.

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

/// So many changes are read at one time, and so many vectors made.
const BATCH_SIZE: usize = 1_000;
/// So many changes of words are made durable at one time: parts of the index that are small have to be joined later.
const CHANGES_PER_COMMIT: usize = 25_000;
/// So many vectors are made before an answer where a provider is asked for them.
const INLINE_REMOTE_VECTORS: usize = 64;
/// And so many where they are made here, in less than a second.
const INLINE_LOCAL_VECTORS: usize = 5_000;
/// So many vectors of a provider are kept at one time: what was paid for is not lost when the next request fails.
const REMOTE_BATCH_SIZE: usize = 96;
/// So few texts may all be refused because of what they say.
const MAX_REFUSED_TEXTS: usize = 8;

impl DocumentIndex {
    /// Brings the index of words and the vectors up to what the store holds. Where one of them fails, the other goes on to its end.
    pub async fn sync(&self) -> Result<(), DocumentIndexError> {
        let (words, vectors) = tokio::join!(self.sync_lexical(), self.sync_vectors());
        words.and(vectors)
    }

    /// The same for whoever waits for an answer: vectors that take longer are made beside it.
    pub(super) async fn sync_briefly(&self) -> Result<(), DocumentIndexError> {
        let (words, vectors) = tokio::join!(self.sync_lexical(), self.sync_vectors_briefly());
        words.and(vectors)
    }

    async fn sync_vectors_briefly(&self) -> Result<(), DocumentIndexError> {
        let Some(kept) = self.vector_file().await? else {
            return Ok(());
        };
        let upto = kept.applied_through();
        drop(kept);
        let at_once = match self
            .inner
            .embedder
            .as_ref()
            .map(|embedder| embedder.persistence())
        {
            Some(VectorPersistence::Recompute) => INLINE_LOCAL_VECTORS,
            _ => INLINE_REMOTE_VECTORS,
        };
        let behind = self.inner.store.changes(upto, at_once + 1).await?.len();
        if behind == 0 {
            return Ok(());
        }
        if behind <= at_once {
            return self.sync_vectors().await;
        }
        let Ok(busy) = Arc::clone(&self.inner.embedding_lock).try_lock_owned() else {
            return Ok(());
        };
        let library = self.clone();
        tokio::spawn(async move {
            if let Err(error) = library.sync_vectors().await {
                tracing::warn!(%error, "not every passage has a vector");
            }
            drop(busy);
        });
        Ok(())
    }

    /// Whoever holds the writer applies what everyone changed; when another process does, it does so for all.
    pub(super) async fn sync_lexical(&self) -> Result<(), DocumentIndexError> {
        let lexical = self.lexical().await?;
        let applied = lexical.applied_through()?;
        if self.inner.store.changes(applied, 1).await?.is_empty() {
            return Ok(());
        }
        let Some(mut writer) = open_writer(lexical).await? else {
            return Ok(());
        };
        let (mut upto, mut uncommitted) = (writer.applied_through(), 0);
        loop {
            let changes = self.inner.store.changes(upto, BATCH_SIZE).await?;
            let is_last = changes.len() < BATCH_SIZE;
            upto = changes.last().map_or(upto, |change| change.number);
            uncommitted += changes.len();
            let is_full = uncommitted >= CHANGES_PER_COMMIT;
            let pieces = self.inner.store.chunks(added_ids(&changes)).await?;
            writer = run_blocking(move || {
                removed_ids(&changes).for_each(|piece| writer.remove(piece));
                pieces
                    .into_iter()
                    .try_for_each(|piece| writer.put(lexical_entry(piece)))?;
                if uncommitted > 0 && (is_last || is_full) {
                    writer.commit(upto)?;
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

    /// The same for vectors.
    async fn sync_vectors(&self) -> Result<(), DocumentIndexError> {
        let (Some(embedder), Some(kept)) = (&self.inner.embedder, self.vector_file().await?) else {
            return Ok(());
        };
        let Some(mut lock) = kept.try_lock()? else {
            return Ok(());
        };
        drop(kept);
        loop {
            // Behind the lock: nobody else moves it from here on.
            let Some(kept) = self.vector_file().await? else {
                return Ok(());
            };
            let before = kept.applied_through();
            drop(kept);
            let changes = self.inner.store.changes(before, BATCH_SIZE).await?;
            let Some(last) = changes.last().map(|change| change.number) else {
                return Ok(());
            };
            let measured = self
                .load_or_embed(embedder.as_ref(), added_ids(&changes))
                .await?;
            let removed = removed_ids(&changes).collect();
            let Some(mut kept) = self.vector_file().await? else {
                return Ok(());
            };
            let appended = run_blocking(move || {
                kept.append(&lock, last, removed, measured)?;
                Ok((lock, kept.applied_through()))
            });
            let upto: u64;
            (lock, upto) = appended.await?;
            if upto == before {
                return Ok(());
            }
        }
    }

    /// These pieces with their vectors: those that the store keeps, and new ones for the others.
    async fn load_or_embed(
        &self,
        embedder: &dyn Embedder,
        ids: Vec<u64>,
    ) -> Result<Vec<VectorRecord>, DocumentIndexError> {
        let pieces = self.inner.store.chunks(ids.clone()).await?;
        let identity = embedder.identity();
        let mut vectors = HashMap::new();
        if embedder.persistence() == VectorPersistence::Store {
            for (id, bytes) in self.inner.store.vectors(&identity, ids).await? {
                vectors.insert(id, from_bytes(&bytes)?);
            }
        }
        let missing: Vec<&StoredChunk> = pieces
            .iter()
            .filter(|piece| !vectors.contains_key(&piece.id))
            .collect();
        let group = match embedder.persistence() {
            VectorPersistence::Store => REMOTE_BATCH_SIZE,
            VectorPersistence::Recompute => BATCH_SIZE,
        };
        let mut made = Vec::with_capacity(missing.len());
        for pieces in missing.chunks(group) {
            made.extend(self.embed_chunks(embedder, pieces).await?);
        }
        vectors.extend(made);
        let each = pieces
            .into_iter()
            .filter_map(|StoredChunk { id, owner, .. }| {
                vectors
                    .remove(&id)
                    .map(|vector| VectorRecord { id, owner, vector })
            });
        Ok(each.collect())
    }

    /// New vectors of these pieces, kept where they are to be. One that the provider refuses has none, and holds nobody up.
    async fn embed_chunks(
        &self,
        embedder: &dyn Embedder,
        pieces: &[&StoredChunk],
    ) -> Result<Vec<(u64, Vec<f32>)>, DocumentIndexError> {
        let texts: Vec<String> = pieces.iter().map(|piece| embedded_text(piece)).collect();
        let vectors = embed_texts(embedder, &texts).await?;
        let (mut made, mut rows) = (Vec::with_capacity(pieces.len()), Vec::new());
        for ((piece, text), vector) in pieces.iter().zip(texts).zip(vectors) {
            let Some(vector) = vector else {
                tracing::warn!(source = piece.source, place = ?piece.span, "the provider of embeddings refuses a passage");
                continue;
            };
            if embedder.persistence() == VectorPersistence::Store {
                rows.push((content_hash(text.as_bytes()), to_bytes(&vector)));
            }
            made.push((piece.id, vector));
        }
        if !rows.is_empty() {
            self.inner
                .store
                .put_vectors(&embedder.identity(), rows)
                .await?;
        }
        Ok(made)
    }

    /// What is known of vectors, up to what any process wrote; nothing without an embedder.
    pub(super) async fn vector_file(
        &self,
    ) -> Result<Option<OwnedMutexGuard<VectorFile>>, DocumentIndexError> {
        let Some(kept) = &self.inner.vector_file else {
            return Ok(None);
        };
        let mut kept = Arc::clone(kept).lock_owned().await;
        if kept.is_current() {
            return Ok(Some(kept));
        }
        run_blocking(move || {
            kept.refresh()?;
            Ok(Some(kept))
        })
        .await
    }
}

/// One vector each. Where a request is refused, its halves are asked for, until it is known which text is meant; when all
/// of them are, it is not because of a text.
fn embed_texts<'a>(
    embedder: &'a dyn Embedder,
    texts: &'a [String],
) -> BoxFuture<'a, Result<Vec<Option<Vec<f32>>>, EmbedError>> {
    async move {
        let refused = match embedder.embed(texts.to_vec(), EmbedPurpose::Passage).await {
            Ok(made) => return Ok(made.into_iter().map(Some).collect()),
            Err(refused @ (EmbedError::TooLong | EmbedError::Refused(_))) => refused,
            Err(error) => return Err(error),
        };
        if texts.len() < 2 {
            return Ok(vec![None; texts.len()]);
        }
        let (first, second) = texts.split_at(texts.len() / 2);
        let mut all = embed_texts(embedder, first).await?;
        if texts.len() > MAX_REFUSED_TEXTS && all.iter().all(Option::is_none) {
            return Err(refused);
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

/// These come first: where a piece was put behind its removal, it is there.
fn removed_ids(changes: &[ChunkChange]) -> impl Iterator<Item = u64> {
    changes
        .iter()
        .filter(|change| !change.is_present)
        .map(|change| change.chunk)
}

/// Invariant: the hash of a piece is that of this text.
fn embedded_text(piece: &StoredChunk) -> String {
    super::adding::embedding_input(&piece.title, &piece.heading, &piece.text)
}

fn lexical_entry(piece: StoredChunk) -> LexicalEntry {
    let collection = owner_key(&piece.owner);
    LexicalEntry {
        id: piece.id,
        collection,
        text: piece.text,
        heading: piece.heading,
        title: piece.title,
    }
}

const SEPARATOR: char = '\u{1f}';

/// Everything that decides who may find a piece, in one word.
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

/// The parts of a key: principal, collection, session.
pub(super) fn split_owner_key(key: &str) -> Option<(&str, &str, &str)> {
    let (principal, rest) = key.split_once(SEPARATOR)?;
    let (collection, session) = rest.split_once(SEPARATOR)?;
    Some((principal, collection, session))
}
