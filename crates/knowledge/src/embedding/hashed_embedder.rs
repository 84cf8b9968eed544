//! The embedded way to vectors: hashed words and pieces of words.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};

use super::hash_terms::HashTerms;
use super::weights::FeatureWeights;
use super::{EmbedError, EmbedPurpose, Embedder, VectorPersistence, normalize};

/// A new number here makes all stored vectors be made anew. Belongs to every change of terms, hashes and weights.
const VERSION: u32 = 1;
/// Words below this weight are everywhere; their pieces would only be noise.
const MIN_NGRAM_WEIGHT: f32 = 1.0;
/// So many texts are embedded at once; more have a thread of their own.
const MAX_INLINE_TEXTS: usize = 32;

/// Needs no file, no key and no network, and gives the same vectors on every machine.
#[derive(Clone)]
pub struct HashedEmbedder {
    dimensions: usize,
    weights: Arc<FeatureWeights>,
}

impl Default for HashedEmbedder {
    fn default() -> Self {
        Self {
            dimensions: Self::DIMENSIONS,
            weights: Arc::new(FeatureWeights::built_in()),
        }
    }
}

impl HashedEmbedder {
    pub const DIMENSIONS: usize = 512;
    /// With fewer dimensions too many features fall together.
    const MIN_DIMENSIONS: usize = 64;

    pub fn with_dimensions(mut self, dimensions: usize) -> Result<Self, EmbedError> {
        if dimensions < Self::MIN_DIMENSIONS {
            let reason = format!("the embedded way needs at least {}", Self::MIN_DIMENSIONS);
            return Err(EmbedError::Setting {
                setting: "dimensions",
                reason,
            });
        }
        self.dimensions = dimensions;
        Ok(self)
    }

    /// The vectors of some texts, at once.
    pub fn embed_texts<'a>(
        &self,
        texts: impl IntoIterator<Item = &'a str>,
        purpose: EmbedPurpose,
    ) -> Vec<Vec<f32>> {
        let mut terms = HashTerms::default();
        texts
            .into_iter()
            .map(|text| self.embed_text(text, purpose, &mut terms))
            .collect()
    }

    fn embed_text(&self, text: &str, purpose: EmbedPurpose, terms: &mut HashTerms) -> Vec<f32> {
        let mut vector = vec![0.0_f32; self.dimensions];
        terms.analyze(text, purpose);
        let weights = self.weights.as_ref();
        let is_frequent = |hash| weights.get(hash) < MIN_NGRAM_WEIGHT;
        terms.for_each_feature(is_frequent, |hash, weight| {
            self.add(&mut vector, hash, weight * weights.get(hash))
        });
        normalize(&mut vector);
        vector
    }

    /// Adds or takes away, so that features that fall together cancel out on average.
    fn add(&self, vector: &mut [f32], hash: u64, weight: f32) {
        let place = ((hash >> 33) * self.dimensions as u64) >> 31;
        let is_taken = (hash >> 32) & 1 == 1;
        vector[place as usize] += if is_taken { -weight } else { weight };
    }
}

impl Embedder for HashedEmbedder {
    fn identity(&self) -> String {
        format!("embedded/hashed/{}/{VERSION}", self.dimensions)
    }

    fn dimensions(&self) -> Option<usize> {
        Some(self.dimensions)
    }

    fn persistence(&self) -> VectorPersistence {
        VectorPersistence::Recompute
    }

    /// It knows spellings, not meanings: it decides where words leave something open. Measured on evals/retrieval.
    fn fusion_weight(&self) -> f32 {
        0.1
    }

    /// Spellings are a little alike by chance. Measured on questions that nothing in a folder answers.
    fn min_similarity(&self) -> f32 {
        0.15
    }

    fn embed(
        &self,
        texts: Vec<String>,
        purpose: EmbedPurpose,
    ) -> BoxFuture<'static, Result<Vec<Vec<f32>>, EmbedError>> {
        let (own, count) = (self.clone(), texts.len());
        let all = move || own.embed_texts(texts.iter().map(String::as_str), purpose);
        async move {
            if count <= MAX_INLINE_TEXTS {
                return Ok(all());
            }
            let made = tokio::task::spawn_blocking(all).await;
            made.map_err(|error| EmbedError::Malformed(error.to_string()))
        }
        .boxed()
    }
}
