//! Assembles the HTTP server from the settings.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use lango_domain::Clock;
use lango_domain::Stores;
use lango_domain::access_tokens::token_value;
use lango_domain::secret::Secret;
use lango_engine::{Runner, RunnerParts};
use lango_gateway::{
    Gateway, GatewayClockAndIds, ServedTeam, SkippedItem, TaskBackend, UnreachableAgents,
};
use lango_remote::{RemoteAvailability, RemoteTeam};
use lango_runtime::{ClientBridge, Runtime, RuntimeParts};
use uuid::Uuid;

use crate::assistant::{StartError, runner_parts};
use crate::automation::{RunningScheduler, SchedulerOptions, build_scheduler, team_catalog};
use crate::capabilities::{CapabilityContext, capability_tools};
use crate::config::{ConfigError, LoadedConfig};
use crate::connected_models::connect_models;
use crate::environment::Environment;
use crate::hooks::turn_hooks;
use crate::lazy_stores::LazyStores;
use crate::recording::Recording;
use crate::remote_agents::{connect_remote_agents, reachable_agents, refresh_in_background};
use crate::secrets::secret_source;
use crate::store::delete_session_files;
use crate::team::assemble_team_with;
use crate::toolset::Toolset;

/// The interval at which the skills are checked for changes.
const SKILLS_INTERVAL: Duration = Duration::from_secs(5);

/// A server that is ready to listen.
pub struct GatewayServer {
    pub gateway: Gateway,
    /// Runs every turn of this process: those of clients, and unattended ones.
    pub runtime: Runtime,
    /// The display name of the model.
    pub model_name: String,
    /// Warnings about the configuration and the files of the team.
    pub warnings: Vec<String>,
    team_builder: TeamBuilder,
    /// The generation of the tools from which the team was built.
    team_generation: u64,
}

impl GatewayServer {
    /// Starts the scheduler of the server. It runs turns with the server's team, and clients can answer
    /// the questions of its jobs. Must be called within a tokio runtime.
    pub fn start_scheduler(
        &self,
        loaded: &LoadedConfig,
        environment: &Environment,
    ) -> Result<RunningScheduler, ConfigError> {
        let toolset = self.team_builder.toolset();
        let options = SchedulerOptions {
            stores: &self.team_builder.stores,
            runtime: &self.runtime,
            toolset: &toolset,
            approver: Some(self.team_builder.bridge.approver()),
            owner: "lango serve",
            lazy_stores: &self.team_builder.lazy_stores,
            remote_agents: &self.team_builder.remote_agents,
        };
        Ok(RunningScheduler::start(build_scheduler(
            loaded,
            environment,
            options,
        )?))
    }

    /// Rebuilds the team between turns when skills or reachable remote agents change. Never returns.
    pub async fn watch_changes(&self) {
        refresh_in_background(&self.team_builder.remote_agents);
        let generation = self.team_builder.toolset().generation().clone();
        let mut seen = self.team_generation;
        loop {
            tokio::select! {
                () = generation.wait_for_change(seen) => {}
                () = tokio::time::sleep(SKILLS_INTERVAL) => {
                    if !self.team_builder.toolset().reload_skills() {
                        continue;
                    }
                }
            }
            // Read before the build, so that an agent that joins meanwhile triggers another one.
            seen = generation.current();
            match self.team_builder.build() {
                Ok(built) => {
                    self.runtime.replace_runner(built.runner);
                    self.gateway.replace_team(built.team);
                }
                Err(error) => {
                    tracing::warn!(%error, "the team could not be rebuilt and stays unchanged")
                }
            }
        }
    }
}

/// Builds a server for the team that the settings describe.
pub fn build_server(
    loaded: &LoadedConfig,
    environment: &Environment,
    lazy_stores: &LazyStores,
) -> Result<GatewayServer, StartError> {
    loaded.check_resolved()?;
    let stores = lazy_stores.open()?;
    let now: Clock = Arc::new(Timestamp::now);
    let bridge = ClientBridge::new(stores.clone(), Arc::clone(&now));
    let toolset = Toolset::new(loaded, environment)?;
    let team_builder = TeamBuilder {
        loaded: loaded.clone(),
        environment: environment.clone(),
        remote_agents: connect_remote_agents(loaded, environment, toolset.generation())?,
        toolset: Mutex::new(toolset),
        lazy_stores: lazy_stores.clone(),
        bridge: bridge.clone(),
        stores: stores.clone(),
    };
    let generation = team_builder.toolset().generation().current();
    let built = team_builder.build()?;
    let runtime = Runtime::new(RuntimeParts {
        runner: built.runner,
        approver: Some(bridge.approver()),
        limiter: loaded.settings.server.turn_limiter(),
    });
    let home = environment.clone();
    let parts = lango_gateway::GatewayParts {
        settings: loaded.settings.server.clone(),
        stores,
        runtime: runtime.clone(),
        client_bridge: bridge,
        team: built.team,
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
        runtime,
        model_name: built.model_name,
        warnings: built.warnings,
        team_builder,
        team_generation: generation,
    })
}

/// Builds the team, at startup and when remote agents change.
struct TeamBuilder {
    loaded: LoadedConfig,
    environment: Environment,
    /// All teams share it, so that commands keep running when the team is rebuilt.
    toolset: Mutex<Toolset>,
    lazy_stores: LazyStores,
    remote_agents: RemoteTeam,
    bridge: ClientBridge,
    stores: Stores,
}

struct BuiltTeam {
    runner: Runner,
    team: ServedTeam,
    model_name: String,
    warnings: Vec<String>,
}

impl TeamBuilder {
    fn toolset(&self) -> MutexGuard<'_, Toolset> {
        self.toolset.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn build(&self) -> Result<BuiltTeam, StartError> {
        let (loaded, environment) = (&self.loaded, &self.environment);
        let tools = capability_tools(&CapabilityContext::new(
            loaded,
            environment,
            &self.toolset(),
            &self.lazy_stores,
        ))?;
        let team = assemble_team_with(loaded, environment, tools, &self.remote_agents)?;
        self.toolset().catalog().set(team_catalog(&team.tree));
        let connected = connect_models(loaded, environment, &team)?;
        let warnings = loaded
            .warnings
            .iter()
            .cloned()
            .chain(team.warnings())
            .collect();
        let served_team = ServedTeam::from_tree(&team.tree)
            .with_unreachable(unreachable_agents(&self.remote_agents));
        let model_name = connected.display_name();
        let mut hooks = turn_hooks(
            loaded,
            environment,
            &self.stores,
            &Recording::Off,
            &connected,
        )?;
        hooks.context_sources.push(self.bridge.context_source());
        let parts = runner_parts(loaded, team.tree, connected.models, hooks, &self.stores);
        let runner = Runner::new(RunnerParts {
            secrets: secret_source(loaded, environment, &self.lazy_stores),
            remotes: reachable_agents(&self.remote_agents),
            ..parts
        });
        Ok(BuiltTeam {
            runner,
            team: served_team,
            model_name,
            warnings,
        })
    }
}

/// Returns a function that lists the remote agents that are currently unreachable.
fn unreachable_agents(remote_agents: &RemoteTeam) -> UnreachableAgents {
    let remote_agents = remote_agents.clone();
    Arc::new(move || {
        let absent =
            remote_agents
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

/// Returns a random value for a new access token.
pub fn new_token_value() -> Result<Secret, ConfigError> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| {
        ConfigError::new(format!(
            "cannot read random numbers from the system: {error}"
        ))
    })?;
    Ok(token_value(&random))
}
