//! From settings to a team that can be talked with.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use jiff::Timestamp;
use lango_domain::approval::Approver;
use lango_domain::event::{SessionId, TurnId};
use lango_domain::model::{Model, ModelError};
use lango_domain::session::SessionStore;
use lango_domain::{AgentTree, TeamMode, Tool, suggest};
use lango_engine::{ClockAndIds, Models, Runner, RunnerParts, TurnHooks};
use lango_models::offline::{self, OfflineFirst};
use lango_models::{
    ModelSettings, RouterChoice, Secret, SelectedModel, SelectionError, SelectionInput,
    select_model,
};
use lango_remote::RemoteTeam;
use lango_store::{SqliteStore, SqliteStoreError, StoreLocation};
use uuid::Uuid;

use crate::config::{ConfigError, LoadedConfig};
use crate::environment::Environment;
use crate::hooks::turn_hooks;
use crate::lazy_store::LazyStore;
use crate::ollama;
use crate::recording::Recording;
use crate::remote_agents::{connect_remote_agents, no_remote_agents};
use crate::store;
use crate::team::{AssembledTeam, assemble_team_with};

/// Whose model looks for what is worth asking.
const LIBRARIAN: &str = "librarian";

/// Why a conversation cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Selection(#[from] SelectionError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Store(#[from] SqliteStoreError),
}

/// A team, its models, and a place for its sessions.
pub struct Assistant {
    pub runner: Runner,
    pub store: SqliteStore,
    /// Who is asked, for people.
    pub model_name: String,
    /// What the user should know about the files that the team was read from.
    pub warnings: Vec<String>,
    /// The names of everyone in the team.
    pub agents: Vec<String>,
    /// Agents in other processes.
    pub remote_agents: RemoteTeam,
}

/// What a conversation is held with.
pub struct AssistantOptions<'a> {
    pub store: &'a LazyStore,
    pub tools: Vec<Tool>,
    pub approver: Option<Arc<dyn Approver>>,
    pub recording: &'a Recording,
    /// Agents elsewhere. They are looked for first where none are given; nobody is where a recording is played.
    pub remote_agents: Option<RemoteTeam>,
}

impl Assistant {
    pub fn open(
        loaded: &LoadedConfig,
        environment: &Environment,
        means: AssistantOptions<'_>,
    ) -> Result<Self, StartError> {
        let AssistantOptions {
            store: stores,
            tools,
            approver,
            recording: tape,
            remote_agents: given,
        } = means;
        let colleagues = match (given, tape) {
            (Some(given), _) => given,
            (None, Recording::Replay(_)) => no_remote_agents(),
            (None, Recording::Off | Recording::Record(_)) => {
                connect_remote_agents(loaded, environment)?
            }
        };
        let tools = tools.into_iter().map(|tool| tape.wrap_tool(tool)).collect();
        let team = assemble_team_with(loaded, environment, tools, &colleagues)?;
        let connected = match tape {
            Recording::Replay(player) => ConnectedModels {
                selected: None,
                models: player.models(),
                librarian: None,
            },
            Recording::Off => connect_models(loaded, environment, &team)?,
            Recording::Record(recorder) => {
                let connected = connect_models(loaded, environment, &team)?;
                ConnectedModels {
                    models: recorder.wrap_models(connected.models),
                    ..connected
                }
            }
        };
        // What is played again has been kept before.
        let store = match tape {
            Recording::Replay(_) => SqliteStore::open(StoreLocation::Memory)?,
            Recording::Off | Recording::Record(_) => stores.open()?,
        };
        let beside = turn_hooks(loaded, environment, &store, tape, &connected)?;
        let unkept = store::unsaved_warning(loaded, environment);
        let warnings = loaded
            .warnings
            .iter()
            .cloned()
            .chain(team.warnings())
            .chain(unkept)
            .collect();
        let model_name = connected.display_name();
        let agents = team
            .tree
            .agents()
            .map(|agent| agent.name.to_string())
            .collect();
        let runner = Runner::new(RunnerParts {
            approver: tape.wrap_approver(approver),
            remotes: colleagues
                .agents()
                .into_iter()
                .map(|member| (member.name, member.agent))
                .collect(),
            clock_and_ids: tape.wrap_clock_and_ids(clock_and_ids()),
            ..runner_parts(loaded, team.tree, connected.models, beside, &store)
        });
        Ok(Self {
            runner,
            store,
            model_name,
            warnings,
            agents,
            remote_agents: colleagues,
        })
    }
}

/// What a runner of this team is put together from; nobody is asked about calls unless somebody is put there.
pub(crate) fn runner_parts(
    loaded: &LoadedConfig,
    tree: AgentTree,
    models: Models,
    beside: TurnHooks,
    store: &SqliteStore,
) -> RunnerParts {
    RunnerParts {
        tree,
        models,
        store: Arc::new(store.clone()) as Arc<dyn SessionStore>,
        approver: None,
        approval_policy: loaded.settings.security.approval.clone(),
        hooks: beside,
        remotes: BTreeMap::new(),
        limits: loaded.settings.limits(),
        clock_and_ids: clock_and_ids(),
    }
}

/// Every model that may be asked, and who asks it: first the one in force, then those of single agents, then the
/// fallback.
pub fn selected_models(
    loaded: &LoadedConfig,
    environment: &Environment,
) -> Result<Vec<(String, SelectedModel)>, SelectionError> {
    with_selection_input(loaded, environment, |plan| {
        let default = select_model(plan)?;
        let mut chosen = Vec::new();
        for agent in plan.agent.models.keys() {
            if let Some(own) = plan.for_agent(agent, &default).transpose()? {
                chosen.push((agent.clone(), own));
            }
        }
        if let Some(fallback) = plan.fallback(&default).transpose()? {
            chosen.push(("fallback".to_owned(), fallback));
        }
        chosen.insert(0, ("default".to_owned(), default));
        Ok(chosen)
    })
}

/// The model that observes conversations: the one in force, unless the settings name another. Whoever asks for the
/// offline model wants nobody contacted.
pub(crate) fn observer_model(
    loaded: &LoadedConfig,
    environment: &Environment,
    in_force: Option<&SelectedModel>,
) -> Result<SelectedModel, SelectionError> {
    let wish = &loaded.settings.observational_memory;
    with_selection_input(loaded, environment, |plan| {
        let in_force = in_force.map_or_else(|| select_model(plan), |chosen| Ok(chosen.clone()))?;
        let stays_offline = plan.agent.provider.as_deref() == Some(offline::PROVIDER);
        if stays_offline || (wish.provider.is_none() && wish.model.is_none()) {
            return Ok(in_force);
        }
        let agent = ModelSettings {
            provider: wish.provider.clone().or(Some(in_force.provider)),
            model: wish.model.clone(),
            ..ModelSettings::default()
        };
        select_model(&SelectionInput {
            agent: &agent,
            ..*plan
        })
    })
}

/// What can be said about the configured models without asking anyone.
pub fn check_models(
    loaded: &LoadedConfig,
    environment: &Environment,
    team: &AssembledTeam,
) -> Result<(), StartError> {
    let settings = &loaded.settings;
    let wishes = &settings.agent.models;
    for agent in wishes.models.keys() {
        team.find_agent(agent)
            .ok_or_else(|| unknown_agent_error(team, agent))?;
    }
    if wishes.provider.is_none() && settings.providers.is_empty() {
        return Ok(());
    }
    match selected_models(loaded, environment) {
        // Keys may come later, and elsewhere.
        Ok(_) | Err(SelectionError::NoProvider(_) | SelectionError::MissingModel(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Every key that the settings or the environment hold, so that none is written down.
pub fn known_secrets(loaded: &LoadedConfig, environment: &Environment) -> Vec<Secret> {
    let providers = || loaded.settings.providers.values();
    let keys = providers().filter_map(|provider| provider.api_key.clone());
    let headers = providers().flat_map(|provider| provider.headers.values().cloned());
    let passwords = providers().filter_map(|provider| {
        let (_, rest) = provider.base_url.as_deref()?.split_once("://")?;
        Some(Secret::new(rest.split_once('@')?.0.rsplit(':').next()?))
    });
    let named = environment
        .variables
        .iter()
        .filter(|(name, _)| name.ends_with("_API_KEY"));
    let colleagues = loaded
        .settings
        .a2a
        .remote_agents
        .iter()
        .flat_map(|remote| remote.secrets().cloned());
    keys.chain(headers)
        .chain(colleagues)
        .chain(passwords)
        .chain(named.map(|(_, value)| Secret::new(value.as_str())))
        .collect()
}

/// A session nobody has used before.
pub fn new_session() -> SessionId {
    SessionId::new(Uuid::now_v7().to_string())
}

/// A number from 0 to 1 that is another one each time.
pub fn jitter() -> f64 {
    let number = RandomState::new().build_hasher().finish();
    (number >> 11) as f64 / (1_u64 << 53) as f64
}

/// Who is asked.
pub(crate) struct ConnectedModels {
    /// The model in force; none where a recording is played.
    pub selected: Option<SelectedModel>,
    pub models: Models,
    /// The language model that looks at turns for the librarian when they have ended; none where there is only the offline one.
    pub librarian: Option<Arc<dyn Model>>,
}

impl ConnectedModels {
    /// For people.
    pub fn display_name(&self) -> String {
        let named = |chosen: &SelectedModel| format!("{}/{}", chosen.provider, chosen.model);
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
    with_selection_input(loaded, environment, |plan| {
        let chosen = select_model(plan)?;
        let fallback = plan.fallback(&chosen).transpose()?;
        let jitter: Arc<dyn Fn() -> f64 + Send + Sync> = Arc::new(jitter);
        let mut per_agent = BTreeMap::new();
        for agent in plan.agent.models.keys() {
            let name = team
                .find_agent(agent)
                .ok_or_else(|| unknown_agent_error(team, agent))?
                .clone();
            if let Some(own) = plan.for_agent(agent, &chosen).transpose()? {
                per_agent.insert(name, own.connect_with_fallback(fallback.as_ref(), &jitter)?);
            }
        }
        let default = chosen.connect_with_fallback(fallback.as_ref(), &jitter)?;
        let own = plan.for_agent(LIBRARIAN, &chosen).transpose()?;
        let librarian = per_agent.get(LIBRARIAN).unwrap_or(&default);
        let librarian =
            (!own.as_ref().unwrap_or(&chosen).is_offline()).then(|| Arc::clone(librarian));
        if plan.agent.router == RouterChoice::OfflineFirst && team.tree.mode == TeamMode::Multi {
            let root = &team.tree.root.name;
            let model = Arc::clone(per_agent.get(root).unwrap_or(&default));
            let confidence = plan.agent.router_confidence.get();
            per_agent.insert(root.clone(), Arc::new(OfflineFirst { model, confidence }));
        }
        Ok(ConnectedModels {
            selected: Some(chosen),
            models: Models { default, per_agent },
            librarian,
        })
    })
}

fn unknown_agent_error(team: &AssembledTeam, agent: &str) -> ConfigError {
    let error = ConfigError::new(format!("agent.models.{agent}: there is no agent `{agent}`"));
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
