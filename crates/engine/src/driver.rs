//! Runs a turn: calls the model, executes tool calls, appends events. `agent_loop` makes every
//! decision.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt, join_all};
use futures::stream::FuturesOrdered;
use lango_domain::approval::Approver;
use lango_domain::blobs::BlobStore;
use lango_domain::event::{Author, Branch, EventBody, RemoteThread, ToolCode};
use lango_domain::model::ToolCall;
use lango_domain::remote_agent::RemoteAgent;
use lango_domain::secret::hide_secret_arguments;
use lango_domain::{AgentName, Label};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::agent_loop::{ActionResults, AgentLoop, AgentOutcome, LoopStep, ReplyNotes};
use crate::agent_models::Models;
use crate::calibration::Calibration;
use crate::hooks::TurnHooks;
use crate::limits::{TurnLimits, TurnSpend};
use crate::plan::CallAction;
use crate::prepared_team::PreparedTeam;
use crate::tool_execution::{AbortOnDrop, ContentOrigin, ToolOutcome};
use crate::turn_clock::TurnClock;
use crate::turn_error::TurnError;
use crate::turn_log::{LogEntry, TurnLog};
use crate::turn_permission::{CallGuard, TurnBudget, TurnPolicy};

/// The time that a stopped turn has to write its last events.
pub(crate) const STOP_GRACE_PERIOD: Duration = Duration::from_secs(3);

/// The parts of one running turn.
pub(crate) struct Driver {
    pub team: Arc<PreparedTeam>,
    pub models: Models,
    pub blobs: Arc<dyn BlobStore>,
    pub remotes: BTreeMap<AgentName, Arc<dyn RemoteAgent>>,
    pub approver: Option<Arc<dyn Approver>>,
    pub hooks: TurnHooks,
    pub approval_policy: TurnPolicy,
    pub clock: TurnClock,
    /// The configured limits, lowered to the budget.
    pub limits: TurnLimits,
    pub budget: TurnBudget,
    pub calibration: Arc<Calibration>,
    pub log: TurnLog,
    pub guard: Option<Arc<dyn CallGuard>>,
    pub stop: StopSignal,
    /// Cancelled if a cancelled turn is to be resumed later instead of ended.
    pub suspend: CancellationToken,
    pub request: String,
    pub spend: Mutex<TurnSpend>,
    pub delegations: AtomicUsize,
    /// Calls that were denied in this turn.
    pub denied_calls: Mutex<Vec<ToolCall>>,
    /// Serializes the approval questions to the user.
    pub approval_lock: tokio::sync::Mutex<()>,
}

/// An agent at work: its branch of the log, and whether its text is streamed to the user.
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

/// A transfer that was accepted and is in the log.
pub(crate) struct Delegation {
    pub call: ToolCall,
    /// The label of the task.
    pub label: Label,
    pub task: Option<String>,
    pub report_back: bool,
    pub active_agent: Arc<ActiveAgent>,
    /// The remote agent's thread, so that the next task can continue it.
    pub thread: Mutex<Option<RemoteThread>>,
}

impl Delegation {
    pub fn thread(&self) -> MutexGuard<'_, Option<RemoteThread>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Driver {
    /// Runs one agent from its first model call to its outcome.
    pub fn run_agent<'a>(
        self: &'a Arc<Self>,
        active: &'a Arc<ActiveAgent>,
    ) -> BoxFuture<'a, Result<AgentOutcome, TurnError>> {
        async move {
            let mut agent_loop = AgentLoop::new(&self.team, &active.agent);
            loop {
                let step = agent_loop.next(&self.limits, &self.spend());
                // An outcome that is already known counts, even if the turn is stopped now.
                if !matches!(step, LoopStep::Finish(_)) {
                    self.stop.check()?;
                }
                match step {
                    LoopStep::AskModel(mode) => {
                        agent_loop.on_reply(self.call_model(active, mode).await?, mode)
                    }
                    LoopStep::Execute { notes, actions } => {
                        let results = self.execute_actions(active, notes, actions).await?;
                        agent_loop.on_actions_done(results);
                    }
                    LoopStep::Finish(outcome) => return Ok(outcome),
                    LoopStep::Fail(failure) => return Err(failure),
                }
            }
        }
        .boxed()
    }

    /// Waits for a future, unless the turn is stopped first.
    pub async fn wait<T>(&self, future: impl Future<Output = T>) -> Result<T, TurnError> {
        tokio::select! {
            biased;
            () = self.stop.token.cancelled() => Err(self.stop.cause()),
            output = future => Ok(output),
        }
    }

    /// Executes the tool calls of a reply in parallel, then its transfers (B54).
    async fn execute_actions(
        self: &Arc<Self>,
        active: &Arc<ActiveAgent>,
        notes: ReplyNotes,
        actions: Vec<CallAction>,
    ) -> Result<ActionResults, TurnError> {
        let label = notes.label.clone();
        let delegations = self.append_calls(active, notes, &actions).await?;
        self.answer_calls(active, &actions, &label).await?;
        let handed_back = actions.iter().find_map(|action| match action {
            CallAction::HandBack { reason, .. } => {
                reason.clone().map(|reason| (reason, label.clone()))
            }
            _ => None,
        });
        let running = delegations
            .iter()
            .map(|delegation| self.delegate(active, delegation));
        let finished = join_all(running).await;
        Ok(ActionResults {
            delegations: finished.into_iter().collect::<Result<_, _>>()?,
            handed_back,
        })
    }

    /// Appends the calls, so that they are in the log before they have an effect. Returns the
    /// delegations among them.
    async fn append_calls(
        &self,
        active: &ActiveAgent,
        notes: ReplyNotes,
        actions: &[CallAction],
    ) -> Result<Vec<Delegation>, TurnError> {
        let mut bodies: Vec<EventBody> =
            notes.thoughts.into_iter().map(EventBody::Thought).collect();
        let mut delegations = Vec::new();
        if !notes.note.trim().is_empty() {
            bodies.push(EventBody::Note { text: notes.note });
        }
        for action in actions {
            match action {
                CallAction::Run(call)
                | CallAction::Refuse { call, .. }
                | CallAction::HandBack { call, .. } => bodies.push(EventBody::ToolCall {
                    id: call.id.clone(),
                    tool: call.name.clone(),
                    args: self.shown_arguments(&active.agent, call),
                }),
                CallAction::Delegate {
                    call,
                    to,
                    task,
                    report_back,
                } => {
                    let delegation = Delegation {
                        call: call.clone(),
                        label: notes.label.clone(),
                        task: task.clone(),
                        report_back: *report_back,
                        active_agent: Arc::new(self.new_branch(active, to, *report_back)),
                        thread: Mutex::default(),
                    };
                    bodies.push(EventBody::Transfer {
                        id: call.id.clone(),
                        to: to.clone(),
                        task: task.clone(),
                        report_back: *report_back,
                        into: delegation.active_agent.branch.clone(),
                    });
                    delegations.push(delegation);
                }
            }
        }
        if !delegations.is_empty() {
            self.spend().count_round();
        }
        self.append(active, &notes.label, bodies).await?;
        Ok(delegations)
    }

    /// Returns the arguments of a call as they are stored and shown: without secrets (B130).
    pub(crate) fn shown_arguments(&self, agent: &AgentName, call: &ToolCall) -> Value {
        let tool = self.team.tool(agent, &call.name);
        let hidden = tool.and_then(|tool| hide_secret_arguments(&tool.parameters, &call.arguments));
        hidden.unwrap_or_else(|| call.arguments.clone())
    }

    /// Opens a new branch below an agent's branch for the agent that it delegates to.
    fn new_branch(&self, parent: &ActiveAgent, to: &AgentName, report_back: bool) -> ActiveAgent {
        let number = self.delegations.fetch_add(1, Ordering::Relaxed) + 1;
        ActiveAgent {
            agent: to.clone(),
            branch: parent.branch.delegation(to, number),
            is_streamed: parent.is_streamed && !report_back,
        }
    }

    /// Runs the calls in parallel and appends their results in the order of the calls. Every call has
    /// its own task, so that it makes progress while an earlier result is awaited.
    async fn answer_calls(
        self: &Arc<Self>,
        active: &Arc<ActiveAgent>,
        actions: &[CallAction],
        read_label: &Label,
    ) -> Result<(), TurnError> {
        let mut running: FuturesOrdered<_> = actions
            .iter()
            .filter_map(|action| self.answer(active, action, read_label))
            .collect();
        while let Some(result) = running.next().await {
            let (body, label) = result?;
            self.append(active, &label, vec![body]).await?;
        }
        Ok(())
    }

    fn answer(
        self: &Arc<Self>,
        active: &Arc<ActiveAgent>,
        action: &CallAction,
        read_label: &Label,
    ) -> Option<BoxFuture<'static, Result<(EventBody, Label), TurnError>>> {
        let ready = |call: &ToolCall, outcome: ToolOutcome| {
            Some(futures::future::ready(Ok(outcome.into_body(call))).boxed())
        };
        match action {
            CallAction::Delegate { .. } => None,
            CallAction::Refuse { call, code, reason } => ready(
                call,
                self.truncate_output(ToolOutcome::failed(*code, reason)),
            ),
            CallAction::HandBack { call, .. } => ready(
                call,
                ToolOutcome::Succeeded {
                    content: "handed back".into(),
                    origin: ContentOrigin::default(),
                },
            ),
            CallAction::Run(call) => {
                let (driver, active, call) = (Arc::clone(self), Arc::clone(active), call.clone());
                Some(
                    driver
                        .run_tool_catching_panics(active, call, read_label.clone())
                        .boxed(),
                )
            }
        }
    }

    /// Runs a call on its own task and turns a panic into a result of the call.
    fn run_tool_catching_panics(
        self: Arc<Self>,
        active: Arc<ActiveAgent>,
        call: ToolCall,
        read_label: Label,
    ) -> impl Future<Output = Result<(EventBody, Label), TurnError>> + Send {
        let task = {
            let (driver, call) = (Arc::clone(&self), call.clone());
            AbortOnDrop(tokio::spawn(async move {
                driver.run_tool(&active, &call, &read_label).await
            }))
        };
        async move {
            let outcome = task.await.unwrap_or_else(|error| {
                tracing::error!(%error, "the task of a tool call panicked");
                Ok(ToolOutcome::failed(
                    ToolCode::Panicked,
                    "this call failed because of a bug in Lango",
                ))
            });
            Ok(self.truncate_output(outcome?).into_body(&call))
        }
    }

    /// Appends events of an agent. `label` is the label of everything the agent has read.
    pub async fn append(
        &self,
        active: &ActiveAgent,
        label: &Label,
        bodies: Vec<EventBody>,
    ) -> Result<(), TurnError> {
        let entries = bodies.into_iter().map(|body| active.entry(label, body));
        self.log.append(entries.collect()).await
    }

    /// Appends an event of the engine about an agent's work.
    pub async fn note(&self, active: &ActiveAgent, body: EventBody) -> Result<(), TurnError> {
        self.append(active, &Label::default(), vec![body]).await
    }

    pub fn spend(&self) -> MutexGuard<'_, TurnSpend> {
        self.spend.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn was_denied(&self, call: &ToolCall) -> bool {
        let denied = self
            .denied_calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        denied.iter().any(|denied| denied.is_same_as(call))
    }

    pub fn record_denial(&self, call: &ToolCall) {
        self.denied_calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(call.clone());
    }
}

/// Stops a turn from outside the agent loop: the user, the clock, or a failure in another branch.
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

    /// Stops the turn. The first cause wins; a cancellation by the user counts as a cause.
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

    /// Returns when the grace period of a stopped turn is over. Everything that observes the token
    /// has ended by then.
    pub async fn wait_until_overdue(&self) {
        self.token.cancelled().await;
        tokio::time::sleep(STOP_GRACE_PERIOD).await;
    }

    /// Returns why the turn was stopped. Without a recorded cause, the user cancelled it.
    pub fn cause(&self) -> TurnError {
        self.cause
            .get()
            .cloned()
            .unwrap_or_else(TurnError::cancelled)
    }
}
