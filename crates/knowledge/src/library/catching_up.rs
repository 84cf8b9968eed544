//! What is derived from the store follows it: the index of words, and vectors.

use std::sync::Arc;

use lango_domain::documents::{Change, Owner, Piece};

use super::{Held, Library, LibraryError, blocking};
use crate::embedding::Purpose;
use crate::lexical::Entry;
use crate::vectors::{Vectors, from_bytes, to_bytes};

/// So many changes are applied, or vectors made, at one time.
const BATCH: usize = 1_000;
/// So many vectors are made before an answer.
const AT_ONCE: usize = 64;

impl Library {
    /// Brings the index of words and the vectors up to what the store holds.
    pub async fn catch_up(&self) -> Result<(), LibraryError> {
        tokio::try_join!(self.index_words(), self.make_vectors(0)).map(drop)
    }

    /// The same for whoever waits for an answer: what takes longer goes on beside it.
    pub(super) async fn catch_up_a_little(&self) -> Result<(), LibraryError> {
        self.index_words().await?;
        let Some(embedder) = &self.shared.embedder else { return Ok(()) };
        let behind = self.shared.held.lock().await.embedded_upto;
        let missing =
            self.shared.store.without_vector(&embedder.identity(), behind, AT_ONCE + 1).await?.len();
        if missing <= AT_ONCE {
            return self.make_vectors(behind).await;
        }
        let Ok(busy) = Arc::clone(&self.shared.embedding).try_lock_owned() else { return Ok(()) };
        let library = self.clone();
        tokio::spawn(async move {
            if let Err(error) = library.make_vectors(0).await {
                tracing::warn!(%error, "not every passage has a vector");
            }
            drop(busy);
        });
        Ok(())
    }

    /// Whoever holds the writer applies what everyone changed; when another process does, it does so for all.
    async fn index_words(&self) -> Result<(), LibraryError> {
        let lexical = self.lexical().await?;
        let applied = lexical.applied()?;
        if self.shared.store.changes(applied, 1).await?.is_empty() {
            return Ok(());
        }
        let opened = Arc::clone(&lexical);
        let Some(mut writer) = blocking(move || Ok(opened.try_writer()?)).await? else { return Ok(()) };
        loop {
            let changes = self.shared.store.changes(writer.applied(), BATCH).await?;
            let Some(last) = changes.last().map(|change| change.number) else { break };
            let put = changes.iter().filter(|change| change.is_there).map(|change| change.piece).collect();
            let pieces = self.shared.store.pieces(put).await?;
            writer = blocking(move || {
                changes
                    .iter()
                    .filter(|change| !change.is_there)
                    .for_each(|change| writer.remove(change.piece));
                for piece in pieces {
                    writer.put(entry(piece))?;
                }
                writer.commit(last)?;
                Ok(writer)
            })
            .await?;
        }
        blocking(move || Ok(writer.close()?)).await
    }

    /// Of the pieces behind one.
    async fn make_vectors(&self, mut behind: u64) -> Result<(), LibraryError> {
        let Some(embedder) = &self.shared.embedder else { return Ok(()) };
        let identity = embedder.identity();
        loop {
            let waiting = self.shared.store.without_vector(&identity, behind, BATCH).await?;
            let Some(last) = waiting.last() else { return Ok(()) };
            behind = last.id;
            let (hashes, texts): (Vec<String>, Vec<String>) =
                waiting.into_iter().map(|piece| (piece.hash, piece.text)).unzip();
            let vectors = embedder.embed(texts, Purpose::Passage).await?;
            let rows =
                hashes.into_iter().zip(vectors).map(|(hash, vector)| (hash, to_bytes(&vector))).collect();
            self.shared.store.put_vectors(&identity, rows).await?;
        }
    }

    /// What is held in memory, up to now.
    pub(super) async fn held(&self) -> Result<tokio::sync::MutexGuard<'_, Held>, LibraryError> {
        let mut held = self.shared.held.lock().await;
        self.forget_removed(&mut held).await?;
        loop {
            let owners = self.shared.store.owners(held.last_piece, BATCH).await?;
            let Some((last, _)) = owners.last() else { break };
            held.last_piece = *last;
            held.take_owners(owners);
        }
        if let Some(embedder) = &self.shared.embedder {
            let identity = embedder.identity();
            let missing: Vec<u64> = held.missing.iter().copied().collect();
            for ids in missing.chunks(BATCH) {
                let rows = self.shared.store.vectors(&identity, ids.to_vec()).await?;
                let is_all = rows.len() == ids.len();
                held.take_vectors(&rows)?;
                // The rest is still being made; it is looked for again the next time.
                if !is_all {
                    break;
                }
            }
            held.embedded_upto = held.missing.first().map_or(held.last_piece, |first| first - 1);
        }
        Ok(held)
    }

    async fn forget_removed(&self, held: &mut Held) -> Result<(), LibraryError> {
        loop {
            let changes: Vec<Change> = self.shared.store.changes(held.last_change, BATCH).await?;
            let Some(last) = changes.last() else { return Ok(()) };
            held.last_change = last.number;
            for change in changes.iter().filter(|change| !change.is_there) {
                held.owners.remove(&change.piece);
                held.missing.remove(&change.piece);
                if let Some(vectors) = &mut held.vectors {
                    vectors.remove(change.piece);
                }
            }
        }
    }
}

impl Held {
    /// Most pieces have the same owner: it is held once.
    fn take_owners(&mut self, owners: Vec<(u64, Owner)>) {
        for (id, owner) in owners {
            let shared = self.known.entry(owner).or_insert_with_key(|owner| Arc::new(owner.clone()));
            self.owners.insert(id, Arc::clone(shared));
            self.missing.insert(id);
        }
    }

    fn take_vectors(&mut self, rows: &[(u64, Vec<u8>)]) -> Result<(), LibraryError> {
        for (id, bytes) in rows {
            let vector = from_bytes(bytes)?;
            let vectors = self.vectors.get_or_insert_with(|| Vectors::new(vector.len()));
            vectors.put(*id, &vector)?;
            self.missing.remove(id);
        }
        Ok(())
    }
}

fn entry(piece: Piece) -> Entry {
    let collection = key(&piece.owner);
    Entry { id: piece.id, collection, text: piece.text, heading: piece.heading, title: piece.title }
}

/// Everything that decides who may find a piece, in one word.
pub(super) fn key(owner: &Owner) -> String {
    let session = owner.session.as_ref().map_or("", |session| session.as_str());
    format!("{}\u{1f}{}\u{1f}{session}", owner.principal, owner.collection)
}
