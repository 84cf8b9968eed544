//! Static models: each token has one vector, and a text is the mean of its tokens. The form is that of model2vec.

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
use crate::fingerprint;

/// Larger files are something else, or too much for a memory.
const MAX_MODEL_BYTES: u64 = 1024 * 1024 * 1024;
const MAX_TOKENIZER_BYTES: u64 = 64 * 1024 * 1024;
const MAX_CONFIG_BYTES: u64 = 1024 * 1024;
/// So many texts are embedded before others may have the thread.
const TEXTS_PER_YIELD: usize = 16;
const VERSION: u32 = 1;

/// A model from a folder. It stays in memory in the size of its file.
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
    /// How much each token counts, where the model says so.
    weights: Option<Table>,
    /// Which row a token has, where tokens share rows.
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
    /// Reads `model.safetensors`, `tokenizer.json` and, if it is there, `config.json`.
    pub fn from_folder(folder: &Path) -> Result<Self, EmbedError> {
        let weights = folder.join("model.safetensors");
        let bytes = read_limited(&weights, MAX_MODEL_BYTES)?;
        let cutting = folder.join("tokenizer.json");
        let cutting_bytes = read_limited(&cutting, MAX_TOKENIZER_BYTES)?;
        let fingerprint = fingerprint(&bytes) ^ fingerprint(&cutting_bytes).rotate_left(1);
        let tokenizer =
            Tokenizer::parse(&cutting_bytes).map_err(|reason| file_error(&cutting, reason))?;
        let tensors = Tensors::parse(bytes).map_err(|reason| file_error(&weights, reason))?;
        let table = |name: &str| {
            tensors
                .table(name)
                .map_err(|reason| file_error(&weights, reason))
        };
        let missing = || file_error(&weights, "it has no tensor \"embeddings\"".to_owned());
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

    /// With the prefixes and the dimensions of the settings. These models put what matters most first, so they can
    /// be cut.
    pub fn with_settings(mut self, settings: &EmbeddingSettings) -> Result<Self, EmbedError> {
        self.dimensions = settings.dimensions.unwrap_or(self.dimensions);
        if self.dimensions == 0 || self.dimensions > self.model.embeddings.width {
            let reason = format!("the model has {}", self.model.embeddings.width);
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
        // Broken numbers in a model are nothing that a search should trip over.
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

    /// Between spellings and a model that reads whole sentences.
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
        let own = self.clone();
        async move {
            let mut all = Vec::with_capacity(texts.len());
            for texts in texts.chunks(TEXTS_PER_YIELD) {
                all.extend(texts.iter().map(|text| own.embed_text(text, purpose)));
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

fn read_limited(path: &Path, most: u64) -> Result<Vec<u8>, EmbedError> {
    let unread = |error: std::io::Error| file_error(path, error.to_string());
    let file = fs::File::open(path).map_err(unread)?;
    let mut bytes = Vec::new();
    // One byte more tells a file that is too large from one that is just right, whatever its length is said to be.
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(unread)?;
    if bytes.len() as u64 > most {
        return Err(file_error(
            path,
            format!("the file is larger than {} MiB", most >> 20),
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
