//! Tasks at colleagues of every kind.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt;
use lango_domain::secret::Secret;
use lango_remote::a2a::{
    Artifact, ArtifactId, ArtifactUpdate, ContextId, Message, MessageId, Metadata, Role, SendReply,
    StatusUpdate, StreamEvent, Task, TaskId, TaskState, TaskStatus, WireFormat,
};
use serde_json::{Value, json};

use crate::server::{Play, Server, ServerRequest, rpc};
use crate::setup::{connect_agent, connect_server, remote, run_task, seconds, task};

/// Every way to be spoken to: binding, version, and how JSON looks there.
const BINDINGS: [(&str, &str, WireFormat); 4] = [
    ("JSONRPC", "1.0", WireFormat::V1),
    ("HTTP+JSON", "1.0", WireFormat::V1),
    ("JSONRPC", "0.3.0", WireFormat::V03Rpc),
    ("HTTP+JSON", "0.3.0", WireFormat::V03Rest),
];

fn status(state: TaskState, said: Option<&str>) -> TaskStatus {
    let message = said.map(|said| Message::text(MessageId::new("m"), Role::Agent, said));
    TaskStatus {
        state,
        message,
        timestamp: None,
    }
}

fn make_task(state: TaskState, said: Option<&str>) -> Task {
    Task {
        id: TaskId::new("t-1"),
        context: Some(ContextId::new("c-1")),
        status: status(state, said),
        artifacts: Vec::new(),
        history: Vec::new(),
        metadata: Metadata::new(),
    }
}

fn finished_task(text: &str) -> Task {
    Task {
        artifacts: vec![Artifact::text(ArtifactId::new("a"), text)],
        ..make_task(TaskState::Completed, None)
    }
}

fn status_event(state: TaskState, said: Option<&str>) -> StreamEvent {
    StreamEvent::Status(StatusUpdate {
        task: TaskId::new("t-1"),
        context: Some(ContextId::new("c-1")),
        status: status(state, said),
        metadata: Metadata::new(),
    })
}

fn artifact_event(text: &str, append: bool) -> StreamEvent {
    StreamEvent::Artifact(ArtifactUpdate {
        task: TaskId::new("t-1"),
        context: Some(ContextId::new("c-1")),
        artifact: Artifact::text(ArtifactId::new("a"), text),
        append,
        last_chunk: false,
        metadata: Metadata::new(),
    })
}

fn wrap_envelope(binding: &str, value: Value) -> Value {
    if binding == "JSONRPC" {
        rpc(value)
    } else {
        value
    }
}

fn events(binding: &str, wire: WireFormat, events: &[StreamEvent]) -> Vec<Value> {
    events
        .iter()
        .map(|event| wrap_envelope(binding, event.to_json(wire)))
        .collect()
}

/// What a request asks for, whatever its way.
fn operation(seen: &ServerRequest) -> &'static str {
    match (seen.rpc_method(), seen.path.as_str()) {
        ("SendMessage" | "message/send", _) => "send",
        ("SendStreamingMessage" | "message/stream", _) => "stream",
        ("GetTask" | "tasks/get", _) => "get",
        ("CancelTask" | "tasks/cancel", _) => "cancel",
        (_, path) if path.ends_with("/message:send") => "send",
        (_, path) if path.ends_with("/message:stream") => "stream",
        (_, path) if path.ends_with(":cancel") => "cancel",
        (_, path) if path.contains("/tasks/") => "get",
        _ => "?",
    }
}

/// The message of a request, whatever its way.
fn message(seen: &ServerRequest) -> &Value {
    if seen.rpc_method().is_empty() {
        &seen.body["message"]
    } else {
        &seen.body["params"]["message"]
    }
}

fn operations(server: &Server) -> Vec<&'static str> {
    server.task_requests().iter().map(operation).collect()
}

/// S90
#[tokio::test]
async fn a_stream_is_shown_as_it_comes_in_every_way() {
    for (binding, version, wire) in BINDINGS {
        let server = Server::remote_agent(binding, version, true, move |_| {
            let all = [
                StreamEvent::Task(make_task(TaskState::Submitted, None)),
                status_event(TaskState::Working, Some("thinking…")),
                artifact_event("It ", false),
                artifact_event("rains 🌧", true),
                status_event(TaskState::Completed, None),
            ];
            Play::Events(events(binding, wire, &all))
        });
        let (team, agent) = connect_server(&server).await;
        assert_eq!(
            team.agents()[0].description,
            "Knows the weather. Skills: Forecast."
        );
        let came = run_task(&agent, "오늘 비 와?", None).await;
        assert_eq!(
            (came.text.as_str(), came.error),
            ("It rains 🌧", None),
            "{binding} {version}"
        );
        assert_eq!(came.pieces, 2);
        assert!(came.thread.unwrap().as_str().contains("c-1"));
        let request = &server.task_requests()[0];
        assert_eq!(operation(request), "stream");
        assert!(message(request).to_string().contains("오늘 비 와?"));
        let asked_for = request.header("a2a-version");
        assert_eq!(asked_for.as_deref(), (version == "1.0").then_some("1.0"));
        let expected = match (binding, version) {
            ("JSONRPC", _) => "/a2a",
            (_, "1.0") => "/a2a/message:stream",
            _ => "/a2a/v1/message:stream",
        };
        assert_eq!(request.path, expected);
    }
}

#[tokio::test]
async fn a_long_task_is_asked_about_until_it_is_done_in_every_way() {
    for (binding, version, wire) in BINDINGS {
        let looks = AtomicUsize::new(0);
        let server =
            Server::remote_agent(binding, version, false, move |seen| match operation(seen) {
                "send" => {
                    let reply = SendReply::Task(make_task(TaskState::Submitted, None));
                    Play::json(&wrap_envelope(binding, reply.to_json(wire)))
                }
                _ => {
                    let found = match looks.fetch_add(1, Ordering::Relaxed) {
                        0 => make_task(TaskState::Working, None),
                        _ => finished_task("Sun."),
                    };
                    Play::json(&wrap_envelope(binding, found.to_json(wire)))
                }
            });
        let (_team, agent) = connect_server(&server).await;
        let came = run_task(&agent, "weather?", None).await;
        assert_eq!(
            (came.text.as_str(), came.error),
            ("Sun.", None),
            "{binding} {version}"
        );
        assert_eq!(operations(&server), ["send", "get", "get"]);
        let body = server.task_requests()[0].body.to_string();
        let waits = if version == "1.0" {
            "\"returnImmediately\":true"
        } else {
            "\"blocking\":false"
        };
        assert!(body.contains(waits), "{body}");
    }
}

#[tokio::test]
async fn a_question_goes_to_the_user_and_the_reply_to_the_same_task_in_every_way() {
    for (binding, version, wire) in BINDINGS {
        let server = Server::remote_agent(binding, version, true, move |seen| {
            let all = match message(seen).get("taskId") {
                None => vec![
                    StreamEvent::Task(make_task(TaskState::Working, None)),
                    status_event(TaskState::InputRequired, Some("Which city?")),
                ],
                Some(_) => vec![StreamEvent::Task(finished_task("Rain in Köln."))],
            };
            Play::Events(events(binding, wire, &all))
        });
        let (_team, agent) = connect_server(&server).await;
        let came = run_task(&agent, "weather?", None).await;
        assert_eq!(
            (came.text.as_str(), came.error),
            ("Which city?", None),
            "{binding} {version}"
        );
        let came = run_task(&agent, "Köln", came.thread).await;
        assert_eq!(came.text, "Rain in Köln.");
        let second = &server.task_requests()[1];
        assert_eq!(
            (&message(second)["taskId"], &message(second)["contextId"]),
            (&json!("t-1"), &json!("c-1"))
        );
        // The task is over: what comes next is a new one in the same conversation.
        run_task(&agent, "and tomorrow?", came.thread).await;
        let third = &server.task_requests()[2];
        assert_eq!(
            (message(third).get("taskId"), &message(third)["contextId"]),
            (None, &json!("c-1"))
        );
        assert_eq!(
            operations(&server),
            ["stream"; 3],
            "a task that waits is not cancelled"
        );
    }
}

#[tokio::test]
async fn a_stream_that_breaks_is_followed_by_asking() {
    for (binding, version, wire) in BINDINGS {
        for breaks in [true, false] {
            let server =
                Server::remote_agent(binding, version, true, move |seen| match operation(seen) {
                    "stream" => {
                        let all = [
                            StreamEvent::Task(make_task(TaskState::Working, None)),
                            artifact_event("It ", false),
                        ];
                        let all = events(binding, wire, &all);
                        if breaks {
                            Play::EventsThenBreak(all)
                        } else {
                            Play::Events(all)
                        }
                    }
                    _ => Play::json(&wrap_envelope(
                        binding,
                        finished_task("It rains.").to_json(wire),
                    )),
                });
            let (_team, agent) = connect_server(&server).await;
            let came = run_task(&agent, "weather?", None).await;
            assert_eq!(
                (came.text.as_str(), came.error),
                ("It rains.", None),
                "{binding} {version} {breaks}"
            );
            assert_eq!(operations(&server), ["stream", "get"]);
        }
    }
}

#[tokio::test]
async fn a_peer_that_cannot_stream_is_asked_without() {
    let refusals: [fn() -> Play; 3] = [
        || {
            Play::json(
                &json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32004, "message": "no" } }),
            )
        },
        || Play::status(405, &json!({})),
        || {
            Play::Events(vec![
                json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32601, "message": "no" } }),
            ])
        },
    ];
    for refusal in refusals {
        let server =
            Server::remote_agent("JSONRPC", "1.0", true, move |seen| match operation(seen) {
                "stream" => refusal(),
                _ => Play::rpc(SendReply::Task(finished_task("Fog.")).to_json(WireFormat::V1)),
            });
        let (_team, agent) = connect_server(&server).await;
        assert_eq!(run_task(&agent, "x", None).await.text, "Fog.");
        assert_eq!(operations(&server), ["stream", "send"]);
    }
    // One that answers at once where a stream was wanted is as good.
    let server = Server::remote_agent("JSONRPC", "1.0", true, |_| {
        let hello = Message::text(MessageId::new("m"), Role::Agent, "Hail.");
        Play::rpc(SendReply::Message(hello).to_json(WireFormat::V1))
    });
    let (_team, agent) = connect_server(&server).await;
    assert_eq!(run_task(&agent, "x", None).await.text, "Hail.");
}

#[tokio::test]
async fn a_colleague_that_forgot_begins_anew() {
    let server = Server::remote_agent("JSONRPC", "1.0", false, |seen| {
        match message(seen).get("contextId") {
            Some(_) => Play::json(
                &json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32001, "message": "gone" } }),
            ),
            None => Play::rpc(SendReply::Task(finished_task("Snow.")).to_json(WireFormat::V1)),
        }
    });
    let (_team, agent) = connect_server(&server).await;
    let before = run_task(&agent, "x", None).await.thread;
    assert!(before.is_some());
    let came = run_task(&agent, "x", before).await;
    assert_eq!((came.text.as_str(), came.error), ("Snow.", None));
    assert_eq!(server.task_requests().len(), 3);
}

#[tokio::test]
async fn a_task_that_ended_meanwhile_leaves_the_conversation_as_it_is() {
    let server = Server::remote_agent("JSONRPC", "1.0", false, |seen| {
        match message(seen).get("taskId") {
            Some(_) => Play::json(
                &json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32004, "message": "over" } }),
            ),
            None if message(seen).get("contextId").is_some() => {
                Play::rpc(SendReply::Task(finished_task("Snow.")).to_json(WireFormat::V1))
            }
            None => Play::rpc(
                SendReply::Task(make_task(TaskState::InputRequired, Some("Where?")))
                    .to_json(WireFormat::V1),
            ),
        }
    });
    let (_team, agent) = connect_server(&server).await;
    let asking = run_task(&agent, "x", None).await;
    let came = run_task(&agent, "Oslo", asking.thread).await;
    assert_eq!((came.text.as_str(), came.error), ("Snow.", None));
    let last = &server.task_requests()[2];
    assert_eq!(
        (message(last).get("taskId"), &message(last)["contextId"]),
        (None, &json!("c-1"))
    );
}

#[tokio::test]
async fn the_end_of_a_task_is_told_as_it_is() {
    for (state, said, text, error) in [
        (TaskState::Completed, Some("All fine."), "All fine.", None),
        (TaskState::Completed, None, "", None),
        (
            TaskState::Failed,
            Some("no data"),
            "",
            Some("the task failed there: no data"),
        ),
        (
            TaskState::Canceled,
            None,
            "",
            Some("the task was cancelled there"),
        ),
        (
            TaskState::Rejected,
            Some("not my field"),
            "[REJECT] not my field",
            None,
        ),
        (
            TaskState::AuthRequired,
            Some("sign in at x"),
            "",
            Some("it asks to sign in elsewhere, which is not done from here: sign in at x"),
        ),
    ] {
        let server = Server::remote_agent("JSONRPC", "1.0", false, move |_| {
            Play::rpc(SendReply::Task(make_task(state, said)).to_json(WireFormat::V1))
        });
        let (_team, agent) = connect_server(&server).await;
        let came = run_task(&agent, "x", None).await;
        assert_eq!(
            (came.text.as_str(), came.error.as_deref()),
            (text, error),
            "{state:?}"
        );
    }
}

#[tokio::test]
async fn cancelling_passes_through() {
    for (binding, version, wire) in BINDINGS {
        let server =
            Server::remote_agent(binding, version, true, move |seen| match operation(seen) {
                "stream" => {
                    let all = [
                        StreamEvent::Task(make_task(TaskState::Working, None)),
                        artifact_event("It ", false),
                    ];
                    Play::EventsThenSilence(events(binding, wire, &all))
                }
                _ => Play::json(&wrap_envelope(
                    binding,
                    make_task(TaskState::Canceled, None).to_json(wire),
                )),
            });
        let (team, agent) = connect_server(&server).await;
        let mut stream = agent.stream(task("x", None));
        stream.next().await.unwrap().unwrap();
        stream.next().await.unwrap().unwrap();
        drop(stream);
        team.wait_for_cancellations().await;
        let last = server.task_requests().pop().unwrap();
        assert_eq!(operation(&last), "cancel", "{binding} {version}");
        assert!(last.path.contains("t-1") || last.body["params"]["id"] == "t-1");
    }
}

#[tokio::test]
async fn a_task_that_works_for_ever_ends_at_its_limit() {
    let server = Server::remote_agent("JSONRPC", "1.0", false, |seen| match operation(seen) {
        "send" => {
            Play::rpc(SendReply::Task(make_task(TaskState::Working, None)).to_json(WireFormat::V1))
        }
        _ => Play::rpc(make_task(TaskState::Working, None).to_json(WireFormat::V1)),
    });
    let mut settings = remote("weather", &server.origin());
    settings.seconds = seconds(1);
    let (team, agent) = connect_agent(settings).await;
    let came = run_task(&agent, "x", None).await;
    assert_eq!(came.error.as_deref(), Some("it did not finish within 1 s"));
    team.wait_for_cancellations().await;
    assert_eq!(operations(&server).last(), Some(&"cancel"));
}

#[tokio::test]
async fn credentials_are_sent_to_the_configured_origin_and_never_shown() {
    let server = Server::remote_agent("JSONRPC", "1.0", false, |seen| {
        let token = seen.header("authorization").unwrap_or_default();
        let message = format!(
            "I know you: {token} and {}",
            seen.header("x-team").unwrap_or_default()
        );
        Play::json(
            &json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32603, "message": message } }),
        )
    });
    let mut settings = remote("weather", &server.origin());
    settings.token = Some(Secret::new("s3cret-token"));
    settings
        .headers
        .insert("X-Team".to_owned(), Secret::new("blue-whales"));
    let (_team, agent) = connect_agent(settings).await;
    let came = run_task(&agent, "x", None).await;
    assert_eq!(
        came.error.as_deref(),
        Some("it answered: I know you: Bearer *** and *** (-32603)")
    );
    let sent = server.task_requests()[0].header("authorization");
    assert_eq!(sent.as_deref(), Some("Bearer s3cret-token"));
}

#[tokio::test]
async fn a_token_that_expires_is_told_and_the_next_turn_tries_again() {
    let calls = AtomicUsize::new(0);
    let server = Server::remote_agent("JSONRPC", "1.0", false, move |_| {
        match calls.fetch_add(1, Ordering::Relaxed) {
            1 => Play::status(401, &json!({ "error": "expired" })),
            _ => Play::rpc(SendReply::Task(finished_task("Sun.")).to_json(WireFormat::V1)),
        }
    });
    let (_team, agent) = connect_server(&server).await;
    assert_eq!(run_task(&agent, "x", None).await.text, "Sun.");
    let came = run_task(&agent, "x", None).await;
    assert_eq!(
        came.error.as_deref(),
        Some("it refuses the credentials (status 401)")
    );
    assert_eq!(run_task(&agent, "x", None).await.text, "Sun.");
}

#[tokio::test]
async fn three_failures_in_a_row_leave_it_alone_for_a_while() {
    let server = Server::remote_agent("JSONRPC", "1.0", false, |_| Play::status(500, &json!({})));
    let (_team, agent) = connect_server(&server).await;
    for _ in 0..3 {
        let came = run_task(&agent, "x", None).await;
        assert_eq!(came.error.as_deref(), Some("it answered with status 500"));
    }
    let error = run_task(&agent, "x", None).await.error.unwrap();
    assert!(
        error.starts_with("it failed 3 times in a row and is left alone for another"),
        "{error}"
    );
    assert_eq!(
        server.task_requests().len(),
        3,
        "nobody asks while it is left alone"
    );
}

#[tokio::test]
async fn failures_that_the_colleague_tells_leave_it_in_the_team() {
    let server = Server::remote_agent("JSONRPC", "1.0", false, |_| {
        Play::rpc(SendReply::Task(make_task(TaskState::Failed, Some("no"))).to_json(WireFormat::V1))
    });
    let (_team, agent) = connect_server(&server).await;
    for _ in 0..5 {
        assert_eq!(
            run_task(&agent, "x", None).await.error.as_deref(),
            Some("the task failed there: no")
        );
    }
    assert_eq!(server.task_requests().len(), 5);
}

#[tokio::test]
async fn colleagues_that_join_do_so_in_the_background() {
    let looks = AtomicUsize::new(0);
    let server = Server::start(
        move |_, origin| match looks.fetch_add(1, Ordering::Relaxed) {
            // Both places of the first look.
            0 | 1 => Play::status(404, &json!({})),
            _ => Play::json(&crate::server::card(origin, "JSONRPC", "1.0", false)),
        },
    );
    let team = crate::setup::team(vec![remote("weather", &server.origin())]).await;
    assert!(team.agents().is_empty());
    let before = team.generation();
    tokio::select! {
        () = team.refresh_forever() => {}
        joined = tokio::time::timeout(Duration::from_secs(20), team.wait_for_change(before)) => joined.unwrap(),
    }
    assert_eq!(team.agents()[0].name.as_str(), "weather");
    assert!(team.warnings().is_empty());
}
