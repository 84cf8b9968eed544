//! Turns of runs that no one watches: their questions, their lease, and what a restart does with both.

use std::sync::Arc;
use std::time::Duration;

use lango_automation::workflow::{RuntimeSteps, WorkflowDriver, WorkflowSettings};
use lango_automation::{ActionExecutor, OneTeam, RunContext, RunExecutor, RunOutcome, TurnWorker};
use lango_domain::automation::{
    JobAction, LeaseClaim, LeaseNumber, LeaseOutcome, NewRun, Run, RunClaim, RunKind, RunState,
    RunStep, StepDecision, StepState,
};
use lango_domain::event::{EventBody, SessionId};
use lango_domain::session::{HistoryWindow, SessionKey};
use lango_domain::{StoreError, Stores};
use lango_engine::{Runner, TurnRequest};
use lango_runtime::{Runtime, RuntimeParts, TurnLimiter};
use lango_store::{SqliteStore, StoreLocation};
use lango_testkit::script::Script;
use lango_testkit::script_runner::script_runner;
use lango_testkit::scripted::ScriptedModel;
use tokio::task::JoinHandle;

use crate::setup::{START, WallClock, me, reminder};

const TOOLS: &str = "mode single\ntools exec_shell\ntool exec_shell is dangerous\n";

struct Fixture {
    stores: Stores,
    clock: WallClock,
    wait: Duration,
}

/// A process that runs one run.
struct Process {
    context: RunContext,
    runtime: Runtime,
    lease: LeaseNumber,
    work: JoinHandle<Result<RunOutcome, StoreError>>,
}

impl Fixture {
    fn new() -> Self {
        Self {
            stores: SqliteStore::open(StoreLocation::Memory).unwrap().stores(),
            clock: WallClock::at(START),
            wait: Duration::from_secs(60 * 60),
        }
    }

    fn runner(&self, replies: &str) -> Runner {
        let script = Script::parse(&format!("{TOOLS}{replies}")).unwrap();
        let model = ScriptedModel::new(script.replies.clone(), 128_000);
        script_runner(&script, Arc::new(model), Arc::clone(&self.stores.sessions)).unwrap()
    }

    async fn acquire(&self) -> LeaseNumber {
        self.clock.advance(120);
        let claim = LeaseClaim {
            owner: "a test".to_owned(),
            at: self.clock.now(),
            until: self.clock.now() + jiff::SignedDuration::from_secs(60),
            abandoned: None,
        };
        match self.stores.automation.acquire_lease(claim).await.unwrap() {
            LeaseOutcome::Acquired(lease) => lease.number,
            LeaseOutcome::HeldBy(lease) => panic!("{lease:?}"),
        }
    }

    async fn submit(&self, kind: RunKind, action: JobAction) -> Run {
        let mut spec = reminder("x");
        spec.action = action;
        let run = NewRun {
            kind,
            job: None,
            principal: me(),
            name: "work".to_owned(),
            due: self.clock.now(),
            spec,
        };
        self.stores.automation.submit_run(run).await.unwrap()
    }

    async fn submit_workflow(&self, steps: &str) -> Run {
        let action = JobAction::Workflow {
            name: "work".to_owned(),
            definition: format!("name: work\nsteps:\n{steps}"),
            params: serde_json::Map::new(),
        };
        self.submit(RunKind::Workflow, action).await
    }

    async fn submit_prompt(&self, text: &str) -> Run {
        let action = JobAction::Prompt {
            text: text.to_owned(),
            agent: None,
        };
        self.submit(RunKind::Background, action).await
    }

    /// Starts a process that takes over the run.
    async fn start(&self, replies: &str) -> Process {
        let store = Arc::clone(&self.stores.automation);
        let lease = self.acquire().await;
        let recovery = lango_domain::automation::Recovery {
            at: self.clock.now(),
            max_attempts: 10,
        };
        store.recover_runs(lease, recovery).await.unwrap();
        let claim = RunClaim {
            at: self.clock.now(),
            limit: 1,
        };
        let run = store.claim_runs(lease, claim).await.unwrap().remove(0);
        let runtime = Runtime::new(RuntimeParts {
            runner: self.runner(replies),
            approver: None,
            limiter: TurnLimiter::unlimited(),
        });
        let turns = TurnWorker {
            runtime: runtime.clone(),
            sessions: Arc::clone(&self.stores.sessions),
            approver: None,
            approval_wait: self.wait,
            teams: Arc::new(OneTeam),
        };
        let steps = Arc::new(RuntimeSteps {
            turns: turns.clone(),
        });
        let workflows = WorkflowDriver::new(steps, WorkflowSettings::default());
        let executor = ActionExecutor {
            turns,
            is_background_enabled: true,
            workflows: Some(Arc::new(workflows)),
        };
        let context = RunContext::new(store, lease, self.clock.as_clock());
        let own = context.clone();
        let work = tokio::spawn(async move { executor.execute(&run, &own).await });
        Process {
            context,
            runtime,
            lease,
            work,
        }
    }

    async fn rows(&self, run: &Run) -> Vec<RunStep> {
        self.stores.automation.steps(&me(), run.id).await.unwrap()
    }

    /// Waits until the run has this many open questions, and returns their ids.
    async fn questions(&self, run: &Run, count: usize) -> Vec<String> {
        loop {
            let rows = self.rows(run).await;
            let open = rows.iter().filter(|row| row.is_open_question());
            let open: Vec<String> = open.map(|row| row.step.clone()).collect();
            if open.len() == count {
                return open;
            }
            tokio::task::yield_now().await;
        }
    }

    async fn answer(&self, run: &Run, step: &str, decision: StepDecision) -> bool {
        let store = &self.stores.automation;
        store
            .answer_step(&me(), run.id, step, decision)
            .await
            .unwrap()
    }

    async fn step(&self, run: &Run, id: &str) -> RunStep {
        let rows = self.rows(run).await;
        rows.into_iter().find(|row| row.step == id).unwrap()
    }

    /// Returns the number of calls that ran in a session.
    async fn calls(&self, session: &SessionId) -> usize {
        let key = SessionKey {
            session: session.clone(),
            principal: me(),
        };
        let sessions = &self.stores.sessions;
        let events = sessions
            .load(key.as_ref(), HistoryWindow::Everything)
            .await
            .unwrap();
        let ran = |event: &&Arc<lango_domain::event::Event>| {
            matches!(event.body, EventBody::ToolResult { ok: true, .. })
        };
        events.iter().filter(ran).count()
    }
}

const TWO_STEPS: &str = "  - {id: s1, tool: exec_shell, with: {command: echo one}}
  - {id: s2, tool: exec_shell, with: {command: echo two}}
";

/// B121: an answer is for one call.
#[tokio::test]
async fn questions_of_parallel_steps_are_answered_one_by_one() {
    let fixture = Fixture {
        wait: Duration::from_secs(1_000 * 24 * 60 * 60),
        ..Fixture::new()
    };
    let run = fixture.submit_workflow(TWO_STEPS).await;
    let process = fixture.start("").await;
    let mut open = fixture.questions(&run, 2).await;
    open.sort();
    assert_eq!(open, ["approval:s1", "approval:s2"]);
    assert!(
        fixture
            .answer(&run, "approval:s2", StepDecision::Approve)
            .await
    );
    assert!(
        !fixture
            .answer(&run, "approval:s2", StepDecision::Deny)
            .await,
        "it is answered"
    );
    while fixture.step(&run, "s2").await.state != StepState::Done {
        tokio::task::yield_now().await;
    }
    let first = fixture.step(&run, "s1").await;
    assert_eq!(first.state, StepState::Running);
    assert_eq!(fixture.calls(&first.session.unwrap()).await, 0);
    assert_eq!(fixture.questions(&run, 1).await, ["approval:s1"]);
    process.work.abort();
}

/// B121: a late answer releases nothing, and the question is closed.
#[tokio::test]
async fn a_question_that_expired_cannot_be_answered() {
    let fixture = Fixture {
        wait: Duration::from_secs(2),
        ..Fixture::new()
    };
    let run = fixture
        .submit_workflow("  - {id: s1, tool: exec_shell, with: {command: ls}}\n")
        .await;
    let process = fixture.start("").await;
    fixture.questions(&run, 1).await;
    let outcome = process.work.await.unwrap().unwrap();
    assert!(matches!(outcome, RunOutcome::Failed { .. }), "{outcome:?}");
    while fixture.step(&run, "approval:s1").await.state == StepState::Waiting {
        tokio::task::yield_now().await;
    }
    assert!(
        !fixture
            .answer(&run, "approval:s1", StepDecision::Approve)
            .await
    );
    let row = fixture.step(&run, "approval:s1").await;
    assert_eq!(row.reason.as_deref(), Some("not answered in time"));
}

/// B121, B122: a question survives the end of its process, with an answer that came in between.
#[tokio::test]
async fn a_question_is_asked_again_after_a_restart() {
    let fixture = Fixture::new();
    let run = fixture
        .submit_workflow("  - {id: s1, tool: exec_shell, with: {command: ls}}\n")
        .await;
    let process = fixture.start("").await;
    assert_eq!(fixture.questions(&run, 1).await, ["approval:s1"]);
    process.context.suspend.cancel();
    assert_eq!(process.work.await.unwrap(), Ok(RunOutcome::Suspended));
    process.runtime.tasks().close();
    process.runtime.tasks().wait().await;
    let stored = fixture
        .stores
        .automation
        .run(&me(), run.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stored.state, RunState::Waiting, "not running");
    assert_eq!(fixture.questions(&run, 1).await, ["approval:s1"]);
    assert!(
        fixture
            .answer(&run, "approval:s1", StepDecision::Approve)
            .await
    );
    let process = fixture.start("").await;
    let outcome = process.work.await.unwrap().unwrap();
    assert!(matches!(outcome, RunOutcome::Done { .. }), "{outcome:?}");
    let row = fixture.step(&run, "s1").await;
    assert_eq!((row.state, row.is_repeated), (StepState::Done, false));
    assert_eq!(fixture.calls(&row.session.unwrap()).await, 1);
}

/// B120: a process that has lost the lease has no effects, and leaves the turn to the next one.
#[tokio::test]
async fn a_process_without_the_lease_starts_no_call() {
    let fixture = Fixture::new();
    let run = fixture.submit_prompt("list the files").await;
    let process = fixture
        .start("root calls exec_shell {\"command\": \"ls\"}\nroot says done")
        .await;
    assert_eq!(fixture.questions(&run, 1).await, ["approval:1"]);
    let next = fixture.acquire().await;
    assert!(next > process.lease);
    assert!(
        fixture
            .answer(&run, "approval:1", StepDecision::Approve)
            .await
    );
    assert_eq!(process.work.await.unwrap(), Err(StoreError::LeaseLost));
    process.runtime.tasks().close();
    process.runtime.tasks().wait().await;
    let session = SessionId::new(format!("run-{}", run.id));
    assert_eq!(fixture.calls(&session).await, 0);
    let key = SessionKey {
        session,
        principal: me(),
    };
    let unfinished = process.runtime.find_unfinished_turn(&key).await.unwrap();
    assert!(unfinished.is_some(), "the next process resumes it");
}

/// B120: the turn of a run is found, whatever was said in its session since.
#[tokio::test]
async fn a_turn_does_not_start_over_after_another_one() {
    let fixture = Fixture::new();
    let run = fixture.submit_prompt("list the files").await;
    let process = fixture
        .start("root calls exec_shell {\"command\": \"ls\"}")
        .await;
    fixture.questions(&run, 1).await;
    process.context.suspend.cancel();
    process.work.await.unwrap().unwrap();
    process.runtime.tasks().close();
    process.runtime.tasks().wait().await;
    let session = SessionId::new(format!("run-{}", run.id));
    let other = fixture.runner("root says hello");
    let request = TurnRequest::from_user(session, me(), "hi");
    futures::StreamExt::collect::<Vec<_>>(other.run(request)).await;
    let process = fixture.start("root says again").await;
    let outcome = process.work.await.unwrap().unwrap();
    let RunOutcome::Failed { error, .. } = outcome else {
        panic!("{outcome:?}");
    };
    assert!(error.contains("stopped before this turn ended"), "{error}");
}
