//! One configured remote agent: its last card, its circuit breaker and its tasks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt};
use lango_domain::AgentName;
use lango_domain::circuit_breaker::CircuitBreaker;
use lango_domain::remote_agent::{RemoteAgent, RemoteError, RemotePiece, RemoteTask};
use lango_net::AddressPolicy;
use lango_text::sanitize::truncated_line;
use tokio::sync::mpsc::channel;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::a2a::AgentCard;
use crate::card_fetch::{self, CardError};

use crate::client::{A2aClient, A2aClientError};
use crate::endpoint::{Endpoint, select_endpoint};
use crate::outbound::Outbound;
use crate::settings::RemoteAgentSettings;
use crate::task_run::{PieceSender, RemoteTaskEnd, RemoteTaskRun};

/// Maximum length of the description in the routing table, in characters.
const MAX_DESCRIPTION: usize = 600;
const MAX_SKILLS: usize = 12;

const INITIAL_RETRY_DELAY: Duration = Duration::from_secs(2);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(300);
/// Interval at which a known card is fetched again.
const REFRESH_INTERVAL: Duration = Duration::from_secs(600);

pub(crate) struct ConfiguredRemoteAgent {
    pub name: AgentName,
    pub url: String,
    timeout: Duration,
    outbound: Result<Outbound, CardError>,
    card_state: Mutex<CardState>,
    circuit: Mutex<CircuitBreaker>,
    /// Tracks running tasks and cancellations in the background.
    background_tasks: TaskTracker,
}

/// The result of the last card fetches.
#[derive(Clone, Debug, Default)]
pub(crate) struct CardState {
    /// The last usable card.
    pub card: Option<KnownCard>,
    /// The error of the last fetch, if it failed.
    pub error: Option<CardError>,
    failed_refreshes: u32,
    next_refresh: Option<Instant>,
}

#[derive(Clone, Debug)]
pub(crate) struct KnownCard {
    pub description: String,
    pub endpoint: Endpoint,
    pub fetched_at: Instant,
}

impl ConfiguredRemoteAgent {
    pub fn new(
        name: AgentName,
        settings: &RemoteAgentSettings,
        policy: AddressPolicy,
        background_tasks: TaskTracker,
    ) -> Self {
        Self {
            name,
            url: truncated_line(&settings.agent_card_url, 200),
            timeout: Duration::from_secs(settings.seconds.get()),
            outbound: Outbound::new(settings, policy).map_err(CardError::from),
            card_state: Mutex::default(),
            circuit: Mutex::default(),
            background_tasks,
        }
    }

    pub fn card_state(&self) -> MutexGuard<'_, CardState> {
        self.card_state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub fn circuit(&self) -> MutexGuard<'_, CircuitBreaker> {
        self.circuit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time of the next card fetch; none if the settings are invalid.
    pub fn next_refresh(&self) -> Option<Instant> {
        self.outbound.as_ref().ok()?;
        Some(self.card_state().next_refresh.unwrap_or_else(Instant::now))
    }

    /// Fetches the card. Returns true if the description changed.
    pub async fn refresh_card(&self) -> bool {
        let result = self.fetch_usable_card().await;
        let mut state = self.card_state();
        let before = state.card.as_ref().map(|card| card.description.clone());
        match result {
            Ok(card) => {
                *state = CardState {
                    next_refresh: Some(card.fetched_at + REFRESH_INTERVAL),
                    card: Some(card),
                    ..CardState::default()
                };
            }
            // The last usable card stays.
            Err(error) => {
                let delay = (INITIAL_RETRY_DELAY * 2_u32.saturating_pow(state.failed_refreshes))
                    .min(MAX_RETRY_DELAY);
                state.failed_refreshes = (state.failed_refreshes + 1).min(16);
                state.next_refresh = Some(Instant::now() + delay);
                state.error = Some(error);
            }
        }
        before != state.card.as_ref().map(|card| card.description.clone())
    }

    async fn fetch_usable_card(&self) -> Result<KnownCard, CardError> {
        let outbound = self.outbound.as_ref().map_err(Clone::clone)?;
        let fetched = card_fetch::fetch(outbound).await?;
        let card = &fetched.parsed.card;
        let endpoint = select_endpoint(card, outbound).map_err(CardError::Unusable)?;
        Ok(KnownCard {
            description: card_description(card),
            endpoint,
            fetched_at: Instant::now(),
        })
    }

    /// Redacts secrets in an error text of the remote agent.
    fn redact(&self, text: &str) -> String {
        match &self.outbound {
            Ok(outbound) => outbound.redact(text),
            Err(_) => truncated_line(text, 300),
        }
    }

    async fn run_task(&self, task: RemoteTask, pieces: PieceSender, abandoned: CancellationToken) {
        let fail = async |reason: String| {
            let reason = self.redact(&reason);
            let _ = pieces.send(Err(RemoteError(reason))).await;
        };
        let card = self.card_state().card.clone();
        let (Ok(outbound), Some(card)) = (&self.outbound, card) else {
            return fail("it is not connected".to_owned()).await;
        };
        let open_reason = self.circuit().open_reason(Instant::now());
        if let Some(reason) = open_reason {
            return fail(reason).await;
        }
        let client = A2aClient {
            outbound,
            endpoint: &card.endpoint,
        };
        let mut run = RemoteTaskRun::new(client, &pieces);
        let result = tokio::select! {
            biased;
            () = abandoned.cancelled() => Ok(RemoteTaskEnd::Abandoned),
            result = tokio::time::timeout(self.timeout, run.run(&task)) => {
                result.unwrap_or(Err(A2aClientError::Timeout(self.timeout)))
            }
        };
        match result {
            Ok(RemoteTaskEnd::Answered) => self.circuit().record_success(),
            Ok(RemoteTaskEnd::Declined(reason)) => {
                self.circuit().record_success();
                fail(reason).await;
            }
            Ok(RemoteTaskEnd::Abandoned) => {}
            Err(error) => {
                let reason = self.redact(&error.to_string());
                self.circuit().record_failure(&reason, Instant::now());
                fail(reason).await;
            }
        }
        run.abandon().await;
    }
}

/// A shared handle that implements [`RemoteAgent`].
#[derive(Clone)]
pub(crate) struct RemoteAgentHandle(pub Arc<ConfiguredRemoteAgent>);

impl RemoteAgent for RemoteAgentHandle {
    fn stream(&self, task: RemoteTask) -> BoxStream<'static, Result<RemotePiece, RemoteError>> {
        let agent = Arc::clone(&self.0);
        let abandoned = CancellationToken::new();
        let drop_guard = abandoned.clone().drop_guard();
        let (pieces, receiver) = channel(16);
        let background_tasks = agent.background_tasks.clone();
        background_tasks.spawn(async move { agent.run_task(task, pieces, abandoned).await });
        stream::unfold(
            (receiver, drop_guard),
            |(mut receiver, drop_guard)| async move {
                let piece = receiver.recv().await?;
                Some((piece, (receiver, drop_guard)))
            },
        )
        .boxed()
    }
}

/// Returns the description of a card with the names of its skills, on one bounded line.
fn card_description(card: &AgentCard) -> String {
    let description = match truncated_line(&card.description, MAX_DESCRIPTION) {
        description if description.is_empty() => truncated_line(&card.name, 80),
        description => description,
    };
    let skills: Vec<String> = card
        .skills
        .iter()
        .take(MAX_SKILLS)
        .map(|skill| truncated_line(&skill.name, 60))
        .filter(|name| !name.is_empty())
        .collect();
    let text = match skills.is_empty() {
        true => description,
        false => format!("{description} Skills: {}.", skills.join(", ")),
    };
    truncated_line(&text, MAX_DESCRIPTION)
}
