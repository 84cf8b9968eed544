//! The model catalog: context windows and prices. An unknown price stays unknown, never zero.

use std::collections::BTreeMap;

use lango_domain::ReadableKinds;
use lango_domain::event::Usage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The context window of unknown models, in tokens.
const DEFAULT_WINDOW: usize = 32_000;

/// US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Price {
    /// Price of input tokens.
    #[serde(deserialize_with = "not_negative")]
    pub input: f64,
    /// Price of input tokens read from the provider's cache; same as `input` when not set.
    pub cached: Option<f64>,
    /// Price of input tokens written to the provider's cache; same as `input` when not set.
    #[serde(default)]
    pub cache_write: Option<f64>,
    /// Price of output tokens.
    #[serde(deserialize_with = "not_negative")]
    pub output: f64,
}

fn not_negative<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let price = f64::deserialize(deserializer)?;
    if price >= 0.0 {
        Ok(price)
    } else {
        Err(serde::de::Error::custom("a price must not be negative"))
    }
}

impl Price {
    pub fn cost(&self, usage: &Usage) -> f64 {
        let cached = usage.cached.min(usage.input);
        let written = usage.cache_written.min(usage.input - cached);
        let uncached = usage.input - cached - written;
        let input_cost = uncached as f64 * self.input
            + cached as f64 * self.cached.unwrap_or(self.input)
            + written as f64 * self.cache_write.unwrap_or(self.input);
        (input_cost + usage.output as f64 * self.output) / 1e6
    }
}

/// One catalog row. The window applies to every model whose name starts with `model`; the price
/// only to that model and its dated versions, because similar models may cost something else.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct CatalogEntry {
    pub model: String,
    pub window: Option<usize>,
    /// The attachments that the models read, if that is known.
    #[serde(default)]
    pub reads: Option<Vec<ReadableInput>>,
    #[serde(flatten)]
    pub price: Option<Price>,
}

#[derive(Clone, Debug)]
pub struct ModelCatalog {
    entries: Vec<CatalogEntry>,
}

impl ModelCatalog {
    /// Creates the catalog from the built-in table. `prices` of the user take precedence.
    pub fn new(prices: &BTreeMap<String, Price>) -> Self {
        let mut entries: Vec<CatalogEntry> =
            serde_json::from_str(include_str!("models.json")).unwrap_or_default();
        for (model, price) in prices {
            let window = None;
            entries.retain(|entry| entry.model != *model || entry.window.is_some());
            match entries.iter_mut().find(|entry| entry.model == *model) {
                Some(entry) => entry.price = Some(*price),
                None => entries.push(CatalogEntry {
                    model: model.clone(),
                    window,
                    reads: None,
                    price: Some(*price),
                }),
            }
        }
        Self { entries }
    }

    pub fn window(&self, model: &str) -> usize {
        self.longest_match(model, |entry| entry.window)
            .unwrap_or(DEFAULT_WINDOW)
    }

    /// Returns the attachments that a model reads, or `None` if that is unknown.
    pub fn readable_kinds(&self, model: &str) -> Option<ReadableKinds> {
        self.longest_match(model, |entry| entry.reads.as_deref().map(readable_kinds))
    }

    pub fn price(&self, model: &str) -> Option<Price> {
        let bare = model.rsplit('/').next().unwrap_or(model);
        let matches_entry = |entry: &&CatalogEntry| {
            is_version(model, &entry.model) || is_version(bare, &entry.model)
        };
        self.entries
            .iter()
            .filter(matches_entry)
            .find_map(|entry| entry.price)
    }

    /// Returns the value of the longest matching row that has one. A vendor prefix (`openai/gpt-5`)
    /// is ignored.
    fn longest_match<T>(
        &self,
        model: &str,
        value_of: impl Fn(&CatalogEntry) -> Option<T>,
    ) -> Option<T> {
        let bare = model.rsplit('/').next().unwrap_or(model);
        let matching = self
            .entries
            .iter()
            .filter(|entry| model.starts_with(&entry.model) || bare.starts_with(&entry.model));
        let (_, best) = matching
            .filter_map(|entry| Some((entry.model.len(), value_of(entry)?)))
            .max_by_key(|(length, _)| *length)?;
        Some(best)
    }
}

/// A kind of attachment that a model reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReadableInput {
    Image,
    Pdf,
}

/// Returns the kinds in a list.
pub(crate) fn readable_kinds(inputs: &[ReadableInput]) -> ReadableKinds {
    ReadableKinds {
        images: inputs.contains(&ReadableInput::Image),
        pdfs: inputs.contains(&ReadableInput::Pdf),
    }
}

/// Returns true if `model` is `row` or a dated version of it.
fn is_version(model: &str, row: &str) -> bool {
    let Some(rest) = model.strip_prefix(row) else {
        return false;
    };
    let is_date =
        |text: &str| text.chars().all(|c| c.is_ascii_digit() || c == '-') && text.len() >= 8;
    rest.is_empty()
        || rest
            .strip_prefix('-')
            .is_some_and(|version| version == "latest" || is_date(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_row_wins_and_unknown_prices_stay_unknown() {
        let catalog = ModelCatalog::new(&BTreeMap::new());
        assert_eq!(catalog.price("gpt-5-mini-2025-08-07").unwrap().output, 2.0);
        assert_eq!(catalog.price("openai/gpt-5").unwrap().output, 10.0);
        for unknown in [
            "claude-next",
            "gpt-5-pro",
            "gpt-4o-audio-preview",
            "claude-opus-4-6",
        ] {
            assert_eq!(catalog.price(unknown), None, "{unknown}");
        }
        assert_eq!(catalog.window("claude-next"), 200_000);
        assert_eq!(
            (catalog.price("qwen3"), catalog.window("qwen3")),
            (None, DEFAULT_WINDOW)
        );
    }

    #[test]
    fn known_models_say_what_they_read() {
        let catalog = ModelCatalog::new(&BTreeMap::new());
        let kinds = |model| catalog.readable_kinds(model);
        assert_eq!(kinds("anthropic/claude-next"), Some(ReadableKinds::ALL));
        assert_eq!(kinds("gpt-3.5-turbo"), Some(ReadableKinds::NONE));
        assert_eq!(kinds("qwen3"), None);
    }

    #[test]
    fn user_prices_take_precedence() {
        let custom = Price {
            input: 1.0,
            cached: None,
            cache_write: None,
            output: 2.0,
        };
        let prices = BTreeMap::from([("qwen3".to_owned(), custom), ("gpt-5".to_owned(), custom)]);
        let catalog = ModelCatalog::new(&prices);
        assert_eq!(catalog.price("qwen3"), Some(custom));
        assert_eq!(catalog.price("gpt-5"), Some(custom));
        assert_eq!(catalog.window("gpt-5"), 400_000);
    }

    #[test]
    fn cached_tokens_have_their_own_price() {
        let price = Price {
            input: 10.0,
            cached: Some(1.0),
            cache_write: Some(20.0),
            output: 100.0,
        };
        let usage = Usage {
            input: 1_000_000,
            cached: 800_000,
            cache_written: 100_000,
            output: 10_000,
            ..Usage::default()
        };
        assert!((price.cost(&usage) - (1.0 + 0.8 + 2.0 + 1.0)).abs() < 1e-9);
    }
}
