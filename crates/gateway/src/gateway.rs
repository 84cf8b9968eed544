//! What every route shares.

use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use lango_domain::Clock;
use lango_domain::event::{Principal, SessionId};
use lango_domain::{AgentLocation, AgentTree, TeamMode};
use lango_engine::Runner;
use lango_models::offline::OfflineRouter as WordRouter;
use lango_store::SqliteStore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::a2a::{A2aState, TaskBackend};
use crate::api::team::{AgentItem, AgentList, SkippedItem};
use crate::approvals::ClientBridge;
use crate::auth::TokenCache;
use crate::cors::OriginPolicy;
use crate::error::ApiError;
use crate::metrics::Metrics;
use crate::openai::SessionClaims;
use crate::rate_limit::RateLimiter;
use crate::settings::ServerSettings;
use crate::stream_limit::{StreamLimiter, StreamPermit};
use crate::subscribers::SessionSubscribers;
use crate::turns::RunningTurns;

/// What a gateway is put together from.
pub struct GatewayParts {
    pub settings: ServerSettings,
    pub store: SqliteStore,
    /// The one that the team's runner asks.
    pub client_bridge: ClientBridge,
    pub team: ServedTeam,
    /// Takes away what a deleted session left outside the store.
    pub delete_session_hook: DeleteSessionHook,
    pub clock_and_ids: GatewayClockAndIds,
}

pub type DeleteSessionHook = Arc<dyn Fn(&Principal, &SessionId) + Send + Sync>;

/// Time and chance, handed down.
#[derive(Clone)]
pub struct GatewayClockAndIds {
    pub now: Clock,
    /// A text that was never given before.
    pub new_id: Arc<dyn Fn() -> String + Send + Sync>,
}

/// Who answers, and what can be said about them without asking.
pub struct ServedTeam {
    pub(crate) runner: Runner,
    pub(crate) agents: AgentList,
    pub(crate) router: WordRouter,
    unreachable: UnreachableAgents,
}

impl ServedTeam {
    /// What was read off a tree, and the runner that was made of it.
    pub fn new(facts: TeamInfo, runner: Runner) -> Self {
        Self {
            runner,
            agents: facts.agents,
            router: facts.router,
            unreachable: facts.unreachable,
        }
    }

    /// Who is there, and who is not at this moment.
    pub(crate) fn list(&self) -> AgentList {
        let mut list = self.agents.clone();
        list.skipped.extend((self.unreachable)());
        list
    }

    /// Who of them can be asked alone.
    pub(crate) fn specialists(&self) -> impl Iterator<Item = &AgentItem> {
        self.agents.agents.iter().filter(|agent| !agent.remote)
    }
}

/// What is read off a tree before a runner takes it.
pub struct TeamInfo {
    agents: AgentList,
    router: WordRouter,
    unreachable: UnreachableAgents,
}

/// Who is missing though the settings name them, and why; asked whenever somebody wants to know.
pub type UnreachableAgents = Arc<dyn Fn() -> Vec<SkippedItem> + Send + Sync>;

impl TeamInfo {
    pub fn from_tree(tree: &AgentTree) -> Self {
        let listed = match tree.mode {
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
        let skipped = tree.skipped.iter();
        let skipped = skipped.map(|agent| SkippedItem {
            name: agent.name.clone(),
            reason: agent.reason.clone(),
        });
        Self {
            router: WordRouter::from_prompt(&tree.root.prompt.render()),
            unreachable: Arc::new(Vec::new),
            agents: AgentList {
                mode: match tree.mode {
                    TeamMode::Multi => "multi",
                    TeamMode::Single => "single",
                },
                agents: listed.iter().map(item).collect(),
                skipped: skipped.collect(),
                unmatched: tree
                    .unmatched
                    .iter()
                    .map(|tool| tool.name.clone())
                    .collect(),
            },
        }
    }

    /// The same, with colleagues elsewhere that may be out of reach.
    #[must_use]
    pub fn with_unreachable(self, absent: UnreachableAgents) -> Self {
        Self {
            unreachable: absent,
            ..self
        }
    }
}

/// The server's state; cheap to clone.
#[derive(Clone)]
pub struct Gateway {
    inner: Arc<GatewayInner>,
}

struct GatewayInner {
    settings: ServerSettings,
    store: SqliteStore,
    client_bridge: ClientBridge,
    team: RwLock<Arc<ServedTeam>>,
    delete_session_hook: DeleteSessionHook,
    clock_and_ids: GatewayClockAndIds,
    origin_policy: OriginPolicy,
    token_cache: TokenCache,
    rate_limiter: Arc<RateLimiter>,
    metrics: Metrics,
    subscribers: SessionSubscribers,
    stream_limiter: StreamLimiter,
    running_turns: RunningTurns,
    session_claims: SessionClaims,
    a2a: A2aState,
    turn_tasks: TaskTracker,
    shutdown_started: CancellationToken,
    suspend_turns: CancellationToken,
    close_connections: CancellationToken,
}

impl Gateway {
    pub fn new(parts: GatewayParts) -> Self {
        Self::with_task_backend(parts, TaskBackend::default())
    }

    /// The same, with somebody else to work on what other agents ask for.
    pub fn with_task_backend(parts: GatewayParts, tasks: TaskBackend) -> Self {
        let GatewayParts {
            settings,
            store,
            client_bridge: lobby,
            team,
            delete_session_hook: forget,
            clock_and_ids: surroundings,
        } = parts;
        Self {
            inner: Arc::new(GatewayInner {
                origin_policy: OriginPolicy::new(&settings),
                rate_limiter: Arc::new(RateLimiter::new(&settings)),
                settings,
                store,
                client_bridge: lobby,
                team: RwLock::new(Arc::new(team)),
                delete_session_hook: forget,
                clock_and_ids: surroundings,
                token_cache: TokenCache::default(),
                metrics: Metrics::default(),
                subscribers: SessionSubscribers::default(),
                stream_limiter: StreamLimiter::default(),
                running_turns: RunningTurns::default(),
                session_claims: SessionClaims::default(),
                a2a: A2aState::new(tasks),
                turn_tasks: TaskTracker::new(),
                shutdown_started: CancellationToken::new(),
                suspend_turns: CancellationToken::new(),
                close_connections: CancellationToken::new(),
            }),
        }
    }

    pub fn settings(&self) -> &ServerSettings {
        &self.inner.settings
    }

    pub fn store(&self) -> &SqliteStore {
        &self.inner.store
    }

    pub fn client_bridge(&self) -> &ClientBridge {
        &self.inner.client_bridge
    }

    /// Who answers at this moment; turns that run keep whom they have.
    pub fn team(&self) -> Arc<ServedTeam> {
        Arc::clone(
            &self
                .inner
                .team
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// Puts another team in place for the turns to come.
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

    /// A text that was never given before.
    pub fn new_id(&self) -> String {
        (self.inner.clock_and_ids.new_id)()
    }

    /// A session nobody has used before.
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
        &self.inner.subscribers
    }

    /// A place for a stream that follows something, if there is one.
    pub(crate) fn open_stream(&self, principal: &Principal) -> Result<StreamPermit, ApiError> {
        self.inner
            .stream_limiter
            .acquire(principal, self.inner.settings.streams_per_principal.get())
    }

    pub(crate) fn running_turns(&self) -> &RunningTurns {
        &self.inner.running_turns
    }

    pub(crate) fn session_claims(&self) -> &SessionClaims {
        &self.inner.session_claims
    }

    pub(crate) fn a2a(&self) -> &A2aState {
        &self.inner.a2a
    }

    /// The tasks that turns run in.
    pub(crate) fn turn_tasks(&self) -> &TaskTracker {
        &self.inner.turn_tasks
    }

    /// Cancelled when nothing new is to begin.
    pub(crate) fn shutdown_started(&self) -> &CancellationToken {
        &self.inner.shutdown_started
    }

    /// Cancelled when what still runs is to stop.
    pub(crate) fn suspend_turns(&self) -> &CancellationToken {
        &self.inner.suspend_turns
    }

    /// Cancelled when nothing runs any more, and connections are to end.
    pub(crate) fn close_connections(&self) -> &CancellationToken {
        &self.inner.close_connections
    }
}
