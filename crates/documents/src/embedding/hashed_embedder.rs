//! The built-in embedder: feature hashing of words and their n-grams.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};

use super::hash_terms::HashTerms;
use super::weights::FeatureWeights;
use super::{EmbedError, EmbedPurpose, Embedder, VectorPersistence, normalize};

/// Increment with every change of terms, hashes or weights; all stored vectors are then recomputed.
const VERSION: u32 = 1;
/// Words below this weight occur everywhere; their n-grams would only be noise.
const MIN_NGRAM_WEIGHT: f32 = 1.0;
/// Up to this many texts are embedded on the calling task; more on a blocking thread.
const MAX_INLINE_TEXTS: usize = 32;

/// The built-in embedder. Needs no file, no key and no network, and returns the same vectors on
/// every machine.
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
    /// With fewer dimensions, too many features collide.
    const MIN_DIMENSIONS: usize = 64;

    pub fn with_dimensions(mut self, dimensions: usize) -> Result<Self, EmbedError> {
        if dimensions < Self::MIN_DIMENSIONS {
            let reason = format!(
                "the built-in embedder needs at least {}",
                Self::MIN_DIMENSIONS
            );
            return Err(EmbedError::Setting {
                setting: "dimensions",
                reason,
            });
        }
        self.dimensions = dimensions;
        Ok(self)
    }

    /// Embeds `texts` synchronously.
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

    /// Adds or subtracts a feature, so that colliding features cancel out on average.
    fn add(&self, vector: &mut [f32], hash: u64, weight: f32) {
        let index = ((hash >> 33) * self.dimensions as u64) >> 31;
        let is_negative = (hash >> 32) & 1 == 1;
        vector[index as usize] += if is_negative { -weight } else { weight };
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

    /// Low, because it compares spellings, not meanings: it only breaks near-ties of lexical scores.
    /// Measured on evals/retrieval.
    fn fusion_weight(&self) -> f32 {
        0.1
    }

    /// Unrelated texts are slightly similar by chance. Measured on questions without an answer in
    /// the indexed documents.
    fn min_similarity(&self) -> f32 {
        0.15
    }

    fn embed(
        &self,
        texts: Vec<String>,
        purpose: EmbedPurpose,
    ) -> BoxFuture<'static, Result<Vec<Vec<f32>>, EmbedError>> {
        let (embedder, count) = (self.clone(), texts.len());
        let embed = move || embedder.embed_texts(texts.iter().map(String::as_str), purpose);
        async move {
            if count <= MAX_INLINE_TEXTS {
                return Ok(embed());
            }
            let vectors = tokio::task::spawn_blocking(embed).await;
            vectors.map_err(|error| EmbedError::Malformed(error.to_string()))
        }
        .boxed()
    }
}
