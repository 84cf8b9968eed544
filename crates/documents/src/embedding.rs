//! Text embeddings: texts that are similar in meaning, or at least in spelling, get vectors of
//! similar direction.
//!
//! The built-in embedder needs no file, no key and no network. The others call a provider or
//! load a static model from a directory.

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

/// The purpose of an embedding; many models embed queries and passages differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmbedPurpose {
    /// A text that is searched.
    Passage,
    /// A text that is searched for.
    Query,
}

/// The persistence of vectors, apart from the derived vector files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorPersistence {
    /// Stored with the chunks and included in backups, because they cost time or money.
    Store,
    /// Not stored: computing them is as fast as reading them.
    Recompute,
}

/// Turns texts into vectors.
pub trait Embedder: Send + Sync {
    /// Returns provider, model, dimensions and version. Vectors of different identities must never
    /// be compared.
    fn identity(&self) -> String;

    /// Returns the length of the vectors. For some providers it is unknown before the first
    /// response.
    fn dimensions(&self) -> Option<usize>;

    /// Returns the persistence of the vectors.
    fn persistence(&self) -> VectorPersistence {
        VectorPersistence::Store
    }

    /// Returns the weight of vector scores in the fusion with lexical scores, from 0 to 1.
    fn fusion_weight(&self) -> f32 {
        0.55
    }

    /// Returns the least similarity that is a hit without a lexical match.
    fn min_similarity(&self) -> f32 {
        f32::NEG_INFINITY
    }

    /// Returns one vector for each text, in order. A text without features may get all zeros.
    fn embed(
        &self,
        texts: Vec<String>,
        purpose: EmbedPurpose,
    ) -> BoxFuture<'static, Result<Vec<Vec<f32>>, EmbedError>>;
}

/// An error of an embedder. No message contains an API key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    #[error("the embedding provider rejected the API key")]
    Auth,
    #[error("the embedding provider is busy")]
    Busy { retry_after: Option<Duration> },
    #[error("the quota of the embedding provider is exhausted")]
    Quota,
    #[error("the embedding provider is unreachable: {0}")]
    Connection(String),
    #[error("the embedding provider returned an invalid response: {0}")]
    Malformed(String),
    #[error("a text is too long for the embedding model")]
    TooLong,
    #[error("the embedding provider has no such model: {0}")]
    NotFound(String),
    #[error("the embedding provider rejected the request: {0}")]
    Refused(String),
    /// The user has to change a setting.
    #[error("embedding.{setting}: {reason}")]
    Setting {
        setting: &'static str,
        reason: String,
    },
    /// The user has to check the directory of a static model.
    #[error("{file}: {reason}")]
    File { file: String, reason: String },
}

impl EmbedError {
    /// Applies `change` to the texts of the error.
    fn map_text(self, change: impl Fn(&str) -> String) -> Self {
        match self {
            Self::Connection(text) => Self::Connection(change(&text)),
            Self::Malformed(text) => Self::Malformed(change(&text)),
            Self::NotFound(text) => Self::NotFound(change(&text)),
            Self::Refused(text) => Self::Refused(change(&text)),
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

/// Scales a vector to length one. A zero vector stays unchanged.
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
