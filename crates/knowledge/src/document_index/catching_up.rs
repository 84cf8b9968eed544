//! What is derived from the store follows its list of changes: the index of words, and the file of vectors. Each knows
//! how far it came, so that either can be deleted, and whoever is interrupted goes on.

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use lango_domain::documents::{ChunkChange, Owner, StoredChunk};
use tokio::sync::OwnedMutexGuard;

use super::{DocumentIndex, DocumentIndexError, blocking};
use crate::embedding::{EmbedError, Embedder, VectorPersistence, EmbedPurpose};
use crate::lexical::{LexicalEntry, LexicalIndex, LexicalWriter};
use crate::parse::content_hash;
use crate::vectors::{VectorFile, VectorRecord, from_bytes, to_bytes};

/// So many changes are read at one time, and so many vectors made.
const BATCH: usize = 1_000;
/// So many changes of words are made durable at one time: parts of the index that are small have to be joined later.
const CHANGES_IN_A_COMMIT: usize = 25_000;
/// So many vectors are made before an answer where a provider is asked for them.
const AT_ONCE: usize = 64;
/// And so many where they are made here, in less than a second.
const AT_ONCE_HERE: usize = 5_000;
/// So many vectors of a provider are kept at one time: what was paid for is not lost when the next request fails.
const ASKED_AT_ONCE: usize = 96;
/// So few texts may all be refused because of what they say.
const FEW: usize = 8;

impl DocumentIndex {
    /// Brings the index of words and the vectors up to what the store holds. Where one of them fails, the other goes on to its end.
    pub async fn sync(&self) -> Result<(), DocumentIndexError> {
        let (words, vectors) = tokio::join!(self.sync_lexical(), self.follow_with_vectors());
        words.and(vectors)
    }

    /// The same for whoever waits for an answer: vectors that take longer are made beside it.
    pub(super) async fn sync_briefly(&self) -> Result<(), DocumentIndexError> {
        let (words, vectors) = tokio::join!(self.sync_lexical(), self.follow_with_some_vectors());
        words.and(vectors)
    }

    async fn follow_with_some_vectors(&self) -> Result<(), DocumentIndexError> {
        let Some(kept) = self.vector_file().await? else { return Ok(()) };
        let upto = kept.applied_through();
        drop(kept);
        let at_once = match self.shared.embedder.as_ref().map(|embedder| embedder.keeping()) {
            Some(VectorPersistence::Nowhere) => AT_ONCE_HERE,
            _ => AT_ONCE,
        };
        let behind = self.shared.store.changes(upto, at_once + 1).await?.len();
        if behind == 0 {
            return Ok(());
        }
        if behind <= at_once {
            return self.follow_with_vectors().await;
        }
        let Ok(busy) = Arc::clone(&self.shared.embedding).try_lock_owned() else { return Ok(()) };
        let library = self.clone();
        tokio::spawn(async move {
            if let Err(error) = library.follow_with_vectors().await {
                tracing::warn!(%error, "not every passage has a vector");
            }
            drop(busy);
        });
        Ok(())
    }

    /// Whoever holds the writer applies what everyone changed; when another process does, it does so for all.
    pub(super) async fn sync_lexical(&self) -> Result<(), DocumentIndexError> {
        let lexical = self.lexical().await?;
        let applied = lexical.applied()?;
        if self.shared.store.changes(applied, 1).await?.is_empty() {
            return Ok(());
        }
        let Some(mut writer) = open_writer(lexical).await? else { return Ok(()) };
        let (mut upto, mut uncommitted) = (writer.applied(), 0);
        loop {
            let changes = self.shared.store.changes(upto, BATCH).await?;
            let is_last = changes.len() < BATCH;
            upto = changes.last().map_or(upto, |change| change.number);
            uncommitted += changes.len();
            let is_full = uncommitted >= CHANGES_IN_A_COMMIT;
            let pieces = self.shared.store.chunks(put_by(&changes)).await?;
            writer = blocking(move || {
                removed_by(&changes).for_each(|piece| writer.remove(piece));
                pieces.into_iter().try_for_each(|piece| writer.put(entry(piece)))?;
                if uncommitted > 0 && (is_last || is_full) {
                    writer.commit(upto)?;
                }
                Ok(writer)
            })
            .await?;
            if is_last {
                return blocking(move || Ok(writer.close()?)).await;
            }
            uncommitted = if is_full { 0 } else { uncommitted };
        }
    }

    /// The same for vectors.
    async fn follow_with_vectors(&self) -> Result<(), DocumentIndexError> {
        let (Some(embedder), Some(kept)) = (&self.shared.embedder, self.vector_file().await?) else { return Ok(()) };
        let Some(mut lock) = kept.try_lock()? else { return Ok(()) };
        drop(kept);
        loop {
            // Behind the lock: nobody else moves it from here on.
            let Some(kept) = self.vector_file().await? else { return Ok(()) };
            let before = kept.applied_through();
            drop(kept);
            let changes = self.shared.store.changes(before, BATCH).await?;
            let Some(last) = changes.last().map(|change| change.number) else { return Ok(()) };
            let measured = self.measured(embedder.as_ref(), put_by(&changes)).await?;
            let removed = removed_by(&changes).collect();
            let Some(mut kept) = self.vector_file().await? else { return Ok(()) };
            let appended = blocking(move || {
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
    async fn measured(&self, embedder: &dyn Embedder, ids: Vec<u64>) -> Result<Vec<VectorRecord>, DocumentIndexError> {
        let pieces = self.shared.store.chunks(ids.clone()).await?;
        let identity = embedder.identity();
        let mut vectors = HashMap::new();
        if embedder.keeping() == VectorPersistence::Store {
            for (id, bytes) in self.shared.store.vectors(&identity, ids).await? {
                vectors.insert(id, from_bytes(&bytes)?);
            }
        }
        let missing: Vec<&StoredChunk> = pieces.iter().filter(|piece| !vectors.contains_key(&piece.id)).collect();
        let group = match embedder.keeping() {
            VectorPersistence::Store => ASKED_AT_ONCE,
            VectorPersistence::Nowhere => BATCH,
        };
        let mut made = Vec::with_capacity(missing.len());
        for pieces in missing.chunks(group) {
            made.extend(self.made(embedder, pieces).await?);
        }
        vectors.extend(made);
        let each = pieces.into_iter().filter_map(|StoredChunk { id, owner, .. }| {
            vectors.remove(&id).map(|vector| VectorRecord { id, owner, vector })
        });
        Ok(each.collect())
    }

    /// New vectors of these pieces, kept where they are to be. One that the provider refuses has none, and holds nobody up.
    async fn made(
        &self,
        embedder: &dyn Embedder,
        pieces: &[&StoredChunk],
    ) -> Result<Vec<(u64, Vec<f32>)>, DocumentIndexError> {
        let texts: Vec<String> = pieces.iter().map(|piece| embedded_text(piece)).collect();
        let vectors = vectors_of(embedder, &texts).await?;
        let (mut made, mut rows) = (Vec::with_capacity(pieces.len()), Vec::new());
        for ((piece, text), vector) in pieces.iter().zip(texts).zip(vectors) {
            let Some(vector) = vector else {
                tracing::warn!(source = piece.source, place = ?piece.place, "the provider of embeddings refuses a passage");
                continue;
            };
            if embedder.keeping() == VectorPersistence::Store {
                rows.push((content_hash(text.as_bytes()), to_bytes(&vector)));
            }
            made.push((piece.id, vector));
        }
        if !rows.is_empty() {
            self.shared.store.put_vectors(&embedder.identity(), rows).await?;
        }
        Ok(made)
    }

    /// What is known of vectors, up to what any process wrote; nothing without an embedder.
    pub(super) async fn vector_file(&self) -> Result<Option<OwnedMutexGuard<VectorFile>>, DocumentIndexError> {
        let Some(kept) = &self.shared.kept else { return Ok(None) };
        let mut kept = Arc::clone(kept).lock_owned().await;
        if kept.is_current() {
            return Ok(Some(kept));
        }
        blocking(move || {
            kept.refresh()?;
            Ok(Some(kept))
        })
        .await
    }
}

/// One vector each. Where a request is refused, its halves are asked for, until it is known which text is meant; when all
/// of them are, it is not because of a text.
fn vectors_of<'a>(
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
        let mut all = vectors_of(embedder, first).await?;
        if texts.len() > FEW && all.iter().all(Option::is_none) {
            return Err(refused);
        }
        all.extend(vectors_of(embedder, second).await?);
        Ok(all)
    }
    .boxed()
}

async fn open_writer(lexical: Arc<LexicalIndex>) -> Result<Option<LexicalWriter>, DocumentIndexError> {
    blocking(move || Ok(lexical.try_writer()?)).await
}

fn put_by(changes: &[ChunkChange]) -> Vec<u64> {
    changes.iter().filter(|change| change.is_there).map(|change| change.piece).collect()
}

/// These come first: where a piece was put behind its removal, it is there.
fn removed_by(changes: &[ChunkChange]) -> impl Iterator<Item = u64> {
    changes.iter().filter(|change| !change.is_there).map(|change| change.piece)
}

/// Invariant: the hash of a piece is that of this text.
fn embedded_text(piece: &StoredChunk) -> String {
    super::adding::embedding_input(&piece.title, &piece.heading, &piece.text)
}

fn entry(piece: StoredChunk) -> LexicalEntry {
    let collection = key(&piece.owner);
    LexicalEntry { id: piece.id, collection, text: piece.text, heading: piece.heading, title: piece.title }
}

const SEPARATOR: char = '\u{1f}';

/// Everything that decides who may find a piece, in one word.
fn key(owner: &Owner) -> String {
    let session = owner.session.as_ref().map_or("", |session| session.as_str());
    format!("{}{SEPARATOR}{}{SEPARATOR}{session}", owner.principal, owner.collection)
}

/// The parts of a key: principal, collection, session.
pub(super) fn split_owner_key(key: &str) -> Option<(&str, &str, &str)> {
    let (principal, rest) = key.split_once(SEPARATOR)?;
    let (collection, session) = rest.split_once(SEPARATOR)?;
    Some((principal, collection, session))
}
