//! The runtime: starts turns, tracks them and stops them.

use std::sync::{Arc, PoisonError, RwLock};

use lango_domain::approval::Approver;
use lango_domain::event::{Principal, SessionId};
use lango_domain::redaction::Redact;
use lango_domain::session::SessionKey;
use lango_domain::{AgentName, StoreError};
use lango_engine::{Runner, TurnPermission, TurnStream, UnfinishedTurn};
use serde_json::Value;
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::subscribers::SessionSubscribers;
use crate::turn_limit::{TooManyTurns, TurnLimiter};
use crate::turn_meter::TurnMeter;
use crate::turns::{RunningTurns, TurnHandle, TurnInput, TurnSpec, TurnTarget, TurnTask};

/// The parts of a [`Runtime`].
pub struct RuntimeParts {
    pub runner: Runner,
    /// The approver of turns that bring none of their own: the terminal, or the clients of a server.
    pub approver: Option<Arc<dyn Approver>>,
    pub limiter: TurnLimiter,
}

/// Called when a turn has ended.
pub type TurnObserver = Box<dyn Fn(&TurnMeter) + Send + Sync>;

/// Runs the turns of a team. Cheap to clone.
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<RuntimeInner>,
}

struct RuntimeInner {
    runner: RwLock<Runner>,
    approver: Option<Arc<dyn Approver>>,
    limiter: Arc<TurnLimiter>,
    observers: RwLock<Vec<TurnObserver>>,
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
    #[error("the team has no tool named `{0}`")]
    UnknownTool(String),
    #[error("too many concurrent turns")]
    TooMany(TooManyTurns),
}

impl Runtime {
    pub fn new(parts: RuntimeParts) -> Self {
        Self {
            inner: Arc::new(RuntimeInner {
                runner: RwLock::new(parts.runner),
                approver: parts.approver,
                limiter: Arc::new(parts.limiter),
                observers: RwLock::default(),
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
        let TurnSpec {
            input,
            target,
            on_disconnect,
            permission,
            runner,
        } = spec;
        let runner = runner.unwrap_or_else(|| self.runner());
        let runner = runner_for(runner, &target)?;
        let key = input.session_key();
        let permit = self.inner.limiter.acquire(&key.principal);
        let permit = permit.map_err(StartTurnError::TooMany)?;
        let stream = self.start_stream(&runner, input, permission);
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
            permit,
            sender,
        };
        self.inner.tasks.spawn(task.run(stream));
        Ok(handle)
    }

    /// Checks that a turn of this principal could start now.
    pub fn check_capacity(&self, principal: &Principal) -> Result<(), StartTurnError> {
        let permit = self.inner.limiter.acquire(principal);
        permit.map(drop).map_err(StartTurnError::TooMany)
    }

    fn start_stream(
        &self,
        runner: &Runner,
        input: TurnInput,
        permission: TurnPermission,
    ) -> TurnStream {
        let approver = permission.approver.or_else(|| self.inner.approver.clone());
        let permission = TurnPermission {
            approver,
            ..permission
        };
        match input {
            TurnInput::Request(request) => runner.run_with(request, permission),
            TurnInput::Resume(SessionKey { session, principal }) => {
                runner.resume_with(session, principal, permission)
            }
        }
    }

    /// Returns the runner of the current team.
    fn runner(&self) -> Runner {
        self.inner
            .runner
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns the agent that every turn of the current team starts with.
    pub fn root(&self) -> AgentName {
        self.runner().root().clone()
    }

    /// Returns true if a call has no effect. False for a tool that the team does not have.
    pub fn is_read_only(&self, tool: &str, arguments: &Value) -> bool {
        self.runner().is_read_only(tool, arguments)
    }

    /// Returns the names of all agents and of all tools of the current team.
    pub fn agents_and_tools(&self) -> (Vec<String>, Vec<String>) {
        self.runner().agents_and_tools()
    }

    /// Removes the values of a principal's secrets from something that is stored without a turn.
    pub async fn redact(
        &self,
        principal: &Principal,
        value: &mut (impl Redact + ?Sized),
    ) -> Result<(), StoreError> {
        self.runner().redact(principal, value).await
    }

    /// Returns the turn that [`TurnSpec::resume`] would resume.
    pub async fn find_unfinished_turn(
        &self,
        key: &SessionKey,
    ) -> Result<Option<UnfinishedTurn>, StoreError> {
        let runner = self.runner();
        runner
            .find_unfinished_turn(&key.session, &key.principal)
            .await
    }

    /// Waits until the after-turn hooks of the current team's finished turns are done.
    pub async fn wait_for_hooks(&self) {
        self.runner().wait_for_hooks().await;
    }

    /// Adds a function that is called for every turn that has ended.
    pub fn observe_turns(&self, observer: TurnObserver) {
        self.inner
            .observers
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(observer);
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

    pub(crate) fn record_turn(&self, meter: &TurnMeter) {
        let observers = self.inner.observers.read();
        let observers = observers.unwrap_or_else(PoisonError::into_inner);
        observers.iter().for_each(|observer| observer(meter));
    }
}

fn runner_for(runner: Runner, target: &TurnTarget) -> Result<Runner, StartTurnError> {
    match target {
        TurnTarget::Team => Ok(runner),
        TurnTarget::Agent(agent) => runner
            .single_agent(agent.as_str())
            .ok_or_else(|| StartTurnError::UnknownAgent(agent.clone())),
        TurnTarget::Call { tool, arguments } => runner
            .single_call(tool, arguments.clone())
            .ok_or_else(|| StartTurnError::UnknownTool(tool.clone())),
    }
}
