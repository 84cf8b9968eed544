//! Texts as vectors: near each other in meaning, or at least in spelling, means near each other in direction.
//!
//! The embedded way needs no file, no key and no network. Others ask a provider, or read a static model from a folder.

mod batches;
mod frequent_words;
mod hash_terms;
mod hashed_embedder;
mod http;
mod providers;
mod responses;
mod settings;
mod static_model;
mod tensors;
mod tokenizer;
mod viterbi;
mod weights;

use std::time::Duration;

use futures::future::BoxFuture;

pub use hashed_embedder::HashedEmbedder;
pub use http::Jitter;
pub use providers::{GeminiEmbedder, OllamaEmbedder, OpenAiEmbedder};
pub use settings::{EmbedderDeps, EmbeddingProvider, EmbeddingSettings, connect};
pub use static_model::StaticEmbedder;

/// What a text is embedded for; many models treat the two differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmbedPurpose {
    /// It will be searched.
    Passage,
    /// It is searched for.
    Query,
}

/// Where vectors are kept besides in what is derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorPersistence {
    /// With the passages, and in their backups: they cost time or money.
    Store,
    /// Nowhere: they are made anew as quickly as they are read.
    Recompute,
}

/// Turns texts into vectors.
pub trait Embedder: Send + Sync {
    /// Provider, model, dimensions and version. Vectors of different identities must never be compared.
    fn identity(&self) -> String;

    /// How long its vectors are; not known of every provider before it has answered once.
    fn dimensions(&self) -> Option<usize>;

    /// Where its vectors are kept.
    fn persistence(&self) -> VectorPersistence {
        VectorPersistence::Store
    }

    /// How much its vectors count beside words when both are joined, from 0 to 1.
    fn fusion_weight(&self) -> f32 {
        0.55
    }

    /// The least similarity that means something by itself, where no word was found.
    fn min_similarity(&self) -> f32 {
        f32::NEG_INFINITY
    }

    /// One vector for each text, in their order. A text in which there is nothing to measure may get all zeros.
    fn embed(
        &self,
        texts: Vec<String>,
        purpose: EmbedPurpose,
    ) -> BoxFuture<'static, Result<Vec<Vec<f32>>, EmbedError>>;
}

/// Why there are no vectors. None of the words holds a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    #[error("the provider of embeddings does not accept the key")]
    Auth,
    #[error("the provider of embeddings is busy")]
    Busy { retry_after: Option<Duration> },
    #[error("the account with the provider of embeddings is used up")]
    Quota,
    #[error("the provider of embeddings cannot be reached: {0}")]
    Connection(String),
    #[error("the answer of the provider of embeddings makes no sense: {0}")]
    Malformed(String),
    #[error("a text is too long for the model")]
    TooLong,
    #[error("the provider of embeddings does not know the model: {0}")]
    NotFound(String),
    #[error("the provider of embeddings refused: {0}")]
    Refused(String),
    /// A person has to change a setting.
    #[error("embedding.{setting}: {reason}")]
    Setting {
        setting: &'static str,
        reason: String,
    },
    /// A person has to look at the folder of a static model.
    #[error("{file}: {reason}")]
    File { file: String, reason: String },
}

impl EmbedError {
    /// The same error with its words changed.
    fn map_text(self, change: impl Fn(&str) -> String) -> Self {
        match self {
            Self::Connection(words) => Self::Connection(change(&words)),
            Self::Malformed(words) => Self::Malformed(change(&words)),
            Self::NotFound(words) => Self::NotFound(change(&words)),
            Self::Refused(words) => Self::Refused(change(&words)),
            Self::Setting { setting, reason } => Self::Setting {
                setting,
                reason: change(&reason),
            },
            Self::File { file, reason } => Self::File {
                file: change(&file),
                reason: change(&reason),
            },
            same @ (Self::Auth | Self::Busy { .. } | Self::Quota | Self::TooLong) => same,
        }
    }
}

/// Makes a vector one long; what has no direction stays as it is.
fn normalize(vector: &mut [f32]) {
    let length = vector
        .iter()
        .map(|&x| f64::from(x) * f64::from(x))
        .sum::<f64>()
        .sqrt();
    if length > 0.0 && length.is_finite() {
        vector
            .iter_mut()
            .for_each(|x| *x = (f64::from(*x) / length) as f32);
    }
}
