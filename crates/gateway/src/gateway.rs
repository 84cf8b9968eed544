//! What every route shares.

use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use lango_domain::event::{Principal, SessionId};
use lango_domain::{AgentTree, TeamMode, AgentLocation};
use lango_engine::Runner;
use lango_models::offline::OfflineRouter as WordRouter;
use lango_store::SqliteStore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::a2a::{A2a, TaskBackend};
use crate::api::team::{AgentItem, AgentList, SkippedItem};
use crate::approvals::ClientBridge;
use crate::auth::TokenCache;
use crate::subscribers::SessionSubscribers;
use crate::metrics::Metrics;
use crate::openai::SessionClaims;
use crate::rate_limit::RateLimiter;
use crate::cors::OriginPolicy;
use crate::error::ApiError;
use crate::settings::ServerSettings;
use crate::stream_limit::{StreamPermit, StreamLimiter};
use crate::turns::RunningTurns;

/// What a gateway is put together from.
pub struct GatewayParts {
    pub settings: ServerSettings,
    pub store: SqliteStore,
    /// The one that the team's runner asks.
    pub lobby: ClientBridge,
    pub team: ServedTeam,
    /// Takes away what a deleted session left outside the store.
    pub forget: DeleteSessionHook,
    pub surroundings: GatewayClockAndIds,
}

pub type DeleteSessionHook = Arc<dyn Fn(&Principal, &SessionId) + Send + Sync>;

/// Time and chance, handed down.
#[derive(Clone)]
pub struct GatewayClockAndIds {
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// A text that was never given before.
    pub new_id: Arc<dyn Fn() -> String + Send + Sync>,
}

/// Who answers, and what can be said about them without asking.
pub struct ServedTeam {
    pub(crate) runner: Runner,
    pub(crate) agents: AgentList,
    pub(crate) router: WordRouter,
    absent: UnreachableAgents,
}

impl ServedTeam {
    /// What was read off a tree, and the runner that was made of it.
    pub fn new(facts: TeamInfo, runner: Runner) -> Self {
        Self { runner, agents: facts.agents, router: facts.router, absent: facts.absent }
    }

    /// Who is there, and who is not at this moment.
    pub(crate) fn list(&self) -> AgentList {
        let mut list = self.agents.clone();
        list.skipped.extend((self.absent)());
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
    absent: UnreachableAgents,
}

/// Who is missing though the settings name them, and why; asked whenever somebody wants to know.
pub type UnreachableAgents = Arc<dyn Fn() -> Vec<SkippedItem> + Send + Sync>;

impl TeamInfo {
    pub fn of(tree: &AgentTree) -> Self {
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
            remote: agent.place == AgentLocation::Remote,
        };
        let skipped = tree.skipped.iter();
        let skipped =
            skipped.map(|agent| SkippedItem { name: agent.name.clone(), reason: agent.reason.clone() });
        Self {
            router: WordRouter::read(&tree.root.prompt.render()),
            absent: Arc::new(Vec::new),
            agents: AgentList {
                mode: match tree.mode {
                    TeamMode::Multi => "multi",
                    TeamMode::Single => "single",
                },
                agents: listed.iter().map(item).collect(),
                skipped: skipped.collect(),
                unmatched: tree.unmatched.iter().map(|tool| tool.name.clone()).collect(),
            },
        }
    }

    /// The same, with colleagues elsewhere that may be out of reach.
    #[must_use]
    pub fn with_absent(self, absent: UnreachableAgents) -> Self {
        Self { absent, ..self }
    }
}

/// The server's state; cheap to clone.
#[derive(Clone)]
pub struct Gateway {
    shared: Arc<GatewayInner>,
}

struct GatewayInner {
    settings: ServerSettings,
    store: SqliteStore,
    lobby: ClientBridge,
    team: RwLock<Arc<ServedTeam>>,
    forget: DeleteSessionHook,
    surroundings: GatewayClockAndIds,
    places: OriginPolicy,
    gate: TokenCache,
    pace: Arc<RateLimiter>,
    metrics: Metrics,
    listeners: SessionSubscribers,
    streams: StreamLimiter,
    running: RunningTurns,
    claims: SessionClaims,
    a2a: A2a,
    pumps: TaskTracker,
    closing: CancellationToken,
    parking: CancellationToken,
    over: CancellationToken,
}

impl Gateway {
    pub fn new(parts: GatewayParts) -> Self {
        Self::with_tasks(parts, TaskBackend::default())
    }

    /// The same, with somebody else to work on what other agents ask for.
    pub fn with_tasks(parts: GatewayParts, tasks: TaskBackend) -> Self {
        let GatewayParts { settings, store, lobby, team, forget, surroundings } = parts;
        Self {
            shared: Arc::new(GatewayInner {
                places: OriginPolicy::new(&settings),
                pace: Arc::new(RateLimiter::new(&settings)),
                settings,
                store,
                lobby,
                team: RwLock::new(Arc::new(team)),
                forget,
                surroundings,
                gate: TokenCache::default(),
                metrics: Metrics::default(),
                listeners: SessionSubscribers::default(),
                streams: StreamLimiter::default(),
                running: RunningTurns::default(),
                claims: SessionClaims::default(),
                a2a: A2a::new(tasks),
                pumps: TaskTracker::new(),
                closing: CancellationToken::new(),
                parking: CancellationToken::new(),
                over: CancellationToken::new(),
            }),
        }
    }

    pub fn settings(&self) -> &ServerSettings {
        &self.shared.settings
    }

    pub fn store(&self) -> &SqliteStore {
        &self.shared.store
    }

    pub fn lobby(&self) -> &ClientBridge {
        &self.shared.lobby
    }

    /// Who answers at this moment; turns that run keep whom they have.
    pub fn team(&self) -> Arc<ServedTeam> {
        Arc::clone(&self.shared.team.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another team in place for the turns to come.
    pub fn replace_team(&self, team: ServedTeam) {
        *self.shared.team.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(team);
    }

    pub fn now(&self) -> Timestamp {
        (self.shared.surroundings.now)()
    }

    /// A text that was never given before.
    pub fn new_id(&self) -> String {
        (self.shared.surroundings.new_id)()
    }

    /// A session nobody has used before.
    pub fn new_session(&self) -> SessionId {
        SessionId::new(self.new_id())
    }

    pub(crate) fn forget(&self, principal: &Principal, session: &SessionId) {
        (self.shared.forget)(principal, session);
    }

    pub(crate) fn places(&self) -> &OriginPolicy {
        &self.shared.places
    }

    pub(crate) fn gate(&self) -> &TokenCache {
        &self.shared.gate
    }

    pub(crate) fn pace(&self) -> &Arc<RateLimiter> {
        &self.shared.pace
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    pub(crate) fn listeners(&self) -> &SessionSubscribers {
        &self.shared.listeners
    }

    /// A place for a stream that follows something, if there is one.
    pub(crate) fn open_stream(&self, principal: &Principal) -> Result<StreamPermit, ApiError> {
        self.shared.streams.acquire(principal, self.shared.settings.streams_per_principal.get())
    }

    pub(crate) fn running(&self) -> &RunningTurns {
        &self.shared.running
    }

    pub(crate) fn claims(&self) -> &SessionClaims {
        &self.shared.claims
    }

    pub(crate) fn a2a(&self) -> &A2a {
        &self.shared.a2a
    }

    /// The tasks that turns run in.
    pub(crate) fn turn_tasks(&self) -> &TaskTracker {
        &self.shared.pumps
    }

    /// Cancelled when nothing new is to begin.
    pub(crate) fn shutdown_started(&self) -> &CancellationToken {
        &self.shared.closing
    }

    /// Cancelled when what still runs is to stop.
    pub(crate) fn suspend_turns(&self) -> &CancellationToken {
        &self.shared.parking
    }

    /// Cancelled when nothing runs any more, and connections are to end.
    pub(crate) fn close_connections(&self) -> &CancellationToken {
        &self.shared.over
    }
}
