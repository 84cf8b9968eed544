//! From settings to a server.

use std::sync::Arc;

use jiff::Timestamp;
use lango_domain::Tool;
use lango_domain::secret::Secret;
use lango_engine::{Parts, Runner};
use lango_gateway::{Gateway, Lobby, Surroundings, Tasks, Team, TeamFacts};
use lango_store::token_value;
use uuid::Uuid;

use crate::beside::beside;
use crate::config::{ConfigError, Loaded};
use crate::conversation::{CannotStart, connect, parts};
use crate::environment::Environment;
use crate::sessions::{forget_files, open_store};
use crate::tape::Tape;
use crate::team::assemble_team;

/// A server that is ready to listen.
pub struct Served {
    pub gateway: Gateway,
    /// Who is asked, for people.
    pub model_name: String,
    /// What the user should know about the files that the team was read from.
    pub warnings: Vec<String>,
}

/// Puts a server around the team that the settings describe.
pub fn serve(loaded: &Loaded, environment: &Environment, tools: Vec<Tool>) -> Result<Served, CannotStart> {
    let team = assemble_team(loaded, environment, tools)?;
    let connected = connect(loaded, environment, &team)?;
    let warnings = loaded.warnings.iter().cloned().chain(team.warnings()).collect();
    let store = open_store(loaded, environment)?;
    let now: Arc<dyn Fn() -> Timestamp + Send + Sync> = Arc::new(Timestamp::now);
    let lobby = Lobby::new(store.clone(), Arc::clone(&now));
    let facts = TeamFacts::of(&team.tree);
    let model_name = connected.name();
    let mut beside = beside(loaded, environment, &store, &Tape::Off, &connected)?;
    beside.sources.push(lobby.source());
    let parts = parts(loaded, team.tree, connected.models, beside, &store);
    let runner = Runner::new(Parts { approver: Some(lobby.approver()), ..parts });
    let home = environment.clone();
    let parts = lango_gateway::Parts {
        settings: loaded.settings.server.clone(),
        store,
        lobby,
        team: Team::new(facts, runner),
        forget: Arc::new(move |principal, session| forget_files(&home, principal, session)),
        surroundings: Surroundings { now, new_id: Arc::new(|| Uuid::now_v7().to_string()) },
    };
    let tasks = Tasks { reach: loaded.settings.net.reach(), ..Tasks::default() };
    let gateway = Gateway::with_tasks(parts, tasks);
    Ok(Served { gateway, model_name, warnings })
}

/// The value of a token that nobody can guess.
pub fn new_token_value() -> Result<Secret, ConfigError> {
    let mut random = [0; 32];
    getrandom::fill(&mut random)
        .map_err(|error| ConfigError::new(format!("this machine gives no random numbers: {error}")))?;
    Ok(token_value(&random))
}
