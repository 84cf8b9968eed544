//! From settings to a server.

use std::sync::Arc;

use jiff::Timestamp;
use lango_domain::Tool;
use lango_domain::secret::Secret;
use lango_engine::{RunnerParts, Runner};
use lango_gateway::{UnreachableAgents, Gateway, ClientBridge, SkippedItem, GatewayClockAndIds, TaskBackend, ServedTeam, TeamInfo};
use lango_remote::{RemoteTeam, RemoteAvailability};
use lango_store::{SqliteStore, token_value};
use uuid::Uuid;

use crate::beside::beside;
use crate::colleagues::{colleagues, keep_looking_for};
use crate::config::{ConfigError, Loaded};
use crate::conversation::{CannotStart, connect, parts};
use crate::environment::Environment;
use crate::sessions::forget_files;
use crate::stores::Stores;
use crate::tape::Tape;
use crate::team::assemble_team_with;

/// A server that is ready to listen.
pub struct Served {
    pub gateway: Gateway,
    /// Who is asked, for people.
    pub model_name: String,
    /// What the user should know about the files that the team was read from.
    pub warnings: Vec<String>,
    workshop: Workshop,
    /// Which state of the colleagues the team was built of.
    built_of: u64,
}

impl Served {
    /// Whoever can be reached only later, or not any more, joins or leaves the team between turns. Never ends.
    pub async fn follow_colleagues(&self) {
        let colleagues = &self.workshop.colleagues;
        keep_looking_for(colleagues);
        let mut built_of = self.built_of;
        loop {
            colleagues.wait_for_change(built_of).await;
            // Before it is built: who joins meanwhile is seen the next time.
            built_of = colleagues.generation();
            match self.workshop.build() {
                Ok(built) => self.gateway.replace_team(built.team),
                Err(error) => tracing::warn!(%error, "the team stays as it is"),
            }
        }
    }
}

/// Makes the tools of a team; a team that is built anew gets its own.
pub type MakeTools = Box<dyn Fn() -> Result<Vec<Tool>, ConfigError> + Send + Sync>;

/// Puts a server around the team that the settings describe.
pub fn serve(
    loaded: &Loaded,
    environment: &Environment,
    stores: &Stores,
    make_tools: MakeTools,
) -> Result<Served, CannotStart> {
    let store = stores.open()?;
    let now: Arc<dyn Fn() -> Timestamp + Send + Sync> = Arc::new(Timestamp::now);
    let lobby = ClientBridge::new(store.clone(), Arc::clone(&now));
    let workshop = Workshop {
        loaded: loaded.clone(),
        environment: environment.clone(),
        make_tools,
        colleagues: colleagues(loaded, environment)?,
        lobby: lobby.clone(),
        store: store.clone(),
    };
    let built_of = workshop.colleagues.generation();
    let Built { team, model_name, warnings } = workshop.build()?;
    let home = environment.clone();
    let parts = lango_gateway::GatewayParts {
        settings: loaded.settings.server.clone(),
        store,
        lobby,
        team,
        forget: Arc::new(move |principal, session| forget_files(&home, principal, session)),
        surroundings: GatewayClockAndIds { now, new_id: Arc::new(|| Uuid::now_v7().to_string()) },
    };
    let tasks = TaskBackend { reach: loaded.settings.net.reach(), ..TaskBackend::default() };
    let gateway = Gateway::with_tasks(parts, tasks);
    Ok(Served { gateway, model_name, warnings, workshop, built_of })
}

/// What a team is built from, whenever that is.
struct Workshop {
    loaded: Loaded,
    environment: Environment,
    make_tools: MakeTools,
    colleagues: RemoteTeam,
    lobby: ClientBridge,
    store: SqliteStore,
}

struct Built {
    team: ServedTeam,
    model_name: String,
    warnings: Vec<String>,
}

impl Workshop {
    fn build(&self) -> Result<Built, CannotStart> {
        let (loaded, environment) = (&self.loaded, &self.environment);
        let team = assemble_team_with(loaded, environment, (self.make_tools)()?, &self.colleagues)?;
        let connected = connect(loaded, environment, &team)?;
        let warnings = loaded.warnings.iter().cloned().chain(team.warnings()).collect();
        let facts = TeamInfo::of(&team.tree).with_absent(out_of_reach(&self.colleagues));
        let model_name = connected.name();
        let mut beside = beside(loaded, environment, &self.store, &Tape::Off, &connected)?;
        beside.sources.push(self.lobby.context_source());
        let parts = parts(loaded, team.tree, connected.models, beside, &self.store);
        let runner = Runner::new(RunnerParts {
            approver: Some(self.lobby.approver()),
            remotes: self.colleagues.agents().into_iter().map(|member| (member.name, member.agent)).collect(),
            ..parts
        });
        Ok(Built { team: ServedTeam::new(facts, runner), model_name, warnings })
    }
}

/// Who of the colleagues is not in the team at the moment that somebody asks.
fn out_of_reach(colleagues: &RemoteTeam) -> UnreachableAgents {
    let colleagues = colleagues.clone();
    Arc::new(move || {
        let absent = colleagues.statuses().into_iter().filter_map(|status| match status.standing {
            RemoteAvailability::Absent { reason } => Some(SkippedItem { name: status.name.to_string(), reason }),
            RemoteAvailability::Joined { .. } => None,
        });
        absent.collect()
    })
}

/// The value of a token that nobody can guess.
pub fn new_token_value() -> Result<Secret, ConfigError> {
    let mut random = [0; 32];
    getrandom::fill(&mut random)
        .map_err(|error| ConfigError::new(format!("this machine gives no random numbers: {error}")))?;
    Ok(token_value(&random))
}
