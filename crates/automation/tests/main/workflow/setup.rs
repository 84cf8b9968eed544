//! A store, a clock and scripted steps for tests of workflows.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use jiff::{SignedDuration, Timestamp};
use lango_automation::workflow::{
    StepCall, StepExecutor, StepFailure, StepOutcome, StepRequest, WorkflowDriver, WorkflowSettings,
};
use lango_automation::{RunContext, RunExecutor, RunOutcome};
use lango_domain::automation::{
    AutomationStore, JobAction, LeaseClaim, LeaseNumber, LeaseOutcome, NewRun, Recovery, Run,
    RunBudget, RunClaim, RunEnd, RunId, RunKind, RunProgress, RunSpec, RunState, RunStep,
    SessionMode, StepDecision, StepState,
};
use lango_domain::event::{Principal, SessionId};
use lango_domain::session::SessionKey;
use lango_domain::{Clock, Label, LabeledText, StoreError};
use lango_store::{SqliteStore, StoreLocation};
use serde_json::{Map, Value};
use tokio::time::Instant;

/// One execution of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Execution {
    pub step: String,
    pub attempt: u32,
    pub is_resumed: bool,
    pub call: StepCall,
    pub label: Label,
}

/// The behavior of steps, and a record of their executions. Outlives every process of a test.
#[derive(Default)]
pub struct World {
    pub executions: Vec<Execution>,
    /// Sessions of calls that have not started, or whose result is in the log.
    pub known: Vec<SessionId>,
    /// Results of turns by session.
    turns: HashMap<SessionId, String>,
    pub results: HashMap<String, String>,
    /// The number of failures of a step before it succeeds.
    pub failures: HashMap<String, u32>,
    /// Steps that fail for good.
    pub permanent: Vec<String>,
    /// The time that steps take.
    pub durations: HashMap<String, Duration>,
    /// Steps that end only after another one has started.
    pub gates: HashMap<String, String>,
    pub running: usize,
    pub most_running: usize,
}

#[derive(Clone, Default)]
pub struct ScriptedSteps(pub Arc<Mutex<World>>);

impl ScriptedSteps {
    pub fn with(&self, change: impl FnOnce(&mut World)) {
        change(&mut self.0.lock().unwrap());
    }

    /// The steps in the order of their executions.
    pub fn order(&self) -> Vec<String> {
        let world = self.0.lock().unwrap();
        world.executions.iter().map(|e| e.step.clone()).collect()
    }

    pub fn count(&self, step: &str) -> usize {
        self.order().iter().filter(|id| *id == step).count()
    }

    pub fn execution(&self, step: &str) -> Execution {
        let world = self.0.lock().unwrap();
        let mut executions = world.executions.iter().rev();
        executions.find(|e| e.step == step).unwrap().clone()
    }

    async fn run(&self, request: StepRequest<'_>) -> StepOutcome {
        let duration = {
            let mut world = self.0.lock().unwrap();
            if request.is_resumed
                && let Some(result) = world.turns.get(&request.session)
            {
                return StepOutcome::Done(LabeledText::plain(result.clone()));
            }
            world.executions.push(Execution {
                step: request.step.clone(),
                attempt: request.attempt,
                is_resumed: request.is_resumed,
                call: request.call.clone(),
                label: request.label.clone(),
            });
            world.running += 1;
            world.most_running = world.most_running.max(world.running);
            world.durations.get(&request.step).copied()
        };
        let gate = self.0.lock().unwrap().gates.get(&request.step).cloned();
        while gate.as_ref().is_some_and(|other| self.count(other) == 0) {
            tokio::task::yield_now().await;
        }
        let stopped = tokio::select! {
            () = tokio::time::sleep(duration.unwrap_or_default()), if duration.is_some() => None,
            () = request.cancel.cancelled() => Some(StepOutcome::Failed(StepFailure::new("cancelled"))),
            () = request.context.suspend.cancelled() => Some(StepOutcome::Suspended),
            () = std::future::ready(()), if duration.is_none() => None,
        };
        let mut world = self.0.lock().unwrap();
        world.running -= 1;
        if let Some(stopped) = stopped {
            return stopped;
        }
        if world.permanent.contains(&request.step) {
            return StepOutcome::Failed(StepFailure::permanent("not allowed"));
        }
        if let Some(left) = world.failures.get_mut(&request.step)
            && *left > 0
        {
            *left -= 1;
            return StepOutcome::Failed(StepFailure::new("out of luck"));
        }
        let result = world.results.get(&request.step).cloned();
        let result = result.unwrap_or_else(|| format!("result of {}", request.step));
        if matches!(request.call, StepCall::Agent { .. }) {
            world.turns.insert(request.session, result.clone());
        }
        StepOutcome::Done(LabeledText {
            text: result,
            label: Label::untrusted(&request.step),
        })
    }
}

impl StepExecutor for ScriptedSteps {
    fn execute<'a>(&'a self, request: StepRequest<'a>) -> BoxFuture<'a, StepOutcome> {
        self.run(request).boxed()
    }

    fn is_read_only(&self, _: &Run, tool: &str, _: &Value) -> bool {
        tool == "fs_read"
    }

    fn is_progress_known(&self, session: SessionKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        let is_known = self.0.lock().unwrap().known.contains(&session.session);
        std::future::ready(Ok(is_known)).boxed()
    }
}

/// A store with one run after the other, and a clock that tests advance.
pub struct Fixture {
    pub store: Arc<dyn AutomationStore>,
    pub steps: ScriptedSteps,
    pub settings: WorkflowSettings,
    offset: Arc<AtomicI64>,
    clock: Clock,
}

pub fn owner() -> Principal {
    Principal::local()
}

impl Fixture {
    pub fn new() -> Self {
        let store = SqliteStore::open(StoreLocation::Memory).unwrap();
        let start = Instant::now();
        let offset = Arc::new(AtomicI64::new(0));
        let seconds = Arc::clone(&offset);
        let base = Timestamp::from_second(1_800_000_000).unwrap();
        Self {
            store: store.stores().automation,
            steps: ScriptedSteps::default(),
            settings: WorkflowSettings {
                hold: Duration::ZERO,
                store_retry: Duration::ZERO,
                // A dying store does not come back.
                store_attempts: 1,
                ..WorkflowSettings::default()
            },
            offset,
            clock: Arc::new(move || {
                let passed = SignedDuration::try_from(start.elapsed()).unwrap();
                let jumped = SignedDuration::from_secs(seconds.load(Ordering::Relaxed));
                base + passed + jumped
            }),
        }
    }

    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    pub fn advance(&self, seconds: i64) {
        self.offset.fetch_add(seconds, Ordering::Relaxed);
    }

    pub async fn submit(&self, definition: &str, params: Value) -> RunId {
        let name = "flow".to_owned();
        let params: Map<String, Value> = params.as_object().cloned().unwrap_or_default();
        let run = NewRun {
            kind: RunKind::Workflow,
            job: None,
            principal: owner(),
            name: name.clone(),
            due: self.now(),
            spec: RunSpec {
                action: JobAction::Workflow {
                    name,
                    definition: definition.to_owned(),
                    params,
                },
                workspace: None,
                session_mode: SessionMode::Isolated,
                deliver_to: Vec::new(),
                failure_deliver_to: Vec::new(),
                timeout: None,
                budget: RunBudget::default(),
                allow: Vec::new(),
                allowed_steps: Vec::new(),
                depth: 0,
                label: Label::default(),
            },
        };
        self.store.submit_run(run).await.unwrap().id
    }

    /// Starts a process: takes the lease over and recovers what the last one left.
    pub async fn new_process(&self) -> LeaseNumber {
        let now = self.now();
        let abandoned = self.store.lease().await.unwrap();
        let claim = LeaseClaim {
            owner: "test".to_owned(),
            at: now,
            until: now + SignedDuration::from_hours(1),
            abandoned,
        };
        let LeaseOutcome::Acquired(lease) = self.store.acquire_lease(claim).await.unwrap() else {
            panic!("the lease is taken over");
        };
        let recovery = Recovery {
            at: now,
            max_attempts: 1_000,
        };
        self.store
            .recover_runs(lease.number, recovery)
            .await
            .unwrap();
        lease.number
    }

    pub fn context(&self, lease: LeaseNumber) -> RunContext {
        RunContext::new(Arc::clone(&self.store), lease, Arc::clone(&self.clock))
    }

    pub fn context_on(&self, store: Arc<dyn AutomationStore>, lease: LeaseNumber) -> RunContext {
        RunContext::new(store, lease, Arc::clone(&self.clock))
    }

    pub async fn claim(&self, lease: LeaseNumber) -> Option<Run> {
        let claim = RunClaim {
            at: self.now(),
            limit: 1,
        };
        self.store.claim_runs(lease, claim).await.unwrap().pop()
    }

    /// Executes a claimed run once.
    pub async fn execute(&self, run: &Run, context: &RunContext) -> Result<RunOutcome, StoreError> {
        let driver = WorkflowDriver::new(Arc::new(self.steps.clone()), self.settings);
        driver.execute(run, context).await
    }

    /// Stores an outcome as the scheduler does.
    pub async fn settle(&self, run: RunId, lease: LeaseNumber, outcome: &RunOutcome) {
        let end = |state, result: Option<String>, error: Option<String>| RunEnd {
            run,
            state,
            reason: None,
            at: self.now(),
            result,
            error,
            label: Label::default(),
            deliveries: Vec::new(),
        };
        let progress = |state, resume_at| RunProgress {
            run,
            state,
            reason: None,
            session: None,
            resume_at,
            active: None,
        };
        let end = match outcome.clone() {
            RunOutcome::Done { result, .. } => end(RunState::Done, Some(result), None),
            RunOutcome::Failed { error, result, .. } => end(RunState::Failed, result, Some(error)),
            RunOutcome::Cancelled => end(RunState::Cancelled, None, None),
            RunOutcome::Waiting { resume_at, .. } => {
                let progress = progress(RunState::Waiting, Some(resume_at));
                self.store.record_progress(lease, progress).await.unwrap();
                return;
            }
            RunOutcome::Suspended => {
                let progress = progress(RunState::Queued, None);
                self.store.record_progress(lease, progress).await.unwrap();
                return;
            }
        };
        self.store.end_run(lease, end).await.unwrap();
    }

    /// Executes the next run in the same process as before, and stores the outcome.
    pub async fn step_on(&self, lease: LeaseNumber) -> RunOutcome {
        let run = self.claim(lease).await.expect("a run that can start");
        let outcome = self.execute(&run, &self.context(lease)).await.unwrap();
        self.settle(run.id, lease, &outcome).await;
        outcome
    }

    /// Submits a workflow and executes it in a new process.
    pub async fn start(&self, definition: &str) -> (RunId, LeaseNumber, RunOutcome) {
        let run = self.submit(definition, Value::Null).await;
        let lease = self.new_process().await;
        let outcome = self.step_on(lease).await;
        (run, lease, outcome)
    }

    /// Answers a step as a user in another process would. Returns false if it does not wait.
    pub async fn answer(&self, run: RunId, step: &str, decision: StepDecision) -> bool {
        let owner = owner();
        let answer = self.store.answer_step(&owner, run, step, decision);
        answer.await.unwrap()
    }

    pub async fn rows(&self, run: RunId) -> Vec<RunStep> {
        self.store.steps(&owner(), run).await.unwrap()
    }

    pub async fn row(&self, run: RunId, step: &str) -> RunStep {
        let rows = self.rows(run).await;
        rows.into_iter().find(|row| row.step == step).unwrap()
    }

    pub async fn states(&self, run: RunId) -> Vec<(String, StepState)> {
        let rows = self.rows(run).await;
        rows.into_iter().map(|row| (row.step, row.state)).collect()
    }
}

/// Returns the result of a run that is done.
pub fn result(outcome: &RunOutcome) -> &str {
    match outcome {
        RunOutcome::Done { result, .. } => result,
        other => panic!("{other:?}"),
    }
}
