//! Who turns texts into vectors.

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
    /// OpenAI, and every server that has its `/embeddings`: vLLM, llama.cpp, LM Studio, LiteLLM.
    Openai,
    Gemini,
    Ollama,
    /// A folder with a static model in the form of model2vec.
    Static,
    /// No vectors: passages are found by their words only.
    None,
}

/// `embedding.*`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EmbeddingSettings {
    /// Who turns texts into vectors: embedded, openai, gemini, ollama, static or none.
    pub provider: EmbeddingProvider,
    /// The model to ask for; each provider has its own default.
    pub model: Option<String>,
    /// Where the provider is; not needed for the providers' own addresses.
    #[serde(serialize_with = "without_credentials")]
    pub base_url: Option<String>,
    /// The key; better written as `${NAME}` than as itself.
    pub api_key: Option<Secret>,
    /// The folder of a static model: `model.safetensors`, `tokenizer.json`, `config.json`.
    pub path: Option<PathBuf>,
    /// How long the vectors are; not set means as long as the model makes them.
    pub dimensions: Option<usize>,
    /// Put before each text that is searched for, as in `query: `.
    pub query_prefix: String,
    /// Put before each text that will be searched, as in `passage: `.
    pub passage_prefix: String,
    /// How often a request is made again when the provider is busy or cannot be reached.
    pub retries: u32,
    /// Milliseconds before the first retry; doubled for each further one.
    pub retry_delay_ms: u64,
    /// Seconds to wait for an answer.
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
    let shown = url.as_deref().map(|url| {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let host = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        match rest[..host].rfind('@') {
            Some(at) => format!("{scheme}://***{}", &rest[at..]),
            None => url.to_owned(),
        }
    });
    shown.serialize(serializer)
}

/// What an embedder is given from outside.
#[derive(Clone)]
pub struct EmbedderDeps {
    /// A number from 0 to 1, different each time, so that not all wait equally long.
    pub jitter: Jitter,
}

/// The longest vectors that make sense to anybody; a larger number is a mistake.
const MAX_DIMENSIONS: usize = 16_384;

/// The embedder that the settings ask for; nothing where they ask for none.
pub fn connect(
    settings: &EmbeddingSettings,
    means: EmbedderDeps,
) -> Result<Option<Arc<dyn Embedder>>, EmbedError> {
    if settings
        .dimensions
        .is_some_and(|dimensions| !(1..=MAX_DIMENSIONS).contains(&dimensions))
    {
        let reason = format!("not from 1 to {MAX_DIMENSIONS}");
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
        EmbeddingProvider::Openai => Arc::new(OpenAiEmbedder::new(settings, means.jitter)?),
        EmbeddingProvider::Gemini => Arc::new(GeminiEmbedder::new(settings, means.jitter)?),
        EmbeddingProvider::Ollama => Arc::new(OllamaEmbedder::new(settings, means.jitter)?),
        EmbeddingProvider::Static => {
            let missing = || EmbedError::Setting {
                setting: "path",
                reason: "a static model needs a folder".to_owned(),
            };
            let model = StaticEmbedder::from_folder(settings.path.as_deref().ok_or_else(missing)?)?;
            Arc::new(model.with_settings(settings)?)
        }
    }))
}
