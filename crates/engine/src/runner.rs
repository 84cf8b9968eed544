//! The entry point of the engine: takes a request, returns a stream of updates.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::future::FutureExt;
use lango_domain::StoreError;
use lango_domain::approval::Approver;
use lango_domain::blobs::BlobStore;
use lango_domain::event::{Author, Branch, EventBody, Principal, SessionId, Update};
use lango_domain::remote_agent::RemoteAgent;
use lango_domain::session::{HistoryWindow, SessionKey, SessionKeyRef, SessionStore, TurnLock};
use lango_domain::{AgentName, AgentTree, SecretSource};
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::task::TaskTracker;

use crate::agent_models::Models;
use crate::approval_policy::ApprovalPolicy;
use crate::calibration::Calibration;
use crate::driver::{Driver, StopSignal};
use crate::hooks::TurnHooks;
use crate::limits::{TurnLimits, TurnSpend};
use crate::prepared_team::PreparedTeam;
use crate::recovery::UnfinishedTurn;
use crate::request::{NewRequest, TurnRequest};
use crate::secrets::TurnSecrets;
use crate::turn::{StartMode, store_timeout};
use crate::turn_clock::ClockAndIds;
use crate::turn_clock::TurnClock;
use crate::turn_error::panic_message;
use crate::turn_log::{LogEntry, TurnLog, TurnLogOptions};
use crate::turn_permission::{TurnPermission, TurnPolicy};
use crate::turn_stream::{TurnSignals, TurnStream};

/// An upper bound for the bytes of one token.
const BYTES_PER_TOKEN: usize = 8;

/// Loads only the last turn.
const LAST_TURN: HistoryWindow = HistoryWindow::Recent { bytes: 0 };

/// The parts that a [`Runner`] is built from.
pub struct RunnerParts {
    pub tree: AgentTree,
    pub models: Models,
    pub store: Arc<dyn SessionStore>,
    /// The bytes of attachments in the sessions of `store`.
    pub blobs: Arc<dyn BlobStore>,
    /// The approver of turns that bring none of their own. Without one, every call that needs approval
    /// is denied.
    pub approver: Option<Arc<dyn Approver>>,
    pub approval_policy: ApprovalPolicy,
    pub hooks: TurnHooks,
    /// Resolves references to secrets. Without it, there are none.
    pub secrets: Option<Arc<dyn SecretSource>>,
    pub remotes: BTreeMap<AgentName, Arc<dyn RemoteAgent>>,
    pub limits: TurnLimits,
    pub clock_and_ids: ClockAndIds,
}

/// A turn to start, or to resume if there is no request.
struct TurnStart {
    session: SessionId,
    principal: Principal,
    request: Option<NewRequest>,
    permission: TurnPermission,
}

/// Runs the turns of one team. Cheap to clone.
#[derive(Clone)]
pub struct Runner {
    pub(crate) inner: Arc<RunnerInner>,
}

impl std::fmt::Debug for Runner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Runner").finish_non_exhaustive()
    }
}

#[derive(Clone)]
pub(crate) struct RunnerInner {
    pub(crate) team: Arc<PreparedTeam>,
    pub(crate) calibration: Arc<Calibration>,
    pub(crate) models: Models,
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) blobs: Arc<dyn BlobStore>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) approval_policy: ApprovalPolicy,
    pub(crate) hooks: TurnHooks,
    pub(crate) secrets: Option<Arc<dyn SecretSource>>,
    /// Tracks the running [`lango_domain::hooks::AfterTurn`] hooks.
    pub(crate) after_turn_tasks: TaskTracker,
    pub(crate) remotes: BTreeMap<AgentName, Arc<dyn RemoteAgent>>,
    pub(crate) limits: TurnLimits,
    pub(crate) clock_and_ids: ClockAndIds,
}

impl Runner {
    pub fn new(parts: RunnerParts) -> Self {
        let RunnerParts {
            tree,
            models,
            store,
            blobs,
            approver,
            approval_policy,
            hooks,
            secrets,
            remotes,
            limits,
            clock_and_ids,
        } = parts;
        let team = Arc::new(PreparedTeam::new(tree));
        Self {
            inner: Arc::new(RunnerInner {
                team,
                calibration: Arc::default(),
                models,
                store,
                blobs,
                approver,
                approval_policy,
                hooks,
                secrets,
                after_turn_tasks: TaskTracker::new(),
                remotes,
                limits,
                clock_and_ids,
            }),
        }
    }

    /// Returns a runner whose turns consist of this agent alone: it starts and answers them without
    /// delegating. Returns `None` if the team has no such agent or if the agent is remote.
    pub fn single_agent(&self, agent: &str) -> Option<Self> {
        let team = Arc::new(self.inner.team.single_agent(agent)?);
        Some(Self {
            inner: Arc::new(RunnerInner {
                team,
                ..RunnerInner::clone(&self.inner)
            }),
        })
    }

    /// Returns the agent that every turn starts with.
    pub fn root(&self) -> &AgentName {
        self.inner.team.root()
    }

    /// Starts a turn after all earlier turns of the session (B60). Dropping the stream cancels the
    /// turn; a turn that is cancelled while it waits for an earlier one leaves no events.
    ///
    /// Must be called within a tokio runtime.
    pub fn run(&self, request: TurnRequest) -> TurnStream {
        self.run_with(request, TurnPermission::default())
    }

    /// Starts a turn with a permission that holds for this turn only. See [`Runner::run`].
    pub fn run_with(&self, request: TurnRequest, permission: TurnPermission) -> TurnStream {
        let TurnRequest {
            session,
            principal,
            content,
            label,
            context,
            turn,
        } = request;
        self.start(TurnStart {
            session,
            principal,
            request: Some(NewRequest {
                content,
                label,
                context,
                turn,
            }),
            permission,
        })
    }

    /// Resumes an unfinished turn where it stopped (B73). The stream is empty if there is none.
    ///
    /// Must be called within a tokio runtime.
    pub fn resume(&self, session: SessionId, principal: Principal) -> TurnStream {
        self.resume_with(session, principal, TurnPermission::default())
    }

    /// Resumes an unfinished turn with a permission for the rest of it. See [`Runner::resume`].
    pub fn resume_with(
        &self,
        session: SessionId,
        principal: Principal,
        permission: TurnPermission,
    ) -> TurnStream {
        self.start(TurnStart {
            session,
            principal,
            request: None,
            permission,
        })
    }

    /// Returns the turn that [`Runner::resume`] would resume.
    pub async fn find_unfinished_turn(
        &self,
        session: &SessionId,
        principal: &Principal,
    ) -> Result<Option<UnfinishedTurn>, StoreError> {
        let log = self
            .inner
            .store
            .load(SessionKeyRef { session, principal }, LAST_TURN)
            .await?;
        Ok(self.inner.team.find_unfinished_turn(&log))
    }

    /// Waits until the after-turn hooks of all finished turns are done.
    pub async fn wait_for_hooks(&self) {
        self.inner.after_turn_tasks.close();
        self.inner.after_turn_tasks.wait().await;
        self.inner.after_turn_tasks.reopen();
    }

    fn start(&self, start: TurnStart) -> TurnStream {
        TurnStream::start(|signals, updates| {
            run_turn(Arc::clone(&self.inner), start, signals, updates)
        })
    }
}

async fn run_turn(
    inner: Arc<RunnerInner>,
    start: TurnStart,
    signals: TurnSignals,
    updates: UnboundedSender<Update>,
) {
    let key = SessionKey {
        session: start.session.clone(),
        principal: start.principal.clone(),
    };
    // Held until the hooks are spawned, so that `wait_for_hooks` cannot return in between.
    let _token = inner.after_turn_tasks.token();
    let turn = AssertUnwindSafe(inner.run_turn(start, signals, &updates))
        .catch_unwind()
        .await;
    let error = match turn {
        Ok(Ok(())) => return inner.run_after_turn_hooks(&key),
        Ok(Err(error)) => error,
        Err(payload) => StoreError::Other(panic_message(&*payload).to_owned()),
    };
    let _ = updates.send(Update::StoreFailed(error));
}

impl RunnerInner {
    async fn run_turn(
        &self,
        start: TurnStart,
        signals: TurnSignals,
        updates: &UnboundedSender<Update>,
    ) -> Result<(), StoreError> {
        let key = SessionKeyRef {
            session: &start.session,
            principal: &start.principal,
        };
        // No timeout: earlier turns have their own, and the time of this turn starts after them.
        let lock = tokio::select! {
            biased;
            () = signals.cancel.cancelled() => return Ok(()),
            lock = self.store.lock(key) => lock?,
        };
        let prepared = tokio::select! {
            biased;
            () = signals.cancel.cancelled() => return Ok(()),
            () = tokio::time::sleep(self.limits.turn_timeout()) => Err(store_timeout()),
            prepared = self.prepare(&start, lock, updates) => prepared,
        };
        let (mut log, unfinished) = prepared?;
        let permission = start.permission;
        match (start.request, unfinished) {
            (Some(mut request), _) => {
                log.secrets.redact(&mut request);
                if let Some(turn) = &request.turn {
                    log.turn = turn.clone();
                }
                let driver =
                    self.new_driver(log, request.content.text.clone(), permission, &signals);
                driver.run(StartMode::New(request), updates).await;
            }
            (None, Some(unfinished)) if !unfinished.is_answered => {
                log.turn = unfinished.turn;
                let driver = self.new_driver(log, unfinished.request, permission, &signals);
                driver
                    .delegations
                    .store(unfinished.delegations, Ordering::Relaxed);
                driver.run(StartMode::Resume, updates).await;
            }
            (None, _) => log.close(Vec::new()).await?,
        }
        Ok(())
    }

    /// Opens the log and closes the calls that an earlier process left open. Also ends the unfinished
    /// turn, unless it is being resumed.
    async fn prepare(
        &self,
        start: &TurnStart,
        lock: TurnLock,
        updates: &UnboundedSender<Update>,
    ) -> Result<(TurnLog, Option<UnfinishedTurn>), StoreError> {
        let log = self.open_log(start, lock, updates.clone()).await?;
        let unfinished = log.read(|events| self.team.find_unfinished_turn(events));
        if let Some(unfinished) = &unfinished {
            let mut entries = unfinished.closing_entries.clone();
            if start.request.is_some() || unfinished.is_answered {
                entries.push(self.root_entry(unfinished.closing_body()));
            }
            log.append_to_turn(&unfinished.turn, entries).await?;
        }
        Ok((log, unfinished))
    }

    /// Spawns the after-turn hooks. The session can be used while they run.
    fn run_after_turn_hooks(&self, key: &SessionKey) {
        for hook in &self.hooks.after_turn {
            self.after_turn_tasks.spawn(hook.on_turn_end(key.clone()));
        }
    }

    fn root_entry(&self, body: EventBody) -> LogEntry {
        let root = self.team.root();
        LogEntry::plain(Author::Agent(root.clone()), Branch::root(root), body)
    }

    async fn open_log(
        &self,
        start: &TurnStart,
        lock: TurnLock,
        updates: UnboundedSender<Update>,
    ) -> Result<TurnLog, StoreError> {
        let principal = start.principal.clone();
        TurnLog::open(TurnLogOptions {
            session: start.session.clone(),
            secrets: TurnSecrets::load(self.secrets.clone(), principal.clone()).await?,
            principal,
            store: Arc::clone(&self.store),
            clock_and_ids: self.clock_and_ids.clone(),
            updates,
            history_window: HistoryWindow::Recent {
                bytes: self.models.largest_window() * BYTES_PER_TOKEN,
            },
            lock,
        })
        .await
    }

    fn new_driver(
        &self,
        log: TurnLog,
        request: String,
        permission: TurnPermission,
        signals: &TurnSignals,
    ) -> Arc<Driver> {
        let TurnPermission {
            approver,
            approval_wait,
            rules,
            budget,
            guard,
        } = permission;
        let configured = self.approval_policy.clone();
        Arc::new(Driver {
            team: Arc::clone(&self.team),
            models: self.models.clone(),
            blobs: Arc::clone(&self.blobs),
            remotes: self.remotes.clone(),
            approver: approver.or_else(|| self.approver.clone()),
            approval_policy: TurnPolicy::new(configured, rules, approval_wait),
            hooks: self.hooks.clone(),
            clock: TurnClock::default(),
            limits: budget.apply_to(&self.limits),
            budget,
            guard,
            calibration: Arc::clone(&self.calibration),
            log,
            stop: StopSignal::new(signals.cancel.clone()),
            suspend: signals.suspend.clone(),
            request,
            spend: Mutex::new(TurnSpend::default()),
            delegations: AtomicUsize::new(0),
            denied_calls: Mutex::default(),
            approval_lock: tokio::sync::Mutex::default(),
        })
    }
}
