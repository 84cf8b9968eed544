//! Tasks at remote agents of every binding and version.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt;
use lango_domain::secret::Secret;
use lango_remote::a2a::{
    Artifact, ArtifactId, ArtifactUpdate, ContextId, Message, MessageId, Metadata, Role, SendReply,
    StatusUpdate, StreamEvent, Task, TaskId, TaskState, TaskStatus, WireFormat,
};
use serde_json::{Value, json};

use crate::server::{Server, ServerReply, ServerRequest, rpc};
use crate::setup::{connect_agent, connect_server, remote, run_task, seconds, task};

/// All supported combinations: binding, version and wire format.
const BINDINGS: [(&str, &str, WireFormat); 4] = [
    ("JSONRPC", "1.0", WireFormat::V1),
    ("HTTP+JSON", "1.0", WireFormat::V1),
    ("JSONRPC", "0.3.0", WireFormat::V03Rpc),
    ("HTTP+JSON", "0.3.0", WireFormat::V03Rest),
];

fn status(state: TaskState, text: Option<&str>) -> TaskStatus {
    let message = text.map(|text| Message::text(MessageId::new("m"), Role::Agent, text));
    TaskStatus {
        state,
        message,
        timestamp: None,
    }
}

fn make_task(state: TaskState, text: Option<&str>) -> Task {
    Task {
        id: TaskId::new("t-1"),
        context: Some(ContextId::new("c-1")),
        status: status(state, text),
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

fn status_event(state: TaskState, text: Option<&str>) -> StreamEvent {
    StreamEvent::Status(StatusUpdate {
        task: TaskId::new("t-1"),
        context: Some(ContextId::new("c-1")),
        status: status(state, text),
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

/// Returns the operation of a request in any binding.
fn operation(request: &ServerRequest) -> &'static str {
    match (request.rpc_method(), request.path.as_str()) {
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

/// Returns the message of a request in any binding.
fn message(request: &ServerRequest) -> &Value {
    if request.rpc_method().is_empty() {
        &request.body["message"]
    } else {
        &request.body["params"]["message"]
    }
}

fn operations(server: &Server) -> Vec<&'static str> {
    server.task_requests().iter().map(operation).collect()
}

/// S90
#[tokio::test]
async fn streams_are_forwarded_in_every_binding() {
    for (binding, version, wire) in BINDINGS {
        let server = Server::remote_agent(binding, version, true, move |_| {
            let all = [
                StreamEvent::Task(make_task(TaskState::Submitted, None)),
                status_event(TaskState::Working, Some("thinking…")),
                artifact_event("It ", false),
                artifact_event("rains 🌧", true),
                status_event(TaskState::Completed, None),
            ];
            ServerReply::Events(events(binding, wire, &all))
        });
        let (team, agent) = connect_server(&server).await;
        assert_eq!(
            team.agents()[0].description,
            "Knows the weather. Skills: Forecast."
        );
        let outcome = run_task(&agent, "오늘 비 와?", None).await;
        assert_eq!(
            (outcome.text.as_str(), outcome.error),
            ("It rains 🌧", None),
            "{binding} {version}"
        );
        assert_eq!(outcome.pieces, 2);
        assert!(outcome.thread.unwrap().as_str().contains("c-1"));
        let request = &server.task_requests()[0];
        assert_eq!(operation(request), "stream");
        assert!(message(request).to_string().contains("오늘 비 와?"));
        let version_header = request.header("a2a-version");
        assert_eq!(
            version_header.as_deref(),
            (version == "1.0").then_some("1.0")
        );
        let expected = match (binding, version) {
            ("JSONRPC", _) => "/a2a",
            (_, "1.0") => "/a2a/message:stream",
            _ => "/a2a/v1/message:stream",
        };
        assert_eq!(request.path, expected);
    }
}

#[tokio::test]
async fn long_tasks_are_polled_in_every_binding() {
    for (binding, version, wire) in BINDINGS {
        let polls = AtomicUsize::new(0);
        let server =
            Server::remote_agent(binding, version, false, move |request| {
                match operation(request) {
                    "send" => {
                        let reply = SendReply::Task(make_task(TaskState::Submitted, None));
                        ServerReply::json(&wrap_envelope(binding, reply.to_json(wire)))
                    }
                    _ => {
                        let current = match polls.fetch_add(1, Ordering::Relaxed) {
                            0 => make_task(TaskState::Working, None),
                            _ => finished_task("Sun."),
                        };
                        ServerReply::json(&wrap_envelope(binding, current.to_json(wire)))
                    }
                }
            });
        let (_team, agent) = connect_server(&server).await;
        let outcome = run_task(&agent, "weather?", None).await;
        assert_eq!(
            (outcome.text.as_str(), outcome.error),
            ("Sun.", None),
            "{binding} {version}"
        );
        assert_eq!(operations(&server), ["send", "get", "get"]);
        let body = server.task_requests()[0].body.to_string();
        let return_mode = if version == "1.0" {
            "\"returnImmediately\":true"
        } else {
            "\"blocking\":false"
        };
        assert!(body.contains(return_mode), "{body}");
    }
}

#[tokio::test]
async fn questions_reach_the_user_and_replies_the_same_task_in_every_binding() {
    for (binding, version, wire) in BINDINGS {
        let server = Server::remote_agent(binding, version, true, move |request| {
            let all = match message(request).get("taskId") {
                None => vec![
                    StreamEvent::Task(make_task(TaskState::Working, None)),
                    status_event(TaskState::InputRequired, Some("Which city?")),
                ],
                Some(_) => vec![StreamEvent::Task(finished_task("Rain in Köln."))],
            };
            ServerReply::Events(events(binding, wire, &all))
        });
        let (_team, agent) = connect_server(&server).await;
        let outcome = run_task(&agent, "weather?", None).await;
        assert_eq!(
            (outcome.text.as_str(), outcome.error),
            ("Which city?", None),
            "{binding} {version}"
        );
        let outcome = run_task(&agent, "Köln", outcome.thread).await;
        assert_eq!(outcome.text, "Rain in Köln.");
        let second = &server.task_requests()[1];
        assert_eq!(
            (&message(second)["taskId"], &message(second)["contextId"]),
            (&json!("t-1"), &json!("c-1"))
        );
        // The task has ended: the next request is a new task in the same context.
        run_task(&agent, "and tomorrow?", outcome.thread).await;
        let third = &server.task_requests()[2];
        assert_eq!(
            (message(third).get("taskId"), &message(third)["contextId"]),
            (None, &json!("c-1"))
        );
        assert_eq!(
            operations(&server),
            ["stream"; 3],
            "a task that waits for input is not cancelled"
        );
    }
}

#[tokio::test]
async fn broken_streams_are_continued_by_polling() {
    for (binding, version, wire) in BINDINGS {
        for breaks in [true, false] {
            let server =
                Server::remote_agent(binding, version, true, move |request| {
                    match operation(request) {
                        "stream" => {
                            let all = [
                                StreamEvent::Task(make_task(TaskState::Working, None)),
                                artifact_event("It ", false),
                            ];
                            let all = events(binding, wire, &all);
                            if breaks {
                                ServerReply::EventsThenBreak(all)
                            } else {
                                ServerReply::Events(all)
                            }
                        }
                        _ => ServerReply::json(&wrap_envelope(
                            binding,
                            finished_task("It rains.").to_json(wire),
                        )),
                    }
                });
            let (_team, agent) = connect_server(&server).await;
            let outcome = run_task(&agent, "weather?", None).await;
            assert_eq!(
                (outcome.text.as_str(), outcome.error),
                ("It rains.", None),
                "{binding} {version} {breaks}"
            );
            assert_eq!(operations(&server), ["stream", "get"]);
        }
    }
}

#[tokio::test]
async fn agents_without_streaming_get_a_plain_request() {
    let refusals: [fn() -> ServerReply; 3] = [
        || {
            ServerReply::json(
                &json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32004, "message": "no" } }),
            )
        },
        || ServerReply::status(405, &json!({})),
        || {
            ServerReply::Events(vec![
                json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32601, "message": "no" } }),
            ])
        },
    ];
    for refusal in refusals {
        let server = Server::remote_agent("JSONRPC", "1.0", true, move |request| {
            match operation(request) {
                "stream" => refusal(),
                _ => {
                    ServerReply::rpc(SendReply::Task(finished_task("Fog.")).to_json(WireFormat::V1))
                }
            }
        });
        let (_team, agent) = connect_server(&server).await;
        assert_eq!(run_task(&agent, "x", None).await.text, "Fog.");
        assert_eq!(operations(&server), ["stream", "send"]);
    }
    // A plain response to a stream request is accepted.
    let server = Server::remote_agent("JSONRPC", "1.0", true, |_| {
        let message = Message::text(MessageId::new("m"), Role::Agent, "Hail.");
        ServerReply::rpc(SendReply::Message(message).to_json(WireFormat::V1))
    });
    let (_team, agent) = connect_server(&server).await;
    assert_eq!(run_task(&agent, "x", None).await.text, "Hail.");
}

#[tokio::test]
async fn unknown_contexts_are_retried_without_them() {
    let server = Server::remote_agent("JSONRPC", "1.0", false, |request| {
        match message(request).get("contextId") {
            Some(_) => ServerReply::json(
                &json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32001, "message": "gone" } }),
            ),
            None => {
                ServerReply::rpc(SendReply::Task(finished_task("Snow.")).to_json(WireFormat::V1))
            }
        }
    });
    let (_team, agent) = connect_server(&server).await;
    let before = run_task(&agent, "x", None).await.thread;
    assert!(before.is_some());
    let outcome = run_task(&agent, "x", before).await;
    assert_eq!((outcome.text.as_str(), outcome.error), ("Snow.", None));
    assert_eq!(server.task_requests().len(), 3);
}

#[tokio::test]
async fn tasks_that_ended_meanwhile_keep_the_context() {
    let server = Server::remote_agent("JSONRPC", "1.0", false, |request| {
        match message(request).get("taskId") {
            Some(_) => ServerReply::json(
                &json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32004, "message": "over" } }),
            ),
            None if message(request).get("contextId").is_some() => {
                ServerReply::rpc(SendReply::Task(finished_task("Snow.")).to_json(WireFormat::V1))
            }
            None => ServerReply::rpc(
                SendReply::Task(make_task(TaskState::InputRequired, Some("Where?")))
                    .to_json(WireFormat::V1),
            ),
        }
    });
    let (_team, agent) = connect_server(&server).await;
    let question = run_task(&agent, "x", None).await;
    let outcome = run_task(&agent, "Oslo", question.thread).await;
    assert_eq!((outcome.text.as_str(), outcome.error), ("Snow.", None));
    let last = &server.task_requests()[2];
    assert_eq!(
        (message(last).get("taskId"), &message(last)["contextId"]),
        (None, &json!("c-1"))
    );
}

#[tokio::test]
async fn reports_the_end_state_of_a_task() {
    for (state, message, text, error) in [
        (TaskState::Completed, Some("All fine."), "All fine.", None),
        (TaskState::Completed, None, "", None),
        (
            TaskState::Failed,
            Some("no data"),
            "",
            Some("the remote task failed: no data"),
        ),
        (
            TaskState::Canceled,
            None,
            "",
            Some("the remote task was cancelled"),
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
            Some("it requires signing in, which is not supported: sign in at x"),
        ),
    ] {
        let server = Server::remote_agent("JSONRPC", "1.0", false, move |_| {
            ServerReply::rpc(SendReply::Task(make_task(state, message)).to_json(WireFormat::V1))
        });
        let (_team, agent) = connect_server(&server).await;
        let outcome = run_task(&agent, "x", None).await;
        assert_eq!(
            (outcome.text.as_str(), outcome.error.as_deref()),
            (text, error),
            "{state:?}"
        );
    }
}

#[tokio::test]
async fn dropped_streams_cancel_the_task() {
    for (binding, version, wire) in BINDINGS {
        let server = Server::remote_agent(binding, version, true, move |request| {
            match operation(request) {
                "stream" => {
                    let all = [
                        StreamEvent::Task(make_task(TaskState::Working, None)),
                        artifact_event("It ", false),
                    ];
                    ServerReply::EventsThenSilence(events(binding, wire, &all))
                }
                _ => ServerReply::json(&wrap_envelope(
                    binding,
                    make_task(TaskState::Canceled, None).to_json(wire),
                )),
            }
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
async fn endless_tasks_end_at_the_time_limit() {
    let server = Server::remote_agent("JSONRPC", "1.0", false, |request| {
        match operation(request) {
            "send" => ServerReply::rpc(
                SendReply::Task(make_task(TaskState::Working, None)).to_json(WireFormat::V1),
            ),
            _ => ServerReply::rpc(make_task(TaskState::Working, None).to_json(WireFormat::V1)),
        }
    });
    let mut settings = remote("weather", &server.origin());
    settings.seconds = seconds(1);
    let (team, agent) = connect_agent(settings).await;
    let outcome = run_task(&agent, "x", None).await;
    assert_eq!(
        outcome.error.as_deref(),
        Some("the task did not finish within 1 s")
    );
    team.wait_for_cancellations().await;
    assert_eq!(operations(&server).last(), Some(&"cancel"));
}

#[tokio::test]
async fn credentials_are_sent_to_the_configured_origin_and_never_shown() {
    let server = Server::remote_agent("JSONRPC", "1.0", false, |request| {
        let token = request.header("authorization").unwrap_or_default();
        let message = format!(
            "I know you: {token} and {}",
            request.header("x-team").unwrap_or_default()
        );
        ServerReply::json(
            &json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32603, "message": message } }),
        )
    });
    let mut settings = remote("weather", &server.origin());
    settings.token = Some(Secret::new("s3cret-token"));
    settings
        .headers
        .insert("X-Team".to_owned(), Secret::new("blue-whales"));
    let (_team, agent) = connect_agent(settings).await;
    let outcome = run_task(&agent, "x", None).await;
    assert_eq!(
        outcome.error.as_deref(),
        Some("the remote agent returned an error: I know you: Bearer *** and *** (-32603)")
    );
    let sent = server.task_requests()[0].header("authorization");
    assert_eq!(sent.as_deref(), Some("Bearer s3cret-token"));
}

#[tokio::test]
async fn expired_tokens_are_reported_and_retried() {
    let calls = AtomicUsize::new(0);
    let server = Server::remote_agent("JSONRPC", "1.0", false, move |_| {
        match calls.fetch_add(1, Ordering::Relaxed) {
            1 => ServerReply::status(401, &json!({ "error": "expired" })),
            _ => ServerReply::rpc(SendReply::Task(finished_task("Sun.")).to_json(WireFormat::V1)),
        }
    });
    let (_team, agent) = connect_server(&server).await;
    assert_eq!(run_task(&agent, "x", None).await.text, "Sun.");
    let outcome = run_task(&agent, "x", None).await;
    assert_eq!(
        outcome.error.as_deref(),
        Some("the credentials were rejected (status 401)")
    );
    assert_eq!(run_task(&agent, "x", None).await.text, "Sun.");
}

#[tokio::test]
async fn three_consecutive_failures_pause_the_agent() {
    let server = Server::remote_agent("JSONRPC", "1.0", false, |_| {
        ServerReply::status(500, &json!({}))
    });
    let (_team, agent) = connect_server(&server).await;
    for _ in 0..3 {
        let outcome = run_task(&agent, "x", None).await;
        assert_eq!(
            outcome.error.as_deref(),
            Some("the remote agent returned status 500")
        );
    }
    let error = run_task(&agent, "x", None).await.error.unwrap();
    assert!(
        error.starts_with("it failed 3 times in a row and is paused for another"),
        "{error}"
    );
    assert_eq!(
        server.task_requests().len(),
        3,
        "no request while it is paused"
    );
}

#[tokio::test]
async fn failed_tasks_do_not_pause_the_agent() {
    let server = Server::remote_agent("JSONRPC", "1.0", false, |_| {
        ServerReply::rpc(
            SendReply::Task(make_task(TaskState::Failed, Some("no"))).to_json(WireFormat::V1),
        )
    });
    let (_team, agent) = connect_server(&server).await;
    for _ in 0..5 {
        assert_eq!(
            run_task(&agent, "x", None).await.error.as_deref(),
            Some("the remote task failed: no")
        );
    }
    assert_eq!(server.task_requests().len(), 5);
}

#[tokio::test]
async fn missing_agents_join_in_the_background() {
    let polls = AtomicUsize::new(0);
    let server = Server::start(
        move |_, origin| match polls.fetch_add(1, Ordering::Relaxed) {
            // Both candidate URLs of the first fetch.
            0 | 1 => ServerReply::status(404, &json!({})),
            _ => ServerReply::json(&crate::server::card(origin, "JSONRPC", "1.0", false)),
        },
    );
    let team = crate::setup::team(vec![remote("weather", &server.origin())]).await;
    assert!(team.agents().is_empty());
    let before = team.generation().current();
    tokio::select! {
        () = team.refresh_forever() => {}
        joined = tokio::time::timeout(Duration::from_secs(20), team.generation().wait_for_change(before)) => joined.unwrap(),
    }
    assert_eq!(team.agents()[0].name.as_str(), "weather");
    assert!(team.warnings().is_empty());
}
