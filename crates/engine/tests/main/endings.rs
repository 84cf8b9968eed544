//! Every turn ends: whatever calls a reply holds, and whatever the turn waits for.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::BoxStream;
use lango_domain::approval::{ApprovalDecision, ApprovalQuestion, ApprovalScope, Approver};
use lango_domain::event::{Decider, Event, EventBody, Principal, SessionId, Update};
use lango_domain::failure::FailureCode;
use lango_domain::hooks::{
    Advisor, ContextError, ContextRequest, ContextSource, Digest, DigestSource, FailedCall,
};
use lango_domain::model::{Fragment, Model, ModelError, ModelRequest};
use lango_domain::session::SessionKey;
use lango_domain::{Intent, LabeledText, Safety, Tool, ToolError};
use lango_engine::{
    ApprovalPolicy, InMemorySessionStore, Models, Runner, RunnerParts, TurnHooks, TurnLimits,
    TurnRequest,
};
use lango_team::{Config, build_agent_tree};
use lango_testkit::script::{Script, ScriptedPart, ScriptedReply, ToolBehavior, UserTurn};
use lango_testkit::scripted::{ScriptedModel, scripted_tool};
use lango_testkit::stores::{HangPoint, SlowStore};
use lango_testkit::{invariants, script_runner};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Each tool behaves in one way.
fn behaviors() -> HashMap<String, Vec<ToolBehavior>> {
    let slow = ToolBehavior::Takes(Duration::from_millis(7));
    let of = |name: &str, told: Vec<ToolBehavior>| (name.to_owned(), told);
    HashMap::from([
        of("fs_read", vec![]),
        of("fs_write", vec![ToolBehavior::Moderate]),
        of("exec_shell", vec![ToolBehavior::Dangerous]),
        of(
            "fs_stat",
            vec![ToolBehavior::Wants(vec![("path".into(), "string".into())])],
        ),
        of("fs_search", vec![slow.clone()]),
        of(
            "fs_list",
            vec![ToolBehavior::Fails("no such folder".into())],
        ),
        of(
            "fs_delete",
            vec![ToolBehavior::Moderate, ToolBehavior::Panics],
        ),
        of("fs_edit", vec![ToolBehavior::Dangerous, slow]),
    ])
}

/// One more than there are: a call of a tool that does not exist is refused.
const TOOLS: [&str; 9] = [
    "fs_read",
    "fs_write",
    "exec_shell",
    "fs_stat",
    "fs_search",
    "fs_list",
    "fs_delete",
    "fs_edit",
    "nothing_there",
];

prop_compose! {
    fn script()(
        calls in prop::collection::vec((prop::sample::select(&TOOLS[..]), 0..4), 1..=12),
        approvals in prop::collection::vec(prop::sample::select(&["yes", "same", "pattern", "no", "late", "hangs", ""][..]), 0..12),
        single in any::<bool>(),
    ) -> Script {
        let call = |(name, n): (&str, i32)| {
            ScriptedPart::Call { id: None, name: name.to_owned(), arguments: json!({ "path": format!("a {n}") }) }
        };
        let reply = |parts| ScriptedReply { parts, always: false };
        let worker = vec![reply(calls.into_iter().map(call).collect()), reply(vec![ScriptedPart::Text(vec!["Done.".into()])])];
        let transfer = ScriptedPart::Call { id: None, name: "transfer_to_agent".into(), arguments: json!({ "agent_name": "operator" }) };
        let replies = match single {
            true => HashMap::from([("root".to_owned(), worker)]),
            false => HashMap::from([("root".to_owned(), vec![reply(vec![transfer])]), ("operator".to_owned(), worker)]),
        };
        Script {
            single,
            tools: TOOLS[..8].iter().map(|tool| (*tool).to_owned()).collect(),
            behaviors: behaviors(),
            approvals: approvals.into_iter().map(str::to_owned).collect(),
            turns: vec![UserTurn { text: "please".into(), cancelled_after: None }],
            replies,
            ..Script::default()
        }
    }
}

/// The ids of calls and of results, each in the order of the log.
fn order(events: &[Arc<Event>]) -> (Vec<&str>, Vec<&str>) {
    let calls = events.iter().filter_map(|event| match &event.body {
        EventBody::ToolCall { id, .. } => Some(id.as_str()),
        _ => None,
    });
    let results = events.iter().filter_map(|event| match &event.body {
        EventBody::ToolResult { id, .. } => Some(id.as_str()),
        _ => None,
    });
    (calls.collect(), results.collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// B54, B104: any mix of calls in one reply, with any answers to the questions, ends with results in order.
    #[test]
    fn any_mix_of_calls_ends_in_order(script in script(), latency in 0u64..4) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let store = Arc::new(SlowStore::with_latency(Duration::from_millis(latency)));
        let told = runtime.block_on(script_runner::run_script_with_store(&script, store)).unwrap();
        prop_assert_eq!(invariants::violations(&told), Vec::<String>::new(), "{}", told.transcript);
        prop_assert!(told.transcript.contains("\ndone"), "{}", told.transcript);
        let (calls, results) = order(&told.events);
        prop_assert_eq!(calls, results, "{}", told.transcript);
    }
}

/// What never returns in a turn.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stuck {
    Store(HangPoint),
    Model,
    Tool,
    Intent,
    Approver,
    Source,
    Digest,
    Advisor,
}

struct Never;

impl Model for Never {
    fn stream(&self, _: ModelRequest) -> BoxStream<'static, Result<Fragment, ModelError>> {
        futures::stream::pending().boxed()
    }

    fn window(&self) -> usize {
        128_000
    }
}

impl Approver for Never {
    fn ask(&self, _: ApprovalQuestion) -> BoxFuture<'static, ApprovalDecision> {
        futures::future::pending().boxed()
    }
}

impl ContextSource for Never {
    fn name(&self) -> &str {
        "never"
    }

    fn max_tokens(&self) -> usize {
        100
    }

    fn gather(
        &self,
        _: ContextRequest,
    ) -> BoxFuture<'static, Result<Option<LabeledText>, ContextError>> {
        futures::future::pending().boxed()
    }
}

impl DigestSource for Never {
    fn digest(&self, _: SessionKey) -> BoxFuture<'static, Result<Option<Digest>, ContextError>> {
        futures::future::pending().boxed()
    }
}

impl Advisor for Never {
    fn advice(&self, _: FailedCall) -> BoxFuture<'static, Option<LabeledText>> {
        futures::future::pending().boxed()
    }
}

/// Allows everything.
struct Yes;

impl Approver for Yes {
    fn ask(&self, _: ApprovalQuestion) -> BoxFuture<'static, ApprovalDecision> {
        futures::future::ready(ApprovalDecision::Approved {
            scope: ApprovalScope::Once,
            by: Decider::User,
        })
        .boxed()
    }
}

/// A turn that reads, is asked about a command, runs it, fails at something, and answers; one part of it is stuck.
fn runner(stuck: Stuck, seconds: u64) -> Runner {
    let mut script = "mode single\nroot calls fs_read {\"path\":\"a\"} + calls exec_shell {\"path\":\"b\"} + calls fs_list {}\nroot says done".to_owned();
    script.push('\n');
    let script = Script::parse(&script).unwrap();
    let hang = |on: Stuck, told: Vec<ToolBehavior>| match stuck == on {
        true => [told, vec![ToolBehavior::Hangs]].concat(),
        false => told,
    };
    let mut shell = scripted_tool(
        "exec_shell",
        &hang(Stuck::Tool, vec![ToolBehavior::Dangerous]),
    );
    if stuck == Stuck::Intent {
        shell = shell
            .with_intent(|_, _: Value| futures::future::pending::<Result<Intent, ToolError>>());
    }
    let failing = scripted_tool("fs_list", &[ToolBehavior::Fails("no such folder".into())]);
    let config = Config {
        mode: lango_domain::TeamMode::Single,
        tools: vec![scripted_tool("fs_read", &[]), shell, failing],
        ..Config::default()
    };
    let model: Arc<dyn Model> = match stuck {
        Stuck::Model => Arc::new(Never),
        _ => Arc::new(ScriptedModel::new(script.replies, 128_000)),
    };
    let beside = TurnHooks {
        context_sources: if stuck == Stuck::Source {
            vec![Arc::new(Never)]
        } else {
            Vec::new()
        },
        digest_source: (stuck == Stuck::Digest).then(|| Arc::new(Never) as Arc<dyn DigestSource>),
        advisor: (stuck == Stuck::Advisor).then(|| Arc::new(Never) as Arc<dyn Advisor>),
        after_turn: Vec::new(),
    };
    let store = match stuck {
        Stuck::Store(hang) => SlowStore::with_hang(hang),
        _ => SlowStore::default(),
    };
    Runner::new(RunnerParts {
        tree: build_agent_tree(config).unwrap(),
        models: Models {
            default: model,
            per_agent: BTreeMap::new(),
        },
        store: Arc::new(store),
        approver: Some(if stuck == Stuck::Approver {
            Arc::new(Never)
        } else {
            Arc::new(Yes)
        }),
        approval_policy: ApprovalPolicy::default(),
        hooks: beside,
        remotes: BTreeMap::new(),
        limits: TurnLimits {
            seconds: seconds.try_into().unwrap(),
            ..TurnLimits::default()
        },
        clock_and_ids: script_runner::clock_and_ids(),
    })
}

fn request() -> TurnRequest {
    TurnRequest::from_user(SessionId::new("s"), Principal::local(), "please")
}

fn end(updates: &[Update]) -> Option<FailureCode> {
    match updates.last() {
        Some(Update::Event(event)) => match &event.body {
            EventBody::TurnFailed { code, .. } => Some(*code),
            _ => None,
        },
        _ => None,
    }
}

fn stuck_points() -> impl Iterator<Item = Stuck> {
    let appends = (0..11).map(|works| Stuck::Store(HangPoint::Append(works)));
    let others = [
        Stuck::Store(HangPoint::Load),
        Stuck::Store(HangPoint::Grants),
        Stuck::Model,
        Stuck::Tool,
        Stuck::Intent,
        Stuck::Approver,
        Stuck::Source,
        Stuck::Digest,
        Stuck::Advisor,
    ];
    appends.chain(others)
}

/// B104: cancel ends a turn at once where nothing is left to write, and soon where the store does not answer.
#[tokio::test(start_paused = true)]
async fn cancel_ends_a_turn_whatever_it_waits_for() {
    let waiting = stuck_points().chain([Stuck::Store(HangPoint::Lock)]);
    for stuck in waiting.filter(|stuck| !matches!(stuck, Stuck::Advisor)) {
        let stream = runner(stuck, 600).run(request());
        tokio::time::sleep(Duration::from_secs(1)).await;
        let began = Instant::now();
        stream.cancel();
        let updates: Vec<Update> = stream.collect().await;
        let most = if matches!(stuck, Stuck::Store(_)) {
            7
        } else {
            0
        };
        assert!(
            began.elapsed() <= Duration::from_secs(most),
            "{stuck:?} took {:?}",
            began.elapsed()
        );
        match stuck {
            // Nothing was begun, or nothing can be written.
            Stuck::Store(HangPoint::Lock | HangPoint::Load) => assert_eq!(updates, [], "{stuck:?}"),
            Stuck::Store(HangPoint::Append(_)) => {
                assert!(
                    matches!(updates.last(), Some(Update::StoreFailed(_))),
                    "{stuck:?}: {updates:?}"
                );
            }
            _ => assert_eq!(
                end(&updates),
                Some(FailureCode::Cancelled),
                "{stuck:?}: {updates:?}"
            ),
        }
    }
}

/// B104, B56: the clock does the same by itself; it does not run while a person is asked.
#[tokio::test(start_paused = true)]
async fn the_clock_ends_a_turn_whatever_it_waits_for() {
    for stuck in stuck_points() {
        let began = Instant::now();
        let updates: Vec<Update> = runner(stuck, 30).run(request()).collect().await;
        let most = if stuck == Stuck::Approver { 340 } else { 40 };
        assert!(
            began.elapsed() <= Duration::from_secs(most),
            "{stuck:?} took {:?}",
            began.elapsed()
        );
        match stuck {
            Stuck::Store(HangPoint::Load | HangPoint::Append(_)) => {
                assert!(
                    matches!(updates.last(), Some(Update::StoreFailed(_))),
                    "{stuck:?}: {updates:?}"
                );
            }
            // These have limits of their own, and the turn goes on without them.
            Stuck::Approver | Stuck::Source | Stuck::Digest | Stuck::Advisor => {
                assert_eq!(end(&updates), None, "{stuck:?}: {updates:?}");
                assert!(
                    matches!(updates.last(), Some(Update::Event(event)) if event.body == EventBody::TurnDone)
                );
            }
            _ => assert_eq!(
                end(&updates),
                Some(FailureCode::LimitTime),
                "{stuck:?}: {updates:?}"
            ),
        }
    }
}

/// B104: a turn that had to be cut off leaves a log that is whole, and a session that can be used.
#[tokio::test(start_paused = true)]
async fn a_turn_that_was_cut_off_leaves_no_open_call() {
    let runner = runner(Stuck::Store(HangPoint::Grants), 30);
    let first: Vec<Update> = runner.run(request()).collect().await;
    assert_eq!(end(&first), Some(FailureCode::LimitTime));
    let events: Vec<Arc<Event>> = first
        .into_iter()
        .filter_map(|update| match update {
            Update::Event(event) => Some(event),
            _ => None,
        })
        .collect();
    let (mut calls, mut results) = order(&events);
    calls.sort_unstable();
    results.sort_unstable();
    assert_eq!(calls, results);
    let second: Vec<Update> = runner.run(request()).collect().await;
    assert!(
        matches!(second.last(), Some(Update::Event(event)) if event.body == EventBody::TurnDone),
        "{second:?}"
    );
}

/// A tool that blocks its thread until it is let go.
fn blocking(gate: Arc<Semaphore>) -> Tool {
    Tool::new("fs_read", "Blocks.", Safety::Safe, move |_, _: Value| {
        let gate = Arc::clone(&gate);
        async move {
            while gate.try_acquire().is_err() {
                std::thread::yield_now();
            }
            Ok("late")
        }
    })
}

/// B104: not even a tool that blocks a thread keeps a turn from ending.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_tool_that_blocks_its_thread_does_not_hold_the_turn() {
    let gate = Arc::new(Semaphore::new(0));
    let script = Script::parse("root calls fs_read {}\nroot says done").unwrap();
    let config = Config {
        mode: lango_domain::TeamMode::Single,
        tools: vec![blocking(Arc::clone(&gate))],
        ..Config::default()
    };
    let runner = Runner::new(RunnerParts {
        tree: build_agent_tree(config).unwrap(),
        models: Models {
            default: Arc::new(ScriptedModel::new(script.replies, 128_000)),
            per_agent: BTreeMap::new(),
        },
        store: Arc::new(InMemorySessionStore::default()),
        approver: None,
        approval_policy: ApprovalPolicy::default(),
        hooks: TurnHooks::default(),
        remotes: BTreeMap::new(),
        limits: TurnLimits {
            seconds: 1.try_into().unwrap(),
            ..TurnLimits::default()
        },
        clock_and_ids: script_runner::clock_and_ids(),
    });
    let updates: Vec<Update> = runner.run(request()).collect().await;
    gate.add_permits(1);
    assert_eq!(end(&updates), Some(FailureCode::LimitTime), "{updates:?}");
}
