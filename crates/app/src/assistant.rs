//! Assembles the assistant from the settings: runner, store and models.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use jiff::Timestamp;
use lango_domain::approval::Approver;
use lango_domain::event::{SessionId, TurnId};
use lango_domain::model::{Model, ModelError};
use lango_domain::{AgentTree, TeamMode, Tool};
use lango_domain::{Generation, StoreError, Stores};
use lango_engine::{ClockAndIds, Models, Runner, RunnerParts, TurnHooks};
use lango_models::offline::{self, OfflineFirst};
use lango_models::{
    ModelSettings, RouterChoice, Secret, SelectedModel, SelectionError, SelectionInput,
    select_model,
};
use lango_remote::RemoteTeam;
use lango_store::{SqliteStore, StoreLocation};
use lango_text::suggest;
use uuid::Uuid;

use crate::config::{ConfigError, LoadedConfig};
use crate::environment::Environment;
use crate::hooks::turn_hooks;
use crate::lazy_stores::LazyStores;
use crate::ollama;
use crate::recording::Recording;
use crate::remote_agents::{connect_remote_agents, no_remote_agents};
use crate::store;
use crate::team::{AssembledTeam, assemble_team_with};

/// The agent whose model looks for inquiries.
const LIBRARIAN: &str = "librarian";

/// An error while the assistant is assembled.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Selection(#[from] SelectionError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The assembled assistant: a runner, its models and its stores.
pub struct Assistant {
    pub runner: Runner,
    pub stores: Stores,
    /// The display name of the model.
    pub model_name: String,
    /// Warnings about the configuration and the files of the team.
    pub warnings: Vec<String>,
    /// The names of all agents in the team.
    pub agents: Vec<String>,
    pub remote_agents: RemoteTeam,
}

/// The parts from which [`Assistant::open`] assembles an assistant.
pub struct AssistantOptions<'a> {
    pub stores: &'a LazyStores,
    pub tools: Vec<Tool>,
    pub approver: Option<Arc<dyn Approver>>,
    pub recording: &'a Recording,
    /// The remote agents. If none are given, they are connected first, except in a replay, which
    /// has none.
    pub remote_agents: Option<RemoteTeam>,
}

impl Assistant {
    pub fn open(
        loaded: &LoadedConfig,
        environment: &Environment,
        options: AssistantOptions<'_>,
    ) -> Result<Self, StartError> {
        let AssistantOptions {
            stores,
            tools,
            approver,
            recording,
            remote_agents: given_team,
        } = options;
        let remote_agents = match (given_team, recording) {
            (Some(given_team), _) => given_team,
            (None, Recording::Replay(_)) => no_remote_agents(),
            (None, Recording::Off | Recording::Record(_)) => {
                connect_remote_agents(loaded, environment, &Generation::default())?
            }
        };
        let tools = tools
            .into_iter()
            .map(|tool| recording.wrap_tool(tool))
            .collect();
        let team = assemble_team_with(loaded, environment, tools, &remote_agents)?;
        let connected = connect_or_replay_models(loaded, environment, &team, recording)?;
        // A replayed turn was saved when it was recorded.
        let stores = match recording {
            Recording::Replay(_) => SqliteStore::open(StoreLocation::Memory)?.stores(),
            Recording::Off | Recording::Record(_) => stores.open()?,
        };
        let hooks = turn_hooks(loaded, environment, &stores, recording, &connected)?;
        let unsaved_warning = store::unsaved_warning(loaded, environment);
        let warnings = loaded
            .warnings
            .iter()
            .cloned()
            .chain(team.warnings())
            .chain(unsaved_warning)
            .collect();
        let model_name = connected.display_name();
        let names = team.tree.agents().map(|agent| agent.name.to_string());
        let agents = names.collect();
        let runner = Runner::new(RunnerParts {
            approver: recording.wrap_approver(approver),
            remotes: remote_agents
                .agents()
                .into_iter()
                .map(|member| (member.name, member.agent))
                .collect(),
            clock_and_ids: recording.wrap_clock_and_ids(clock_and_ids()),
            ..runner_parts(loaded, team.tree, connected.models, hooks, &stores)
        });
        Ok(Self {
            runner,
            stores,
            model_name,
            warnings,
            agents,
            remote_agents,
        })
    }
}

/// Connects the models, and records their exchanges if asked to. A replay uses the recorded ones.
fn connect_or_replay_models(
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

/// Returns the parts of a runner for this team, without an approver.
pub(crate) fn runner_parts(
    loaded: &LoadedConfig,
    tree: AgentTree,
    models: Models,
    hooks: TurnHooks,
    stores: &Stores,
) -> RunnerParts {
    RunnerParts {
        tree,
        models,
        store: Arc::clone(&stores.sessions),
        approver: None,
        approval_policy: loaded.settings.security.approval.clone(),
        hooks,
        remotes: BTreeMap::new(),
        limits: loaded.settings.limits(),
        clock_and_ids: clock_and_ids(),
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

/// Returns every secret in the settings and the environment, so that none is stored.
pub fn known_secrets(loaded: &LoadedConfig, environment: &Environment) -> Vec<Secret> {
    let providers = || loaded.settings.providers.values();
    let keys = providers().filter_map(|provider| provider.api_key.clone());
    let headers = providers().flat_map(|provider| provider.headers.values().cloned());
    let passwords = providers().filter_map(|provider| {
        let (_, rest) = provider.base_url.as_deref()?.split_once("://")?;
        Some(Secret::new(rest.split_once('@')?.0.rsplit(':').next()?))
    });
    let env_keys = environment
        .variables
        .iter()
        .filter(|(name, _)| name.ends_with("_API_KEY"));
    let remote_agents = loaded
        .settings
        .a2a
        .remote_agents
        .iter()
        .flat_map(|remote| remote.secrets().cloned());
    keys.chain(headers)
        .chain(remote_agents)
        .chain(passwords)
        .chain(env_keys.map(|(_, value)| Secret::new(value.as_str())))
        .collect()
}

/// Returns a new session id.
pub fn new_session() -> SessionId {
    SessionId::new(Uuid::now_v7().to_string())
}

/// Returns a random number from 0 to 1.
pub fn jitter() -> f64 {
    let number = RandomState::new().build_hasher().finish();
    (number >> 11) as f64 / (1_u64 << 53) as f64
}

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

fn clock_and_ids() -> ClockAndIds {
    ClockAndIds {
        now: Arc::new(Timestamp::now),
        new_turn_id: Arc::new(|| TurnId::new(Uuid::now_v7().to_string())),
    }
}
