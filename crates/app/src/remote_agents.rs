//! Connects the remote agents of the settings.

use std::collections::BTreeMap;
use std::sync::Arc;

use lango_domain::remote_agent::RemoteAgent;
use lango_domain::{AgentName, Generation, TeamMode};
use lango_remote::{RemoteSettings, RemoteTeam};

use crate::config::{ConfigError, LoadedConfig};
use crate::environment::Environment;
use crate::mcp::server_specialists;
use crate::team::load_registry;

/// Connects the remote agents of the settings. Tries each agent once, concurrently, within a few
/// seconds (S91).
pub fn connect_remote_agents(
    loaded: &LoadedConfig,
    environment: &Environment,
    generation: &Generation,
) -> Result<RemoteTeam, ConfigError> {
    let settings = &loaded.settings;
    // A single agent does not delegate.
    if settings.agent.team.mode() == TeamMode::Single || !settings.a2a.enabled {
        return Ok(no_remote_agents());
    }
    let mut specs = load_registry(loaded, environment)?.specs;
    specs.extend(server_specialists(loaded, environment, &specs));
    let taken = specs.into_iter().map(|spec| spec.name).collect();
    let policy = settings.net.address_policy();
    let team = RemoteTeam::new(&settings.a2a, taken, policy, generation.clone());
    if !team.is_empty() {
        let loading = team.clone();
        // Use a separate thread, since the caller may already be inside a runtime.
        let thread = std::thread::spawn(move || block_on_new_runtime(loading.load()));
        let _ = thread.join();
    }
    Ok(team)
}

/// Returns a team without remote agents.
pub fn no_remote_agents() -> RemoteTeam {
    RemoteTeam::new(
        &RemoteSettings::default(),
        Vec::new(),
        lango_net::AddressPolicy::Public,
        Generation::default(),
    )
}

/// Returns the remote agents that are reachable now, for a runner.
pub(crate) fn reachable_agents(
    remote_agents: &RemoteTeam,
) -> BTreeMap<AgentName, Arc<dyn RemoteAgent>> {
    let members = remote_agents.agents().into_iter();
    members.map(|member| (member.name, member.agent)).collect()
}

/// Refreshes the remote agents in a background thread until the process exits.
pub fn refresh_in_background(remote_agents: &RemoteTeam) {
    if !remote_agents.is_empty() {
        let remote_agents = remote_agents.clone();
        std::thread::spawn(move || block_on_new_runtime(remote_agents.refresh_forever()));
    }
}

fn block_on_new_runtime(future: impl Future<Output = ()>) {
    match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime.block_on(future),
        Err(error) => eprintln!("cannot start a runtime for remote agents: {error}"),
    }
}
