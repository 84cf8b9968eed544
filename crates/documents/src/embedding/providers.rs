//! Embedders that call a provider over HTTP.

use std::sync::{Arc, OnceLock};

use futures::future::{BoxFuture, FutureExt};
use serde_json::{Value, json};

use super::http::{EmbedRetryPolicy, EmbeddingClient, Jitter};
use super::{EmbedError, EmbedPurpose, Embedder, EmbeddingSettings, batches, normalize, responses};
use lango_text::fingerprint;

/// OpenAI and servers with an OpenAI-compatible `/embeddings` endpoint.
pub type OpenAiEmbedder = HttpEmbedder<OpenAi>;
/// Google's Gemini API.
pub type GeminiEmbedder = HttpEmbedder<Gemini>;
/// An Ollama server.
pub type OllamaEmbedder = HttpEmbedder<Ollama>;

/// Increment to recompute all stored vectors of providers.
const VERSION: u32 = 1;

/// An HTTP embedder that uses the dialect `D`.
pub struct HttpEmbedder<D> {
    inner: Arc<HttpEmbedderInner>,
    dialect: std::marker::PhantomData<fn() -> D>,
}

/// State shared by all requests of one embedder.
struct HttpEmbedderInner {
    client: EmbeddingClient,
    /// A fingerprint of the base URL if it is not the default: another server may serve a different
    /// model under the same name.
    server: String,
    model: String,
    /// The configured length.
    dimensions: Option<usize>,
    /// The length in the first response; later responses must match.
    observed_dimensions: OnceLock<usize>,
    query_prefix: String,
    passage_prefix: String,
}

/// The request and response format of a provider.
pub trait EmbeddingDialect: Send + Sync + 'static {
    const NAME: &'static str;
    const MODEL: &'static str;
    const BASE_URL: &'static str;
    /// The header that carries the key, and the prefix of the key.
    const KEY: (&'static str, &'static str);

    fn url(base: &str, model: &str) -> String;
    fn body(request: &EmbeddingRequest<'_>) -> Value;
    /// Returns one vector for each text, in the order of the texts.
    fn parse_vectors(response: &[u8], count: usize) -> Result<Vec<Vec<f32>>, EmbedError>;
}

/// A request for the vectors of a batch of texts.
pub struct EmbeddingRequest<'a> {
    pub model: &'a str,
    pub texts: &'a [String],
    pub purpose: EmbedPurpose,
    pub dimensions: Option<usize>,
}

impl<D: EmbeddingDialect> HttpEmbedder<D> {
    pub fn new(settings: &EmbeddingSettings, jitter: Jitter) -> Result<Self, EmbedError> {
        let model = settings.model.as_deref().unwrap_or(D::MODEL).trim();
        let is_allowed = |c: char| c.is_alphanumeric() || "._-:/@+".contains(c);
        if model.is_empty() || !model.chars().all(is_allowed) || model.contains("..") {
            let reason = "not a valid model name".to_owned();
            return Err(EmbedError::Setting {
                setting: "model",
                reason,
            });
        }
        let base = settings
            .base_url
            .as_deref()
            .unwrap_or(D::BASE_URL)
            .trim()
            .trim_end_matches('/');
        if !base.starts_with("http://") && !base.starts_with("https://") {
            let reason = "the URL must start with http:// or https://".to_owned();
            return Err(EmbedError::Setting {
                setting: "baseUrl",
                reason,
            });
        }
        let retry_policy = EmbedRetryPolicy::from_settings(settings, jitter);
        let client = EmbeddingClient::new(
            D::url(base, model),
            settings.api_key.clone(),
            D::KEY,
            retry_policy,
        )?;
        let inner = HttpEmbedderInner {
            client,
            server: if base == D::BASE_URL {
                String::new()
            } else {
                format!("@{:016x}", fingerprint(base.as_bytes()))
            },
            model: model.to_owned(),
            dimensions: settings.dimensions,
            observed_dimensions: OnceLock::new(),
            query_prefix: settings.query_prefix.clone(),
            passage_prefix: settings.passage_prefix.clone(),
        };
        Ok(Self {
            inner: Arc::new(inner),
            dialect: std::marker::PhantomData,
        })
    }
}

impl<D: EmbeddingDialect> Embedder for HttpEmbedder<D> {
    fn identity(&self) -> String {
        let HttpEmbedderInner {
            model,
            dimensions,
            passage_prefix,
            ..
        } = self.inner.as_ref();
        let length =
            dimensions.map_or_else(|| "native".to_owned(), |dimensions| dimensions.to_string());
        let (prefix, server) = (prefix_fingerprint(passage_prefix), &self.inner.server);
        format!("{}{server}/{model}/{length}/{VERSION}{prefix}", D::NAME)
    }

    fn dimensions(&self) -> Option<usize> {
        self.inner
            .dimensions
            .or_else(|| self.inner.observed_dimensions.get().copied())
    }

    fn embed(
        &self,
        texts: Vec<String>,
        purpose: EmbedPurpose,
    ) -> BoxFuture<'static, Result<Vec<Vec<f32>>, EmbedError>> {
        let inner = Arc::clone(&self.inner);
        async move {
            let mut all = Vec::with_capacity(texts.len());
            let prepared = texts
                .into_iter()
                .map(|text| inner.with_prefix(text, purpose))
                .collect();
            for batch in batches::split_into_batches(prepared) {
                all.extend(inner.embed_batch::<D>(&batch, purpose).await?);
            }
            Ok(all)
        }
        .boxed()
    }
}

/// Returns the part of an identity for the prefix of passages. The prefix of queries is not part
/// of the identity, because it does not change stored vectors.
pub(super) fn prefix_fingerprint(passage_prefix: &str) -> String {
    match passage_prefix {
        "" => String::new(),
        prefix => format!("+{:016x}", fingerprint(prefix.as_bytes())),
    }
}

impl HttpEmbedderInner {
    fn with_prefix(&self, text: String, purpose: EmbedPurpose) -> String {
        let prefix = match purpose {
            EmbedPurpose::Passage => &self.passage_prefix,
            EmbedPurpose::Query => &self.query_prefix,
        };
        // Providers reject a whole request because of one empty text.
        let text = if text.trim().is_empty() {
            "-".to_owned()
        } else {
            text
        };
        if prefix.is_empty() {
            text
        } else {
            format!("{prefix}{text}")
        }
    }

    async fn embed_batch<D: EmbeddingDialect>(
        &self,
        texts: &[String],
        purpose: EmbedPurpose,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let request = EmbeddingRequest {
            model: &self.model,
            texts,
            purpose,
            dimensions: self.dimensions,
        };
        let response = self.client.post(&D::body(&request)).await?;
        let vectors = D::parse_vectors(&response, texts.len())
            .and_then(|vectors| self.check_vectors(vectors));
        vectors.map_err(|error| self.client.redact(error))
    }

    fn check_vectors(&self, mut vectors: Vec<Vec<f32>>) -> Result<Vec<Vec<f32>>, EmbedError> {
        for vector in &mut vectors {
            let expected = self
                .dimensions
                .or_else(|| self.observed_dimensions.get().copied())
                .unwrap_or(vector.len());
            if vector.is_empty() || vector.len() != expected {
                let found = vector.len();
                return Err(EmbedError::Malformed(format!(
                    "a vector has {found} dimensions, not {expected}"
                )));
            }
            if !vector.iter().all(|x| x.is_finite()) {
                return Err(EmbedError::Malformed(
                    "a vector contains a number that is not finite".to_owned(),
                ));
            }
            if vector.iter().all(|x| *x == 0.0) {
                return Err(EmbedError::Malformed("a vector is all zeros".to_owned()));
            }
            self.observed_dimensions.get_or_init(|| expected);
            normalize(vector);
        }
        Ok(vectors)
    }
}

pub struct OpenAi;

impl EmbeddingDialect for OpenAi {
    const NAME: &'static str = "openai";
    const MODEL: &'static str = "text-embedding-3-small";
    const BASE_URL: &'static str = "https://api.openai.com/v1";
    const KEY: (&'static str, &'static str) = ("authorization", "Bearer ");

    fn url(base: &str, _model: &str) -> String {
        format!("{base}/embeddings")
    }

    fn body(request: &EmbeddingRequest<'_>) -> Value {
        let mut body = json!({ "model": request.model, "input": request.texts });
        if let Some(dimensions) = request.dimensions {
            body["dimensions"] = dimensions.into();
        }
        body
    }

    fn parse_vectors(response: &[u8], count: usize) -> Result<Vec<Vec<f32>>, EmbedError> {
        responses::parse_openai(response, count)
    }
}

pub struct Gemini;

impl EmbeddingDialect for Gemini {
    const NAME: &'static str = "gemini";
    const MODEL: &'static str = "gemini-embedding-001";
    const BASE_URL: &'static str = "https://generativelanguage.googleapis.com";
    const KEY: (&'static str, &'static str) = ("x-goog-api-key", "");

    fn url(base: &str, model: &str) -> String {
        let model = model.trim_start_matches("models/");
        let has_version = base
            .rsplit('/')
            .next()
            .is_some_and(|last| last.starts_with("v1"));
        let version = if has_version { "" } else { "/v1beta" };
        format!("{base}{version}/models/{model}:batchEmbedContents")
    }

    fn body(request: &EmbeddingRequest<'_>) -> Value {
        let model = format!("models/{}", request.model.trim_start_matches("models/"));
        let task = match request.purpose {
            EmbedPurpose::Passage => "RETRIEVAL_DOCUMENT",
            EmbedPurpose::Query => "RETRIEVAL_QUERY",
        };
        let single = |text: &String| {
            let mut single = json!({ "model": model, "content": { "parts": [{ "text": text }] }, "taskType": task });
            if let Some(dimensions) = request.dimensions {
                single["outputDimensionality"] = dimensions.into();
            }
            single
        };
        json!({ "requests": request.texts.iter().map(single).collect::<Vec<_>>() })
    }

    fn parse_vectors(response: &[u8], count: usize) -> Result<Vec<Vec<f32>>, EmbedError> {
        responses::parse_gemini(response, count)
    }
}

pub struct Ollama;

impl EmbeddingDialect for Ollama {
    const NAME: &'static str = "ollama";
    const MODEL: &'static str = "nomic-embed-text";
    const BASE_URL: &'static str = "http://127.0.0.1:11434";
    const KEY: (&'static str, &'static str) = ("authorization", "Bearer ");

    /// Accepts the base URL of the chat API too, which ends in `/v1`.
    fn url(base: &str, _model: &str) -> String {
        format!("{}/api/embed", base.trim_end_matches("/v1"))
    }

    fn body(request: &EmbeddingRequest<'_>) -> Value {
        let mut body = json!({ "model": request.model, "input": request.texts });
        if let Some(dimensions) = request.dimensions {
            body["dimensions"] = dimensions.into();
        }
        body
    }

    fn parse_vectors(response: &[u8], count: usize) -> Result<Vec<Vec<f32>>, EmbedError> {
        responses::parse_ollama(response, count)
    }
}
