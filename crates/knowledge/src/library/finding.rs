//! Finding passages: by words and by vectors, joined, without repeating themselves.

use std::collections::HashMap;

use lango_domain::documents::{Owner, Piece, Place};
use lango_domain::event::{Principal, SessionId};

use super::catching_up::key;
use super::{Library, LibraryError, blocking};
use crate::embedding::Purpose;
use crate::fusion::{self, Fused, Weights, fold_duplicates, fuse, with_neighbours};

/// So many candidates of each kind are joined.
const CANDIDATES: usize = 100;
/// Of those, so many are read.
const READ: usize = 50;

/// Where to look.
#[derive(Clone, Debug)]
pub struct Scope {
    pub principal: Principal,
    /// Pieces that belong to sessions are found in their own only.
    pub session: Option<SessionId>,
    /// All when not set.
    pub collections: Option<Vec<String>>,
}

/// A passage, with all that is needed to cite it.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub text: String,
    pub source: String,
    pub title: String,
    pub heading: String,
    pub place: Place,
    pub collection: String,
    pub score: f32,
    pub why: Why,
    /// How many others say the same.
    pub duplicates: usize,
}

/// What speaks for a passage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Why {
    pub lexical: Option<f32>,
    pub vector: Option<f32>,
}

impl Library {
    /// The best passages for a question, best first. Where many vectors are missing, as after a change of the embedder, they are
    /// made meanwhile, and words answer for the pieces that have none yet.
    pub async fn find(
        &self,
        question: &str,
        scope: &Scope,
        limit: usize,
    ) -> Result<Vec<Found>, LibraryError> {
        self.catch_up_a_little().await?;
        let (keys, vector) = self.by_vectors(question, scope).await?;
        let words = self.by_words(question, keys).await?;
        let fused = fuse(&words, &vector, self.weights());
        let best: Vec<Fused> = fused.into_iter().take(READ.max(limit)).collect();
        let pieces = self.shared.store.pieces(best.iter().map(|hit| hit.id).collect()).await?;
        let pieces: HashMap<u64, Piece> = pieces.into_iter().map(|piece| (piece.id, piece)).collect();
        Ok(chosen(&best, &pieces, limit))
    }

    fn weights(&self) -> Weights {
        let vector = self.shared.embedder.as_ref().map_or(0.0, |embedder| embedder.share());
        Weights { lexical: 1.0 - vector, vector }
    }

    async fn by_words(&self, question: &str, keys: Vec<String>) -> Result<Vec<(u64, f32)>, LibraryError> {
        let (lexical, question) = (self.lexical().await?, question.to_owned());
        blocking(move || Ok(lexical.search(&question, Some(&keys), CANDIDATES)?)).await
    }

    /// The keys that may be looked under, and the nearest vectors among them.
    async fn by_vectors(
        &self,
        question: &str,
        scope: &Scope,
    ) -> Result<(Vec<String>, Vec<(u64, f32)>), LibraryError> {
        let asked = match &self.shared.embedder {
            Some(embedder) => embedder.embed(vec![question.to_owned()], Purpose::Query).await?.pop(),
            None => None,
        };
        let held = self.held().await?;
        let keys = held.known.values().filter(|owner| scope.covers(owner)).map(|owner| key(owner)).collect();
        let (Some(asked), Some(vectors)) = (asked, &held.vectors) else { return Ok((keys, Vec::new())) };
        let is_covered = |id: u64| held.owners.get(&id).is_some_and(|owner| scope.covers(owner));
        Ok((keys, vectors.search(&asked, CANDIDATES, Some(&is_covered))?))
    }
}

impl Scope {
    fn covers(&self, owner: &Owner) -> bool {
        owner.principal == self.principal
            && (owner.session.is_none() || owner.session == self.session)
            && self.collections.as_ref().is_none_or(|wanted| wanted.contains(&owner.collection))
    }
}

/// Neighbours lift each other, repetitions are folded.
fn chosen(best: &[Fused], pieces: &HashMap<u64, Piece>, limit: usize) -> Vec<Found> {
    let place = |piece: &Piece| fusion::Place { document: piece.document, number: piece.number, range: 0..0 };
    let places: HashMap<u64, fusion::Place> = pieces.iter().map(|(id, piece)| (*id, place(piece))).collect();
    let raised = with_neighbours(best, &places);
    let folded = fold_duplicates(&raised, |id| pieces.get(&id).map_or("", |piece| piece.text.as_str()));
    let found = folded.into_iter().filter_map(|folded| {
        let piece = pieces.get(&folded.hit.id)?;
        Some(Found {
            text: piece.text.clone(),
            source: piece.source.clone(),
            title: piece.title.clone(),
            heading: piece.heading.clone(),
            place: piece.place,
            collection: piece.owner.collection.clone(),
            score: folded.hit.score,
            why: Why { lexical: folded.hit.lexical, vector: folded.hit.vector },
            duplicates: folded.duplicates.len(),
        })
    });
    found.take(limit).collect()
}
