//! Assembles the assistant from the settings: team, stores and runtime.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use lango_automation::planning::{AutomationCatalog, SharedCatalog};
use lango_domain::approval::Approver;
use lango_domain::event::{Principal, SessionId, TurnId};
use lango_domain::model::ModelError;
use lango_domain::{
    AgentTree, Generation, ReadableKinds, SecretError, SecretSource, StoreError, Stores, Tool,
};
use lango_engine::{ClockAndIds, Models, Runner, RunnerParts, TurnHooks};
use lango_models::{Secret, SelectionError};
use lango_remote::RemoteTeam;
use lango_runtime::{Runtime, RuntimeParts, TurnLimiter};
use lango_store::{SqliteStore, StoreLocation};
use uuid::Uuid;

use crate::automation::team_catalog;
use crate::config::{ConfigError, LoadedConfig};
use crate::connected_models::connect_or_replay_models;
use crate::environment::Environment;
use crate::hooks::turn_hooks;
use crate::lazy_stores::LazyStores;
use crate::recording::{Recorder, Recording};
use crate::remote_agents::{connect_remote_agents, no_remote_agents, reachable_agents};
use crate::secrets::secret_source;
use crate::store;
use crate::team::assemble_team_with;

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

/// The assembled assistant: the runtime of its team, and its stores.
pub struct Assistant {
    /// Runs the turns.
    pub runtime: Runtime,
    pub stores: Stores,
    /// The display name of the model.
    pub model_name: String,
    /// Warnings about the configuration and the files of the team.
    pub warnings: Vec<String>,
    /// The attachments that the default model reads.
    pub readable: ReadableKinds,
    /// The names of all agents in the team.
    pub agents: Vec<String>,
    pub remote_agents: RemoteTeam,
    catalog: SharedCatalog,
    secrets: Option<Arc<dyn SecretSource>>,
}

/// The parts from which [`Assistant::open`] assembles an assistant.
pub struct AssistantOptions<'a> {
    pub stores: &'a LazyStores,
    pub tools: Vec<Tool>,
    /// Gets the names of the team; see [`crate::Toolset::catalog`].
    pub catalog: SharedCatalog,
    pub approver: Option<Arc<dyn Approver>>,
    pub recording: &'a Recording,
    /// Resolves references to secrets; the vault if not given.
    pub secrets: Option<Arc<dyn SecretSource>>,
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
            catalog,
            approver,
            recording,
            secrets,
            remote_agents: given_team,
        } = options;
        loaded.check_resolved()?;
        let secrets = secrets.or_else(|| secret_source(loaded, environment, stores));
        let remote_agents = match (given_team, recording) {
            (Some(given_team), _) => given_team,
            (None, Recording::Replay(_)) => no_remote_agents(),
            (None, Recording::Off | Recording::Record(_)) => {
                connect_remote_agents(loaded, environment, &Generation::default())?
            }
        };
        let parts = TeamParts {
            stores,
            tools,
            recording,
            secrets: recording.wrap_secrets(secrets.clone()),
            remote_agents: &remote_agents,
        };
        let team = RunnableTeam::build(loaded, environment, parts)?;
        catalog.set(team.catalog);
        // The terminal has one user, whose turns no limit rejects.
        let runtime = Runtime::new(RuntimeParts {
            runner: team.runner,
            approver: recording.wrap_approver(approver),
            limiter: TurnLimiter::unlimited(),
        });
        Ok(Self {
            runtime,
            stores: team.stores,
            model_name: team.model_name,
            readable: team.readable,
            warnings: team.warnings,
            agents: team.agents,
            secrets,
            remote_agents,
            catalog,
        })
    }

    /// Tells a recorder the values of secrets, before it writes anything.
    pub async fn prepare_recorder(
        &self,
        recorder: &Recorder,
        principal: &Principal,
    ) -> Result<(), SecretError> {
        recorder
            .learn_secrets(self.secrets.as_deref(), principal)
            .await
    }

    /// Builds the team again with these tools and the remote agents that are reachable now, for
    /// future turns. After an error the team stays as it is. Not for recordings.
    pub fn rebuild_team(
        &mut self,
        loaded: &LoadedConfig,
        environment: &Environment,
        stores: &LazyStores,
        tools: Vec<Tool>,
    ) -> Result<(), StartError> {
        let parts = TeamParts {
            stores,
            tools,
            recording: &Recording::Off,
            secrets: self.secrets.clone(),
            remote_agents: &self.remote_agents,
        };
        let team = RunnableTeam::build(loaded, environment, parts)?;
        self.catalog.set(team.catalog);
        self.runtime.replace_runner(team.runner);
        self.model_name = team.model_name;
        self.readable = team.readable;
        self.warnings = team.warnings;
        self.agents = team.agents;
        Ok(())
    }
}

/// Builds a team, and returns what runs its turns, with the names of the team.
pub(crate) fn build_runner(
    loaded: &LoadedConfig,
    environment: &Environment,
    tools: Vec<Tool>,
    (stores, remote_agents): (&LazyStores, &RemoteTeam),
) -> Result<(Runner, AutomationCatalog), StartError> {
    loaded.check_resolved()?;
    let parts = TeamParts {
        stores,
        tools,
        recording: &Recording::Off,
        secrets: secret_source(loaded, environment, stores),
        remote_agents,
    };
    let team = RunnableTeam::build(loaded, environment, parts)?;
    Ok((team.runner, team.catalog))
}

/// The parts of a team, in addition to the settings.
struct TeamParts<'a> {
    stores: &'a LazyStores,
    tools: Vec<Tool>,
    recording: &'a Recording,
    secrets: Option<Arc<dyn SecretSource>>,
    remote_agents: &'a RemoteTeam,
}

/// A team that is ready to run, without an approver.
struct RunnableTeam {
    runner: Runner,
    stores: Stores,
    model_name: String,
    readable: ReadableKinds,
    warnings: Vec<String>,
    agents: Vec<String>,
    catalog: AutomationCatalog,
}

impl RunnableTeam {
    fn build(
        loaded: &LoadedConfig,
        environment: &Environment,
        parts: TeamParts<'_>,
    ) -> Result<Self, StartError> {
        let TeamParts {
            stores,
            tools,
            recording,
            secrets,
            remote_agents,
        } = parts;
        let tools = tools
            .into_iter()
            .map(|tool| recording.wrap_tool(tool))
            .collect();
        let team = assemble_team_with(loaded, environment, tools, remote_agents)?;
        let catalog = team_catalog(&team.tree);
        let connected = connect_or_replay_models(loaded, environment, &team, recording)?;
        // A replayed turn was saved when it was recorded.
        let stores = match recording {
            Recording::Replay(_) => SqliteStore::open(StoreLocation::Memory)?.stores(),
            Recording::Off | Recording::Record(_) => stores.open()?,
        };
        let hooks = turn_hooks(loaded, environment, &stores, recording, &connected)?;
        let unsaved_warning = store::unsaved_warning(loaded, environment);
        let warnings = loaded.warnings.iter().cloned();
        let warnings = warnings.chain(team.warnings()).chain(unsaved_warning);
        let warnings = warnings.collect();
        let model_name = connected.display_name();
        let readable = connected.models.default.readable_kinds();
        let names = team.tree.agents().map(|agent| agent.name.to_string());
        let agents = names.collect();
        let runner = Runner::new(RunnerParts {
            secrets,
            remotes: reachable_agents(remote_agents),
            clock_and_ids: recording.wrap_clock_and_ids(clock_and_ids()),
            ..runner_parts(loaded, team.tree, connected.models, hooks, &stores)
        });
        Ok(Self {
            runner,
            stores,
            model_name,
            readable,
            warnings,
            agents,
            catalog,
        })
    }
}

/// Returns the parts of a runner for this team, without secrets and remote agents. The runtime has
/// the approver.
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
        blobs: Arc::clone(&stores.blobs),
        approver: None,
        approval_policy: loaded.settings.security.approval.clone(),
        hooks,
        secrets: None,
        remotes: BTreeMap::new(),
        limits: loaded.settings.limits(),
        clock_and_ids: clock_and_ids(),
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
    let delivery = &loaded.settings.automation;
    let delivery = [&delivery.smtp.password, &delivery.webhook.secret];
    let servers = loaded.settings.mcp.servers.values();
    let servers = servers.flat_map(|server| server.secrets().cloned());
    keys.chain(headers)
        .chain(servers)
        .chain(delivery.into_iter().flatten().cloned())
        .chain(remote_agents)
        .chain(passwords)
        .chain(env_keys.map(|(_, value)| Secret::new(value.as_str())))
        .collect()
}

/// Returns a new session id.
pub fn new_session() -> SessionId {
    SessionId::new(Uuid::now_v7().to_string())
}

fn clock_and_ids() -> ClockAndIds {
    ClockAndIds {
        now: Arc::new(Timestamp::now),
        new_turn_id: Arc::new(|| TurnId::new(Uuid::now_v7().to_string())),
    }
}
