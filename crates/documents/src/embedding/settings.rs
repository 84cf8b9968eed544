//! The `embedding.*` settings and the embedder that they select.

use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::http::Jitter;
use super::providers::{GeminiEmbedder, OllamaEmbedder, OpenAiEmbedder};
use lango_domain::secret::Secret;

use super::{EmbedError, Embedder, HashedEmbedder, StaticEmbedder};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EmbeddingProvider {
    /// Built in: words and parts of words. Needs no file, no key and no network.
    #[default]
    Embedded,
    /// OpenAI and compatible servers with `/embeddings`: vLLM, llama.cpp, LM Studio, LiteLLM.
    Openai,
    Gemini,
    Ollama,
    /// A directory with a static model in the model2vec format.
    Static,
    /// No vectors: passages are found by lexical search only.
    None,
}

/// `embedding.*`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EmbeddingSettings {
    /// The embedding provider: embedded, openai, gemini, ollama, static or none.
    pub provider: EmbeddingProvider,
    /// The embedding model; each provider has its own default.
    pub model: Option<String>,
    /// The base URL of the provider; needed only if it is not the provider's default.
    #[serde(serialize_with = "without_credentials")]
    pub base_url: Option<String>,
    /// The API key; use `${NAME}` to read it from an environment variable.
    pub api_key: Option<Secret>,
    /// The directory of a static model: `model.safetensors`, `tokenizer.json`, `config.json`.
    pub path: Option<PathBuf>,
    /// The length of the vectors; the model's own length if not set.
    pub dimensions: Option<usize>,
    /// Prefix of each query, such as `query: `.
    pub query_prefix: String,
    /// Prefix of each passage, such as `passage: `.
    pub passage_prefix: String,
    /// The number of retries when the provider is busy or unreachable.
    pub retries: u32,
    /// Milliseconds before the first retry; the delay doubles with each retry.
    pub retry_delay_ms: u64,
    /// Seconds to wait for a response.
    pub timeout_seconds: u64,
}

impl Default for EmbeddingSettings {
    fn default() -> Self {
        Self {
            provider: EmbeddingProvider::default(),
            model: None,
            base_url: None,
            api_key: None,
            path: None,
            dimensions: None,
            query_prefix: String::new(),
            passage_prefix: String::new(),
            retries: 3,
            retry_delay_ms: 500,
            timeout_seconds: 60,
        }
    }
}

fn without_credentials<S: Serializer>(
    url: &Option<String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let redacted = url.as_deref().map(|url| {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let host = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        match rest[..host].rfind('@') {
            Some(at) => format!("{scheme}://***{}", &rest[at..]),
            None => url.to_owned(),
        }
    });
    redacted.serialize(serializer)
}

/// The dependencies of an embedder.
#[derive(Clone)]
pub struct EmbedderDeps {
    /// Random numbers that spread the delays of retries.
    pub jitter: Jitter,
}

/// No model has longer vectors; a larger number is a mistake.
const MAX_DIMENSIONS: usize = 16_384;

/// Returns the configured embedder, or `None` if the provider is `none`.
pub fn connect(
    settings: &EmbeddingSettings,
    deps: EmbedderDeps,
) -> Result<Option<Arc<dyn Embedder>>, EmbedError> {
    if settings
        .dimensions
        .is_some_and(|dimensions| !(1..=MAX_DIMENSIONS).contains(&dimensions))
    {
        let reason = format!("must be from 1 to {MAX_DIMENSIONS}");
        return Err(EmbedError::Setting {
            setting: "dimensions",
            reason,
        });
    }
    Ok(Some(match settings.provider {
        EmbeddingProvider::None => return Ok(None),
        EmbeddingProvider::Embedded => {
            let dimensions = settings.dimensions.unwrap_or(HashedEmbedder::DIMENSIONS);
            Arc::new(HashedEmbedder::default().with_dimensions(dimensions)?)
        }
        EmbeddingProvider::Openai => Arc::new(OpenAiEmbedder::new(settings, deps.jitter)?),
        EmbeddingProvider::Gemini => Arc::new(GeminiEmbedder::new(settings, deps.jitter)?),
        EmbeddingProvider::Ollama => Arc::new(OllamaEmbedder::new(settings, deps.jitter)?),
        EmbeddingProvider::Static => {
            let missing = || EmbedError::Setting {
                setting: "path",
                reason: "not set; provider `static` needs the directory of a model".to_owned(),
            };
            let model = StaticEmbedder::from_folder(settings.path.as_deref().ok_or_else(missing)?)?;
            Arc::new(model.with_settings(settings)?)
        }
    }))
}
