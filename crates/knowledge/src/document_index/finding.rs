//! Finding passages: by words and by vectors, joined, without repeating themselves.

use std::collections::HashMap;

use lango_domain::documents::{ChunkOwner, DocumentSpan, StoredChunk};
use lango_domain::event::{Principal, SessionId};

use super::catching_up::split_owner_key;
use super::{DocumentIndex, DocumentIndexError, run_blocking};
use crate::embedding::{EmbedError, EmbedPurpose};
use crate::fusion::{self, FusedHit, FusionWeights, boost_neighbors, dedupe, fuse};
use crate::lexical::LexicalError;

/// So many candidates of each kind are joined, and so many of both are read.
const CANDIDATES: (usize, usize) = (100, 50);
/// Where many of those say the same, so many.
const MORE_CANDIDATES: (usize, usize) = (2_000, 2_000);

/// Where to look.
#[derive(Clone, Debug)]
pub struct SearchScope {
    pub principal: Principal,
    /// Pieces that belong to sessions are found in their own only.
    pub session: Option<SessionId>,
    /// All when not set.
    pub collections: Option<Vec<String>>,
}

/// A passage, with all that is needed to cite it.
#[derive(Clone, Debug, PartialEq)]
pub struct Passage {
    pub text: String,
    pub source: String,
    pub title: String,
    pub heading: String,
    pub span: DocumentSpan,
    pub collection: String,
    pub score: f32,
    pub breakdown: ScoreBreakdown,
    /// How many others say the same.
    pub duplicates: usize,
}

/// What speaks for a passage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreBreakdown {
    pub lexical: Option<f32>,
    pub vector: Option<f32>,
}

impl DocumentIndex {
    /// The best passages for a question, best first. Where many vectors are missing, as after a change of the embedder, they are
    /// made meanwhile, and words answer for the pieces that have none yet.
    pub async fn search(
        &self,
        question: &str,
        scope: &SearchScope,
        limit: usize,
    ) -> Result<Vec<Passage>, DocumentIndexError> {
        self.sync_briefly().await?;
        let found = self
            .search_candidates(question, scope, limit, CANDIDATES)
            .await?;
        let has_copies = found.iter().any(|passage| passage.duplicates > 0);
        if found.len() < limit && has_copies {
            return self
                .search_candidates(question, scope, limit, MORE_CANDIDATES)
                .await;
        }
        Ok(found)
    }

    /// The same where vectors cannot be had: words answer alone, and why is told.
    pub async fn search_with_fallback(
        &self,
        question: &str,
        scope: &SearchScope,
        limit: usize,
    ) -> Result<(Vec<Passage>, Option<EmbedError>), DocumentIndexError> {
        match self.search(question, scope, limit).await {
            Err(DocumentIndexError::Embedding(why)) => Ok((
                self.without_embedder()
                    .search(question, scope, limit)
                    .await?,
                Some(why),
            )),
            done => done.map(|found| (found, None)),
        }
    }

    async fn search_candidates(
        &self,
        question: &str,
        scope: &SearchScope,
        limit: usize,
        (candidates, read): (usize, usize),
    ) -> Result<Vec<Passage>, DocumentIndexError> {
        let (words, vector) = tokio::try_join!(
            self.search_lexical(question, scope, candidates),
            self.search_vectors(question, scope, candidates)
        )?;
        let fused = fuse(&words, &vector, self.weights());
        let floor = self
            .inner
            .embedder
            .as_ref()
            .map_or(f32::NEG_INFINITY, |embedder| embedder.min_similarity());
        let says_something = |hit: &FusedHit| {
            hit.lexical.is_some() || hit.vector.is_some_and(|vector| vector >= floor)
        };
        let best: Vec<FusedHit> = fused
            .into_iter()
            .filter(says_something)
            .take(read.max(limit))
            .collect();
        let pieces = self
            .inner
            .store
            .chunks(best.iter().map(|hit| hit.id).collect())
            .await?;
        let own = pieces
            .into_iter()
            .filter(|piece| scope.covers(&piece.owner));
        let pieces: HashMap<u64, StoredChunk> = own.map(|piece| (piece.id, piece)).collect();
        Ok(select_passages(&best, &pieces, limit))
    }

    fn weights(&self) -> FusionWeights {
        let vector = self
            .inner
            .embedder
            .as_ref()
            .map_or(0.0, |embedder| embedder.fusion_weight());
        FusionWeights {
            lexical: 1.0 - vector,
            vector,
        }
    }

    async fn search_lexical(
        &self,
        question: &str,
        scope: &SearchScope,
        most: usize,
    ) -> Result<Vec<(u64, f32)>, DocumentIndexError> {
        match self.search_lexical_once(question, scope, most).await {
            // Not everything that can be damaged is looked at when it is opened.
            Err(DocumentIndexError::Lexical(LexicalError::Damaged { .. })) => {
                self.reset_lexical().await?;
                self.sync_lexical().await?;
                self.search_lexical_once(question, scope, most).await
            }
            done => done,
        }
    }

    async fn search_lexical_once(
        &self,
        question: &str,
        scope: &SearchScope,
        most: usize,
    ) -> Result<Vec<(u64, f32)>, DocumentIndexError> {
        let (lexical, question, scope) =
            (self.lexical().await?, question.to_owned(), scope.clone());
        run_blocking(move || {
            let all = lexical.collections()?;
            let keys: Vec<String> = all
                .iter()
                .filter(|key| scope.covers_key(key))
                .cloned()
                .collect();
            Ok(lexical.search(&question, Some(&keys), most)?)
        })
        .await
    }

    async fn search_vectors(
        &self,
        question: &str,
        scope: &SearchScope,
        most: usize,
    ) -> Result<Vec<(u64, f32)>, DocumentIndexError> {
        let Some(embedder) = &self.inner.embedder else {
            return Ok(Vec::new());
        };
        let asked = embedder
            .embed(vec![question.to_owned()], EmbedPurpose::Query)
            .await?
            .pop();
        let (Some(asked), Some(kept)) = (asked, self.vector_file().await?) else {
            return Ok(Vec::new());
        };
        let scope = scope.clone();
        run_blocking(move || Ok(kept.search(&asked, most, |owner| scope.covers(owner))?)).await
    }
}

impl SearchScope {
    /// Of the owner that a key stands for.
    fn covers_key(&self, key: &str) -> bool {
        split_owner_key(key).is_some_and(|(principal, collection, session)| {
            principal == self.principal.as_str()
                && (session.is_empty()
                    || self
                        .session
                        .as_ref()
                        .is_some_and(|own| own.as_str() == session))
                && self
                    .collections
                    .as_ref()
                    .is_none_or(|wanted| wanted.iter().any(|name| name == collection))
        })
    }

    fn covers(&self, owner: &ChunkOwner) -> bool {
        owner.principal == self.principal
            && (owner.session.is_none() || owner.session == self.session)
            && self
                .collections
                .as_ref()
                .is_none_or(|wanted| wanted.contains(&owner.collection))
    }
}

/// Neighbours lift each other, repetitions are folded.
fn select_passages(
    best: &[FusedHit],
    pieces: &HashMap<u64, StoredChunk>,
    limit: usize,
) -> Vec<Passage> {
    let place = |piece: &StoredChunk| fusion::ChunkPosition {
        document: piece.document,
        number: piece.number,
        range: 0..0,
    };
    let places: HashMap<u64, fusion::ChunkPosition> = pieces
        .iter()
        .map(|(id, piece)| (*id, place(piece)))
        .collect();
    let raised = boost_neighbors(best, &places);
    let folded = dedupe(&raised, |id| {
        pieces.get(&id).map_or("", |piece| piece.text.as_str())
    });
    let found = folded.into_iter().filter_map(|folded| {
        let piece = pieces.get(&folded.hit.id)?;
        Some(Passage {
            text: piece.text.clone(),
            source: piece.source.clone(),
            title: piece.title.clone(),
            heading: piece.heading.clone(),
            span: piece.span,
            collection: piece.owner.collection.clone(),
            score: folded.hit.score,
            breakdown: ScoreBreakdown {
                lexical: folded.hit.lexical,
                vector: folded.hit.vector,
            },
            duplicates: folded.duplicates.len(),
        })
    });
    found.take(limit).collect()
}
