//! From settings to a server.

use std::sync::Arc;

use jiff::Timestamp;
use lango_domain::Clock;
use lango_domain::Tool;
use lango_domain::secret::Secret;
use lango_engine::{Runner, RunnerParts};
use lango_gateway::{
    ClientBridge, Gateway, GatewayClockAndIds, ServedTeam, SkippedItem, TaskBackend, TeamInfo,
    UnreachableAgents,
};
use lango_remote::{RemoteAvailability, RemoteTeam};
use lango_store::{SqliteStore, token_value};
use uuid::Uuid;

use crate::assistant::{StartError, connect_models, runner_parts};
use crate::config::{ConfigError, LoadedConfig};
use crate::environment::Environment;
use crate::hooks::turn_hooks;
use crate::lazy_store::LazyStore;
use crate::recording::Recording;
use crate::remote_agents::{connect_remote_agents, refresh_in_background};
use crate::store::delete_session_files;
use crate::team::assemble_team_with;

/// A server that is ready to listen.
pub struct GatewayServer {
    pub gateway: Gateway,
    /// Who is asked, for people.
    pub model_name: String,
    /// What the user should know about the files that the team was read from.
    pub warnings: Vec<String>,
    team_builder: TeamBuilder,
    /// Which state of the colleagues the team was built of.
    team_generation: u64,
}

impl GatewayServer {
    /// Whoever can be reached only later, or not any more, joins or leaves the team between turns. Never ends.
    pub async fn watch_remote_agents(&self) {
        let colleagues = &self.team_builder.remote_agents;
        refresh_in_background(colleagues);
        let mut built_of = self.team_generation;
        loop {
            colleagues.wait_for_change(built_of).await;
            // Before it is built: who joins meanwhile is seen the next time.
            built_of = colleagues.generation();
            match self.team_builder.build() {
                Ok(built) => self.gateway.replace_team(built.team),
                Err(error) => tracing::warn!(%error, "the team stays as it is"),
            }
        }
    }
}

/// Makes the tools of a team; a team that is built anew gets its own.
pub type ToolFactory = Box<dyn Fn() -> Result<Vec<Tool>, ConfigError> + Send + Sync>;

/// Puts a server around the team that the settings describe.
pub fn build_server(
    loaded: &LoadedConfig,
    environment: &Environment,
    stores: &LazyStore,
    make_tools: ToolFactory,
) -> Result<GatewayServer, StartError> {
    let store = stores.open()?;
    let now: Clock = Arc::new(Timestamp::now);
    let lobby = ClientBridge::new(store.clone(), Arc::clone(&now));
    let workshop = TeamBuilder {
        loaded: loaded.clone(),
        environment: environment.clone(),
        make_tools,
        remote_agents: connect_remote_agents(loaded, environment)?,
        bridge: lobby.clone(),
        store: store.clone(),
    };
    let built_of = workshop.remote_agents.generation();
    let BuiltTeam {
        team,
        model_name,
        warnings,
    } = workshop.build()?;
    let home = environment.clone();
    let parts = lango_gateway::GatewayParts {
        settings: loaded.settings.server.clone(),
        store,
        client_bridge: lobby,
        team,
        delete_session_hook: Arc::new(move |principal, session| {
            delete_session_files(&home, principal, session)
        }),
        clock_and_ids: GatewayClockAndIds {
            now,
            new_id: Arc::new(|| Uuid::now_v7().to_string()),
        },
    };
    let tasks = TaskBackend {
        reach: loaded.settings.net.address_policy(),
        ..TaskBackend::default()
    };
    let gateway = Gateway::with_task_backend(parts, tasks);
    Ok(GatewayServer {
        gateway,
        model_name,
        warnings,
        team_builder: workshop,
        team_generation: built_of,
    })
}

/// What a team is built from, whenever that is.
struct TeamBuilder {
    loaded: LoadedConfig,
    environment: Environment,
    make_tools: ToolFactory,
    remote_agents: RemoteTeam,
    bridge: ClientBridge,
    store: SqliteStore,
}

struct BuiltTeam {
    team: ServedTeam,
    model_name: String,
    warnings: Vec<String>,
}

impl TeamBuilder {
    fn build(&self) -> Result<BuiltTeam, StartError> {
        let (loaded, environment) = (&self.loaded, &self.environment);
        let team = assemble_team_with(
            loaded,
            environment,
            (self.make_tools)()?,
            &self.remote_agents,
        )?;
        let connected = connect_models(loaded, environment, &team)?;
        let warnings = loaded
            .warnings
            .iter()
            .cloned()
            .chain(team.warnings())
            .collect();
        let facts = TeamInfo::from_tree(&team.tree)
            .with_unreachable(unreachable_agents(&self.remote_agents));
        let model_name = connected.display_name();
        let mut beside = turn_hooks(
            loaded,
            environment,
            &self.store,
            &Recording::Off,
            &connected,
        )?;
        beside.context_sources.push(self.bridge.context_source());
        let parts = runner_parts(loaded, team.tree, connected.models, beside, &self.store);
        let runner = Runner::new(RunnerParts {
            approver: Some(self.bridge.approver()),
            remotes: self
                .remote_agents
                .agents()
                .into_iter()
                .map(|member| (member.name, member.agent))
                .collect(),
            ..parts
        });
        Ok(BuiltTeam {
            team: ServedTeam::new(facts, runner),
            model_name,
            warnings,
        })
    }
}

/// Who of the colleagues is not in the team at the moment that somebody asks.
fn unreachable_agents(colleagues: &RemoteTeam) -> UnreachableAgents {
    let colleagues = colleagues.clone();
    Arc::new(move || {
        let absent =
            colleagues
                .statuses()
                .into_iter()
                .filter_map(|status| match status.availability {
                    RemoteAvailability::Absent { reason } => Some(SkippedItem {
                        name: status.name.to_string(),
                        reason,
                    }),
                    RemoteAvailability::Joined { .. } => None,
                });
        absent.collect()
    })
}

/// The value of a token that nobody can guess.
pub fn new_token_value() -> Result<Secret, ConfigError> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| {
        ConfigError::new(format!("this machine gives no random numbers: {error}"))
    })?;
    Ok(token_value(&random))
}
