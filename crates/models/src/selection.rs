//! Selects models from settings and environment. Pure: lookups are passed in as functions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lango_domain::ReadableKinds;
use lango_domain::model::{Model, ModelError};
use lango_text::suggest;
use reqwest::header::{HeaderName, HeaderValue};

use crate::catalog::{ModelCatalog, Price};
use crate::dialect::{Dialect, ModelEndpoint};
use crate::http::{HttpModel, Timeouts, http_client};
use crate::offline::{self, OfflineModel};
use crate::retry::{FallbackModel, RetryPolicy};
use crate::settings::{
    ModelOverride, ModelSettings, ProviderKind, ProviderSettings, Providers, redact_credentials,
};
use lango_domain::secret::Secret;

/// The inputs of model selection.
pub struct SelectionInput<'a> {
    pub agent: &'a ModelSettings,
    pub providers: &'a Providers,
    pub prices: &'a BTreeMap<String, Price>,
    pub env_var: &'a dyn Fn(&str) -> Option<String>,
    /// Returns a model of the local Ollama server; called only if nothing else is found.
    pub ollama: &'a dyn Fn() -> Option<String>,
}

/// A selected provider and model, with the reason.
#[derive(Clone, Debug)]
pub struct SelectedModel {
    pub provider: String,
    pub kind: ProviderKind,
    pub model: String,
    pub settings: ProviderSettings,
    pub key: Option<Secret>,
    pub window: usize,
    pub readable: ReadableKinds,
    pub price: Option<Price>,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    #[error("no provider for model `{0}`: no API key is set and no local Ollama server is running")]
    NoProvider(String),
    #[error("unknown provider `{id}`{}", hint.as_ref().map_or(String::new(), |hint| format!("; {hint}")))]
    UnknownProvider { id: String, hint: Option<String> },
    #[error("providers.{0}.type is not set and cannot be derived from the id")]
    UnknownKind(String),
    #[error("providers.{id}.headers.{name} is not a valid HTTP header")]
    InvalidHeader { id: String, name: String },
    #[error("providers.{0}.baseUrl must be an http or https URL without a query")]
    InvalidBaseUrl(String),
    #[error("agent.model is not set and provider `{0}` has no default model")]
    MissingModel(String),
}

/// A built-in provider.
struct KnownProvider {
    id: &'static str,
    kind: ProviderKind,
    /// The environment variables that may hold its key.
    variables: &'static [&'static str],
    base_url: &'static str,
    default_model: Option<&'static str>,
}

const KNOWN_PROVIDERS: [KnownProvider; 5] = [
    KnownProvider {
        id: "anthropic",
        kind: ProviderKind::Anthropic,
        variables: &["ANTHROPIC_API_KEY"],
        base_url: "https://api.anthropic.com",
        default_model: Some("claude-sonnet-4-5"),
    },
    KnownProvider {
        id: "openai",
        kind: ProviderKind::Openai,
        variables: &["OPENAI_API_KEY"],
        base_url: "https://api.openai.com/v1",
        default_model: Some("gpt-5-mini"),
    },
    KnownProvider {
        id: "gemini",
        kind: ProviderKind::Gemini,
        variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        base_url: "https://generativelanguage.googleapis.com",
        default_model: Some("gemini-2.5-flash"),
    },
    KnownProvider {
        id: "ollama",
        kind: ProviderKind::Ollama,
        variables: &[],
        base_url: "http://127.0.0.1:11434/v1",
        default_model: None,
    },
    KnownProvider {
        id: offline::PROVIDER,
        kind: ProviderKind::Offline,
        variables: &[],
        base_url: "",
        default_model: Some(offline::MODEL),
    },
];

fn known_provider(id: &str) -> Option<&'static KnownProvider> {
    KNOWN_PROVIDERS.iter().find(|known| known.id == id)
}

/// Returns the built-in provider of a kind, with its defaults.
fn default_provider(kind: ProviderKind) -> Option<&'static KnownProvider> {
    KNOWN_PROVIDERS.iter().find(|known| known.kind == kind)
}

/// Selects the provider and model of the team.
pub fn select_model(input: &SelectionInput<'_>) -> Result<SelectedModel, SelectionError> {
    match &input.agent.provider {
        Some(id) => {
            input.select_provider(id, input.agent.model.as_deref(), "set by agent.provider")
        }
        None => input.detect_provider(),
    }
}

impl SelectionInput<'_> {
    /// Returns the model of `agent`, if `agent.models` sets one.
    pub fn for_agent(
        &self,
        agent: &str,
        default: &SelectedModel,
    ) -> Option<Result<SelectedModel, SelectionError>> {
        if self.is_offline_only() {
            return None;
        }
        let override_text = self.agent.models.get(agent)?;
        Some(self.resolve_override(
            override_text,
            default,
            &format!("set by agent.models.{agent}"),
        ))
    }

    /// Returns the fallback model, if `agent.fallback` sets one.
    pub fn fallback(
        &self,
        default: &SelectedModel,
    ) -> Option<Result<SelectedModel, SelectionError>> {
        if self.is_offline_only() {
            return None;
        }
        let override_text = self.agent.fallback.as_ref()?;
        Some(self.resolve_override(override_text, default, "set by agent.fallback"))
    }

    /// Returns true if `agent.provider` is the offline model: then no provider is contacted,
    /// whatever else is configured.
    fn is_offline_only(&self) -> bool {
        self.agent.provider.as_deref() == Some(offline::PROVIDER)
    }

    fn resolve_override(
        &self,
        override_text: &str,
        default: &SelectedModel,
        reason: &str,
    ) -> Result<SelectedModel, SelectionError> {
        let model_override = ModelOverride::parse(override_text, |id| {
            self.providers.contains_key(id) || known_provider(id).is_some()
        });
        let provider = model_override.provider.as_deref();
        self.select_provider(
            provider.unwrap_or(&default.provider),
            Some(&model_override.model),
            reason,
        )
    }

    /// Selects a provider if none is set: the only configured one, then keys in the environment,
    /// then a local Ollama, then the offline model.
    fn detect_provider(&self) -> Result<SelectedModel, SelectionError> {
        let model = self.agent.model.as_deref();
        if self.providers.len() == 1
            && let Some(id) = self.providers.keys().next()
        {
            return self.select_provider(id, model, "the only configured provider");
        }
        for KnownProvider { id, variables, .. } in &KNOWN_PROVIDERS {
            if let Some(name) = variables.iter().find(|name| (self.env_var)(name).is_some()) {
                return self.select_provider(id, model, &format!("{name} is set"));
            }
        }
        match (self.ollama)() {
            Some(found) => self.select_provider(
                "ollama",
                Some(model.unwrap_or(&found)),
                "a local Ollama server is running",
            ),
            None if model.is_some() => Err(SelectionError::NoProvider(
                model.unwrap_or_default().to_owned(),
            )),
            None => self.select_provider(
                offline::PROVIDER,
                None,
                "no API key is set and no local Ollama server is running",
            ),
        }
    }

    fn select_provider(
        &self,
        id: &str,
        model: Option<&str>,
        reason: &str,
    ) -> Result<SelectedModel, SelectionError> {
        let settings = match (self.providers.get(id), known_provider(id)) {
            (Some(settings), _) => settings.clone(),
            (None, Some(_)) => ProviderSettings::default(),
            (None, None) => return Err(self.unknown_provider(id)),
        };
        let kind = settings
            .r#type
            .or_else(|| known_provider(id).map(|known| known.kind));
        let kind = kind.ok_or_else(|| SelectionError::UnknownKind(id.to_owned()))?;
        check_settings(id, &settings)?;
        let default_model = default_provider(kind)
            .and_then(|known| known.default_model)
            .filter(|_| settings.base_url.is_none())
            .map(str::to_owned);
        let ollama = || {
            (kind == ProviderKind::Ollama && settings.base_url.is_none())
                .then(self.ollama)
                .flatten()
        };
        let model = match kind {
            ProviderKind::Offline => Some(offline::MODEL.to_owned()),
            _ => model.map(str::to_owned).or(default_model).or_else(ollama),
        };
        let model = model.ok_or_else(|| SelectionError::MissingModel(id.to_owned()))?;
        let catalog = ModelCatalog::new(self.prices);
        Ok(SelectedModel {
            provider: id.to_owned(),
            kind,
            key: self.api_key(&settings, kind),
            window: match kind {
                ProviderKind::Offline => offline::WINDOW,
                _ => settings.window.unwrap_or_else(|| catalog.window(&model)),
            },
            readable: settings.readable_kinds(kind, catalog.readable_kinds(&model)),
            price: catalog.price(&model),
            model,
            settings,
            reason: reason.to_owned(),
        })
    }

    /// Returns the API key. A key from the environment is sent only to the provider's own address.
    fn api_key(&self, settings: &ProviderSettings, kind: ProviderKind) -> Option<Secret> {
        let from_environment = || {
            default_provider(kind)?
                .variables
                .iter()
                .find_map(|name| (self.env_var)(name))
                .map(Secret::new)
        };
        match &settings.api_key {
            Some(key) => Some(key.clone()),
            None if settings.base_url.is_none() => from_environment(),
            None => None,
        }
    }

    fn unknown_provider(&self, id: &str) -> SelectionError {
        let ids = self
            .providers
            .keys()
            .map(String::as_str)
            .chain(KNOWN_PROVIDERS.iter().map(|known| known.id));
        SelectionError::UnknownProvider {
            id: id.to_owned(),
            hint: suggest::did_you_mean(id, ids),
        }
    }
}

/// Checks the base URL and the headers of a provider.
fn check_settings(id: &str, settings: &ProviderSettings) -> Result<(), SelectionError> {
    let is_valid_url = |url: &String| {
        (url.starts_with("http://") || url.starts_with("https://"))
            && !url.contains(['?', '#', ' '])
    };
    if !settings.base_url.as_ref().is_none_or(is_valid_url) {
        return Err(SelectionError::InvalidBaseUrl(id.to_owned()));
    }
    let is_valid_header = |(name, value): &(&String, &Secret)| {
        HeaderName::try_from(name.as_str()).is_ok() && HeaderValue::from_str(value.expose()).is_ok()
    };
    let mut headers = settings.headers.iter();
    match headers.find(|header| !is_valid_header(header)) {
        Some((name, _)) => Err(SelectionError::InvalidHeader {
            id: id.to_owned(),
            name: name.clone(),
        }),
        None => Ok(()),
    }
}

impl SelectedModel {
    pub fn base_url(&self) -> String {
        let default = default_provider(self.kind).map_or("", |known| known.base_url);
        self.settings
            .base_url
            .clone()
            .unwrap_or_else(|| default.to_owned())
    }

    /// Returns the base URL with credentials redacted.
    pub fn display_url(&self) -> String {
        redact_credentials(&self.base_url())
    }

    /// Creates the model and its retry policy.
    pub fn connect(
        &self,
        jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
    ) -> Result<(Arc<dyn Model>, RetryPolicy), ModelError> {
        let settings = &self.settings;
        let delay = Duration::from_millis(settings.retry_delay_ms);
        let policy = RetryPolicy {
            retries: settings.retries,
            delay,
            jitter,
        };
        let Some(dialect) = self.dialect() else {
            return Ok((Arc::new(OfflineModel), policy));
        };
        let timeouts = Timeouts {
            connect: Duration::from_secs(settings.connect_seconds),
            first_byte: Duration::from_secs(settings.first_byte_seconds),
            idle: Duration::from_secs(settings.idle_seconds),
        };
        let model = HttpModel {
            client: http_client(timeouts.connect)?,
            dialect,
            endpoint: ModelEndpoint {
                provider: self.provider.clone(),
                base_url: self.base_url(),
                key: self.key.clone(),
                model: self.model.clone(),
                headers: settings.headers.clone(),
                max_output_tokens: settings.max_output_tokens,
            },
            timeouts,
            window: self.window,
            readable: self.readable,
            price: self.price,
        };
        Ok((Arc::new(model), policy))
    }

    /// Returns the wire dialect; none for the offline model.
    fn dialect(&self) -> Option<Dialect> {
        match self.kind {
            ProviderKind::Openai | ProviderKind::Ollama => Some(Dialect::OpenAi),
            ProviderKind::Anthropic => Some(Dialect::Anthropic),
            ProviderKind::Gemini => Some(Dialect::Gemini),
            ProviderKind::Offline => None,
        }
    }

    pub fn is_offline(&self) -> bool {
        self.kind == ProviderKind::Offline
    }

    /// Creates the model, with `fallback` as the second choice.
    pub fn connect_with_fallback(
        &self,
        fallback: Option<&Self>,
        jitter: &Arc<dyn Fn() -> f64 + Send + Sync>,
    ) -> Result<Arc<dyn Model>, ModelError> {
        let all = std::iter::once(self).chain(fallback);
        let models = all
            .map(|selected| selected.connect(Arc::clone(jitter)))
            .collect::<Result<_, _>>()?;
        Ok(Arc::new(FallbackModel { models }))
    }
}
