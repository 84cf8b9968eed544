//! From settings to agents in other processes.

use lango_domain::TeamMode;
use lango_remote::{RemoteSettings, RemoteTeam};

use crate::config::{ConfigError, LoadedConfig};
use crate::environment::Environment;
use crate::team::load_registry;

/// The agents in other processes that the settings name. Everyone is looked for once, side by side, which takes a few
/// seconds at most (S91).
pub fn connect_remote_agents(
    loaded: &LoadedConfig,
    environment: &Environment,
) -> Result<RemoteTeam, ConfigError> {
    let settings = &loaded.settings;
    // Whoever works alone delegates to nobody.
    if settings.agent.team.mode() == TeamMode::Single || !settings.a2a.enabled {
        return Ok(no_remote_agents());
    }
    let taken = load_registry(loaded, environment)?
        .specs
        .into_iter()
        .map(|spec| spec.name)
        .collect();
    let team = RemoteTeam::new(&settings.a2a, taken, settings.net.address_policy());
    if !team.is_empty() {
        let looking = team.clone();
        // A thread of its own: callers may or may not be inside a runtime already.
        let looked = std::thread::spawn(move || block_on_new_runtime(looking.load()));
        let _ = looked.join();
    }
    Ok(team)
}

/// Nobody elsewhere, whatever the settings say.
pub fn no_remote_agents() -> RemoteTeam {
    RemoteTeam::new(
        &RemoteSettings::default(),
        Vec::new(),
        lango_net::AddressPolicy::Public,
    )
}

/// Goes on looking for whoever is missing, beside everything else, for as long as the process lives.
pub fn refresh_in_background(colleagues: &RemoteTeam) {
    if !colleagues.is_empty() {
        let colleagues = colleagues.clone();
        std::thread::spawn(move || block_on_new_runtime(colleagues.refresh_forever()));
    }
}

fn block_on_new_runtime(work: impl Future<Output = ()>) {
    match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime.block_on(work),
        Err(error) => eprintln!("remote agents cannot be looked for: {error}"),
    }
}
