//! Runs that are turns of the team.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use lango_automation::workflow::{RuntimeSteps, WorkflowDriver, WorkflowSettings};
use lango_automation::{
    ActionExecutor, CronSettings, DuePass, OneTeam, OutboxLoop, RunExecutor, Scheduler,
    SchedulerParts, SchedulerWake, TurnWorker,
};
use lango_domain::approval::{ApprovalDecision, ApprovalQuestion, ApprovalScope, Approver};
use lango_domain::automation::{
    DeliveryOccasion, DeliveryQuery, JobAction, LeaseNumber, NewRun, Run, RunBudget, RunKind,
    RunSpec, RunState,
};
use lango_domain::event::{Decider, EventBody, SessionId};
use lango_domain::model::Model;
use lango_domain::session::{HistoryWindow, SessionKey};
use lango_domain::{StoreError, Stores};
use lango_runtime::{Runtime, RuntimeParts, TurnLimiter};
use lango_store::{SqliteStore, StoreLocation};
use lango_testkit::script::Script;
use lango_testkit::script_runner::script_runner;
use lango_testkit::scripted::ScriptedModel;

use tokio_util::sync::CancellationToken;

use crate::dying_store::{DyingStore, LastCall};
use crate::setup::{START, WallClock, all_runs, me, reminder};

struct Team {
    stores: Stores,
    runtime: Runtime,
    clock: WallClock,
    approver: Option<Arc<dyn Approver>>,
    outbox: Option<Arc<CountingOutbox>>,
    is_background_enabled: bool,
}

/// An approver that says yes.
struct Yes;

impl Approver for Yes {
    fn ask(&self, _: ApprovalQuestion) -> BoxFuture<'static, ApprovalDecision> {
        let decision = ApprovalDecision::Approved {
            scope: ApprovalScope::Once,
            by: Decider::User,
        };
        async move { decision }.boxed()
    }
}

/// An approver that never answers in time.
struct NoAnswer;

impl Approver for NoAnswer {
    fn ask(&self, _: ApprovalQuestion) -> BoxFuture<'static, ApprovalDecision> {
        async { ApprovalDecision::TimedOut }.boxed()
    }
}

/// Counts how often it is woken, and sends nothing.
#[derive(Default)]
struct CountingOutbox(AtomicUsize);

impl OutboxLoop for CountingOutbox {
    fn run<'a>(
        &'a self,
        _: LeaseNumber,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        std::future::pending().boxed()
    }

    fn send_due(&self, _: LeaseNumber) -> BoxFuture<'_, Result<(), StoreError>> {
        async { Ok(()) }.boxed()
    }

    fn wake(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// An approver that says no.
struct No;

impl Approver for No {
    fn ask(&self, _: ApprovalQuestion) -> BoxFuture<'static, ApprovalDecision> {
        async { ApprovalDecision::Denied }.boxed()
    }
}

impl Team {
    fn new(script: &str) -> Self {
        let stores = SqliteStore::open(StoreLocation::Memory).unwrap().stores();
        Self::on(script, stores)
    }

    /// Returns a team with this script on existing stores, as after a restart.
    fn on(script: &str, stores: Stores) -> Self {
        let script = Script::parse(script).unwrap();
        let model = Arc::new(ScriptedModel::new(script.replies.clone(), 128_000));
        let model: Arc<dyn Model> = model;
        let runner = script_runner(&script, model, Arc::clone(&stores.sessions)).unwrap();
        let runtime = Runtime::new(RuntimeParts {
            runner,
            approver: None,
            limiter: TurnLimiter::unlimited(),
        });
        Self {
            stores,
            runtime,
            clock: WallClock::at(START),
            approver: None,
            outbox: None,
            is_background_enabled: true,
        }
    }

    fn executor(&self) -> Arc<dyn RunExecutor> {
        let turns = TurnWorker {
            runtime: self.runtime.clone(),
            sessions: Arc::clone(&self.stores.sessions),
            approver: self.approver.clone(),
            approval_wait: Duration::from_secs(60),
            teams: Arc::new(OneTeam),
        };
        let steps = Arc::new(RuntimeSteps {
            turns: turns.clone(),
        });
        let workflows = WorkflowDriver::new(steps, WorkflowSettings::default());
        Arc::new(ActionExecutor {
            turns,
            is_background_enabled: self.is_background_enabled,
            workflows: Some(Arc::new(workflows)),
        })
    }

    fn parts(&self) -> SchedulerParts {
        SchedulerParts {
            store: Arc::clone(&self.stores.automation),
            executor: self.executor(),
            outbox: self
                .outbox
                .clone()
                .map(|outbox| outbox as Arc<dyn OutboxLoop>),
            clock: self.clock.as_clock(),
            owner: "a test".to_owned(),
            settings: CronSettings::default(),
            wake: SchedulerWake::default(),
        }
    }

    async fn submit(&self, spec: RunSpec) {
        let run = NewRun {
            kind: RunKind::Background,
            job: None,
            principal: me(),
            name: "look something up".to_owned(),
            due: self.clock.now(),
            spec,
        };
        self.stores.automation.submit_run(run).await.unwrap();
    }

    /// Runs everything that is due and returns the only run.
    async fn run(&self) -> Run {
        let pass = Scheduler::new(self.parts()).run_due().await.unwrap();
        assert!(matches!(pass, DuePass::Ran(_)));
        all_runs(&self.stores.automation).await.remove(0)
    }

    async fn user_requests(&self, session: &SessionId) -> usize {
        let key = SessionKey {
            session: session.clone(),
            principal: me(),
        };
        let window = HistoryWindow::Everything;
        let events = self
            .stores
            .sessions
            .load(key.as_ref(), window)
            .await
            .unwrap();
        let is_request = |body: &EventBody| matches!(body, EventBody::User { .. });
        events
            .iter()
            .filter(|event| is_request(&event.body))
            .count()
    }
}

fn prompt(text: &str) -> RunSpec {
    RunSpec {
        action: JobAction::Prompt {
            text: text.to_owned(),
            agent: None,
        },
        ..reminder("")
    }
}

#[tokio::test]
async fn a_prompt_runs_as_a_turn_in_its_own_session() {
    let team = Team::new("mode single\nroot says the disk is fine");
    team.submit(prompt("check the disk")).await;
    let run = team.run().await;
    assert_eq!(
        (run.state, run.result.as_deref()),
        (RunState::Done, Some("the disk is fine"))
    );
    let session = run.session.unwrap();
    assert_eq!(session.as_str(), format!("run-{}", run.id));
    assert_eq!(team.user_requests(&session).await, 1);
    let query = DeliveryQuery {
        principal: me(),
        run: Some(run.id),
        state: None,
        limit: 9,
    };
    let sent = team.stores.automation.deliveries(query).await.unwrap();
    assert_eq!(sent[0].message.text, "the disk is fine");
    assert_eq!(sent[0].message.session, Some(session));
}

#[tokio::test]
async fn a_failed_turn_is_a_failed_run() {
    let team = Team::new("mode single\nroot fails auth");
    team.submit(prompt("check the disk")).await;
    let run = team.run().await;
    assert_eq!(run.state, RunState::Failed);
    assert!(run.error.is_some_and(|error| !error.is_empty()));
}

const DANGEROUS: &str = "mode single
tools exec_shell
tool exec_shell is dangerous
root calls exec_shell {\"command\": \"make\"}
root says done";

/// B121
#[tokio::test]
async fn a_run_does_what_was_allowed_when_it_was_created() {
    let team = Team::new(DANGEROUS);
    team.submit(RunSpec {
        allow: vec!["exec_shell make".parse().unwrap()],
        ..prompt("build")
    })
    .await;
    assert_eq!(team.run().await.state, RunState::Done);
}

/// B121: what goes beyond fails visibly, with what was done nevertheless.
#[tokio::test]
async fn a_call_that_nobody_allowed_fails_the_run() {
    let mut team = Team::new(DANGEROUS);
    team.approver = Some(Arc::new(NoAnswer));
    team.submit(prompt("build")).await;
    let run = team.run().await;
    assert_eq!(
        (run.state, run.result.as_deref()),
        (RunState::Failed, Some("done"))
    );
    let error = run.error.unwrap();
    assert!(
        error.contains("exec_shell") && error.contains("nobody approved"),
        "{error}"
    );
}

/// A run whose answer says that nothing was done has failed, so that its failure is delivered.
#[tokio::test]
async fn a_run_that_did_not_do_its_work_fails() {
    let mut denied = Team::new(DANGEROUS);
    denied.approver = Some(Arc::new(No));
    let unable = Team::new("mode single\nroot says [REJECT] I have no tool for this");
    for (team, error) in [(denied, "not approved"), (unable, "could not do it")] {
        team.submit(RunSpec {
            failure_deliver_to: vec!["file:failures.md".to_owned()],
            ..prompt("build")
        })
        .await;
        let run = team.run().await;
        assert_eq!(run.state, RunState::Failed, "{error}");
        assert!(run.error.unwrap().contains(error));
        let query = DeliveryQuery {
            principal: me(),
            run: Some(run.id),
            state: None,
            limit: 9,
        };
        let sent = team.stores.automation.deliveries(query).await.unwrap();
        let failures = sent
            .iter()
            .filter(|delivery| delivery.occasion == DeliveryOccasion::Failure);
        let targets: Vec<&str> = failures.map(|delivery| delivery.target.as_str()).collect();
        assert_eq!(targets, ["file:failures.md"], "{error}");
    }
}

/// B121: the notice about a question is sent at once, not at the next look into the outbox. A model wrote what
/// it shows.
#[tokio::test]
async fn a_question_is_announced_at_once() {
    let mut team = Team::new(DANGEROUS);
    team.approver = Some(Arc::new(Yes));
    let outbox = Arc::new(CountingOutbox::default());
    team.outbox = Some(Arc::clone(&outbox));
    team.submit(prompt("build")).await;
    let run = team.run().await;
    assert_eq!(
        outbox.0.load(Ordering::SeqCst),
        2,
        "the question and the end"
    );
    let query = DeliveryQuery {
        principal: me(),
        run: Some(run.id),
        state: None,
        limit: 9,
    };
    let sent = team.stores.automation.deliveries(query).await.unwrap();
    let notice = sent
        .iter()
        .find(|delivery| delivery.occasion == DeliveryOccasion::Notice);
    assert!(notice.unwrap().message.label.is_untrusted());
}

#[tokio::test]
async fn disabled_background_tasks_fail_visibly() {
    let mut team = Team::new("mode single\nroot says done");
    team.is_background_enabled = false;
    team.submit(prompt("build")).await;
    let run = team.run().await;
    assert_eq!(run.state, RunState::Failed);
    assert!(run.error.unwrap().contains("background.enabled"));
}

/// B121: a question waits, the user is told, and an answer lets the run go on.
#[tokio::test]
async fn a_question_can_be_answered() {
    let mut team = Team::new(DANGEROUS);
    team.approver = Some(Arc::new(Yes));
    team.submit(prompt("build")).await;
    assert_eq!(team.run().await.state, RunState::Done);
    let query = DeliveryQuery {
        principal: me(),
        run: None,
        state: None,
        limit: 9,
    };
    let sent = team.stores.automation.deliveries(query).await.unwrap();
    let notice = sent
        .iter()
        .find(|sent| sent.occasion == DeliveryOccasion::Notice);
    assert!(notice.is_some_and(|notice| notice.message.text.contains("exec_shell")));
}

/// B121: an allowed step covers its own call, and not the same call of an agent.
#[tokio::test]
async fn an_allowed_step_runs_without_a_question() {
    let tool_step =
        "name: flow\nsteps:\n  - id: build\n    tool: exec_shell\n    with: {command: make}\n";
    let agent_step = "name: flow\nsteps:\n  - id: build\n    prompt: build\n";
    for (definition, allowed, expected) in [
        (tool_step, vec!["build".to_owned()], RunState::Done),
        (tool_step, Vec::new(), RunState::Failed),
        (agent_step, vec!["build".to_owned()], RunState::Failed),
    ] {
        let mut team = Team::new(DANGEROUS);
        team.approver = Some(Arc::new(NoAnswer));
        team.submit(RunSpec {
            action: JobAction::Workflow {
                name: "flow".to_owned(),
                definition: definition.to_owned(),
                params: serde_json::Map::new(),
            },
            allowed_steps: allowed,
            ..prompt("")
        })
        .await;
        let run = team.run().await;
        assert_eq!(run.state, expected, "{definition}: {:?}", run.error);
    }
}

#[tokio::test]
async fn a_budget_ends_the_turn() {
    let script = "mode single
tools exec_shell
root calls exec_shell {\"command\": \"a\"} + uses 60 tokens
root calls exec_shell {\"command\": \"b\"} + uses 60 tokens
root says done";
    let team = Team::new(script);
    team.submit(RunSpec {
        budget: RunBudget {
            tokens: Some(100),
            usd: None,
        },
        ..prompt("work")
    })
    .await;
    assert_eq!(team.run().await.state, RunState::Failed);
}

/// B120: a process that dies after the turn but before the run's end does not ask again.
#[tokio::test]
async fn a_finished_turn_is_not_repeated_after_a_crash() {
    let stores = SqliteStore::open(StoreLocation::Memory).unwrap().stores();
    let team = Team::on("mode single\nroot says the disk is fine", stores.clone());
    team.submit(prompt("check the disk")).await;
    let mut is_complete = false;
    for calls in 1..40 {
        let mut parts = team.parts();
        parts.store = DyingStore::new(&stores.automation, calls, LastCall::Lost);
        let pass = Scheduler::new(parts).run_due().await;
        team.clock.advance(61);
        is_complete = pass.is_ok();
        if is_complete {
            break;
        }
    }
    assert!(is_complete);
    let run = all_runs(&stores.automation).await.remove(0);
    assert_eq!(run.state, RunState::Done);
    assert_eq!(team.user_requests(&run.session.unwrap()).await, 1);
}

/// B120: a turn that a process left unfinished is resumed, not started again.
#[tokio::test]
async fn an_unfinished_turn_is_resumed() {
    let stores = SqliteStore::open(StoreLocation::Memory).unwrap().stores();
    let team = Team::on("mode single\nroot hangs", stores.clone());
    team.submit(prompt("check the disk")).await;
    let scheduler = Scheduler::new(team.parts());
    let stop = tokio_util::sync::CancellationToken::new();
    let token = stop.clone();
    let running = tokio::spawn(async move { scheduler.run(&token).await });
    let session = loop {
        let run = all_runs(&stores.automation).await.remove(0);
        if let Some(session) = run.session
            && team.user_requests(&session).await == 1
        {
            break session;
        }
    };
    // As `lango serve` does when it stops: turns are suspended, then the scheduler ends.
    team.runtime.suspend_turns().cancel();
    stop.cancel();
    running.await.unwrap();
    team.runtime.tasks().close();
    team.runtime.tasks().wait().await;
    let run = all_runs(&stores.automation).await.remove(0);
    assert_eq!(run.state, RunState::Queued);
    let next = Team::on("mode single\nroot says the disk is fine", stores);
    let run = next.run().await;
    assert_eq!(
        (run.state, run.result.as_deref()),
        (RunState::Done, Some("the disk is fine"))
    );
    assert_eq!(
        next.user_requests(&session).await,
        1,
        "it was not asked again"
    );
}
