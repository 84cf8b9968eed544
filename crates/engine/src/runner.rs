//! The one door: a request in, a stream of updates out.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::future::FutureExt;
use lango_domain::Clock;
use lango_domain::approval::Approver;
use lango_domain::event::{Author, Branch, EventBody, Principal, SessionId, TurnId, Update};
use lango_domain::failure::{FailureCode, FailureFamily};
use lango_domain::model::Model;
use lango_domain::remote_agent::RemoteAgent;
use lango_domain::session::SessionKey;
use lango_domain::session::{HistoryWindow, SessionKeyRef, SessionStore, StoreError, TurnLock};
use lango_domain::{AgentName, AgentTree};
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::task::TaskTracker;

use crate::agent_loop::AgentOutcome;
use crate::approval_policy::ApprovalPolicy;
use crate::calibration::Calibration;
use crate::driver::{ActiveAgent, Driver, STOP_GRACE_PERIOD, StopSignal};
use crate::hooks::TurnHooks;
use crate::limits::{TurnLimits, TurnSpend};
use crate::prepared_team::PreparedTeam;
use crate::progress_summary::progress_summary;
use crate::recovery::UnfinishedTurn;
use crate::request::{NewRequest, TurnRequest};
use crate::tool_execution::AbortOnDrop;
use crate::turn_clock::TurnClock;
use crate::turn_error::{TurnError, panic_message};
use crate::turn_log::{LogEntry, TurnLog, TurnLogOptions};
use crate::turn_stream::{TurnSignals, TurnStream};

/// More bytes than any text has for a token.
const BYTES_PER_TOKEN: usize = 8;

/// Only the turn at the end.
const LAST_TURN: HistoryWindow = HistoryWindow::Recent { bytes: 0 };

/// What a runner is put together from.
pub struct RunnerParts {
    pub tree: AgentTree,
    pub models: Models,
    pub store: Arc<dyn SessionStore>,
    /// Without one, whatever needs permission is denied.
    pub approver: Option<Arc<dyn Approver>>,
    /// Which calls need permission.
    pub approval_policy: ApprovalPolicy,
    pub hooks: TurnHooks,
    pub remotes: BTreeMap<AgentName, Arc<dyn RemoteAgent>>,
    pub limits: TurnLimits,
    pub clock_and_ids: ClockAndIds,
}

/// Which model each agent asks.
#[derive(Clone)]
pub struct Models {
    pub default: Arc<dyn Model>,
    pub per_agent: BTreeMap<AgentName, Arc<dyn Model>>,
}

impl Models {
    pub(crate) fn for_agent(&self, agent: &AgentName) -> &Arc<dyn Model> {
        self.per_agent.get(agent).unwrap_or(&self.default)
    }

    fn largest_window(&self) -> usize {
        let own = self.per_agent.values().map(|model| model.window());
        own.fold(self.default.window(), usize::max)
    }
}

/// Time and chance, handed down so that a turn can be repeated exactly.
#[derive(Clone)]
pub struct ClockAndIds {
    pub now: Clock,
    pub new_turn_id: Arc<dyn Fn() -> TurnId + Send + Sync>,
}

/// A turn to begin, or without a request one to go on with.
struct TurnStart {
    session: SessionId,
    principal: Principal,
    request: Option<NewRequest>,
}

/// Runs turns of one team; cheap to clone.
#[derive(Clone)]
pub struct Runner {
    inner: Arc<RunnerInner>,
}

#[derive(Clone)]
struct RunnerInner {
    team: Arc<PreparedTeam>,
    calibration: Arc<Calibration>,
    models: Models,
    store: Arc<dyn SessionStore>,
    approver: Option<Arc<dyn Approver>>,
    approval_policy: ApprovalPolicy,
    hooks: TurnHooks,
    /// What is done about turns that ended.
    after_turn_tasks: TaskTracker,
    remotes: BTreeMap<AgentName, Arc<dyn RemoteAgent>>,
    limits: TurnLimits,
    clock_and_ids: ClockAndIds,
}

impl Runner {
    pub fn new(parts: RunnerParts) -> Self {
        let RunnerParts {
            tree,
            models,
            store,
            approver,
            approval_policy: approval,
            hooks: beside,
            remotes,
            limits,
            clock_and_ids: surroundings,
        } = parts;
        let crew = Arc::new(PreparedTeam::new(tree));
        Self {
            inner: Arc::new(RunnerInner {
                team: crew,
                calibration: Arc::default(),
                models,
                store,
                approver,
                approval_policy: approval,
                hooks: beside,
                after_turn_tasks: TaskTracker::new(),
                remotes,
                limits,
                clock_and_ids: surroundings,
            }),
        }
    }

    /// Runs turns of one agent of the team alone: it begins them, answers them, and nobody stands behind it. None where
    /// the team has no such agent, or has it elsewhere.
    pub fn single_agent(&self, agent: &str) -> Option<Self> {
        let crew = Arc::new(self.inner.team.single_agent(agent)?);
        Some(Self {
            inner: Arc::new(RunnerInner {
                team: crew,
                ..RunnerInner::clone(&self.inner)
            }),
        })
    }

    /// Whom every turn begins with.
    pub fn root(&self) -> &AgentName {
        self.inner.team.root()
    }

    /// Starts a turn, behind any other turn of the session (B60). Dropping the stream cancels it; a turn that is
    /// cancelled before its time came leaves no trace.
    ///
    /// Must be called within a tokio runtime.
    pub fn run(&self, request: TurnRequest) -> TurnStream {
        let TurnRequest {
            session,
            principal,
            text,
            label,
            attachments,
        } = request;
        self.start(TurnStart {
            session,
            principal,
            request: Some(NewRequest {
                text,
                label,
                attachments,
            }),
        })
    }

    /// Goes on with a turn that its process did not finish, where it stopped (B73); without one the stream is empty.
    ///
    /// Must be called within a tokio runtime.
    pub fn resume(&self, session: SessionId, principal: Principal) -> TurnStream {
        self.start(TurnStart {
            session,
            principal,
            request: None,
        })
    }

    /// The turn that [`Runner::resume`] would go on with.
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

    /// Waits until everything is done that follows turns which ended: what they leave to remember, to ask, to learn.
    pub async fn wait_for_hooks(&self) {
        self.inner.after_turn_tasks.close();
        self.inner.after_turn_tasks.wait().await;
        self.inner.after_turn_tasks.reopen();
    }

    fn start(&self, begin: TurnStart) -> TurnStream {
        TurnStream::start(|end, updates| run_turn(Arc::clone(&self.inner), begin, end, updates))
    }
}

async fn run_turn(
    shared: Arc<RunnerInner>,
    begin: TurnStart,
    end: TurnSignals,
    updates: UnboundedSender<Update>,
) {
    let of = SessionKey {
        session: begin.session.clone(),
        principal: begin.principal.clone(),
    };
    // Held until what follows is on its way, so that nobody finds everything settled in between.
    let _follows = shared.after_turn_tasks.token();
    let turn = AssertUnwindSafe(shared.run_turn(begin, end, &updates))
        .catch_unwind()
        .await;
    let error = match turn {
        Ok(Ok(())) => return shared.run_after_turn_hooks(of),
        Ok(Err(error)) => error,
        Err(payload) => StoreError(panic_message(&*payload).to_owned()),
    };
    let _ = updates.send(Update::StoreFailed(error));
}

impl RunnerInner {
    async fn run_turn(
        &self,
        begin: TurnStart,
        end: TurnSignals,
        updates: &UnboundedSender<Update>,
    ) -> Result<(), StoreError> {
        let key = SessionKeyRef {
            session: &begin.session,
            principal: &begin.principal,
        };
        // No limit here: the turns before this one end, and its own time begins when they have.
        let lock = tokio::select! {
            biased;
            () = end.cancel.cancelled() => return Ok(()),
            lock = self.store.lock(key) => lock?,
        };
        let prepared = tokio::select! {
            biased;
            () = end.cancel.cancelled() => return Ok(()),
            () = tokio::time::sleep(self.limits.turn_timeout()) => Err(store_timeout()),
            prepared = self.prepare(&begin, lock, updates) => prepared,
        };
        let (mut record, left) = prepared?;
        match (begin.request, left) {
            (Some(request), _) => {
                let driver = self.new_driver(record, request.text.clone(), &end);
                driver.run(StartMode::New(request), updates).await;
            }
            (None, Some(left)) if !left.is_answered => {
                record.turn = left.turn;
                let driver = self.new_driver(record, left.request, &end);
                driver
                    .delegations
                    .store(left.delegations, Ordering::Relaxed);
                driver.run(StartMode::Resume, updates).await;
            }
            (None, _) => record.close(Vec::new()).await?,
        }
        Ok(())
    }

    /// Opens the log, and closes what an earlier process left open. A turn that is not gone on with ends here.
    async fn prepare(
        &self,
        begin: &TurnStart,
        lock: TurnLock,
        updates: &UnboundedSender<Update>,
    ) -> Result<(TurnLog, Option<UnfinishedTurn>), StoreError> {
        let record = self.open_log(begin, lock, updates.clone()).await?;
        let left = record.read(|log| self.team.find_unfinished_turn(log));
        if let Some(left) = &left {
            let mut closings = left.closing_entries.clone();
            if begin.request.is_some() || left.is_answered {
                closings.push(self.root_entry(left.closing_body()));
            }
            record.append_to_turn(&left.turn, closings).await?;
        }
        Ok((record, left))
    }

    /// Nobody waits for it, and the session can be used meanwhile.
    fn run_after_turn_hooks(&self, of: SessionKey) {
        for told in &self.hooks.after_turn {
            self.after_turn_tasks.spawn(told.on_turn_end(of.clone()));
        }
    }

    fn root_entry(&self, body: EventBody) -> LogEntry {
        let root = self.team.root();
        LogEntry::plain(Author::Agent(root.clone()), Branch::root(root), body)
    }

    async fn open_log(
        &self,
        begin: &TurnStart,
        lock: TurnLock,
        updates: UnboundedSender<Update>,
    ) -> Result<TurnLog, StoreError> {
        let (session, principal) = (begin.session.clone(), begin.principal.clone());
        let (store, surroundings) = (Arc::clone(&self.store), self.clock_and_ids.clone());
        let reach = HistoryWindow::Recent {
            bytes: self.models.largest_window() * BYTES_PER_TOKEN,
        };
        TurnLog::open(TurnLogOptions {
            session,
            principal,
            store,
            clock_and_ids: surroundings,
            updates,
            history_window: reach,
            lock,
        })
        .await
    }

    fn new_driver(&self, record: TurnLog, request: String, end: &TurnSignals) -> Arc<Driver> {
        Arc::new(Driver {
            team: Arc::clone(&self.team),
            models: self.models.clone(),
            remotes: self.remotes.clone(),
            approver: self.approver.clone(),
            approval_policy: self.approval_policy.clone(),
            hooks: self.hooks.clone(),
            clock: TurnClock::default(),
            limits: self.limits.clone(),
            calibration: Arc::clone(&self.calibration),
            log: record,
            stop: StopSignal::new(end.cancel.clone()),
            suspend: end.suspend.clone(),
            request,
            spend: Mutex::new(TurnSpend::default()),
            delegations: AtomicUsize::new(0),
            denied_calls: Mutex::default(),
            approval_lock: tokio::sync::Mutex::default(),
        })
    }
}

fn store_timeout() -> StoreError {
    StoreError("the store does not answer".to_owned())
}

/// How a turn begins.
enum StartMode {
    /// With a request that is looked up first.
    New(NewRequest),
    /// Where it stopped.
    Resume,
}

impl Driver {
    /// The whole turn: it ends in an answer or a failure with a code, never in silence (B59), and it ends when it is
    /// stopped, whatever it waits for (B104).
    async fn run(self: Arc<Self>, start: StartMode, updates: &UnboundedSender<Update>) {
        let root = self.team.root().clone();
        let seat = Arc::new(ActiveAgent {
            branch: Branch::root(&root),
            agent: root,
            is_streamed: true,
        });
        let worked = {
            let (driver, seat) = (Arc::clone(&self), Arc::clone(&seat));
            AbortOnDrop(tokio::spawn(async move {
                driver.answer_request(&seat, start).await
            }))
        };
        let clock = async {
            self.clock.wait_until(self.limits.turn_timeout()).await;
            self.stop
                .stop_with(TurnError::limit(FailureCode::LimitTime));
            std::future::pending::<()>().await;
        };
        let ended = tokio::select! {
            biased;
            ended = worked => ended.unwrap_or_else(|error| Err(TurnError::from_join_error(error))),
            () = clock => Ok(()),
            () = self.stop.wait_until_overdue() => Err(self.stop.cause()),
        };
        if let Err(error) = self.close(&seat, ended).await {
            let _ = updates.send(Update::StoreFailed(error));
        }
    }

    /// Writes the end of the turn. A store that does not answer has no say in whether the turn ends.
    async fn close(
        &self,
        seat: &ActiveAgent,
        ended: Result<(), TurnError>,
    ) -> Result<(), StoreError> {
        let last = match ended {
            Ok(()) => vec![EventBody::TurnDone],
            Err(failure)
                if failure.code == FailureCode::Cancelled && self.suspend.is_cancelled() =>
            {
                Vec::new()
            }
            Err(failure) => vec![self.failure_body(failure)],
        };
        let as_root =
            |body| LogEntry::plain(Author::Agent(seat.agent.clone()), seat.branch.clone(), body);
        // Work that had to be cut off has left calls open.
        let open = match last.is_empty() {
            true => Vec::new(),
            false => self
                .log
                .read(|log| self.team.find_unfinished_turn(log))
                .map_or_else(Vec::new, |left| left.closing_entries),
        };
        let entries = open
            .into_iter()
            .chain(last.into_iter().map(as_root))
            .collect();
        let closed = tokio::time::timeout(STOP_GRACE_PERIOD, self.log.close(entries)).await;
        closed.unwrap_or_else(|_| Err(store_timeout()))
    }

    async fn answer_request(
        self: &Arc<Self>,
        seat: &Arc<ActiveAgent>,
        start: StartMode,
    ) -> Result<(), TurnError> {
        if let StartMode::New(request) = start {
            self.record_request(seat, request).await?;
        }
        match self.run_agent(seat).await? {
            AgentOutcome::Answered {
                author,
                text,
                label,
            } if author == seat.agent => {
                self.append(seat, &label, vec![EventBody::Answer { text }])
                    .await
            }
            // The specialist's answer stands in its own branch already.
            AgentOutcome::Answered { .. } => Ok(()),
            AgentOutcome::Rejected { reason, .. } => Err(TurnError::internal(&reason)),
            AgentOutcome::Failed(failure) => Err(failure),
        }
    }

    fn failure_body(&self, failure: TurnError) -> EventBody {
        tracing::warn!(code = %failure.code, detail = failure.detail, "the turn failed");
        let done = self.log.read(|log| progress_summary(log, &self.log.turn));
        let message = match failure.code.family() {
            FailureFamily::Limit => format!("{} {done}", failure.message),
            _ => failure.message,
        };
        EventBody::TurnFailed {
            code: failure.code,
            message,
            hint: failure.hint,
        }
    }
}
