//! The remote agents of a team: which ones are available, why others are not, and which ones join
//! later (S90, S91).

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use lango_domain::remote_agent::RemoteAgent;
use lango_domain::{AgentName, Generation};
use lango_net::AddressPolicy;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::agent_names;
use crate::remote_agent::{ConfiguredRemoteAgent, RemoteAgentHandle};
use crate::settings::RemoteSettings;

/// Maximum pause between two refresh rounds.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The available remote agents, and warnings for the user.
pub struct LoadedRemoteAgents {
    pub agents: Vec<RemoteMember>,
    pub warnings: Vec<String>,
}

/// An available remote agent.
pub struct RemoteMember {
    pub name: AgentName,
    /// From its card: untrusted data, on one bounded line (B92).
    pub description: String,
    pub agent: Arc<dyn RemoteAgent>,
}

/// The status of one configured remote agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteStatus {
    pub name: AgentName,
    /// The configured card URL.
    pub url: String,
    pub availability: RemoteAvailability,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteAvailability {
    /// In the team. `error` is the last card fetch error, or the last error of its tasks.
    Joined {
        description: String,
        card_age: Duration,
        error: Option<String>,
    },
    /// Not in the team.
    Absent { reason: String },
}

/// Fetches all cards concurrently and in bounded time. Unreachable agents are skipped with a
/// warning (S91).
///
/// `taken` are the names of the local agents.
pub async fn load_remote_agents(
    settings: &RemoteSettings,
    taken: Vec<AgentName>,
    policy: AddressPolicy,
) -> LoadedRemoteAgents {
    let team = RemoteTeam::new(settings, taken, policy, Generation::default());
    team.load().await;
    LoadedRemoteAgents {
        agents: team.agents(),
        warnings: team.warnings(),
    }
}

/// The remote agents of a running assistant. Missing agents are retried in the background and can
/// join between turns.
#[derive(Clone)]
pub struct RemoteTeam {
    inner: Arc<RemoteTeamInner>,
}

struct RemoteTeamInner {
    agents: Vec<Arc<ConfiguredRemoteAgent>>,
    /// Warnings about changed names.
    name_warnings: Vec<String>,
    generation: Generation,
    background_tasks: TaskTracker,
}

impl RemoteTeam {
    /// Creates the team without fetching any card.
    pub fn new(
        settings: &RemoteSettings,
        taken: Vec<AgentName>,
        policy: AddressPolicy,
        generation: Generation,
    ) -> Self {
        let configured = if settings.enabled {
            settings.remote_agents.as_slice()
        } else {
            &[]
        };
        let names = configured.iter().map(|agent| agent.name.as_str());
        let resolved = agent_names::resolve(names, taken);
        let name_warnings = resolved
            .iter()
            .filter_map(|resolved| resolved.warning.clone())
            .collect();
        let background_tasks = TaskTracker::new();
        let agents = configured.iter().zip(resolved).map(|(settings, resolved)| {
            let tasks = background_tasks.clone();
            let agent = ConfiguredRemoteAgent::new(resolved.name, settings, policy, tasks);
            Arc::new(agent)
        });
        Self {
            inner: Arc::new(RemoteTeamInner {
                agents: agents.collect(),
                name_warnings,
                generation,
                background_tasks,
            }),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.inner.agents.is_empty()
    }

    /// Fetches all cards concurrently.
    pub async fn load(&self) {
        self.refresh_cards(&self.inner.agents).await;
    }

    /// Returns the available agents in the order of the settings.
    pub fn agents(&self) -> Vec<RemoteMember> {
        let member = |agent: &Arc<ConfiguredRemoteAgent>| {
            let description = agent.card_state().card.as_ref()?.description.clone();
            Some(RemoteMember {
                name: agent.name.clone(),
                description,
                agent: Arc::new(RemoteAgentHandle(Arc::clone(agent))),
            })
        };
        self.inner.agents.iter().filter_map(member).collect()
    }

    pub fn statuses(&self) -> Vec<RemoteStatus> {
        self.inner
            .agents
            .iter()
            .map(|agent| agent_status(agent))
            .collect()
    }

    /// Returns warnings for the user: changed names, and missing agents with the reason.
    pub fn warnings(&self) -> Vec<String> {
        let missing = self
            .statuses()
            .into_iter()
            .filter_map(|status| match status.availability {
                RemoteAvailability::Absent { reason } => Some(format!(
                    "the remote agent `{}` ({}) is not available: {reason}",
                    status.name, status.url
                )),
                RemoteAvailability::Joined { .. } => None,
            });
        self.inner
            .name_warnings
            .iter()
            .cloned()
            .chain(missing)
            .collect()
    }

    /// Returns the generation that changes whenever the available agents or their descriptions change.
    pub fn generation(&self) -> &Generation {
        &self.inner.generation
    }

    /// Retries missing agents and refreshes known cards. Never returns.
    pub async fn refresh_forever(&self) {
        loop {
            let now = Instant::now();
            let due: Vec<Arc<ConfiguredRemoteAgent>> = self
                .inner
                .agents
                .iter()
                .filter(|agent| agent.next_refresh().is_some_and(|at| at <= now))
                .cloned()
                .collect();
            self.refresh_cards(&due).await;
            let next = self
                .inner
                .agents
                .iter()
                .filter_map(|agent| agent.next_refresh())
                .min();
            let pause = next.map_or(MAX_PAUSE, |at| at.saturating_duration_since(Instant::now()));
            tokio::time::sleep(pause.clamp(Duration::from_millis(50), MAX_PAUSE)).await;
        }
    }

    /// Waits until all cancelled tasks are reported to their agents, each within its time limit.
    pub async fn wait_for_cancellations(&self) {
        self.inner.background_tasks.close();
        self.inner.background_tasks.wait().await;
        self.inner.background_tasks.reopen();
    }

    async fn refresh_cards(&self, agents: &[Arc<ConfiguredRemoteAgent>]) {
        let changed = join_all(agents.iter().map(|agent| agent.refresh_card())).await;
        if changed.contains(&true) {
            self.inner.generation.advance();
        }
    }
}

fn agent_status(agent: &ConfiguredRemoteAgent) -> RemoteStatus {
    let task_error = agent.circuit().last_error().map(str::to_owned);
    let state = agent.card_state();
    let card_error = state.error.as_ref().map(ToString::to_string);
    let availability = match &state.card {
        Some(card) => RemoteAvailability::Joined {
            description: card.description.clone(),
            card_age: card.fetched_at.elapsed(),
            error: card_error.or(task_error),
        },
        None => RemoteAvailability::Absent {
            reason: card_error.unwrap_or_else(|| "its card was not fetched yet".to_owned()),
        },
    };
    RemoteStatus {
        name: agent.name.clone(),
        url: agent.url.clone(),
        availability,
    }
}
