//! Invariants that hold for random model replies.

use std::collections::HashMap;
use std::time::Duration;

use lango_testkit::script::{Script, ScriptedPart, ScriptedReply, ToolBehavior, UserTurn};
use lango_testkit::{invariants, script_runner};
use proptest::prelude::*;
use serde_json::{Value, json};

const TOOLS: [&str; 6] = [
    "exec_shell",
    "fs_read",
    "payment_send",
    "search_web",
    "cron_add",
    "odd_tool",
];
const AGENTS: [&str; 5] = ["operator", "vault", "librarian", "automator", "planner"];

fn text() -> impl Strategy<Value = Vec<String>> {
    prop_oneof![
        3 => Just(vec!["Done.".to_owned()]),
        1 => Just(Vec::new()),
        1 => Just(vec![" \n".to_owned()]),
        1 => Just(vec![" [REJ".to_owned(), "ECT]".to_owned(), " not mine".to_owned()]),
        1 => prop::collection::vec(".{0,6}", 0..4),
    ]
}

fn arguments() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => Just(json!({ "path": "a" })),
        1 => Just(json!({ "path": 7 })),
        1 => Just(json!("not an object")),
        1 => Just(Value::Null),
        1 => ".{0,8}".prop_map(|text| json!({ "path": text })),
    ]
}

fn transfer() -> impl Strategy<Value = ScriptedPart> {
    let name = prop_oneof![
        6 => prop::sample::select(&AGENTS[..]).prop_map(str::to_owned),
        1 => prop::sample::select(&["Operator ", "vault_agent", "exec", "browser_agent", "", "lango-orchestrator"][..]).prop_map(str::to_owned),
    ];
    (name, any::<bool>(), any::<bool>()).prop_map(|(agent, task, report_back)| {
        let mut arguments = json!({ "agent_name": agent, "report_back": report_back });
        if task {
            arguments["task"] = "do it".into();
        }
        ScriptedPart::Call {
            id: None,
            name: "transfer_to_agent".into(),
            arguments,
        }
    })
}

fn part() -> impl Strategy<Value = ScriptedPart> {
    let id = prop_oneof![3 => Just(None), 1 => Just(Some(String::new())), 1 => Just(Some("same".to_owned()))];
    let tool =
        prop_oneof![6 => prop::sample::select(&TOOLS[..]).prop_map(str::to_owned), 1 => ".{0,12}"];
    prop_oneof![
        5 => text().prop_map(ScriptedPart::Text),
        5 => transfer(),
        5 => (id, tool, arguments()).prop_map(|(id, name, arguments)| ScriptedPart::Call { id, name, arguments }),
        1 => (0u64..100_000).prop_map(ScriptedPart::Usage),
        1 => prop::sample::select(&["auth", "busy", "connection", "malformed x"][..]).prop_map(|kind| ScriptedPart::Error(kind.into())),
        1 => Just(ScriptedPart::BreaksOff),
        1 => Just(ScriptedPart::Hangs),
    ]
}

fn replies() -> impl Strategy<Value = Vec<ScriptedReply>> {
    let reply = (
        prop::collection::vec(part(), 0..5),
        prop::bool::weighted(0.1),
    );
    prop::collection::vec(
        reply.prop_map(|(parts, always)| ScriptedReply { parts, always }),
        0..8,
    )
}

fn turns() -> impl Strategy<Value = Vec<UserTurn>> {
    let cancel = prop::option::weighted(0.2, (0u64..300).prop_map(Duration::from_secs));
    let turn = cancel.prop_map(|cancelled_after| UserTurn {
        text: "please".into(),
        cancelled_after,
    });
    prop::collection::vec(turn, 1..4)
}

prop_compose! {
    fn script()(
        root in replies(),
        others in prop::collection::vec(replies(), AGENTS.len()),
        turns in turns(),
        single in prop::bool::weighted(0.2),
        parallel in prop::bool::weighted(0.2),
        window in prop::sample::select(&[3_000usize, 8_000, 128_000][..]),
    ) -> Script {
        let mut replies: HashMap<String, Vec<ScriptedReply>> =
            AGENTS.iter().map(|agent| (*agent).to_owned()).zip(others).collect();
        replies.insert("root".into(), root);
        let wants = ToolBehavior::Wants(vec![("path".into(), "string".into())]);
        let behaviors = HashMap::from([
            ("fs_read".to_owned(), vec![wants, ToolBehavior::Returns("x".repeat(30_000))]),
            ("search_web".to_owned(), vec![ToolBehavior::Takes(Duration::from_secs(30))]),
            ("cron_add".to_owned(), vec![ToolBehavior::Hangs]),
            ("payment_send".to_owned(), vec![ToolBehavior::Dangerous]),
        ]);
        let tools = TOOLS.iter().map(|tool| (*tool).to_owned()).collect();
        Script { single, tools, behaviors, turns, parallel, replies, window: Some(window), ..Script::default() }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, ..ProptestConfig::default() })]

    /// B54, B59, B60, B72, B40, S70: the turn ends, each delegation and each call has exactly one result,
    /// no request contains a call without its result, authors are the user or existing agents, and
    /// consecutive requests share a prefix.
    #[test]
    fn invariants_hold_for_random_replies(script in script()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let run = runtime.block_on(script_runner::run_script(&script)).unwrap();
        prop_assert_eq!(invariants::violations(&run), Vec::<String>::new(), "{}", run.transcript);
        prop_assert!(!run.transcript.contains("BROKEN"), "{}", run.transcript);
        let begins_with_reject = |line: &str| {
            let shown = line.split_once("ANSWERS: ").or_else(|| line.split_once(": \""));
            shown.is_some_and(|(_, text)| text.trim_start().starts_with("[REJECT]"))
        };
        prop_assert!(!run.transcript.lines().any(begins_with_reject), "a rejection was shown:\n{}", run.transcript);
    }
}
