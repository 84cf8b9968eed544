//! Static models in the model2vec format: each token has one vector, and the vector of a text is
//! the mean of its tokens.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use serde::Deserialize;

use super::providers::prefix_fingerprint;
use super::tensors::{Table, Tensors};
use super::tokenizer::Tokenizer;
use super::{EmbedError, EmbedPurpose, Embedder, EmbeddingSettings, VectorPersistence, normalize};
use lango_text::fingerprint;

/// Larger files are not static models, or do not fit into memory.
const MAX_MODEL_BYTES: u64 = 1024 * 1024 * 1024;
const MAX_TOKENIZER_BYTES: u64 = 64 * 1024 * 1024;
const MAX_CONFIG_BYTES: u64 = 1024 * 1024;
/// Texts embedded between two yields to the scheduler.
const TEXTS_PER_YIELD: usize = 16;
const VERSION: u32 = 1;

/// A model loaded from a directory. It takes as much memory as its files.
#[derive(Clone)]
pub struct StaticEmbedder {
    model: Arc<StaticModel>,
    dimensions: usize,
    query_prefix: Arc<str>,
    passage_prefix: Arc<str>,
}

struct StaticModel {
    name: String,
    fingerprint: u64,
    tokenizer: Tokenizer,
    embeddings: Table,
    /// Weights of tokens, if the model has them.
    weights: Option<Table>,
    /// Rows of tokens, if tokens share rows.
    mapping: Option<Table>,
    normalize: bool,
}

#[derive(Deserialize)]
#[serde(default)]
struct StaticModelConfig {
    normalize: bool,
}

impl Default for StaticModelConfig {
    fn default() -> Self {
        Self { normalize: true }
    }
}

impl StaticEmbedder {
    /// Loads `model.safetensors`, `tokenizer.json` and, if it exists, `config.json`.
    pub fn from_folder(folder: &Path) -> Result<Self, EmbedError> {
        let weights = folder.join("model.safetensors");
        let bytes = read_limited(&weights, MAX_MODEL_BYTES)?;
        let tokenizer_path = folder.join("tokenizer.json");
        let tokenizer_bytes = read_limited(&tokenizer_path, MAX_TOKENIZER_BYTES)?;
        let fingerprint = fingerprint(&bytes) ^ fingerprint(&tokenizer_bytes).rotate_left(1);
        let tokenizer = Tokenizer::parse(&tokenizer_bytes)
            .map_err(|reason| file_error(&tokenizer_path, reason))?;
        let tensors = Tensors::parse(bytes).map_err(|reason| file_error(&weights, reason))?;
        let table = |name: &str| {
            tensors
                .table(name)
                .map_err(|reason| file_error(&weights, reason))
        };
        let missing = || file_error(&weights, "no tensor \"embeddings\"".to_owned());
        let embeddings = table("embeddings")?.ok_or_else(missing)?;
        if embeddings.rows == 0 || embeddings.width == 0 {
            return Err(file_error(
                &weights,
                "the tensor \"embeddings\" is empty".to_owned(),
            ));
        }
        let name = folder
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let model = StaticModel {
            name,
            fingerprint,
            tokenizer,
            weights: table("weights")?,
            mapping: table("mapping")?,
            normalize: read_config(&folder.join("config.json"))?.normalize,
            embeddings,
        };
        let dimensions = model.embeddings.width;
        Ok(Self {
            model: Arc::new(model),
            dimensions,
            query_prefix: "".into(),
            passage_prefix: "".into(),
        })
    }

    /// Applies the configured prefixes and dimensions. Vectors may be truncated, because these models
    /// sort their dimensions by importance.
    pub fn with_settings(mut self, settings: &EmbeddingSettings) -> Result<Self, EmbedError> {
        self.dimensions = settings.dimensions.unwrap_or(self.dimensions);
        if self.dimensions == 0 || self.dimensions > self.model.embeddings.width {
            let reason = format!("must be from 1 to {}", self.model.embeddings.width);
            return Err(EmbedError::Setting {
                setting: "dimensions",
                reason,
            });
        }
        self.query_prefix = settings.query_prefix.as_str().into();
        self.passage_prefix = settings.passage_prefix.as_str().into();
        Ok(self)
    }

    fn embed_text(&self, text: &str, purpose: EmbedPurpose) -> Vec<f32> {
        let prefix = match purpose {
            EmbedPurpose::Passage => &self.passage_prefix,
            EmbedPurpose::Query => &self.query_prefix,
        };
        let mut sum = vec![0.0_f64; self.dimensions];
        let mut count = 0_u32;
        let mut add = |token: u32| {
            count += 1;
            self.model.add(token as usize, &mut sum);
        };
        if !prefix.is_empty() {
            self.model.tokenizer.tokenize(prefix, &mut add);
        }
        self.model.tokenizer.tokenize(text, &mut add);
        let count = f64::from(count.max(1));
        let mut vector: Vec<f32> = sum.into_iter().map(|x| (x / count) as f32).collect();
        // Invalid numbers in a model must not break a search.
        vector
            .iter_mut()
            .filter(|x| !x.is_finite())
            .for_each(|x| *x = 0.0);
        if self.model.normalize {
            normalize(&mut vector);
        }
        vector
    }
}

impl StaticModel {
    fn add(&self, token: usize, sum: &mut [f64]) {
        let weight = self
            .weights
            .as_ref()
            .and_then(|weights| weights.scalar(token))
            .unwrap_or(1.0);
        let row = match &self.mapping {
            Some(mapping) => mapping.scalar(token).map_or(usize::MAX, |row| row as usize),
            None => token,
        };
        self.embeddings.for_each_in_row(row, |at, number| {
            if let Some(sum) = sum.get_mut(at) {
                *sum += weight * number;
            }
        });
    }
}

impl Embedder for StaticEmbedder {
    fn identity(&self) -> String {
        let StaticModel {
            name, fingerprint, ..
        } = self.model.as_ref();
        let prefix = prefix_fingerprint(&self.passage_prefix);
        format!(
            "static/{name}-{fingerprint:016x}/{}/{VERSION}{prefix}",
            self.dimensions
        )
    }

    fn persistence(&self) -> VectorPersistence {
        VectorPersistence::Recompute
    }

    /// Between the built-in embedder and a model that reads whole sentences.
    fn fusion_weight(&self) -> f32 {
        0.35
    }

    fn dimensions(&self) -> Option<usize> {
        Some(self.dimensions)
    }

    fn embed(
        &self,
        texts: Vec<String>,
        purpose: EmbedPurpose,
    ) -> BoxFuture<'static, Result<Vec<Vec<f32>>, EmbedError>> {
        let embedder = self.clone();
        async move {
            let mut all = Vec::with_capacity(texts.len());
            for texts in texts.chunks(TEXTS_PER_YIELD) {
                all.extend(texts.iter().map(|text| embedder.embed_text(text, purpose)));
                tokio::task::yield_now().await;
            }
            Ok(all)
        }
        .boxed()
    }
}

fn read_config(path: &Path) -> Result<StaticModelConfig, EmbedError> {
    if !path.exists() {
        return Ok(StaticModelConfig::default());
    }
    serde_json::from_slice(&read_limited(path, MAX_CONFIG_BYTES)?)
        .map_err(|error| file_error(path, error.to_string()))
}

fn read_limited(path: &Path, max_bytes: u64) -> Result<Vec<u8>, EmbedError> {
    let read_error = |error: std::io::Error| file_error(path, error.to_string());
    let file = fs::File::open(path).map_err(read_error)?;
    let mut bytes = Vec::new();
    // Reads one byte more than allowed, so that the check does not depend on the reported length.
    file.take(max_bytes + 1)
        .read_to_end(&mut bytes)
        .map_err(read_error)?;
    if bytes.len() as u64 > max_bytes {
        return Err(file_error(
            path,
            format!("the file is larger than {} MiB", max_bytes >> 20),
        ));
    }
    Ok(bytes)
}

fn file_error(path: &Path, reason: String) -> EmbedError {
    EmbedError::File {
        file: path.display().to_string(),
        reason,
    }
}
