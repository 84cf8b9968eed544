//! Provider faults: a clear message, the right exit code, and a turn that ends.

use lango_testkit::endless;
use lango_testkit::model_server::{ModelServer, ServerReply};
use serde_json::{Value, json};

use crate::ask::{ask, events, provider_dir};
use crate::setup::TestDir;

/// Runs one request against the replies and checks the failure.
fn assert_fails(name: &str, replies: Vec<ServerReply>, exit: i32, code: &str) {
    let server = ModelServer::start(replies).unwrap();
    let args = [
        "--json",
        "--set",
        "providers.x.retries=0",
        "--set",
        "providers.x.firstByteSeconds=1",
        "--set",
        "providers.x.idleSeconds=1",
        "hello",
    ];
    let run = ask(&server, &args);
    assert_eq!(run.exit, exit, "{name}: {}{}", run.stdout, run.stderr);
    let events = events(&run);
    let last = events.last().unwrap();
    assert_eq!(
        (last["type"].as_str(), last["code"].as_str()),
        (Some("turn_failed"), Some(code)),
        "{name}"
    );
    assert!(
        !last["message"].as_str().unwrap().is_empty() && !last["hint"].as_str().unwrap().is_empty(),
        "{name}"
    );
    assert_eq!(run.error()["code"], code, "{name}: the same on stderr");
    assert!(
        !events.iter().any(|event| event["type"] == "answer"),
        "{name}: a failure is never an answer"
    );
}

fn partial_reply() -> Vec<u8> {
    let whole = ServerReply::sse_bytes(&[json!({ "content": "Once upon a time" })], "stop");
    whole[..whole.len() / 3].to_vec()
}

fn sse_event(text: &str) -> Vec<u8> {
    format!("data: {text}\n\n").into_bytes()
}

#[test]
fn fails_by_http_status() {
    for (status, code) in [
        (401, "model.auth"),
        (403, "model.auth"),
        (404, "model.not_found"),
        (413, "model.too_long"),
        (429, "model.busy"),
        (500, "model.busy"),
        (503, "model.busy"),
        (529, "model.busy"),
    ] {
        assert_fails(
            &status.to_string(),
            vec![ServerReply::status(status, r#"{"error":{"message":"no"}}"#)],
            3,
            code,
        );
    }
    let busy = ServerReply::Status {
        code: 429,
        headers: vec![("retry-after", "3600".to_owned())],
        body: String::new(),
    };
    assert_fails("a long wait", vec![busy], 3, "model.busy");
    assert_fails(
        "quota",
        vec![ServerReply::status(
            429,
            r#"{"error":{"code":"insufficient_quota"}}"#,
        )],
        3,
        "model.quota",
    );
    let moved = ServerReply::redirect("http://127.0.0.1:9/".to_owned());
    assert_fails(
        "a redirect is not followed",
        vec![moved],
        3,
        "model.rejected",
    );
    assert_fails(
        "not accepted",
        vec![ServerReply::status(
            400,
            r#"{"error":{"message":"no tools"}}"#,
        )],
        3,
        "model.rejected",
    );
}

#[test]
fn fails_on_timeouts_and_broken_connections() {
    assert_fails(
        "hang before",
        vec![ServerReply::Hang],
        3,
        "model.connection",
    );
    assert_fails(
        "hang in the middle",
        vec![ServerReply::StreamThenHang(vec![partial_reply()])],
        3,
        "model.connection",
    );
    assert_fails(
        "reset",
        vec![ServerReply::Reset(partial_reply())],
        3,
        "model.connection",
    );
    assert_fails(
        "truncated",
        vec![ServerReply::Stream(vec![partial_reply()])],
        3,
        "model.broke_off",
    );
    assert_fails(
        "truncated between events",
        vec![ServerReply::Stream(vec![sse_event(
            r#"{"choices":[{"delta":{"content":"Hi"}}]}"#,
        )])],
        3,
        "model.broke_off",
    );
}

#[test]
fn fails_on_malformed_replies() {
    assert_fails(
        "invalid UTF-8",
        vec![ServerReply::Stream(vec![
            b"data: {\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}\n\n".to_vec(),
        ])],
        3,
        "model.malformed",
    );
    assert_fails(
        "invalid JSON",
        vec![ServerReply::Stream(vec![sse_event("{oops")])],
        3,
        "model.malformed",
    );
    assert_fails(
        "an error inside the stream",
        vec![ServerReply::Stream(vec![sse_event(
            r#"{"error":{"message":"no","type":"overloaded_error"}}"#,
        )])],
        3,
        "model.busy",
    );
    assert_fails(
        "empty choices",
        vec![ServerReply::Stream(vec![
            sse_event(r#"{"choices":[]}"#),
            sse_event("[DONE]"),
        ])],
        1,
        "empty",
    );
    assert_fails(
        "a filter",
        vec![ServerReply::chunks(
            &[json!({ "content": "I" })],
            "content_filter",
        )],
        3,
        "model.refused",
    );
}

/// Checks that an error is reported to the model and the turn continues.
fn assert_continues(name: &str, first: ServerReply) -> Value {
    let server = ModelServer::start(vec![first, ServerReply::text("Understood.")]).unwrap();
    let run = ask(&server, &["--json", "hello"]);
    assert_eq!(run.exit, 0, "{name}: {}{}", run.stdout, run.stderr);
    let events = events(&run);
    assert!(
        events
            .iter()
            .any(|event| event["type"] == "answer" && event["text"] == "Understood."),
        "{name}"
    );
    let request = server.requests()[1].json();
    assert!(request["messages"].is_array(), "{name}");
    request
}

fn tool_call_reply(piece: &Value) -> ServerReply {
    ServerReply::chunks(&[json!({ "tool_calls": [piece] })], "tool_calls")
}

#[test]
fn invalid_tool_calls_are_reported_to_the_model() {
    assert_continues(
        "no name",
        tool_call_reply(&json!({ "index": 0, "id": "c", "function": { "arguments": "{}" } })),
    );
    assert_continues(
        "no id",
        tool_call_reply(
            &json!({ "index": 0, "function": { "name": "transfer_to_agent", "arguments": "{\"agent_name\":\"nobody\"}" } }),
        ),
    );
    assert_continues(
        "arguments are no JSON",
        tool_call_reply(
            &json!({ "index": 0, "id": "c", "function": { "name": "transfer_to_agent", "arguments": "{oops" } }),
        ),
    );
    assert_continues(
        "arguments are no object",
        tool_call_reply(
            &json!({ "index": 0, "id": "c", "function": { "name": "transfer_to_agent", "arguments": "[1]" } }),
        ),
    );
    assert_continues(
        "a tool that does not exist",
        tool_call_reply(
            &json!({ "index": 0, "id": "c", "function": { "name": "make_coffee", "arguments": "{}" } }),
        ),
    );
    let twice = ServerReply::chunks(
        &[json!({ "tool_calls": [
            { "index": 0, "id": "same", "function": { "name": "make_tea", "arguments": "{}" } },
            { "index": 1, "id": "same", "function": { "name": "make_coffee", "arguments": "{}" } },
        ] })],
        "tool_calls",
    );
    let request = assert_continues("twice the same id", twice);
    let ids: Vec<&str> = request["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|m| m["tool_call_id"].as_str())
        .collect();
    assert_eq!(ids.len(), 2);
    assert_ne!(ids[0], ids[1], "{request}");
}

#[test]
fn accepts_unusual_complete_replies() {
    let answers = |name: &str, reply: ServerReply, expected: &str| {
        let run = ask(&ModelServer::start(vec![reply]).unwrap(), &["hello"]);
        assert_eq!(
            (run.exit, run.stdout.trim_end()),
            (0, expected),
            "{name}: {}",
            run.stderr
        );
    };
    let unknown = sse_event(
        r#"{"choices":[{"delta":{"content":"Hi","novelty":[1]},"finish_reason":"stop","x":1}],"y":{}}"#,
    );
    answers(
        "unknown fields, no [DONE]",
        ServerReply::Stream(vec![b": keep-alive\n\n".to_vec(), unknown]),
        "Hi",
    );
    let whole = ServerReply::Status {
        code: 200,
        headers: vec![("content-type", "application/json".to_owned())],
        body: json!({ "choices": [{ "message": { "content": "Hi" }, "finish_reason": "stop" }] })
            .to_string(),
    };
    answers("no stream", whole, "Hi");
    let large = "x".repeat(2 * 1024 * 1024);
    answers("2 MB in one chunk", ServerReply::text(&large), &large);
    let bytes: Vec<Vec<u8>> =
        ServerReply::sse_bytes(&[json!({ "content": "a".repeat(100_000) })], "stop")
            .chunks(1)
            .map(<[u8]>::to_vec)
            .collect();
    answers(
        "100,000 chunks of one byte",
        ServerReply::Stream(bytes),
        &"a".repeat(100_000),
    );
    answers(
        "thinking is no answer",
        ServerReply::chunks(
            &[
                json!({ "reasoning_content": "hm" }),
                json!({ "content": "Hi" }),
            ],
            "stop",
        ),
        "Hi",
    );
}

/// B105
#[test]
fn stops_endless_replies() {
    assert_fails(
        "6 MB",
        vec![ServerReply::text(&"x".repeat(6 * 1024 * 1024))],
        3,
        "model.too_large",
    );
    for dialect in endless::DIALECTS {
        // The models crate tests every kind; this checks the message for the user.
        for endless in endless::replies(dialect).into_iter().filter(|endless| {
            ["text", "thoughts", "arguments", "calls", "a line", "values"].contains(&endless.name)
        }) {
            let server = ModelServer::start(vec![ServerReply::Endless(endless)]).unwrap();
            let base_url = if dialect == "openai" {
                server.base_url()
            } else {
                server.origin()
            };
            let run = TestDir::with_provider(dialect, &base_url).lango(&["ask", "--json", "hello"]);
            let error = run.error();
            assert_eq!(
                (run.exit, error["code"].as_str()),
                (3, Some("model.too_large")),
                "{}",
                endless.name
            );
            let message = error["message"].as_str().unwrap();
            assert!(
                message.starts_with("The reply is too large: more than "),
                "{message}"
            );
            assert_eq!(
                server.requests().len(),
                1,
                "{}: it is not asked for again",
                endless.name
            );
        }
    }
}

/// B105: streamed text of a reply that is too long is not an answer.
#[test]
fn deltas_of_endless_reply_are_not_an_answer() {
    let endless = endless::replies("openai")
        .into_iter()
        .find(|endless| endless.name == "text")
        .unwrap();
    let run = ask(
        &ModelServer::start(vec![ServerReply::Endless(endless)]).unwrap(),
        &["--json", "--deltas", "hello"],
    );
    let events = events(&run);
    let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert!(count("delta") > 0);
    assert_eq!((run.exit, count("answer"), count("turn_failed")), (3, 0, 1));
}

#[test]
fn retries_busy_provider() {
    let busy = || ServerReply::Status {
        code: 429,
        headers: vec![("retry-after", "0".to_owned())],
        body: String::new(),
    };
    let server = ModelServer::start(vec![
        busy(),
        ServerReply::status(503, ""),
        ServerReply::Hang,
        ServerReply::text("At last."),
    ])
    .unwrap();
    let run = ask(
        &server,
        &["--set", "providers.x.firstByteSeconds=1", "hello"],
    );
    assert_eq!(
        (run.exit, run.stdout.as_str()),
        (0, "At last.\n"),
        "{}",
        run.stderr
    );
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn does_not_retry_after_the_first_delta() {
    let partial = sse_event(r#"{"choices":[{"delta":{"content":"Hi"}}]}"#);
    let server = ModelServer::start(vec![
        ServerReply::Stream(vec![partial]),
        ServerReply::text("never"),
    ])
    .unwrap();
    let run = ask(&server, &["--json", "--deltas", "hello"]);
    assert_eq!(run.exit, 3);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn uses_fallback_model() {
    let down = ModelServer::start(vec![ServerReply::status(503, "")]).unwrap();
    let up = ModelServer::start(vec![ServerReply::text("From the second.")]).unwrap();
    let second = format!("providers.y.baseUrl={}", up.base_url());
    let run = ask(
        &down,
        &[
            "--set",
            "providers.y.type=openai",
            "--set",
            &second,
            "--set",
            "agent.fallback=y/n",
            "--set",
            "providers.x.retries=1",
            "hello",
        ],
    );
    assert_eq!(
        (run.exit, run.stdout.as_str()),
        (0, "From the second.\n"),
        "{}",
        run.stderr
    );
    assert_eq!(
        (
            down.requests().len(),
            up.requests()[0].json()["model"].clone()
        ),
        (2, json!("n"))
    );
}

#[test]
fn shortens_and_retries_long_requests() {
    let server = ModelServer::start(vec![
        ServerReply::status(400, r#"{"error":{"code":"context_length_exceeded"}}"#),
        ServerReply::text("Fits."),
    ])
    .unwrap();
    let run = ask(&server, &["hello"]);
    assert_eq!(
        (run.exit, run.stdout.as_str()),
        (0, "Fits.\n"),
        "{}",
        run.stderr
    );
}

#[test]
fn limits_have_their_own_exit_code() {
    let server = ModelServer::start(vec![tool_call_reply(
        &json!({ "index": 0, "id": "c", "function": { "name": "make_coffee", "arguments": "{}" } }),
    )])
    .unwrap();
    let run = ask(&server, &["--json", "hello"]);
    assert_eq!(
        (run.exit, run.error()["code"].as_str()),
        (4, Some("limit.repeats"))
    );
}

/// B60: Ctrl-C cancels the turn; the events say so.
#[test]
fn interrupt_cancels_the_turn() {
    use std::io::{BufRead, BufReader};
    let server = ModelServer::start(vec![ServerReply::Hang]).unwrap();
    let dir = provider_dir(&server);
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("lango"))
        .args(["ask", "--json", "hello"])
        .current_dir(dir.path())
        .env("LANGO_HOME", dir.path().join("home"))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(
        lines.next().unwrap().unwrap().contains("\"type\":\"user\""),
        "the turn has started"
    );
    let interrupted = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(interrupted.success());
    let last: Value = serde_json::from_str(&lines.last().unwrap().unwrap()).unwrap();
    assert_eq!(
        (last["type"].as_str(), last["code"].as_str()),
        (Some("turn_failed"), Some("cancelled"))
    );
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// B60: after a failed turn, the next one of the session works and its history includes the
/// failure.
#[test]
fn session_continues_after_failed_turns() {
    let partial = sse_event(r#"{"choices":[{"delta":{"content":"Once upon"}}]}"#);
    let replies = vec![
        ServerReply::status(401, ""),
        ServerReply::Stream(vec![partial]),
        ServerReply::Stream(vec![sse_event("{oops")]),
        ServerReply::text("Here I am."),
    ];
    let server = ModelServer::start(replies).unwrap();
    let args = ["chat", "--set", "providers.x.retries=0"];
    let run = provider_dir(&server).lango_with_input(&args, b"one\ntwo\nthree\nfour\n/usage\n");
    assert_eq!(run.exit, 0, "{}", run.stderr);
    assert!(run.stdout.ends_with("Here I am.\n"), "{}", run.stdout);
    for code in ["model.auth", "model.broke_off", "model.malformed"] {
        assert!(run.stderr.contains(code), "{code}: {}", run.stderr);
    }
    let last = server.requests()[3].json().to_string();
    assert!(
        last.contains("one")
            && last.contains("four")
            && last.matches("It ended without an answer").count() == 3,
        "{last}"
    );
}

/// A complete reply is an answer, whether or not the server closes the connection.
#[test]
fn complete_reply_does_not_need_a_closed_connection() {
    let whole = ServerReply::sse_bytes(&[json!({ "content": "Hi." })], "stop");
    let without_done = String::from_utf8(whole.clone())
        .unwrap()
        .replace("data: [DONE]\n\n", "")
        .into_bytes();
    for reply in [
        ServerReply::StreamThenHang(vec![whole.clone()]),
        ServerReply::Reset(whole),
        ServerReply::StreamThenHang(vec![without_done]),
    ] {
        let server = ModelServer::start(vec![reply]).unwrap();
        let run = ask(&server, &["--set", "providers.x.idleSeconds=1", "hello"]);
        assert_eq!(
            (run.exit, run.stdout.as_str()),
            (0, "Hi.\n"),
            "{}",
            run.stderr
        );
    }
}

/// The retry waits for `Retry-After`.
#[test]
fn waits_for_retry_after() {
    let busy = ServerReply::Status {
        code: 429,
        headers: vec![("retry-after", "1".to_owned())],
        body: String::new(),
    };
    let server = ModelServer::start(vec![busy, ServerReply::text("Now.")]).unwrap();
    let started = std::time::Instant::now();
    let run = ask(&server, &["hello"]);
    assert_eq!((run.exit, run.stdout.as_str()), (0, "Now.\n"));
    assert!(started.elapsed() >= std::time::Duration::from_secs(1));
}

fn other_provider_faults() -> Vec<(&'static str, ServerReply, &'static str)> {
    vec![
        (
            "anthropic",
            ServerReply::status(
                401,
                r#"{"type":"error","error":{"type":"authentication_error","message":"x"}}"#,
            ),
            "model.auth",
        ),
        ("anthropic", ServerReply::status(529, ""), "model.busy"),
        (
            "anthropic",
            ServerReply::status(
                400,
                r#"{"error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}"#,
            ),
            "model.quota",
        ),
        (
            "anthropic",
            ServerReply::Stream(vec![sse_event(
                r#"{"type":"error","error":{"type":"overloaded_error"}}"#,
            )]),
            "model.busy",
        ),
        (
            "anthropic",
            ServerReply::Stream(vec![sse_event(r#"{"type":"message_start","message":{}}"#)]),
            "model.broke_off",
        ),
        (
            "gemini",
            ServerReply::status(
                400,
                r#"{"error":{"status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#,
            ),
            "model.auth",
        ),
        (
            "gemini",
            ServerReply::Stream(vec![sse_event(
                r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#,
            )]),
            "model.refused",
        ),
        (
            "gemini",
            ServerReply::Stream(vec![sse_event(
                r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}]}"#,
            )]),
            "model.broke_off",
        ),
        (
            "gemini",
            ServerReply::Stream(vec![sse_event("{oops"), sse_event("{}")]),
            "model.malformed",
        ),
    ]
}

/// The errors of other dialects.
#[test]
fn anthropic_and_gemini_errors_are_classified() {
    for (kind, reply, code) in other_provider_faults() {
        let server = ModelServer::start(vec![reply]).unwrap();
        let args = ["ask", "--json", "--set", "providers.x.retries=0", "hello"];
        let run = TestDir::with_provider(kind, &server.origin()).lango(&args);
        assert_eq!(
            (run.exit, run.error()["code"].as_str()),
            (3, Some(code)),
            "{}",
            run.stderr
        );
    }
}
