//! Which providers there are, and which model each agent asks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use lango_domain::secret::Secret;

/// `providers.<id>`.
pub type Providers = BTreeMap<String, ProviderSettings>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// OpenAI, and every server that speaks its chat completions: vLLM, llama.cpp, LM Studio, OpenRouter.
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
    /// Which dialect it speaks; not needed where the id says it (openai, anthropic, gemini, ollama).
    pub r#type: Option<ProviderKind>,
    /// The key; better written as `${NAME}` than as itself.
    pub api_key: Option<Secret>,
    /// Where it is; not needed for the providers' own addresses.
    #[serde(serialize_with = "shown_without_credentials")]
    pub base_url: Option<String>,
    /// Further headers for every request; like keys, they are never shown.
    pub headers: BTreeMap<String, Secret>,
    /// How many tokens a reply may have, where a provider wants to know.
    pub max_output_tokens: u64,
    /// How many tokens its models can hold, where that is not known.
    pub window: Option<usize>,
    /// How often a request is made again when the provider is busy or cannot be reached.
    pub retries: u32,
    /// Milliseconds before the first retry; doubled for each further one.
    pub retry_delay_ms: u64,
    /// Seconds to wait for a connection.
    pub connect_seconds: u64,
    /// Seconds to wait for the beginning of a reply.
    pub first_byte_seconds: u64,
    /// Seconds of silence within a reply.
    pub idle_seconds: u64,
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
            retries: 3,
            retry_delay_ms: 500,
            connect_seconds: 10,
            first_byte_seconds: 120,
            idle_seconds: 60,
        }
    }
}

/// An address without the name and password that may stand in it.
pub(crate) fn redact_credentials(url: &str) -> String {
    match url
        .split_once("://")
        .and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?.1)))
    {
        Some((scheme, rest)) => format!("{scheme}://***@{rest}"),
        None => url.to_owned(),
    }
}

fn shown_without_credentials<S: serde::Serializer>(
    url: &Option<String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    url.as_deref().map(redact_credentials).serialize(serializer)
}

/// The models' part of `agent.*`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelSettings {
    /// The id of the provider to ask; found from the environment when not set.
    pub provider: Option<String>,
    /// The model to ask for.
    pub model: Option<String>,
    /// Other models for single agents, as in `{ librarian = "gpt-5-mini" }` or `{ planner = "anthropic/claude-opus-4-5" }`.
    pub models: BTreeMap<String, String>,
    /// What to ask when the model cannot be reached, as in `openai/gpt-5-mini`.
    pub fallback: Option<String>,
    /// Who decides which specialist gets a request: the orchestrator's model, or the offline router where it is sure.
    pub router: RouterChoice,
    /// How sure the offline router must be to decide without the model, from 0 to 1.
    pub router_confidence: Confidence,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RouterChoice {
    #[default]
    Model,
    /// Saves a model call for the requests that the offline router is sure of; every one is seen in the events.
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
            Err(format!("{number} is not from 0 to 1"))
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

/// `model`, or `provider/model` where the provider is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelOverride {
    pub provider: Option<String>,
    pub model: String,
}

impl ModelOverride {
    /// A first part that names no provider belongs to the model's name.
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
