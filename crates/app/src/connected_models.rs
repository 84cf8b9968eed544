//! Selects and connects the models of a team.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use lango_domain::TeamMode;
use lango_domain::model::Model;
use lango_engine::Models;
use lango_models::offline::{self, OfflineFirst};
use lango_models::{
    ModelSettings, RouterChoice, SelectedModel, SelectionError, SelectionInput, select_model,
};
use lango_text::suggest;

use crate::assistant::StartError;
use crate::config::{ConfigError, LoadedConfig};
use crate::environment::Environment;
use crate::ollama;
use crate::recording::Recording;
use crate::team::AssembledTeam;

/// The agent whose model looks for inquiries.
const LIBRARIAN: &str = "librarian";

/// The connected models of a team.
pub(crate) struct ConnectedModels {
    /// The default model; none in a replay.
    pub selected: Option<SelectedModel>,
    pub models: Models,
    /// The language model that reviews finished turns for the librarian; none if only the offline
    /// model is available.
    pub librarian: Option<Arc<dyn Model>>,
}

impl ConnectedModels {
    pub fn display_name(&self) -> String {
        let named = |selected: &SelectedModel| format!("{}/{}", selected.provider, selected.model);
        self.selected
            .as_ref()
            .map_or("the recording".to_owned(), named)
    }
}

pub(crate) fn connect_models(
    loaded: &LoadedConfig,
    environment: &Environment,
    team: &AssembledTeam,
) -> Result<ConnectedModels, StartError> {
    with_selection_input(loaded, environment, |input| {
        let selected = select_model(input)?;
        let fallback = input.fallback(&selected).transpose()?;
        let jitter: Arc<dyn Fn() -> f64 + Send + Sync> = Arc::new(jitter);
        let mut per_agent = BTreeMap::new();
        for agent in input.agent.models.keys() {
            let name = team
                .find_agent(agent)
                .ok_or_else(|| unknown_agent_error(team, agent))?
                .clone();
            if let Some(own) = input.for_agent(agent, &selected).transpose()? {
                per_agent.insert(name, own.connect_with_fallback(fallback.as_ref(), &jitter)?);
            }
        }
        let default = selected.connect_with_fallback(fallback.as_ref(), &jitter)?;
        let own = input.for_agent(LIBRARIAN, &selected).transpose()?;
        let librarian = per_agent.get(LIBRARIAN).unwrap_or(&default);
        let librarian =
            (!own.as_ref().unwrap_or(&selected).is_offline()).then(|| Arc::clone(librarian));
        if input.agent.router == RouterChoice::OfflineFirst && team.tree.mode == TeamMode::Multi {
            let root = &team.tree.root.name;
            let model = Arc::clone(per_agent.get(root).unwrap_or(&default));
            let confidence = input.agent.router_confidence.get();
            per_agent.insert(root.clone(), Arc::new(OfflineFirst { model, confidence }));
        }
        Ok(ConnectedModels {
            selected: Some(selected),
            models: Models { default, per_agent },
            librarian,
        })
    })
}

fn unknown_agent_error(team: &AssembledTeam, agent: &str) -> ConfigError {
    let error = ConfigError::new(format!("agent.models.{agent}: unknown agent `{agent}`"));
    let names = team.specs.iter().map(|spec| spec.name.as_str()).chain([team
        .tree
        .root
        .name
        .as_str()]);
    match suggest::did_you_mean(agent, names) {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

fn with_selection_input<T>(
    loaded: &LoadedConfig,
    environment: &Environment,
    decide: impl FnOnce(&SelectionInput<'_>) -> T,
) -> T {
    let settings = &loaded.settings;
    decide(&SelectionInput {
        agent: &settings.agent.models,
        providers: &settings.providers,
        prices: &settings.prices,
        env_var: &|name| environment.get(name).map(str::to_owned),
        ollama: &ollama::first_model,
    })
}

/// Connects the models, and records their exchanges if asked to. A replay uses the recorded ones.
pub(crate) fn connect_or_replay_models(
    loaded: &LoadedConfig,
    environment: &Environment,
    team: &AssembledTeam,
    recording: &Recording,
) -> Result<ConnectedModels, StartError> {
    match recording {
        Recording::Replay(replayer) => Ok(ConnectedModels {
            selected: None,
            models: replayer.models(),
            librarian: None,
        }),
        Recording::Off => connect_models(loaded, environment, team),
        Recording::Record(recorder) => {
            let connected = connect_models(loaded, environment, team)?;
            Ok(ConnectedModels {
                models: recorder.wrap_models(connected.models),
                ..connected
            })
        }
    }
}

/// Returns every selected model with the agent that uses it: first the default, then those of
/// single agents, then the fallback.
pub fn selected_models(
    loaded: &LoadedConfig,
    environment: &Environment,
) -> Result<Vec<(String, SelectedModel)>, SelectionError> {
    with_selection_input(loaded, environment, |input| {
        let default = select_model(input)?;
        let mut models = Vec::new();
        for agent in input.agent.models.keys() {
            if let Some(own) = input.for_agent(agent, &default).transpose()? {
                models.push((agent.clone(), own));
            }
        }
        if let Some(fallback) = input.fallback(&default).transpose()? {
            models.push(("fallback".to_owned(), fallback));
        }
        models.insert(0, ("default".to_owned(), default));
        Ok(models)
    })
}

/// Returns the model that observes conversations: the default model, unless the settings name
/// another.
///
/// With the offline provider, no other model is used, since the user wants no network access.
pub(crate) fn observer_model(
    loaded: &LoadedConfig,
    environment: &Environment,
    default: Option<&SelectedModel>,
) -> Result<SelectedModel, SelectionError> {
    let memory_settings = &loaded.settings.observational_memory;
    with_selection_input(loaded, environment, |input| {
        let default =
            default.map_or_else(|| select_model(input), |selected| Ok(selected.clone()))?;
        let is_offline = input.agent.provider.as_deref() == Some(offline::PROVIDER);
        if is_offline || (memory_settings.provider.is_none() && memory_settings.model.is_none()) {
            return Ok(default);
        }
        let agent = ModelSettings {
            provider: memory_settings.provider.clone().or(Some(default.provider)),
            model: memory_settings.model.clone(),
            ..ModelSettings::default()
        };
        select_model(&SelectionInput {
            agent: &agent,
            ..*input
        })
    })
}

/// Checks the configured models without sending a request.
pub fn check_models(
    loaded: &LoadedConfig,
    environment: &Environment,
    team: &AssembledTeam,
) -> Result<(), StartError> {
    let settings = &loaded.settings;
    let model_settings = &settings.agent.models;
    for agent in model_settings.models.keys() {
        team.find_agent(agent)
            .ok_or_else(|| unknown_agent_error(team, agent))?;
    }
    if model_settings.provider.is_none() && settings.providers.is_empty() {
        return Ok(());
    }
    match selected_models(loaded, environment) {
        // API keys may be set later, or on another machine.
        Ok(_) | Err(SelectionError::NoProvider(_) | SelectionError::MissingModel(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns a random number from 0 to 1.
pub fn jitter() -> f64 {
    let number = RandomState::new().build_hasher().finish();
    (number >> 11) as f64 / (1_u64 << 53) as f64
}
