//! `lango ask` against a real server on loopback.

use lango_testkit::model_server::{ModelServer, ServerReply};
use serde_json::{Value, json};

use crate::setup::{CommandRun, TestDir};

/// An API key that must never be printed.
const KEY: (&str, &str) = ("LANGO_PROVIDERS__X__API_KEY", "sk-secret-123");

/// Returns a folder whose configuration uses this server.
pub fn provider_dir(server: &ModelServer) -> TestDir {
    TestDir::with_provider("openai", &server.base_url())
}

pub fn ask(server: &ModelServer, args: &[&str]) -> CommandRun {
    provider_dir(server).lango_with(&[&["ask"][..], args].concat(), &[KEY])
}

pub fn events(run: &CommandRun) -> Vec<Value> {
    run.stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

fn event_types(events: &[Value]) -> Vec<(&str, &str)> {
    let field = |event: &Value, key: &str| event[key].as_str().map(str::to_owned);
    let leak = |text: String| -> &str { Box::leak(text.into_boxed_str()) };
    events
        .iter()
        .map(|event| {
            (
                leak(field(event, "type").unwrap()),
                leak(field(event, "author").unwrap_or_default()),
            )
        })
        .collect()
}

fn delegating_server() -> ModelServer {
    ModelServer::start(vec![
        ServerReply::tool_call(
            "transfer_to_agent",
            &json!({ "agent_name": "planner", "task": "plan it" }),
        ),
        ServerReply::chunks(
            &[json!({ "content": "1. " }), json!({ "content": "Go." })],
            "stop",
        ),
    ])
    .unwrap()
}

/// S50, S51, B54
#[test]
fn delegates_request_and_orders_events_by_author() {
    let run = ask(&delegating_server(), &["--json", "make a plan"]);
    assert_eq!(run.exit, 0, "{}", run.stderr);
    let events = events(&run);
    assert_eq!(
        event_types(&events),
        [
            ("user", "user"),
            ("usage", "lango-orchestrator"),
            ("transfer", "lango-orchestrator"),
            ("usage", "planner"),
            ("answer", "planner"),
            ("transfer_result", "lango-orchestrator"),
            ("turn_done", "lango-orchestrator"),
        ]
    );
    assert_eq!(events[4]["text"], "1. Go.");
    for (index, event) in events.iter().enumerate() {
        assert_eq!((&event["v"], &event["seq"]), (&json!(1), &json!(index + 1)));
        assert!(
            event["session"].is_string()
                && event["turn"].is_string()
                && event["branch"].is_string()
                && event["at"].is_string()
        );
    }
    assert_eq!(
        (
            events[2]["to"].as_str(),
            events[2]["task"].as_str(),
            &events[2]["report_back"]
        ),
        (Some("planner"), Some("plan it"), &json!(false))
    );
}

#[test]
fn piped_stdout_contains_only_the_answer() {
    let run = ask(&delegating_server(), &["make", "a", "plan"]);
    assert_eq!(
        (run.stdout.as_str(), run.stderr.as_str(), run.exit),
        ("1. Go.\n", "", 0)
    );
}

#[test]
fn prints_deltas_only_with_flag() {
    let run = ask(&delegating_server(), &["--json", "--deltas", "make a plan"]);
    let deltas: Vec<Value> = events(&run)
        .into_iter()
        .filter(|event| event["type"] == "delta")
        .collect();
    // Deltas that arrive together may be merged.
    let text: String = deltas
        .iter()
        .filter_map(|delta| delta["text"].as_str())
        .collect();
    assert_eq!(text, "1. Go.");
    assert!(
        deltas
            .iter()
            .all(|delta| delta["author"] == "planner" && delta.as_object().unwrap().len() == 3)
    );
    let plain = ask(&delegating_server(), &["--json", "make a plan"]);
    assert!(events(&plain).iter().all(|event| event["type"] != "delta"));
}

#[test]
fn piped_input_is_added_to_the_request() {
    let server = ModelServer::start(vec![ServerReply::text("ok")]).unwrap();
    let run =
        provider_dir(&server).lango_with_input(&["ask", "summarise", "-"], b"line one\nline two\n");
    assert_eq!(run.exit, 0, "{}", run.stderr);
    let request = server.requests()[0].json();
    let content = request["messages"][1]["content"].as_str().unwrap();
    assert!(
        content.starts_with("summarise\n") && content.contains("line one\nline two\n</context>"),
        "{content}"
    );
    let run = provider_dir(&ModelServer::start(vec![ServerReply::text("ok")]).unwrap())
        .lango_with_input(&["ask", "-"], b"hello");
    assert_eq!(run.exit, 0, "{}", run.stderr);
    let run = TestDir::new().lango_with_input(&["ask", "-"], b"\xff\xfe");
    assert!(
        run.exit == 2 && run.stderr.contains("not valid UTF-8"),
        "{}",
        run.stderr
    );
}

#[test]
fn api_key_is_sent_but_never_printed() {
    let server = ModelServer::start(vec![ServerReply::status(
        404,
        r#"{"error":{"message":"no model m for sk-secret-123"}}"#,
    )])
    .unwrap();
    let run = ask(&server, &["-vv", "--json", "hello"]);
    assert!(server.requests()[0].head.contains("Bearer sk-secret-123"));
    assert_eq!(run.exit, 3);
    assert!(
        !run.stdout.contains("sk-secret") && !run.stderr.contains("sk-secret"),
        "{}{}",
        run.stdout,
        run.stderr
    );
    let shown = provider_dir(&server).lango_with(&["config", "show", "--json"], &[KEY]);
    assert!(
        !shown.stdout.contains("sk-secret") && shown.stdout.contains("***"),
        "{}",
        shown.stdout
    );
}

#[test]
fn rejects_unknown_provider() {
    let run = TestDir::new().lango(&["ask", "--provider", "opneai", "hello"]);
    assert!(
        run.exit == 2 && run.stderr.contains("did you mean `openai`?"),
        "{}",
        run.stderr
    );
    assert_eq!(TestDir::new().lango(&["ask", " "]).exit, 2);
}

/// A request that was not done has an exit code, and its last event a reason.
#[test]
fn a_request_that_is_not_done_is_told_apart() {
    let dir = TestDir::new();
    for (request, exit, reason) in [
        (&["hello"][..], 0, Value::Null),
        (&["why is the sky blue"], 1, json!("unable")),
        (&["read the file missing.txt"], 1, json!("unable")),
        (&["run `touch new`"], 5, json!("unable")),
    ] {
        let args = [&["ask", "--json", "--provider", "offline"][..], request].concat();
        let run = dir.lango(&args);
        assert_eq!(run.exit, exit, "{request:?}: {}", run.stdout);
        let last: Value = serde_json::from_str(run.stdout.lines().last().unwrap()).unwrap();
        assert_eq!(
            (&last["type"], &last["reason"]),
            (&json!("turn_done"), &reason),
            "{request:?}"
        );
    }
}

/// A note for people, which is no part of the answer.
#[test]
fn a_terminal_is_told_that_no_language_model_answered() {
    let run = TestDir::new().lango_at_terminal(&["ask", "--provider", "offline", "hello"], "");
    assert!(
        run.stderr.contains("not a language model"),
        "{}",
        run.stderr
    );
    assert!(!run.stdout.contains("language model"), "{}", run.stdout);
}

/// On a fresh machine without a key or network, the offline model answers and delegates.
#[test]
fn uses_offline_model_without_api_key() {
    for args in [
        &["ask", "hello"][..],
        &["ask", "--provider", "offline", "thanks!"],
    ] {
        let run = TestDir::new().lango(args);
        assert!(
            run.exit == 0 && !run.stdout.contains("language model"),
            "{}{}",
            run.stdout,
            run.stderr
        );
    }
    let json = [
        "ask",
        "--json",
        "--provider",
        "offline",
        "--tools",
        "exec_shell",
        "what's eating my disk",
    ];
    let run = TestDir::new().lango(&json);
    let events: Vec<Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let transfer = events
        .iter()
        .find(|event| event["type"] == "transfer")
        .unwrap();
    assert_eq!(transfer["to"], "operator");
    let calls = events
        .iter()
        .filter(|event| event["type"] == "usage")
        .count();
    assert_eq!(calls, 2, "one for the decision, one for the work");
    assert_eq!(events.last().unwrap()["type"], "turn_done");
    let listed = TestDir::new().lango(&["model", "list", "--provider", "offline"]);
    assert!(
        listed.stdout.contains("no neural network"),
        "{}",
        listed.stdout
    );
}

/// B40: the beginning of consecutive requests is the same, byte for byte.
#[test]
fn consecutive_requests_share_a_prefix() {
    let server =
        ModelServer::start(vec![ServerReply::text("one"), ServerReply::text("two")]).unwrap();
    let run = provider_dir(&server).lango_with_input(&["chat"], b"first\nsecond\n/usage\n/quit\n");
    assert_eq!(run.exit, 0, "{}", run.stderr);
    let bodies: Vec<Vec<u8>> = server
        .requests()
        .into_iter()
        .map(|received| received.body)
        .collect();
    let common = bodies[0]
        .iter()
        .zip(&bodies[1])
        .take_while(|(a, b)| a == b)
        .count();
    assert_eq!(
        common,
        bodies[0].len() - "]}".len(),
        "everything but the end of the list"
    );
    assert!(
        run.stdout == "one\ntwo\n"
            && run
                .stderr
                .contains("2 calls, 200 in (120 cached), 20 out, price unknown"),
        "{}",
        run.stdout
    );
}

#[test]
fn usage_sums_events_of_ask() {
    let run = ask(
        &delegating_server(),
        &[
            "--json",
            "--set",
            "prices.m={\"input\":1,\"output\":10}",
            "make a plan",
        ],
    );
    let usage = TestDir::new()
        .lango_with_input(&["usage", "-", "--json"], run.stdout.as_bytes())
        .json();
    assert_eq!(
        (
            &usage["calls"],
            &usage["tokens_in"],
            &usage["tokens_out"],
            &usage["cached"]
        ),
        (&json!(2), &json!(200), &json!(20), &json!(120))
    );
    assert!(
        (usage["cost_usd"].as_f64().unwrap() - 0.0004).abs() < 1e-9,
        "{usage}"
    );
    assert_eq!(usage["by_agent"].as_array().unwrap().len(), 2);
    assert_eq!(
        usage["by_turn"][0]["delegations"][1]["branch"],
        "lango-orchestrator/planner.1"
    );
    let plain = TestDir::new()
        .lango_with_input(&["usage", "-"], run.stdout.as_bytes())
        .stdout;
    assert!(
        plain.contains("\n└── lango-orchestrator  1 call,")
            && plain.contains("\n    └── planner  1 call,"),
        "{plain}"
    );
    let unknown = ask(&delegating_server(), &["--json", "make a plan"]);
    let usage = TestDir::new()
        .lango_with_input(&["usage", "-", "--json"], unknown.stdout.as_bytes())
        .json();
    assert_eq!(
        usage["cost_usd"],
        Value::Null,
        "unknown is unknown, not zero"
    );
}

#[test]
fn model_check_explains_failures() {
    let check = |reply: ServerReply| {
        provider_dir(&ModelServer::start(vec![reply]).unwrap()).lango(&["model", "check", "--json"])
    };
    assert_eq!(check(ServerReply::text("pong")).json()["ok"], true);
    let nowhere = TestDir::with_provider("openai", "http://127.0.0.1:9/v1");
    let bad = nowhere.lango(&["ask", "--set", "agent.models.libarian=n", "hello"]);
    assert!(
        bad.exit == 2 && bad.stderr.contains("did you mean `librarian`?"),
        "{}",
        bad.stderr
    );
    for (reply, message) in [
        (ServerReply::status(401, ""), "key"),
        (ServerReply::status(404, ""), "name"),
        (ServerReply::status(402, ""), "quota"),
        (ServerReply::status(200, "<html>"), "response is invalid"),
    ] {
        let run = check(reply);
        assert_eq!(run.exit, 3);
        assert!(
            run.error()["message"].as_str().unwrap().contains(message),
            "{}",
            run.stderr
        );
    }
    let unreachable = nowhere.lango(&["model", "check", "--json"]);
    assert!(
        unreachable.error()["message"]
            .as_str()
            .unwrap()
            .contains("cannot be reached"),
        "{}",
        unreachable.stderr
    );
}

#[test]
fn model_list_shows_selection_and_reason() {
    let list = |variables: &[(&str, &str)], args: &[&str]| {
        TestDir::new()
            .lango_with(
                &[&["model", "list", "--json"][..], args].concat(),
                variables,
            )
            .json()
    };
    let found = list(&[("OPENAI_API_KEY", "k")], &[]);
    assert_eq!(
        (&found["items"][0]["provider"], &found["items"][0]["why"]),
        (&json!("openai"), &json!("OPENAI_API_KEY is set"))
    );
    let both = list(&[("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")], &[]);
    assert_eq!(both["items"][0]["provider"], "anthropic");
    assert_eq!(
        list(&[("GOOGLE_API_KEY", "k")], &[])["items"][0]["provider"],
        "gemini"
    );
    assert_eq!(list(&[], &[])["items"][0]["provider"], "offline");
    let custom = list(
        &[("OPENAI_API_KEY", "k")],
        &[
            "--set",
            "providers.mine.type=openai",
            "--set",
            "providers.mine.baseUrl=http://127.0.0.1:1/v1",
            "--model",
            "m",
        ],
    );
    assert_eq!(
        (&custom["items"][0]["provider"], &custom["items"][0]["key"]),
        (&json!("mine"), &json!(false)),
        "a key is sent only to its own provider"
    );
}

fn record(dir: &TestDir, file: &str, args: &[&str]) -> CommandRun {
    dir.lango(&[&["ask", "--json", "--record", file][..], args].concat())
}

#[test]
fn replays_recorded_turns_exactly() {
    let server = ModelServer::start(vec![
        ServerReply::tool_call(
            "transfer_to_agent",
            &json!({ "agent_name": "operator", "task": "run it with sk-secret-123" }),
        ),
        ServerReply::tool_call("exec_shell", &json!({ "command": "ls" })),
        ServerReply::text("It is only a stub."),
        ServerReply::text("Hello."),
    ])
    .unwrap();
    let dir = provider_dir(&server);
    // There is no one to approve the call of the stub.
    for (file, request, exit) in [("one.jsonl", "run ls", 5), ("two.jsonl", "hello", 0)] {
        let args = [
            "ask",
            "--json",
            "--record",
            file,
            "--tools",
            "exec_shell",
            request,
        ];
        let first = dir.lango_with(&args, &[KEY]);
        assert_eq!(first.exit, exit, "{}", first.stderr);
        let written = std::fs::read_to_string(dir.path().join(file)).unwrap();
        assert!(
            !written.contains("sk-secret"),
            "the recording contains a key"
        );
        let again = dir.lango(&["ask", "--json", "--replay", file, "--tools", "exec_shell"]);
        assert_eq!((again.exit, again.stderr.as_str()), (exit, ""));
        assert_eq!(
            again.stdout.replace("***", "sk-secret-123"),
            first.stdout,
            "{file}"
        );
    }
    assert_eq!(server.requests().len(), 4, "a replay sends no requests");
    let unstarted = dir.lango(&[
        "ask",
        "--record",
        "never.jsonl",
        "--provider",
        "nobody",
        "hello",
    ]);
    assert!(
        unstarted.exit == 2 && !dir.path().join("never.jsonl").exists(),
        "no turn, no file"
    );
    let existing = record(&dir, "one.jsonl", &["x"]);
    assert!(
        existing.exit == 2 && existing.stderr.contains("one.jsonl"),
        "a recording is not overwritten: {}",
        existing.stderr
    );
}

#[test]
fn replay_reports_differences() {
    let server = ModelServer::start(vec![ServerReply::text("Hello.")]).unwrap();
    let dir = provider_dir(&server);
    assert_eq!(
        record(&dir, "one.jsonl", &["--tools", "exec_shell", "hello"]).exit,
        0
    );
    let other = dir.lango(&[
        "ask",
        "--replay",
        "one.jsonl",
        "--tools",
        "exec_shell",
        "good morning",
    ]);
    assert!(
        other.exit == 3
            && other
                .stderr
                .contains("differs from the recording: message 1"),
        "{}",
        other.stderr
    );
    let loose = dir.lango(&[
        "ask",
        "--replay",
        "one.jsonl",
        "--replay-loose",
        "--tools",
        "exec_shell",
        "good morning",
    ]);
    assert_eq!((loose.exit, loose.stdout.as_str()), (0, "Hello.\n"));
    assert!(loose.stderr.contains("warning:"));
    let team = dir.lango(&["ask", "--replay", "one.jsonl"]);
    assert!(team.stderr.contains("the system prompt"), "{}", team.stderr);
    dir.write("bad.jsonl", "{\"type\":\"recording\",\"v\":99}\n");
    assert!(
        dir.lango(&["ask", "--replay", "bad.jsonl"])
            .stderr
            .contains("version is 99")
    );
    dir.write(
        "worse.jsonl",
        "{\"type\":\"recording\",\"v\":1}\nnonsense\n",
    );
    assert!(
        dir.lango(&["ask", "--replay", "worse.jsonl"])
            .stderr
            .contains("worse.jsonl:2:")
    );
}

/// The other dialects through the binary.
#[test]
fn anthropic_and_gemini_dialects_work() {
    let anthropic = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}\n\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi.\"}}\n\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\ndata: {\"type\":\"message_stop\"}\n\n";
    let gemini = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hi.\"}]},\"finishReason\":\"STOP\"}]}\n\n";
    for (kind, stream, path, header) in [
        (
            "anthropic",
            anthropic,
            "POST /v1/messages",
            "x-api-key: k-1",
        ),
        (
            "gemini",
            gemini,
            "POST /v1beta/models/m:streamGenerateContent?alt=sse",
            "x-goog-api-key: k-1",
        ),
    ] {
        let server =
            ModelServer::start(vec![ServerReply::Stream(vec![stream.as_bytes().to_vec()])])
                .unwrap();
        let dir = TestDir::with_provider(kind, &server.origin());
        let run = dir.lango(&["ask", "--set", "providers.x.apiKey=k-1", "hello"]);
        assert_eq!(
            (run.exit, run.stdout.as_str()),
            (0, "Hi.\n"),
            "{}",
            run.stderr
        );
        let head = &server.requests()[0].head;
        assert!(
            head.starts_with(path) && head.to_lowercase().contains(header),
            "{head}"
        );
    }
}

#[test]
fn recordings_redact_only_secrets() {
    let pieces = [
        json!({ "content": "key sk-sec" }),
        json!({ "content": "ret-123 end, header hdr-secret-999" }),
    ];
    let server = ModelServer::start(vec![ServerReply::chunks(&pieces, "stop")]).unwrap();
    let dir = provider_dir(&server);
    let headers = (
        "LANGO_PROVIDERS__X__HEADERS",
        "{\"x-team\":\"hdr-secret-999\"}",
    );
    assert_eq!(
        dir.lango_with(
            &["ask", "--json", "--record", "r.jsonl", "hello"],
            &[KEY, headers]
        )
        .exit,
        0
    );
    let file = dir.path().join("r.jsonl");
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(
        ["sk-sec", "ret-123", "hdr-secret"]
            .iter()
            .all(|part| !written.contains(part)),
        "{written}"
    );
    assert_eq!(dir.lango(&["ask", "--replay", "r.jsonl"]).exit, 0);
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(
        record(
            &dir,
            "s.jsonl",
            &["--set", "providers.x.apiKey=text", "hello"]
        )
        .exit,
        0
    );
    assert_eq!(
        dir.lango(&["ask", "--replay", "s.jsonl"]).exit,
        0,
        "a short key is not redacted"
    );
    assert!(
        !dir.lango_with(&["config", "show", "--json"], &[headers])
            .stdout
            .contains("hdr-secret")
    );
}

#[test]
fn replay_reports_unused_exchanges() {
    let server = ModelServer::start(vec![ServerReply::text("Hi.")]).unwrap();
    let dir = provider_dir(&server);
    assert_eq!(record(&dir, "r.jsonl", &["hello"]).exit, 0);
    let written = std::fs::read_to_string(dir.path().join("r.jsonl")).unwrap();
    let model = written
        .lines()
        .find(|line| line.contains("\"type\":\"model\""))
        .unwrap();
    dir.write("more.jsonl", &format!("{written}{model}\n"));
    let unused = dir.lango(&["ask", "--replay", "more.jsonl"]);
    assert!(
        unused.exit == 3 && unused.stderr.contains("1 recorded exchanges were not used"),
        "{}",
        unused.stderr
    );
}

#[test]
fn json_lines_escape_terminal_control_characters() {
    let odd = "a\u{7f}b\u{9b}c\u{202e}d\u{1b}[2Je";
    let server = ModelServer::start(vec![ServerReply::text(odd)]).unwrap();
    let run = ask(&server, &["--json", "hello"]);
    assert!(
        !run.stdout
            .chars()
            .any(|c| matches!(c, '\u{1b}' | '\u{7f}' | '\u{9b}' | '\u{202e}'))
    );
    let answer = events(&run)
        .into_iter()
        .find(|event| event["type"] == "answer")
        .unwrap();
    assert_eq!(answer["text"], odd);
}

#[test]
fn warns_once_if_sessions_are_not_saved() {
    let dir = TestDir::new();
    let ask = |set: &[&str], variables: &[(&str, &str)]| {
        let args = [&["ask", "--provider", "offline", "hello"][..], set].concat();
        let run = dir.lango_with(&args, &[&[("LANGO_HOME", "")], variables].concat());
        assert_eq!(run.exit, 0, "{}", run.stderr);
        run.stderr
    };
    let warned = ask(&[], &[]);
    assert_eq!(
        warned.matches("sessions are not saved").count(),
        1,
        "{warned}"
    );
    assert!(warned.contains("LANGO_HOME"), "{warned}");
    let home = dir.path().join("home").display().to_string();
    for (set, variables) in [
        (&["--set", "store.path=:memory:"][..], &[][..]),
        (&[], &[("HOME", home.as_str())]),
        (&[], &[("XDG_DATA_HOME", home.as_str())]),
    ] {
        assert_eq!(ask(set, variables), "", "{set:?} {variables:?}");
    }
}
