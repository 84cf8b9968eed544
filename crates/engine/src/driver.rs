//! The dull part: asks the model, carries calls out, writes down what happened. Every decision is the machine's.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt, join_all};
use futures::stream::FuturesOrdered;
use lango_domain::approval::Approver;
use lango_domain::event::{Author, Branch, EventBody, RemoteThread, ToolCode};
use lango_domain::model::ToolCall;
use lango_domain::remote_agent::RemoteAgent;
use lango_domain::{AgentName, Label};
use tokio_util::sync::CancellationToken;

use crate::agent_loop::{ActionResults, AgentLoop, AgentOutcome, LoopStep, ReplyNotes};
use crate::approval_policy::ApprovalPolicy;
use crate::calibration::Calibration;
use crate::hooks::TurnHooks;
use crate::limits::{TurnLimits, TurnSpend};
use crate::plan::CallAction;
use crate::prepared_team::PreparedTeam;
use crate::runner::Models;
use crate::tool_execution::{AbortOnDrop, ContentOrigin, ToolOutcome};
use crate::turn_clock::TurnClock;
use crate::turn_error::TurnError;
use crate::turn_log::{LogEntry, TurnLog};

/// So long a turn that is stopped may take to write down what it leaves.
pub(crate) const STOP_GRACE_PERIOD: Duration = Duration::from_secs(3);

/// Everything that one turn runs with.
pub(crate) struct Driver {
    pub team: Arc<PreparedTeam>,
    pub models: Models,
    pub remotes: BTreeMap<AgentName, Arc<dyn RemoteAgent>>,
    pub approver: Option<Arc<dyn Approver>>,
    pub hooks: TurnHooks,
    pub approval_policy: ApprovalPolicy,
    pub clock: TurnClock,
    pub limits: TurnLimits,
    pub calibration: Arc<Calibration>,
    pub log: TurnLog,
    pub stop: StopSignal,
    /// Whether a turn that is cancelled is to be gone on with.
    pub suspend: CancellationToken,
    pub request: String,
    pub spend: Mutex<TurnSpend>,
    pub delegations: AtomicUsize,
    /// Calls that were refused in this turn.
    pub denied_calls: Mutex<Vec<ToolCall>>,
    /// Questions to the user come one after the other.
    pub approval_lock: tokio::sync::Mutex<()>,
}

/// Where an agent works: its branch of the log, and whether its words reach the user as they come.
pub(crate) struct ActiveAgent {
    pub agent: AgentName,
    pub branch: Branch,
    pub is_streamed: bool,
}

impl ActiveAgent {
    pub fn entry(&self, label: &Label, body: EventBody) -> LogEntry {
        let (author, branch) = (Author::Agent(self.agent.clone()), self.branch.clone());
        LogEntry {
            author,
            branch,
            label: label.clone(),
            body,
        }
    }
}

/// A transfer that was accepted and written down.
pub(crate) struct Delegation {
    pub call: ToolCall,
    /// That of the task.
    pub label: Label,
    pub task: Option<String>,
    pub report_back: bool,
    pub active_agent: Arc<ActiveAgent>,
    /// From a remote agent: where it goes on when it is asked again.
    pub thread: Mutex<Option<RemoteThread>>,
}

impl Delegation {
    pub fn thread(&self) -> MutexGuard<'_, Option<RemoteThread>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Driver {
    /// One agent's work, from the first question to its model to the outcome.
    pub fn run_agent<'a>(
        self: &'a Arc<Self>,
        seat: &'a Arc<ActiveAgent>,
    ) -> BoxFuture<'a, Result<AgentOutcome, TurnError>> {
        async move {
            let mut work = AgentLoop::new(&self.team, &seat.agent);
            loop {
                let step = work.next(&self.limits, &self.spend());
                // An outcome that is there stands, whatever stops the turn at that moment.
                if !matches!(step, LoopStep::Finish(_)) {
                    self.stop.check()?;
                }
                match step {
                    LoopStep::AskModel(ask) => {
                        work.on_reply(self.call_model(seat, ask).await?, ask)
                    }
                    LoopStep::Execute {
                        notes: said,
                        actions,
                    } => work.on_actions_done(self.execute_actions(seat, said, actions).await?),
                    LoopStep::Finish(outcome) => return Ok(outcome),
                    LoopStep::Fail(failure) => return Err(failure),
                }
            }
        }
        .boxed()
    }

    /// Waits for something, unless the turn is stopped first.
    pub async fn wait<T>(&self, something: impl Future<Output = T>) -> Result<T, TurnError> {
        tokio::select! {
            biased;
            () = self.stop.token.cancelled() => Err(self.stop.cause()),
            done = something => Ok(done),
        }
    }

    /// Calls first, side by side; then transfers (B54).
    async fn execute_actions(
        self: &Arc<Self>,
        seat: &Arc<ActiveAgent>,
        said: ReplyNotes,
        actions: Vec<CallAction>,
    ) -> Result<ActionResults, TurnError> {
        let label = said.label.clone();
        let delegations = self.append_calls(seat, said, &actions).await?;
        self.answer_calls(seat, &actions, &label).await?;
        let handed_back = actions.iter().find_map(|action| match action {
            CallAction::HandBack { reason, .. } => {
                reason.clone().map(|reason| (reason, label.clone()))
            }
            _ => None,
        });
        let finished = join_all(
            delegations
                .iter()
                .map(|delegation| self.delegate(seat, delegation)),
        )
        .await;
        Ok(ActionResults {
            delegations: finished.into_iter().collect::<Result<_, _>>()?,
            handed_back,
        })
    }

    /// A call is in the log before it has an effect.
    async fn append_calls(
        &self,
        seat: &ActiveAgent,
        said: ReplyNotes,
        actions: &[CallAction],
    ) -> Result<Vec<Delegation>, TurnError> {
        let mut bodies: Vec<EventBody> =
            said.thoughts.into_iter().map(EventBody::Thought).collect();
        let mut delegations = Vec::new();
        if !said.note.trim().is_empty() {
            bodies.push(EventBody::Note { text: said.note });
        }
        for action in actions {
            match action {
                CallAction::Run(call)
                | CallAction::Refuse { call, .. }
                | CallAction::HandBack { call, .. } => {
                    let (id, tool, args) =
                        (call.id.clone(), call.name.clone(), call.arguments.clone());
                    bodies.push(EventBody::ToolCall { id, tool, args });
                }
                CallAction::Delegate {
                    call,
                    to,
                    task,
                    report_back,
                } => {
                    let number = self.delegations.fetch_add(1, Ordering::Relaxed) + 1;
                    let into = seat.branch.delegation(to, number);
                    let (id, to, task, report_back) =
                        (call.id.clone(), to.clone(), task.clone(), *report_back);
                    let child = ActiveAgent {
                        agent: to.clone(),
                        branch: into.clone(),
                        is_streamed: seat.is_streamed && !report_back,
                    };
                    delegations.push(Delegation {
                        call: call.clone(),
                        label: said.label.clone(),
                        task: task.clone(),
                        report_back,
                        active_agent: Arc::new(child),
                        thread: Mutex::default(),
                    });
                    bodies.push(EventBody::Transfer {
                        id,
                        to,
                        task,
                        report_back,
                        into,
                    });
                }
            }
        }
        if !delegations.is_empty() {
            self.spend().count_round();
        }
        self.append(seat, &said.label, bodies).await?;
        Ok(delegations)
    }

    /// Side by side; written down in the order of the calls. Every call is a task of its own: it goes on whatever this
    /// one waits for.
    async fn answer_calls(
        self: &Arc<Self>,
        seat: &Arc<ActiveAgent>,
        actions: &[CallAction],
        read: &Label,
    ) -> Result<(), TurnError> {
        let mut running: FuturesOrdered<_> = actions
            .iter()
            .filter_map(|action| self.answer(seat, action, read))
            .collect();
        while let Some(result) = running.next().await {
            let (body, label) = result?;
            self.append(seat, &label, vec![body]).await?;
        }
        Ok(())
    }

    fn answer(
        self: &Arc<Self>,
        seat: &Arc<ActiveAgent>,
        action: &CallAction,
        read: &Label,
    ) -> Option<BoxFuture<'static, Result<(EventBody, Label), TurnError>>> {
        let at_once = |call: &ToolCall, answer: ToolOutcome| {
            futures::future::ready(Ok(answer.into_body(call))).boxed()
        };
        match action {
            CallAction::Delegate { .. } => None,
            CallAction::Refuse {
                call,
                code,
                reason: why,
            } => Some(at_once(
                call,
                self.truncate_output(ToolOutcome::failed(*code, why)),
            )),
            CallAction::HandBack { call, .. } => {
                let words = ContentOrigin::default();
                Some(at_once(
                    call,
                    ToolOutcome::Succeeded {
                        text: "handed back".to_owned(),
                        origin: words,
                    },
                ))
            }
            CallAction::Run(call) => {
                let (driver, seat, call) = (Arc::clone(self), Arc::clone(seat), call.clone());
                Some(
                    driver
                        .run_tool_catching_panics(seat, call, read.clone())
                        .boxed(),
                )
            }
        }
    }

    /// Whatever breaks around a tool, its call gets a result.
    fn run_tool_catching_panics(
        self: Arc<Self>,
        seat: Arc<ActiveAgent>,
        call: ToolCall,
        read: Label,
    ) -> impl Future<Output = Result<(EventBody, Label), TurnError>> + Send {
        let task = {
            let (driver, call) = (Arc::clone(&self), call.clone());
            AbortOnDrop(tokio::spawn(async move {
                driver.run_tool(&seat, &call, &read).await
            }))
        };
        async move {
            let answer = task.await.unwrap_or_else(|error| {
                tracing::error!(%error, "something broke around a tool");
                Ok(ToolOutcome::failed(
                    ToolCode::Panicked,
                    "something broke around this call",
                ))
            });
            Ok(self.truncate_output(answer?).into_body(&call))
        }
    }

    /// What an agent did, made from what it had read.
    pub async fn append(
        &self,
        seat: &ActiveAgent,
        label: &Label,
        bodies: Vec<EventBody>,
    ) -> Result<(), TurnError> {
        self.log
            .append(
                bodies
                    .into_iter()
                    .map(|body| seat.entry(label, body))
                    .collect(),
            )
            .await
    }

    /// What the engine itself notes about an agent's work.
    pub async fn note(&self, seat: &ActiveAgent, body: EventBody) -> Result<(), TurnError> {
        self.append(seat, &Label::default(), vec![body]).await
    }

    pub fn spend(&self) -> MutexGuard<'_, TurnSpend> {
        self.spend.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn was_denied(&self, call: &ToolCall) -> bool {
        let denied = self
            .denied_calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        denied.iter().any(|before| before.is_same_as(call))
    }

    pub fn record_denial(&self, call: &ToolCall) {
        self.denied_calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(call.clone());
    }
}

/// Ends a turn from outside its work: the user, the clock, or a failure in another branch.
pub(crate) struct StopSignal {
    pub token: CancellationToken,
    cause: OnceLock<TurnError>,
}

impl StopSignal {
    pub fn new(token: CancellationToken) -> Self {
        Self {
            token,
            cause: OnceLock::new(),
        }
    }

    /// The first cause stands, the user's wish among them.
    pub fn stop_with(&self, failure: TurnError) {
        if !self.token.is_cancelled() {
            let _ = self.cause.set(failure);
        }
        self.token.cancel();
    }

    pub fn check(&self) -> Result<(), TurnError> {
        if self.token.is_cancelled() {
            Err(self.cause())
        } else {
            Ok(())
        }
    }

    /// Returns when the turn was to end a while ago: by then everything that listens has ended by itself.
    pub async fn wait_until_overdue(&self) {
        self.token.cancelled().await;
        tokio::time::sleep(STOP_GRACE_PERIOD).await;
    }

    /// Why the turn was stopped; without a cause the user did it.
    pub fn cause(&self) -> TurnError {
        self.cause
            .get()
            .cloned()
            .unwrap_or_else(TurnError::cancelled)
    }
}
