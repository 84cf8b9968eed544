//! The runtime: starts turns, tracks them and stops them.

use std::sync::{Arc, PoisonError, RwLock};

use lango_domain::AgentName;
use lango_domain::event::{Principal, SessionId};
use lango_domain::session::SessionKey;
use lango_engine::{Runner, TurnRequest};
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::approvals::ClientBridge;
use crate::subscribers::SessionSubscribers;
use crate::turn_limit::{TooManyTurns, TurnLimiter};
use crate::turn_meter::TurnMeter;
use crate::turns::{RunningTurns, TurnHandle, TurnInput, TurnSpec, TurnTarget, TurnTask};

/// The parts of a [`Runtime`].
pub struct RuntimeParts {
    pub runner: Runner,
    /// The bridge that the runner uses for approvals and client context.
    pub client_bridge: ClientBridge,
    /// Most turns that run at the same time.
    pub turns: usize,
    pub turns_per_principal: usize,
    /// Called when a turn has ended.
    pub on_turn_end: Box<dyn Fn(TurnMeter) + Send + Sync>,
}

/// Runs the turns of a team. Cheap to clone.
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<RuntimeInner>,
}

struct RuntimeInner {
    runner: RwLock<Runner>,
    client_bridge: ClientBridge,
    limiter: Arc<TurnLimiter>,
    on_turn_end: Box<dyn Fn(TurnMeter) + Send + Sync>,
    subscribers: SessionSubscribers,
    running_turns: RunningTurns,
    tasks: TaskTracker,
    shutdown_started: CancellationToken,
    suspend_turns: CancellationToken,
}

/// The reason why a turn was not started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartTurnError {
    #[error("the server is shutting down")]
    ShuttingDown,
    #[error("no agent named `{0}` can be called directly")]
    UnknownAgent(AgentName),
    #[error("too many concurrent turns")]
    TooMany(TooManyTurns),
}

impl Runtime {
    pub fn new(parts: RuntimeParts) -> Self {
        Self {
            inner: Arc::new(RuntimeInner {
                runner: RwLock::new(parts.runner),
                client_bridge: parts.client_bridge,
                limiter: Arc::new(TurnLimiter::new(parts.turns, parts.turns_per_principal)),
                on_turn_end: parts.on_turn_end,
                subscribers: SessionSubscribers::default(),
                running_turns: RunningTurns::default(),
                tasks: TaskTracker::new(),
                shutdown_started: CancellationToken::new(),
                suspend_turns: CancellationToken::new(),
            }),
        }
    }

    /// Starts a turn, unless a limit is reached or the process is shutting down.
    pub fn start_turn(&self, spec: TurnSpec) -> Result<TurnHandle, StartTurnError> {
        if self.shutdown_started().is_cancelled() {
            return Err(StartTurnError::ShuttingDown);
        }
        let runner = self.runner_for(&spec.target)?;
        let permit = self.inner.limiter.acquire(&spec.principal);
        let permit = permit.map_err(StartTurnError::TooMany)?;
        let TurnSpec {
            principal,
            session,
            input,
            on_disconnect,
            ..
        } = spec;
        let key = SessionKey {
            principal: principal.clone(),
            session: session.clone(),
        };
        let stream = match input {
            TurnInput::Request(text) => {
                runner.run(TurnRequest::from_user(session, principal, text))
            }
            TurnInput::Resume => runner.resume(session, principal),
        };
        let (sender, updates) = unbounded_channel();
        let (number, cancel) = self.running_turns().insert(&key);
        let handle = TurnHandle {
            updates,
            cancel: cancel.clone(),
        };
        let task = TurnTask {
            runtime: self.clone(),
            key,
            number,
            cancel,
            on_disconnect,
            sender,
            permit,
        };
        self.inner.tasks.spawn(task.run(stream));
        Ok(handle)
    }

    fn runner_for(&self, target: &TurnTarget) -> Result<Runner, StartTurnError> {
        let runner = self
            .inner
            .runner
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        match target {
            TurnTarget::Team => Ok(runner.clone()),
            TurnTarget::Agent(agent) => runner
                .single_agent(agent.as_str())
                .ok_or_else(|| StartTurnError::UnknownAgent(agent.clone())),
        }
    }

    /// Replaces the team for future turns. Running turns keep the team they started with.
    pub fn replace_runner(&self, runner: Runner) {
        *self
            .inner
            .runner
            .write()
            .unwrap_or_else(PoisonError::into_inner) = runner;
    }

    /// Cancels the running turn of a session, but no queued ones. Returns true if there was one.
    pub fn cancel_turn(&self, principal: &Principal, session: &SessionId) -> bool {
        self.running_turns().cancel(&SessionKey {
            principal: principal.clone(),
            session: session.clone(),
        })
    }

    /// Returns true if the session has a running or queued turn.
    pub fn has_turn(&self, key: &SessionKey) -> bool {
        self.running_turns().contains(key)
    }

    pub fn turns_running(&self) -> usize {
        self.inner.limiter.turns_running()
    }

    pub fn client_bridge(&self) -> &ClientBridge {
        &self.inner.client_bridge
    }

    pub fn subscribers(&self) -> &SessionSubscribers {
        &self.inner.subscribers
    }

    /// Tracks the tasks that run turns.
    pub fn tasks(&self) -> &TaskTracker {
        &self.inner.tasks
    }

    /// Cancelled when shutdown starts; no new turns are accepted after that.
    pub fn shutdown_started(&self) -> &CancellationToken {
        &self.inner.shutdown_started
    }

    /// Cancelled when the grace period is over; running turns are suspended.
    pub fn suspend_turns(&self) -> &CancellationToken {
        &self.inner.suspend_turns
    }

    pub(crate) fn running_turns(&self) -> &RunningTurns {
        &self.inner.running_turns
    }

    pub(crate) fn record_turn(&self, meter: TurnMeter) {
        (self.inner.on_turn_end)(meter);
    }
}
