//! Tool steps of workflows whose process ended, with the real engine: what the log of their session tells
//! decides whether they continue, run again, or wait for a user.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::SignedDuration;
use lango_automation::workflow::{RuntimeSteps, WorkflowDriver, WorkflowSettings};
use lango_automation::{
    CronSettings, DuePass, OneTeam, Scheduler, SchedulerParts, SchedulerWake, TurnWorker,
};
use lango_domain::automation::{
    LeaseClaim, LeaseOutcome, NewRun, RunClaim, RunId, RunKind, RunStep, StepState,
};
use lango_domain::event::{
    Author, Branch, CallId, EventBody, NewEvent, SessionId, ToolCode, TurnId,
};
use lango_domain::failure::FailureCode;
use lango_domain::session::SessionKeyRef;
use lango_domain::{AgentName, Safety, Stores, Tool};
use lango_engine::{
    ApprovalPolicy, ClockAndIds, Models, Runner, RunnerParts, TurnHooks, TurnLimits,
};
use lango_runtime::{Runtime, RuntimeParts, TurnLimiter};
use lango_store::{SqliteStore, StoreLocation};
use lango_team::{Config, build_agent_tree};
use lango_testkit::conformance::{new_event, user_request};
use lango_testkit::scripted::ScriptedModel;
use serde_json::{Value, json};

use crate::setup::{START, WallClock, me};

const READ: &str = "fs_read";
const WRITE: &str = "fs_write";
/// The session of the step, and the id of its turn.
const STEP_SESSION: &str = "of the step";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct NoArguments {}

/// A team with one tool that reads and one that writes.
struct CallFixture {
    stores: Stores,
    clock: WallClock,
    calls: Arc<AtomicUsize>,
}

impl CallFixture {
    fn new() -> Self {
        Self {
            stores: SqliteStore::open(StoreLocation::Memory).unwrap().stores(),
            clock: WallClock::at(START),
            calls: Arc::default(),
        }
    }

    fn runtime(&self) -> Runtime {
        let tool = |name: &str, safety| {
            let calls = Arc::clone(&self.calls);
            Tool::new(name, "Counts.", safety, move |_, _: NoArguments| {
                calls.fetch_add(1, Ordering::Relaxed);
                async { Ok("called".to_owned()) }
            })
        };
        let tools = vec![tool(READ, Safety::Safe), tool(WRITE, Safety::Moderate)];
        let config = Config {
            tools,
            ..Config::default()
        };
        let turns = AtomicUsize::new(0);
        let runner = Runner::new(RunnerParts {
            secrets: None,
            tree: build_agent_tree(config).unwrap(),
            models: Models {
                default: Arc::new(ScriptedModel::new(Default::default(), 128_000)),
                per_agent: BTreeMap::new(),
            },
            store: Arc::clone(&self.stores.sessions),
            blobs: Arc::clone(&self.stores.blobs),
            approver: None,
            approval_policy: ApprovalPolicy::default(),
            hooks: TurnHooks::default(),
            remotes: BTreeMap::new(),
            limits: TurnLimits::default(),
            clock_and_ids: ClockAndIds {
                now: self.clock.as_clock(),
                new_turn_id: Arc::new(move || {
                    let number = turns.fetch_add(1, Ordering::Relaxed);
                    TurnId::new(format!("new-{number}"))
                }),
            },
        });
        Runtime::new(RuntimeParts {
            runner,
            approver: None,
            limiter: TurnLimiter::unlimited(),
        })
    }

    /// Stores a run whose only step was running when its process ended, with this log of its session.
    async fn leave_behind(&self, tool: &str, log: Vec<EventBody>) -> RunId {
        let store = &self.stores.automation;
        let definition = format!("name: one\nsteps: [{{id: a, tool: {tool}, with: {{}}}}]");
        let action = json!({ "type": "workflow", "name": "one", "definition": definition });
        let new = NewRun {
            kind: RunKind::Workflow,
            job: None,
            principal: me(),
            name: "one".to_owned(),
            due: self.clock.now(),
            spec: serde_json::from_value(json!({ "action": action })).unwrap(),
        };
        let run = store.submit_run(new).await.unwrap().id;
        let at = self.clock.now();
        let claim = LeaseClaim {
            owner: "killed".to_owned(),
            at,
            until: at + SignedDuration::from_secs(1),
            abandoned: None,
        };
        let LeaseOutcome::Acquired(lease) = store.acquire_lease(claim).await.unwrap() else {
            panic!("the lease is free");
        };
        let claim = RunClaim { at, limit: 1 };
        store.claim_runs(lease.number, claim).await.unwrap();
        let session = SessionId::new(STEP_SESSION);
        let step = RunStep {
            state: StepState::Running,
            attempt: 1,
            started: Some(at),
            session: Some(session.clone()),
            ..RunStep::pending(run, "a")
        };
        let stored = store.record_steps(lease.number, vec![step], vec![]);
        stored.await.unwrap();
        let key = SessionKeyRef {
            session: &session,
            principal: &me(),
        };
        let events = log.into_iter().map(of_operator).collect();
        self.stores.sessions.append(key, events).await.unwrap();
        self.clock.advance(120);
        run
    }

    /// Lets the next process do what is due, and returns the step.
    async fn next_process(&self, run: RunId) -> RunStep {
        let turns = TurnWorker {
            runtime: self.runtime(),
            sessions: Arc::clone(&self.stores.sessions),
            approver: None,
            approval_wait: Duration::from_secs(60),
            teams: Arc::new(OneTeam),
        };
        let steps = Arc::new(RuntimeSteps { turns });
        let scheduler = Scheduler::new(SchedulerParts {
            store: Arc::clone(&self.stores.automation),
            executor: Arc::new(WorkflowDriver::new(steps, WorkflowSettings::default())),
            outbox: None,
            clock: self.clock.as_clock(),
            owner: "a test".to_owned(),
            settings: CronSettings::default(),
            wake: SchedulerWake::default(),
        });
        assert!(matches!(scheduler.run_due().await, Ok(DuePass::Ran(1))));
        let steps = self.stores.automation.steps(&me(), run).await.unwrap();
        steps.into_iter().next().unwrap()
    }
}

/// Returns an event of a turn of the agent that has the tools.
fn of_operator(body: EventBody) -> NewEvent {
    let operator = AgentName::new("operator").unwrap();
    let event = new_event(STEP_SESSION, body);
    NewEvent {
        branch: Branch::root(&operator),
        author: match event.author {
            Author::User => Author::User,
            _ => Author::Agent(operator),
        },
        ..event
    }
}

fn request(tool: &str) -> EventBody {
    user_request(&format!("Step a: {tool}"))
}

fn call(tool: &str) -> EventBody {
    let json = json!({ "type": "tool_call", "id": "call", "tool": tool, "args": {} });
    body(json)
}

fn tool_result(code: Option<ToolCode>) -> EventBody {
    EventBody::ToolResult {
        id: CallId::new("call"),
        ok: code.is_none(),
        content: "from the log".to_owned(),
        attachments: Vec::new(),
        error: code.map(|_| "interrupted".to_owned()),
        code,
        untrusted: false,
        advice: None,
    }
}

fn interrupted_end() -> EventBody {
    EventBody::TurnFailed {
        code: FailureCode::Interrupted,
        message: "Lango stopped.".to_owned(),
        hint: String::new(),
    }
}

fn body(json: Value) -> EventBody {
    serde_json::from_value(json).unwrap()
}

/// B122: a call that only reads runs again, however far its turn came.
#[tokio::test]
async fn an_interrupted_read_runs_again() {
    let interrupted = Some(ToolCode::Interrupted);
    for log in [
        vec![request(READ)],
        vec![request(READ), call(READ)],
        vec![request(READ), call(READ), tool_result(interrupted)],
        vec![
            request(READ),
            call(READ),
            tool_result(interrupted),
            interrupted_end(),
        ],
    ] {
        let fixture = CallFixture::new();
        let context = format!("{log:?}");
        let run = fixture.leave_behind(READ, log).await;
        let step = fixture.next_process(run).await;
        assert_eq!(step.state, StepState::Done, "{context}: {step:?}");
        assert_eq!(step.result.as_deref(), Some("called"), "{context}");
        assert_eq!(fixture.calls.load(Ordering::Relaxed), 1, "{context}");
    }
}

/// B122: a call with an effect is a question only if it began and its end is not known.
#[tokio::test]
async fn only_a_call_that_began_without_an_end_is_unknown() {
    let interrupted = Some(ToolCode::Interrupted);
    let unknown = (StepState::Unknown, None, 0);
    let from_log = (StepState::Done, Some("from the log"), 0);
    for (log, expected) in [
        (vec![], unknown),
        (vec![request(WRITE), call(WRITE)], unknown),
        (
            vec![
                request(WRITE),
                call(WRITE),
                tool_result(interrupted),
                interrupted_end(),
            ],
            unknown,
        ),
        (
            vec![request(WRITE), call(WRITE), tool_result(None)],
            from_log,
        ),
        (vec![request(WRITE)], (StepState::Done, Some("called"), 1)),
    ] {
        let fixture = CallFixture::new();
        let context = format!("{log:?}");
        let run = fixture.leave_behind(WRITE, log).await;
        let step = fixture.next_process(run).await;
        let found = (
            step.state,
            step.result.as_deref(),
            fixture.calls.load(Ordering::Relaxed),
        );
        assert_eq!(found, expected, "{context}: {step:?}");
    }
}
