//! One agent in another process: its card as it was last seen, and the tasks that it is given.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt};
use lango_domain::AgentName;
use lango_domain::remote_agent::{RemoteAgent, RemoteError, RemotePiece, RemoteTask};
use lango_net::AddressPolicy;
use lango_net::sanitize::one_line;
use tokio::sync::mpsc::channel;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::a2a::AgentCard;
use crate::card_fetch::{self, CardError};
use crate::circuit_breaker::CircuitBreaker;
use crate::client::{A2aClient, A2aClientError};
use crate::endpoint::{Endpoint, select_endpoint};
use crate::outbound::Outbound;
use crate::settings::RemoteAgentSettings;
use crate::task_run::{PieceSender, RemoteTaskEnd, RemoteTaskRun};

/// What the orchestrator may read about a colleague, in characters.
const MAX_DESCRIPTION: usize = 600;
const MAX_SKILLS: usize = 12;

const INITIAL_RETRY_DELAY: Duration = Duration::from_secs(2);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(300);
/// A card that was found is looked at again.
const REFRESH_INTERVAL: Duration = Duration::from_secs(600);

pub(crate) struct ConfiguredRemoteAgent {
    pub name: AgentName,
    pub url: String,
    timeout: Duration,
    outbound: Result<Outbound, CardError>,
    card_state: Mutex<CardState>,
    circuit: Mutex<CircuitBreaker>,
    /// What is still being told to the colleague when nobody waits any more.
    background_tasks: TaskTracker,
}

/// What is known about a colleague.
#[derive(Clone, Debug, Default)]
pub(crate) struct CardState {
    /// The last card that could be used.
    pub card: Option<KnownCard>,
    /// Why the last look found none.
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
        reach: AddressPolicy,
        errands: TaskTracker,
    ) -> Self {
        Self {
            name,
            url: one_line(&settings.agent_card_url, 200),
            timeout: Duration::from_secs(settings.seconds.get()),
            outbound: Outbound::new(settings, reach).map_err(CardError::from),
            card_state: Mutex::default(),
            circuit: Mutex::default(),
            background_tasks: errands,
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

    /// When it is to be looked for again.
    pub fn next_refresh(&self) -> Option<Instant> {
        self.outbound.as_ref().ok()?;
        Some(self.card_state().next_refresh.unwrap_or_else(Instant::now))
    }

    /// Looks for its card; whether what the team sees of it changed.
    pub async fn refresh_card(&self) -> bool {
        let found = self.fetch_usable_card().await;
        let mut seen = self.card_state();
        let before = seen.card.as_ref().map(|known| known.description.clone());
        match found {
            Ok(known) => {
                seen.next_refresh = Some(known.fetched_at + REFRESH_INTERVAL);
                *seen = CardState {
                    card: Some(known),
                    next_refresh: seen.next_refresh,
                    ..CardState::default()
                };
            }
            // The last good card stays.
            Err(trouble) => {
                let pause = (INITIAL_RETRY_DELAY * 2_u32.saturating_pow(seen.failed_refreshes))
                    .min(MAX_RETRY_DELAY);
                seen.failed_refreshes = (seen.failed_refreshes + 1).min(16);
                seen.next_refresh = Some(Instant::now() + pause);
                seen.error = Some(trouble);
            }
        }
        before != seen.card.as_ref().map(|known| known.description.clone())
    }

    async fn fetch_usable_card(&self) -> Result<KnownCard, CardError> {
        let outgoing = self.outbound.as_ref().map_err(Clone::clone)?;
        let fetched = card_fetch::fetch(outgoing).await?;
        let card = &fetched.parsed.card;
        let endpoint = select_endpoint(card, outgoing).map_err(CardError::Unusable)?;
        Ok(KnownCard {
            description: description(card),
            endpoint,
            fetched_at: Instant::now(),
        })
    }

    /// Words about a failure, without whatever the peer repeats of our secrets.
    fn redact(&self, words: &str) -> String {
        match &self.outbound {
            Ok(outgoing) => outgoing.redact(words),
            Err(_) => one_line(words, 300),
        }
    }

    async fn run_task(
        &self,
        task: RemoteTask,
        pieces: PieceSender,
        nobody_waits: CancellationToken,
    ) {
        let fail = async |why: String| {
            let why = self.redact(&why);
            let _ = pieces.send(Err(RemoteError(why))).await;
        };
        let known = self.card_state().card.clone();
        let (Ok(outgoing), Some(known)) = (&self.outbound, known) else {
            return fail("it is not connected".to_owned()).await;
        };
        let left_alone = self.circuit().open_reason(Instant::now());
        if let Some(why) = left_alone {
            return fail(why).await;
        }
        let peer = A2aClient {
            outbound: outgoing,
            endpoint: &known.endpoint,
        };
        let mut exchange = RemoteTaskRun::new(peer, &pieces);
        let done = tokio::select! {
            biased;
            () = nobody_waits.cancelled() => Ok(RemoteTaskEnd::Abandoned),
            done = tokio::time::timeout(self.timeout, exchange.run(&task)) => {
                done.unwrap_or(Err(A2aClientError::Timeout(self.timeout)))
            }
        };
        match done {
            Ok(RemoteTaskEnd::Answered) => self.circuit().record_success(),
            Ok(RemoteTaskEnd::Declined(why)) => {
                self.circuit().record_success();
                fail(why).await;
            }
            Ok(RemoteTaskEnd::Abandoned) => {}
            Err(trouble) => {
                let why = self.redact(&trouble.to_string());
                self.circuit().record_failure(&why, Instant::now());
                fail(why).await;
            }
        }
        exchange.abandon().await;
    }
}

/// A colleague that can be given tasks.
#[derive(Clone)]
pub(crate) struct RemoteAgentHandle(pub Arc<ConfiguredRemoteAgent>);

impl RemoteAgent for RemoteAgentHandle {
    fn stream(&self, task: RemoteTask) -> BoxStream<'static, Result<RemotePiece, RemoteError>> {
        let colleague = Arc::clone(&self.0);
        let nobody_waits = CancellationToken::new();
        let dropped = nobody_waits.clone().drop_guard();
        let (pieces, coming) = channel(16);
        let errands = colleague.background_tasks.clone();
        errands.spawn(async move { colleague.run_task(task, pieces, nobody_waits).await });
        stream::unfold((coming, dropped), |(mut coming, dropped)| async move {
            let piece = coming.recv().await?;
            Some((piece, (coming, dropped)))
        })
        .boxed()
    }
}

/// What a card says, on one bounded line; the names of its skills belong to it.
fn description(card: &AgentCard) -> String {
    let own = match one_line(&card.description, MAX_DESCRIPTION) {
        own if own.is_empty() => one_line(&card.name, 80),
        own => own,
    };
    let skills: Vec<String> = card
        .skills
        .iter()
        .take(MAX_SKILLS)
        .map(|skill| one_line(&skill.name, 60))
        .filter(|name| !name.is_empty())
        .collect();
    let text = match skills.is_empty() {
        true => own,
        false => format!("{own} Skills: {}.", skills.join(", ")),
    };
    one_line(&text, MAX_DESCRIPTION)
}
