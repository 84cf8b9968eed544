//! Settings of providers and of the models that agents use.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use lango_domain::ReadableKinds;
use lango_domain::secret::Secret;

use crate::catalog::{ReadableInput, readable_kinds};

/// `providers.<id>`.
pub type Providers = BTreeMap<String, ProviderSettings>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// OpenAI and servers with compatible chat completions: vLLM, llama.cpp, LM Studio, OpenRouter.
    Openai,
    Anthropic,
    Gemini,
    Ollama,
    /// The built-in model: no network, no key, no neural network.
    Offline,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderSettings {
    /// API dialect of the provider; not needed for the ids openai, anthropic, gemini and ollama.
    pub r#type: Option<ProviderKind>,
    /// API key; prefer `${NAME}`, which reads an environment variable, or `vault:NAME`, which reads the vault, over the key
    /// itself.
    pub api_key: Option<Secret>,
    /// Base URL; not needed for the provider's default address.
    #[serde(serialize_with = "serialize_redacted")]
    pub base_url: Option<String>,
    /// Additional headers for every request; like keys, they are never shown.
    pub headers: BTreeMap<String, Secret>,
    /// Maximum tokens of a reply, for providers that require a limit.
    pub max_output_tokens: u64,
    /// Context window of its models in tokens, for models that are not in the catalog.
    pub window: Option<usize>,
    /// Attachments that its models read, of `image` and `pdf`; known for models of the catalog, and for
    /// others images are tried.
    pub reads: Option<Vec<ReadableInput>>,
    /// Number of retries when the provider is busy or unreachable.
    pub retries: u32,
    /// Milliseconds before the first retry; doubled for each further one.
    pub retry_delay_ms: u64,
    /// Seconds to wait for a connection.
    pub connect_seconds: u64,
    /// Seconds to wait for the start of a reply.
    pub first_byte_seconds: u64,
    /// Seconds without data after which a reply is aborted.
    pub idle_seconds: u64,
}

impl ProviderSettings {
    /// Returns the attachments that a model reads: as set, as known, else as its dialect allows. Images
    /// are sent to unknown models, since a user who attaches one expects that they are read.
    pub(crate) fn readable_kinds(
        &self,
        kind: ProviderKind,
        known: Option<ReadableKinds>,
    ) -> ReadableKinds {
        let by_dialect = match kind {
            ProviderKind::Offline => return ReadableKinds::NONE,
            ProviderKind::Anthropic | ProviderKind::Gemini => ReadableKinds::ALL,
            ProviderKind::Openai | ProviderKind::Ollama => ReadableKinds {
                images: true,
                pdfs: false,
            },
        };
        let set = self.reads.as_deref().map(readable_kinds);
        set.or(known).unwrap_or(by_dialect)
    }
}

impl Default for ProviderSettings {
    fn default() -> Self {
        Self {
            r#type: None,
            api_key: None,
            base_url: None,
            headers: BTreeMap::new(),
            max_output_tokens: 8_192,
            window: None,
            reads: None,
            retries: 3,
            retry_delay_ms: 500,
            connect_seconds: 10,
            first_byte_seconds: 120,
            idle_seconds: 60,
        }
    }
}

/// Replaces the user name and password in a URL by `***`.
pub(crate) fn redact_credentials(url: &str) -> String {
    match url
        .split_once("://")
        .and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?.1)))
    {
        Some((scheme, rest)) => format!("{scheme}://***@{rest}"),
        None => url.to_owned(),
    }
}

fn serialize_redacted<S: serde::Serializer>(
    url: &Option<String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    url.as_deref().map(redact_credentials).serialize(serializer)
}

/// The model settings in `agent.*`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelSettings {
    /// Id of the provider to use; detected from the environment when not set.
    pub provider: Option<String>,
    /// Name of the model to use.
    pub model: Option<String>,
    /// Models for individual agents, such as `{ librarian = "gpt-5-mini" }` or
    /// `{ planner = "anthropic/claude-opus-4-5" }`.
    pub models: BTreeMap<String, String>,
    /// Model to use when the main model is unreachable, such as `openai/gpt-5-mini`.
    pub fallback: Option<String>,
    /// Routing of requests to specialists: by the orchestrator's model, or by the offline router
    /// where it is confident.
    pub router: RouterChoice,
    /// Confidence, from 0 to 1, that the offline router needs to route without the model.
    pub router_confidence: Confidence,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RouterChoice {
    #[default]
    Model,
    /// Saves a model call for requests that the offline router is confident about; each one is
    /// visible in the events.
    OfflineFirst,
}

/// A number from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "f64")]
pub struct Confidence(f64);

impl Confidence {
    pub fn get(self) -> f32 {
        self.0 as f32
    }
}

impl TryFrom<f64> for Confidence {
    type Error = String;

    fn try_from(number: f64) -> Result<Self, String> {
        if (0.0..=1.0).contains(&number) {
            Ok(Self(number))
        } else {
            Err(format!("{number} is not between 0 and 1"))
        }
    }
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            provider: None,
            model: None,
            models: BTreeMap::new(),
            fallback: None,
            router: RouterChoice::default(),
            router_confidence: Confidence(0.95),
        }
    }
}

/// A model setting: `model`, or `provider/model` if the provider is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelOverride {
    pub provider: Option<String>,
    pub model: String,
}

impl ModelOverride {
    /// Parses `text`. A prefix that is not a provider belongs to the model name.
    pub fn parse(text: &str, is_provider: impl Fn(&str) -> bool) -> Self {
        match text.split_once('/') {
            Some((provider, model)) if is_provider(provider) => Self {
                provider: Some(provider.to_owned()),
                model: model.to_owned(),
            },
            _ => Self {
                provider: None,
                model: text.to_owned(),
            },
        }
    }
}
