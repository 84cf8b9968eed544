//! The state that all routes share.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::http::StatusCode;
use jiff::Timestamp;
use lango_domain::Clock;
use lango_domain::Stores;
use lango_domain::event::{Principal, SessionId};
use lango_domain::{AgentLocation, AgentTree, TeamMode};
use lango_models::offline::OfflineRouter;
use lango_runtime::{
    ClientBridge, Runtime, SessionSubscribers, StartTurnError, TooManyTurns, TurnHandle, TurnSpec,
};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::a2a::{A2aState, TaskBackend};
use crate::api::team::{AgentItem, AgentList, SkippedItem};
use crate::auth::TokenCache;
use crate::body_memory::BodyMemory;
use crate::cors::OriginPolicy;
use crate::error::ApiError;
use crate::metrics::Metrics;
use crate::openai::SessionClaims;
use crate::rate_limit::RateLimiter;
use crate::settings::ServerSettings;
use crate::stream_limit::{StreamLimiter, StreamPermit};

/// The parts of a [`Gateway`].
pub struct GatewayParts {
    pub settings: ServerSettings,
    pub stores: Stores,
    /// Runs the turns. Other parts of the process may share it.
    pub runtime: Runtime,
    /// The bridge that the runtime uses for approvals and the team for client context.
    pub client_bridge: ClientBridge,
    pub team: ServedTeam,
    /// Deletes the data that a deleted session has outside the store.
    pub delete_session_hook: DeleteSessionHook,
    pub clock_and_ids: GatewayClockAndIds,
}

pub type DeleteSessionHook = Arc<dyn Fn(&Principal, &SessionId) + Send + Sync>;

/// The clock and the source of new ids, injected for tests.
#[derive(Clone)]
pub struct GatewayClockAndIds {
    pub now: Clock,
    /// Returns a new unique id.
    pub new_id: Arc<dyn Fn() -> String + Send + Sync>,
}

/// The description of the team that answers requests. It needs no model call.
pub struct ServedTeam {
    pub(crate) agents: AgentList,
    pub(crate) router: OfflineRouter,
    unreachable: UnreachableAgents,
}

/// Returns the configured agents that are currently unreachable, with the reasons. Called for each
/// listing.
pub type UnreachableAgents = Arc<dyn Fn() -> Vec<SkippedItem> + Send + Sync>;

impl ServedTeam {
    /// Describes a tree, before a runner takes it.
    pub fn from_tree(tree: &AgentTree) -> Self {
        let agents = match tree.mode {
            TeamMode::Multi => tree.specialists.as_slice(),
            TeamMode::Single => std::slice::from_ref(&tree.root),
        };
        let item = |agent: &lango_domain::Agent| AgentItem {
            name: agent.name.to_string(),
            description: agent.description.clone(),
            capabilities: agent.capabilities.clone(),
            keywords: agent.keywords.clone(),
            tools: agent.tools.iter().map(|tool| tool.name.clone()).collect(),
            remote: agent.location == AgentLocation::Remote,
        };
        let skipped = tree.skipped.iter().map(|agent| SkippedItem {
            name: agent.name.clone(),
            reason: agent.reason.clone(),
        });
        Self {
            router: OfflineRouter::from_prompt(&tree.root.prompt.render()),
            unreachable: Arc::new(Vec::new),
            agents: AgentList {
                mode: match tree.mode {
                    TeamMode::Multi => "multi",
                    TeamMode::Single => "single",
                },
                agents: agents.iter().map(item).collect(),
                skipped: skipped.collect(),
                unmatched: tree
                    .unmatched
                    .iter()
                    .map(|tool| tool.name.clone())
                    .collect(),
            },
        }
    }

    /// Adds a source of unreachable remote agents.
    #[must_use]
    pub fn with_unreachable(self, unreachable: UnreachableAgents) -> Self {
        Self {
            unreachable,
            ..self
        }
    }
    /// Returns the agents, including those that are currently unreachable.
    pub(crate) fn list(&self) -> AgentList {
        let mut list = self.agents.clone();
        list.skipped.extend((self.unreachable)());
        list
    }

    /// Returns the agents that can answer a turn on their own.
    pub(crate) fn specialists(&self) -> impl Iterator<Item = &AgentItem> {
        self.agents.agents.iter().filter(|agent| !agent.remote)
    }
}

/// The server's state; cheap to clone.
#[derive(Clone)]
pub struct Gateway {
    inner: Arc<GatewayInner>,
}

struct GatewayInner {
    settings: ServerSettings,
    stores: Stores,
    runtime: Runtime,
    client_bridge: ClientBridge,
    team: RwLock<Arc<ServedTeam>>,
    delete_session_hook: DeleteSessionHook,
    clock_and_ids: GatewayClockAndIds,
    origin_policy: OriginPolicy,
    token_cache: TokenCache,
    rate_limiter: Arc<RateLimiter>,
    metrics: Arc<Metrics>,
    stream_limiter: StreamLimiter,
    session_claims: SessionClaims,
    body_memory: BodyMemory,
    a2a: A2aState,
    close_connections: CancellationToken,
}

impl Gateway {
    pub fn new(parts: GatewayParts) -> Self {
        Self::with_task_backend(parts, TaskBackend::default())
    }

    /// Creates a gateway with another backend for A2A tasks.
    pub fn with_task_backend(parts: GatewayParts, backend: TaskBackend) -> Self {
        let GatewayParts {
            settings,
            stores,
            runtime,
            client_bridge,
            team,
            delete_session_hook,
            clock_and_ids,
        } = parts;
        let metrics = Arc::<Metrics>::default();
        let turn_metrics = Arc::clone(&metrics);
        runtime.observe_turns(Box::new(move |meter| turn_metrics.record_turn(meter)));
        Self {
            inner: Arc::new(GatewayInner {
                origin_policy: OriginPolicy::new(&settings),
                rate_limiter: Arc::new(RateLimiter::new(&settings)),
                settings,
                stores,
                runtime,
                client_bridge,
                team: RwLock::new(Arc::new(team)),
                delete_session_hook,
                clock_and_ids,
                token_cache: TokenCache::default(),
                metrics,
                stream_limiter: StreamLimiter::default(),
                session_claims: SessionClaims::default(),
                body_memory: BodyMemory::default(),
                a2a: A2aState::new(backend),
                close_connections: CancellationToken::new(),
            }),
        }
    }

    pub fn settings(&self) -> &ServerSettings {
        &self.inner.settings
    }

    pub fn stores(&self) -> &Stores {
        &self.inner.stores
    }

    pub fn client_bridge(&self) -> &ClientBridge {
        &self.inner.client_bridge
    }

    /// Returns the description of the current team.
    pub fn team(&self) -> Arc<ServedTeam> {
        Arc::clone(
            &self
                .inner
                .team
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// Replaces the description of the team, after [`Runtime::replace_runner`].
    pub fn replace_team(&self, team: ServedTeam) {
        *self
            .inner
            .team
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Arc::new(team);
    }

    pub fn now(&self) -> Timestamp {
        (self.inner.clock_and_ids.now)()
    }

    /// Returns a new unique id.
    pub fn new_id(&self) -> String {
        (self.inner.clock_and_ids.new_id)()
    }

    /// Returns a new, unused session id.
    pub fn new_session(&self) -> SessionId {
        SessionId::new(self.new_id())
    }

    pub(crate) fn run_delete_session_hook(&self, principal: &Principal, session: &SessionId) {
        (self.inner.delete_session_hook)(principal, session);
    }

    pub(crate) fn origin_policy(&self) -> &OriginPolicy {
        &self.inner.origin_policy
    }

    pub(crate) fn token_cache(&self) -> &TokenCache {
        &self.inner.token_cache
    }

    pub(crate) fn rate_limiter(&self) -> &Arc<RateLimiter> {
        &self.inner.rate_limiter
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    pub(crate) fn subscribers(&self) -> &SessionSubscribers {
        self.inner.runtime.subscribers()
    }

    /// Acquires a permit for a stream of the principal, up to `server.streamsPerPrincipal`.
    pub(crate) fn open_stream(&self, principal: &Principal) -> Result<StreamPermit, ApiError> {
        self.inner
            .stream_limiter
            .acquire(principal, self.inner.settings.streams_per_principal.get())
    }

    /// Returns the runtime that runs the turns.
    pub fn runtime(&self) -> &Runtime {
        &self.inner.runtime
    }

    /// Starts a turn, or returns an error if a limit is reached or the server is shutting down.
    pub fn start_turn(&self, spec: TurnSpec) -> Result<TurnHandle, ApiError> {
        self.runtime()
            .start_turn(spec)
            .map_err(|error| self.start_error(error))
    }

    /// Checks that a turn of this principal could start now.
    pub(crate) fn check_capacity(&self, principal: &Principal) -> Result<(), ApiError> {
        let checked = self.runtime().check_capacity(principal);
        checked.map_err(|error| self.start_error(error))
    }

    fn start_error(&self, error: StartTurnError) -> ApiError {
        let message = error.to_string();
        match error {
            StartTurnError::ShuttingDown => ApiError::shutting_down(),
            StartTurnError::UnknownTool(_) => ApiError::new(
                StatusCode::NOT_FOUND,
                "tool_not_found",
                message,
                "name an agent",
            ),
            StartTurnError::UnknownAgent(_) => {
                let team = self.team();
                let names: Vec<&str> = team
                    .specialists()
                    .map(|agent| agent.name.as_str())
                    .collect();
                let hint = format!("available agents: {}", names.join(", "));
                ApiError::new(StatusCode::NOT_FOUND, "model_not_found", message, hint)
            }
            StartTurnError::TooMany(TooManyTurns::InTotal(running)) => ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "turns",
                format!("{message}: {running} turns are running"),
                "try again when one has ended; server.turns sets the limit",
            )
            .with_retry_after(Duration::from_secs(1)),
            StartTurnError::TooMany(TooManyTurns::OfPrincipal(own)) => ApiError::new(
                StatusCode::TOO_MANY_REQUESTS,
                "turns",
                format!("{message}: {own} of your turns are running"),
                "try again when one has ended; server.turnsPerPrincipal sets the limit",
            )
            .with_retry_after(Duration::from_secs(1)),
        }
    }

    pub(crate) fn body_memory(&self) -> &BodyMemory {
        &self.inner.body_memory
    }

    pub(crate) fn session_claims(&self) -> &SessionClaims {
        &self.inner.session_claims
    }

    pub(crate) fn a2a(&self) -> &A2aState {
        &self.inner.a2a
    }

    /// Tracks the tasks that run turns.
    pub(crate) fn turn_tasks(&self) -> &TaskTracker {
        self.inner.runtime.tasks()
    }

    /// Cancelled when shutdown starts; no new turns are accepted after that.
    pub(crate) fn shutdown_started(&self) -> &CancellationToken {
        self.inner.runtime.shutdown_started()
    }

    /// Cancelled when the grace period is over; running turns are suspended.
    pub(crate) fn suspend_turns(&self) -> &CancellationToken {
        self.inner.runtime.suspend_turns()
    }

    /// Cancelled when no turn runs anymore; open connections are closed.
    pub(crate) fn close_connections(&self) -> &CancellationToken {
        &self.inner.close_connections
    }
}
