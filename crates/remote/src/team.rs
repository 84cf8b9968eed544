//! All colleagues in other processes: who can be reached, who cannot and why, and who joins later (S90, S91).

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use lango_domain::AgentName;
use lango_domain::remote_agent::RemoteAgent;
use lango_net::AddressPolicy;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::agent_names;
use crate::remote_agent::{ConfiguredRemoteAgent, RemoteAgentHandle};
use crate::settings::RemoteSettings;

/// Looking is never idle for longer than this.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The colleagues that were reached, and what the user should know.
pub struct LoadedRemoteAgents {
    pub agents: Vec<RemoteMember>,
    pub warnings: Vec<String>,
}

/// A colleague that can be given tasks.
pub struct RemoteMember {
    pub name: AgentName,
    /// From its card: data from outside, on one bounded line (B92).
    pub description: String,
    pub agent: Arc<dyn RemoteAgent>,
}

/// How one colleague stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteStatus {
    pub name: AgentName,
    /// Where its card is to be.
    pub url: String,
    pub availability: RemoteAvailability,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteAvailability {
    /// In the team. `trouble` says why its card could not be read again, or why its tasks failed lately.
    Joined {
        description: String,
        card_age: Duration,
        error: Option<String>,
    },
    /// Not in the team.
    Absent { reason: String },
}

/// Fetches all cards side by side, within a bounded time; who cannot be reached is skipped with a warning (S91).
///
/// `taken` are the names of the local agents.
pub async fn load_remote_agents(
    settings: &RemoteSettings,
    taken: Vec<AgentName>,
    reach: AddressPolicy,
) -> LoadedRemoteAgents {
    let team = RemoteTeam::new(settings, taken, reach);
    team.load().await;
    LoadedRemoteAgents {
        agents: team.agents(),
        warnings: team.warnings(),
    }
}

/// The same for as long as a conversation lasts: whoever was missing is looked for again, and can join between turns.
#[derive(Clone)]
pub struct RemoteTeam {
    inner: Arc<RemoteTeamInner>,
}

struct RemoteTeamInner {
    agents: Vec<Arc<ConfiguredRemoteAgent>>,
    /// What became of the names.
    name_warnings: Vec<String>,
    generation: watch::Sender<u64>,
    background_tasks: TaskTracker,
}

impl RemoteTeam {
    /// Nobody is looked for yet.
    pub fn new(settings: &RemoteSettings, taken: Vec<AgentName>, reach: AddressPolicy) -> Self {
        let wanted = if settings.enabled {
            settings.remote_agents.as_slice()
        } else {
            &[]
        };
        let named = agent_names::resolve(wanted.iter().map(|one| one.name.as_str()), taken);
        let notes = named
            .iter()
            .filter_map(|named| named.warning.clone())
            .collect();
        let errands = TaskTracker::new();
        let colleagues = wanted.iter().zip(named).map(|(settings, named)| {
            Arc::new(ConfiguredRemoteAgent::new(
                named.name,
                settings,
                reach,
                errands.clone(),
            ))
        });
        let colleagues = colleagues.collect();
        Self {
            inner: Arc::new(RemoteTeamInner {
                agents: colleagues,
                name_warnings: notes,
                generation: watch::Sender::new(0),
                background_tasks: errands,
            }),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.inner.agents.is_empty()
    }

    /// Looks for everyone, side by side.
    pub async fn load(&self) {
        self.refresh_cards(&self.inner.agents).await;
    }

    /// Those that can be given tasks, in the order of the settings.
    pub fn agents(&self) -> Vec<RemoteMember> {
        let member = |colleague: &Arc<ConfiguredRemoteAgent>| {
            let description = colleague.card_state().card.as_ref()?.description.clone();
            let agent = Arc::new(RemoteAgentHandle(Arc::clone(colleague)));
            Some(RemoteMember {
                name: colleague.name.clone(),
                description,
                agent,
            })
        };
        self.inner.agents.iter().filter_map(member).collect()
    }

    pub fn statuses(&self) -> Vec<RemoteStatus> {
        self.inner
            .agents
            .iter()
            .map(|colleague| agent_status(colleague))
            .collect()
    }

    /// What the user should know: names that were changed, and who is missing for which reason.
    pub fn warnings(&self) -> Vec<String> {
        let missing = self
            .statuses()
            .into_iter()
            .filter_map(|status| match status.availability {
                RemoteAvailability::Absent { reason } => Some(format!(
                    "the remote agent `{}` is left out ({}): {reason}",
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

    /// Another number whenever who is in the team, or what they say about themselves, changed. Whoever built a team from
    /// this builds it anew between turns when the number is another one (B40).
    pub fn generation(&self) -> u64 {
        *self.inner.generation.borrow()
    }

    /// Waits until the number is another one.
    pub async fn wait_for_change(&self, generation: u64) {
        let mut numbers = self.inner.generation.subscribe();
        // The sender lives as long as we do.
        let _ = numbers.wait_for(|number| *number != generation).await;
    }

    /// Looks again for whoever is missing, and now and then at whoever is there. It never ends.
    pub async fn refresh_forever(&self) {
        loop {
            let now = Instant::now();
            let due: Vec<Arc<ConfiguredRemoteAgent>> = self
                .inner
                .agents
                .iter()
                .filter(|colleague| colleague.next_refresh().is_some_and(|at| at <= now))
                .cloned()
                .collect();
            self.refresh_cards(&due).await;
            let next = self
                .inner
                .agents
                .iter()
                .filter_map(|colleague| colleague.next_refresh())
                .min();
            let pause = next.map_or(MAX_PAUSE, |at| at.saturating_duration_since(Instant::now()));
            tokio::time::sleep(pause.clamp(Duration::from_millis(50), MAX_PAUSE)).await;
        }
    }

    /// Waits until colleagues whose tasks were cancelled have been told, each within its limit.
    pub async fn wait_for_cancellations(&self) {
        self.inner.background_tasks.close();
        self.inner.background_tasks.wait().await;
        self.inner.background_tasks.reopen();
    }

    async fn refresh_cards(&self, colleagues: &[Arc<ConfiguredRemoteAgent>]) {
        let changed = join_all(colleagues.iter().map(|colleague| colleague.refresh_card())).await;
        if changed.contains(&true) {
            self.inner.generation.send_modify(|number| *number += 1);
        }
    }
}

fn agent_status(colleague: &ConfiguredRemoteAgent) -> RemoteStatus {
    let lately = colleague.circuit().last_error().map(str::to_owned);
    let seen = colleague.card_state();
    let trouble = seen.error.as_ref().map(ToString::to_string);
    let standing = match &seen.card {
        Some(known) => RemoteAvailability::Joined {
            description: known.description.clone(),
            card_age: known.fetched_at.elapsed(),
            error: trouble.or(lately),
        },
        None => RemoteAvailability::Absent {
            reason: trouble.unwrap_or_else(|| "it was not looked for yet".to_owned()),
        },
    };
    RemoteStatus {
        name: colleague.name.clone(),
        url: colleague.url.clone(),
        availability: standing,
    }
}
