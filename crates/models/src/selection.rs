//! From settings and environment to the models that will be asked. Pure: what has to be looked for is handed in.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lango_domain::model::{Model, ModelError};
use lango_domain::suggest;
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

/// What a choice is made from.
pub struct SelectionInput<'a> {
    pub agent: &'a ModelSettings,
    pub providers: &'a Providers,
    pub prices: &'a BTreeMap<String, Price>,
    pub env_var: &'a dyn Fn(&str) -> Option<String>,
    /// The name of a model that an Ollama on this machine has; asked only when nothing else is found.
    pub ollama: &'a dyn Fn() -> Option<String>,
}

/// A provider and a model, and why they were chosen.
#[derive(Clone, Debug)]
pub struct SelectedModel {
    pub provider: String,
    pub kind: ProviderKind,
    pub model: String,
    pub settings: ProviderSettings,
    pub key: Option<Secret>,
    pub window: usize,
    pub price: Option<Price>,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    #[error(
        "nobody was found to ask for the model `{0}`: no key is set, and no Ollama answers on this machine"
    )]
    NoProvider(String),
    #[error("there is no provider `{id}`{}", hint.as_ref().map_or(String::new(), |hint| format!("; {hint}")))]
    UnknownProvider { id: String, hint: Option<String> },
    #[error("providers.{0}.type is not set, and the id does not say it")]
    UnknownKind(String),
    #[error("providers.{id}.headers.{name} cannot be sent as a header")]
    InvalidHeader { id: String, name: String },
    #[error("providers.{0}.baseUrl is not an http or https address, or has a query")]
    InvalidBaseUrl(String),
    #[error("agent.model is not set, and there is no usual model for the provider `{0}`")]
    MissingModel(String),
}

/// A provider that everybody knows.
struct KnownProvider {
    id: &'static str,
    kind: ProviderKind,
    /// The variables that may hold its key.
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

/// What is usual for a kind of provider.
fn default_provider(kind: ProviderKind) -> Option<&'static KnownProvider> {
    KNOWN_PROVIDERS.iter().find(|known| known.kind == kind)
}

/// The provider and model to ask.
pub fn select_model(plan: &SelectionInput<'_>) -> Result<SelectedModel, SelectionError> {
    match &plan.agent.provider {
        Some(id) => plan.select_provider(id, plan.agent.model.as_deref(), "agent.provider says so"),
        None => plan.detect_provider(),
    }
}

impl SelectionInput<'_> {
    /// The model of one agent, where it has its own.
    pub fn for_agent(
        &self,
        agent: &str,
        default: &SelectedModel,
    ) -> Option<Result<SelectedModel, SelectionError>> {
        if self.is_offline_only() {
            return None;
        }
        let wish = self.agent.models.get(agent)?;
        Some(self.resolve_override(wish, default, &format!("agent.models.{agent} says so")))
    }

    /// What to ask when the model cannot be reached.
    pub fn fallback(
        &self,
        default: &SelectedModel,
    ) -> Option<Result<SelectedModel, SelectionError>> {
        if self.is_offline_only() {
            return None;
        }
        let wish = self.agent.fallback.as_ref()?;
        Some(self.resolve_override(wish, default, "agent.fallback says so"))
    }

    /// Whoever asks for the offline model wants nobody contacted, whatever else is configured.
    fn is_offline_only(&self) -> bool {
        self.agent.provider.as_deref() == Some(offline::PROVIDER)
    }

    fn resolve_override(
        &self,
        wish: &str,
        default: &SelectedModel,
        why: &str,
    ) -> Result<SelectedModel, SelectionError> {
        let wish = ModelOverride::parse(wish, |id| {
            self.providers.contains_key(id) || known_provider(id).is_some()
        });
        self.select_provider(
            wish.provider.as_deref().unwrap_or(&default.provider),
            Some(&wish.model),
            why,
        )
    }

    /// With nothing said: one configured provider, then keys in the environment, then an Ollama.
    fn detect_provider(&self) -> Result<SelectedModel, SelectionError> {
        let model = self.agent.model.as_deref();
        if self.providers.len() == 1
            && let Some(id) = self.providers.keys().next()
        {
            return self.select_provider(id, model, "it is the one that is configured");
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
                "it answers on this machine",
            ),
            None if model.is_some() => Err(SelectionError::NoProvider(
                model.unwrap_or_default().to_owned(),
            )),
            None => self.select_provider(
                offline::PROVIDER,
                None,
                "no key was found, and no Ollama answers on this machine",
            ),
        }
    }

    fn select_provider(
        &self,
        id: &str,
        model: Option<&str>,
        why: &str,
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
        let is_address = |url: &String| {
            (url.starts_with("http://") || url.starts_with("https://"))
                && !url.contains(['?', '#', ' '])
        };
        if !settings.base_url.as_ref().is_none_or(is_address) {
            return Err(SelectionError::InvalidBaseUrl(id.to_owned()));
        }
        let is_header = |(name, value): &(&String, &Secret)| {
            HeaderName::try_from(name.as_str()).is_ok()
                && HeaderValue::from_str(value.expose()).is_ok()
        };
        if let Some((name, _)) = settings.headers.iter().find(|header| !is_header(header)) {
            return Err(SelectionError::InvalidHeader {
                id: id.to_owned(),
                name: name.clone(),
            });
        }
        let usual = default_provider(kind)
            .and_then(|known| known.default_model)
            .filter(|_| settings.base_url.is_none());
        let usual = usual.map(str::to_owned);
        let ollama = || {
            (kind == ProviderKind::Ollama && settings.base_url.is_none())
                .then(self.ollama)
                .flatten()
        };
        let model = match kind {
            ProviderKind::Offline => Some(offline::MODEL.to_owned()),
            _ => model.map(str::to_owned).or(usual).or_else(ollama),
        };
        let model = model.ok_or_else(|| SelectionError::MissingModel(id.to_owned()))?;
        let catalogue = ModelCatalog::new(self.prices);
        Ok(SelectedModel {
            provider: id.to_owned(),
            kind,
            key: self.api_key(&settings, kind),
            window: match kind {
                ProviderKind::Offline => offline::WINDOW,
                _ => settings.window.unwrap_or_else(|| catalogue.window(&model)),
            },
            price: catalogue.price(&model),
            model,
            settings,
            reason: why.to_owned(),
        })
    }

    /// A key from the environment goes to its provider's own address only.
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

impl SelectedModel {
    pub fn base_url(&self) -> String {
        let usual = default_provider(self.kind).map_or("", |known| known.base_url);
        self.settings
            .base_url
            .clone()
            .unwrap_or_else(|| usual.to_owned())
    }

    /// The address without a name and password that may stand in it.
    pub fn display_url(&self) -> String {
        redact_credentials(&self.base_url())
    }

    /// The model itself, and how persistently it is asked.
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
        let timing = Timeouts {
            connect: Duration::from_secs(settings.connect_seconds),
            first_byte: Duration::from_secs(settings.first_byte_seconds),
            idle: Duration::from_secs(settings.idle_seconds),
        };
        let model = HttpModel {
            client: http_client(timing.connect)?,
            dialect,
            endpoint: ModelEndpoint {
                provider: self.provider.clone(),
                base_url: self.base_url(),
                key: self.key.clone(),
                model: self.model.clone(),
                headers: settings.headers.clone(),
                max_output_tokens: settings.max_output_tokens,
            },
            timeouts: timing,
            window: self.window,
            price: self.price,
        };
        Ok((Arc::new(model), policy))
    }

    /// None for the model that nobody has to speak with.
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

    /// The same with a second model behind it.
    pub fn connect_with_fallback(
        &self,
        fallback: Option<&Self>,
        jitter: &Arc<dyn Fn() -> f64 + Send + Sync>,
    ) -> Result<Arc<dyn Model>, ModelError> {
        let all = std::iter::once(self).chain(fallback);
        let models = all
            .map(|chosen| chosen.connect(Arc::clone(jitter)))
            .collect::<Result<_, _>>()?;
        Ok(Arc::new(FallbackModel { models }))
    }
}
