//! Every turn ends, whatever calls a reply contains and whatever the turn waits for.

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

/// The behaviors of the tools.
fn behaviors() -> HashMap<String, Vec<ToolBehavior>> {
    let slow = ToolBehavior::Takes(Duration::from_millis(7));
    let tool = |name: &str, behaviors: Vec<ToolBehavior>| (name.to_owned(), behaviors);
    let wants_path = ToolBehavior::Wants(vec![("path".into(), "string".into())]);
    let fails = ToolBehavior::Fails("no such folder".into());
    HashMap::from([
        tool("fs_read", vec![]),
        tool("fs_write", vec![ToolBehavior::Moderate]),
        tool("exec_shell", vec![ToolBehavior::Dangerous]),
        tool("fs_stat", vec![wants_path]),
        tool("fs_search", vec![slow.clone()]),
        tool("fs_list", vec![fails]),
        tool(
            "fs_delete",
            vec![ToolBehavior::Moderate, ToolBehavior::Panics],
        ),
        tool("fs_edit", vec![ToolBehavior::Dangerous, slow]),
    ])
}

/// The tools, and one that does not exist: a call of it is refused.
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

/// Returns the ids of calls and of results, each in the order of the log.
fn call_and_result_ids(events: &[Arc<Event>]) -> (Vec<&str>, Vec<&str>) {
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

    /// B54, B104: any mix of calls in one reply, with any approval decisions, ends with results in order.
    #[test]
    fn any_mix_of_calls_ends_in_order(script in script(), latency in 0u64..4) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let store = Arc::new(SlowStore::with_latency(Duration::from_millis(latency)));
        let run = runtime.block_on(script_runner::run_script_with_store(&script, store)).unwrap();
        prop_assert_eq!(invariants::violations(&run), Vec::<String>::new(), "{}", run.transcript);
        prop_assert!(run.transcript.contains("\ndone"), "{}", run.transcript);
        let (calls, results) = call_and_result_ids(&run.events);
        prop_assert_eq!(calls, results, "{}", run.transcript);
    }
}

/// The part of a turn that never returns.
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

/// Approves every call.
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

/// Returns a runner for a turn that reads, asks about a command, runs it, fails at a call, and
/// answers. One part of it hangs.
fn runner(stuck: Stuck, seconds: u64) -> Runner {
    let script = "mode single\nroot calls fs_read {\"path\":\"a\"} + calls exec_shell {\"path\":\"b\"} + calls fs_list {}\nroot says done\n";
    let script = Script::parse(script).unwrap();
    let with_hang = |part: Stuck, behaviors: Vec<ToolBehavior>| match stuck == part {
        true => [behaviors, vec![ToolBehavior::Hangs]].concat(),
        false => behaviors,
    };
    let mut shell = scripted_tool(
        "exec_shell",
        &with_hang(Stuck::Tool, vec![ToolBehavior::Dangerous]),
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
    let hooks = TurnHooks {
        context_sources: match stuck {
            Stuck::Source => vec![Arc::new(Never)],
            _ => Vec::new(),
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
        blobs: Arc::<InMemorySessionStore>::default(),
        approver: Some(if stuck == Stuck::Approver {
            Arc::new(Never)
        } else {
            Arc::new(Yes)
        }),
        approval_policy: ApprovalPolicy::default(),
        hooks,
        secrets: None,
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

fn failure_code(updates: &[Update]) -> Option<FailureCode> {
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

/// B104: a cancelled turn ends at once if nothing is left to write, and soon if the store hangs.
#[tokio::test(start_paused = true)]
async fn cancel_ends_a_turn_whatever_it_waits_for() {
    let waiting = stuck_points().chain([Stuck::Store(HangPoint::Lock)]);
    for stuck in waiting.filter(|stuck| !matches!(stuck, Stuck::Advisor)) {
        let stream = runner(stuck, 600).run(request());
        tokio::time::sleep(Duration::from_secs(1)).await;
        let started = Instant::now();
        stream.cancel();
        let updates: Vec<Update> = stream.collect().await;
        let max_seconds = if matches!(stuck, Stuck::Store(_)) {
            7
        } else {
            0
        };
        assert!(
            started.elapsed() <= Duration::from_secs(max_seconds),
            "{stuck:?} took {:?}",
            started.elapsed()
        );
        match stuck {
            // The turn has not started, or nothing can be written.
            Stuck::Store(HangPoint::Lock | HangPoint::Load) => assert_eq!(updates, [], "{stuck:?}"),
            Stuck::Store(HangPoint::Append(_)) => {
                assert!(
                    matches!(updates.last(), Some(Update::StoreFailed(_))),
                    "{stuck:?}: {updates:?}"
                );
            }
            _ => assert_eq!(
                failure_code(&updates),
                Some(FailureCode::Cancelled),
                "{stuck:?}: {updates:?}"
            ),
        }
    }
}

/// B104, B56: so does a turn at its time limit. The clock is paused while the user is asked.
#[tokio::test(start_paused = true)]
async fn the_clock_ends_a_turn_whatever_it_waits_for() {
    for stuck in stuck_points() {
        let started = Instant::now();
        let updates: Vec<Update> = runner(stuck, 30).run(request()).collect().await;
        let max_seconds = if stuck == Stuck::Approver { 340 } else { 40 };
        assert!(
            started.elapsed() <= Duration::from_secs(max_seconds),
            "{stuck:?} took {:?}",
            started.elapsed()
        );
        match stuck {
            Stuck::Store(HangPoint::Load | HangPoint::Append(_)) => {
                assert!(
                    matches!(updates.last(), Some(Update::StoreFailed(_))),
                    "{stuck:?}: {updates:?}"
                );
            }
            // These have their own timeouts, and the turn continues without them.
            Stuck::Approver | Stuck::Source | Stuck::Digest | Stuck::Advisor => {
                assert_eq!(failure_code(&updates), None, "{stuck:?}: {updates:?}");
                assert!(
                    matches!(updates.last(), Some(Update::Event(event)) if matches!(event.body, EventBody::TurnDone { .. }))
                );
            }
            _ => assert_eq!(
                failure_code(&updates),
                Some(FailureCode::LimitTime),
                "{stuck:?}: {updates:?}"
            ),
        }
    }
}

/// B104: an aborted turn leaves a complete log and a usable session.
#[tokio::test(start_paused = true)]
async fn an_aborted_turn_leaves_no_open_call() {
    let runner = runner(Stuck::Store(HangPoint::Grants), 30);
    let first: Vec<Update> = runner.run(request()).collect().await;
    assert_eq!(failure_code(&first), Some(FailureCode::LimitTime));
    let events: Vec<Arc<Event>> = first
        .into_iter()
        .filter_map(|update| match update {
            Update::Event(event) => Some(event),
            _ => None,
        })
        .collect();
    let (mut calls, mut results) = call_and_result_ids(&events);
    calls.sort_unstable();
    results.sort_unstable();
    assert_eq!(calls, results);
    let second: Vec<Update> = runner.run(request()).collect().await;
    assert!(
        matches!(second.last(), Some(Update::Event(event)) if event.body == EventBody::turn_done()),
        "{second:?}"
    );
}

/// A tool that blocks its thread until a permit is available.
fn blocking(permits: Arc<Semaphore>) -> Tool {
    Tool::new("fs_read", "Blocks.", Safety::Safe, move |_, _: Value| {
        let permits = Arc::clone(&permits);
        async move {
            while permits.try_acquire().is_err() {
                std::thread::yield_now();
            }
            Ok("late")
        }
    })
}

/// B104: a tool that blocks its thread cannot keep a turn from ending.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_tool_that_blocks_its_thread_does_not_block_the_turn() {
    let permits = Arc::new(Semaphore::new(0));
    let script = Script::parse("root calls fs_read {}\nroot says done").unwrap();
    let config = Config {
        mode: lango_domain::TeamMode::Single,
        tools: vec![blocking(Arc::clone(&permits))],
        ..Config::default()
    };
    let runner = Runner::new(RunnerParts {
        tree: build_agent_tree(config).unwrap(),
        models: Models {
            default: Arc::new(ScriptedModel::new(script.replies, 128_000)),
            per_agent: BTreeMap::new(),
        },
        store: Arc::new(InMemorySessionStore::default()),
        blobs: Arc::<InMemorySessionStore>::default(),
        approver: None,
        approval_policy: ApprovalPolicy::default(),
        hooks: TurnHooks::default(),
        secrets: None,
        remotes: BTreeMap::new(),
        limits: TurnLimits {
            seconds: 1.try_into().unwrap(),
            ..TurnLimits::default()
        },
        clock_and_ids: script_runner::clock_and_ids(),
    });
    let updates: Vec<Update> = runner.run(request()).collect().await;
    permits.add_permits(1);
    assert_eq!(
        failure_code(&updates),
        Some(FailureCode::LimitTime),
        "{updates:?}"
    );
}
