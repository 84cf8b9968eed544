//! Hybrid search: fuses lexical and vector hits and removes duplicates.

use std::collections::HashMap;

use lango_domain::StoreError;
use lango_domain::documents::{Passage, PassageSearch, ScoreBreakdown, SearchScope, StoredChunk};
use lango_domain::session::StoreFuture;

use super::sync::split_owner_key;
use super::{DocumentIndex, DocumentIndexError, run_blocking};
use crate::embedding::{EmbedError, EmbedPurpose};
use crate::fusion::{self, FusedHit, FusionWeights, boost_neighbors, dedupe, fuse};
use crate::lexical::LexicalError;

/// The number of hits of each kind that are fused, and the number of fused hits that are loaded.
const CANDIDATES: (usize, usize) = (100, 50);
/// The same for a second search, if duplicates leave too few passages.
const MORE_CANDIDATES: (usize, usize) = (2_000, 2_000);

impl PassageSearch for DocumentIndex {
    fn search<'a>(
        &'a self,
        query: &'a str,
        scope: &'a SearchScope,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Passage>> {
        Box::pin(async move {
            let passages = DocumentIndex::search(self, query, scope, limit).await;
            passages.map_err(|error| StoreError::Other(error.to_string()))
        })
    }
}

impl DocumentIndex {
    /// Returns the best passages for a query, best first. If many vectors are missing, as after a
    /// change of the embedder, they are computed in the background, and chunks without a vector are
    /// found by lexical search only.
    pub async fn search(
        &self,
        query: &str,
        scope: &SearchScope,
        limit: usize,
    ) -> Result<Vec<Passage>, DocumentIndexError> {
        self.sync_briefly().await?;
        let passages = self
            .search_candidates(query, scope, limit, CANDIDATES)
            .await?;
        let has_duplicates = passages.iter().any(|passage| passage.duplicates > 0);
        if passages.len() < limit && has_duplicates {
            return self
                .search_candidates(query, scope, limit, MORE_CANDIDATES)
                .await;
        }
        Ok(passages)
    }

    /// Like `search`, but falls back to lexical search if embedding fails, and returns that error.
    pub async fn search_with_fallback(
        &self,
        query: &str,
        scope: &SearchScope,
        limit: usize,
    ) -> Result<(Vec<Passage>, Option<EmbedError>), DocumentIndexError> {
        match self.search(query, scope, limit).await {
            Err(DocumentIndexError::Embedding(error)) => {
                let lexical_only = self.without_embedder();
                let passages = lexical_only.search(query, scope, limit).await?;
                Ok((passages, Some(error)))
            }
            result => result.map(|passages| (passages, None)),
        }
    }

    async fn search_candidates(
        &self,
        query: &str,
        scope: &SearchScope,
        limit: usize,
        (candidates, loaded): (usize, usize),
    ) -> Result<Vec<Passage>, DocumentIndexError> {
        let (lexical, vector) = tokio::try_join!(
            self.search_lexical(query, scope, candidates),
            self.search_vectors(query, scope, candidates)
        )?;
        let fused = fuse(&lexical, &vector, self.weights());
        let min_similarity = self
            .inner
            .embedder
            .as_ref()
            .map_or(f32::NEG_INFINITY, |embedder| embedder.min_similarity());
        let is_relevant = |hit: &FusedHit| {
            hit.lexical.is_some() || hit.vector.is_some_and(|vector| vector >= min_similarity)
        };
        let best: Vec<FusedHit> = fused
            .into_iter()
            .filter(is_relevant)
            .take(loaded.max(limit))
            .collect();
        let chunks = self
            .inner
            .store
            .chunks(best.iter().map(|hit| hit.id).collect())
            .await?;
        let chunks: HashMap<u64, StoredChunk> = chunks
            .into_iter()
            .filter(|chunk| scope.covers(&chunk.owner))
            .map(|chunk| (chunk.id, chunk))
            .collect();
        Ok(select_passages(&best, &chunks, limit))
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
        query: &str,
        scope: &SearchScope,
        limit: usize,
    ) -> Result<Vec<(u64, f32)>, DocumentIndexError> {
        match self.search_lexical_once(query, scope, limit).await {
            // Opening the index does not detect all corruption.
            Err(DocumentIndexError::Lexical(LexicalError::Damaged { .. })) => {
                self.reset_lexical().await?;
                self.sync_lexical().await?;
                self.search_lexical_once(query, scope, limit).await
            }
            result => result,
        }
    }

    async fn search_lexical_once(
        &self,
        query: &str,
        scope: &SearchScope,
        limit: usize,
    ) -> Result<Vec<(u64, f32)>, DocumentIndexError> {
        let (lexical, query, scope) = (self.lexical().await?, query.to_owned(), scope.clone());
        run_blocking(move || {
            let all = lexical.collections()?;
            let keys: Vec<String> = all
                .iter()
                .filter(|key| covers_key(&scope, key))
                .cloned()
                .collect();
            Ok(lexical.search(&query, Some(&keys), limit)?)
        })
        .await
    }

    async fn search_vectors(
        &self,
        query: &str,
        scope: &SearchScope,
        limit: usize,
    ) -> Result<Vec<(u64, f32)>, DocumentIndexError> {
        let Some(embedder) = &self.inner.embedder else {
            return Ok(Vec::new());
        };
        let query_vector = embedder
            .embed(vec![query.to_owned()], EmbedPurpose::Query)
            .await?
            .pop();
        let (Some(query_vector), Some(file)) = (query_vector, self.vector_file().await?) else {
            return Ok(Vec::new());
        };
        let scope = scope.clone();
        run_blocking(move || Ok(file.search(&query_vector, limit, |owner| scope.covers(owner))?))
            .await
    }
}

/// Returns true if the scope covers the owner that `owner_key` encoded. Works on the parts of the
/// key, because it is called for every hit.
fn covers_key(scope: &SearchScope, key: &str) -> bool {
    split_owner_key(key).is_some_and(|(principal, collection, session)| {
        let is_own_session = || {
            let own = scope.session.as_ref();
            own.is_some_and(|own| own.as_str() == session)
        };
        principal == scope.principal.as_str()
            && (session.is_empty() || is_own_session())
            && scope
                .collections
                .as_ref()
                .is_none_or(|wanted| wanted.iter().any(|name| name == collection))
    })
}

/// Boosts neighbors, removes duplicates and returns the best passages.
fn select_passages(
    best: &[FusedHit],
    chunks: &HashMap<u64, StoredChunk>,
    limit: usize,
) -> Vec<Passage> {
    let position = |chunk: &StoredChunk| fusion::ChunkPosition {
        document: chunk.document,
        number: chunk.number,
        range: 0..0,
    };
    let positions: HashMap<u64, fusion::ChunkPosition> = chunks
        .iter()
        .map(|(id, chunk)| (*id, position(chunk)))
        .collect();
    let boosted = boost_neighbors(best, &positions);
    let unique = dedupe(&boosted, |id| {
        chunks.get(&id).map_or("", |chunk| chunk.text.as_str())
    });
    let passages = unique.into_iter().filter_map(|unique| {
        let chunk = chunks.get(&unique.hit.id)?;
        Some(Passage {
            text: chunk.text.clone(),
            source: chunk.source.clone(),
            title: chunk.title.clone(),
            heading: chunk.heading.clone(),
            span: chunk.span,
            collection: chunk.owner.collection.clone(),
            score: unique.hit.score,
            breakdown: ScoreBreakdown {
                lexical: unique.hit.lexical,
                vector: unique.hit.vector,
            },
            duplicates: unique.duplicates.len(),
        })
    });
    passages.take(limit).collect()
}
