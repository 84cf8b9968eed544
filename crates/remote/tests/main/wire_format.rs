//! The same data in every wire format.

use lango_domain::secret::Secret;
use lango_remote::a2a::rest::{self, HttpMethod, HttpRequest};
use lango_remote::a2a::{
    A2aCall, A2aMethod, A2aRequest, Artifact, ArtifactId, ArtifactUpdate, Authentication,
    ContextId, ErrorKind, ListTasks, Message, MessageId, Metadata, Part, PartContent,
    ProtocolError, ProtocolVersion, PushConfig, PushConfigId, ReturnMode, Role, SendMessage,
    SendReply, StatusUpdate, StreamEvent, Task, TaskId, TaskPage, TaskState, TaskStatus,
    WireFormat, push_configs_to_json, rpc,
};
use serde_json::{Value, json};

const WIRES: [WireFormat; 3] = [WireFormat::V1, WireFormat::V03Rpc, WireFormat::V03Rest];

fn message() -> Message {
    let mut message = Message::text(MessageId::new("m1"), Role::User, "안녕 👋");
    message.context = Some(ContextId::new("c1"));
    message.task = Some(TaskId::new("t1"));
    message.extensions = vec!["https://e.example/x".to_owned()];
    message
        .metadata
        .insert("trace".to_owned(), json!({ "a": [1, null] }));
    message
}

fn task(state: TaskState) -> Task {
    Task {
        id: TaskId::new("t1"),
        context: Some(ContextId::new("c1")),
        status: TaskStatus {
            state,
            message: Some(message()),
            timestamp: Some("2026-01-31T12:00:00.123Z".parse().unwrap()),
        },
        artifacts: vec![Artifact {
            name: Some("plan".to_owned()),
            ..Artifact::text(ArtifactId::new("a1"), "Grüße")
        }],
        history: vec![message()],
        metadata: Metadata::new(),
    }
}

fn events() -> Vec<StreamEvent> {
    let update = |state| StatusUpdate {
        task: TaskId::new("t1"),
        context: Some(ContextId::new("c1")),
        status: TaskStatus {
            state,
            message: None,
            timestamp: None,
        },
        metadata: Metadata::new(),
    };
    let mut events: Vec<StreamEvent> = TaskState::ALL
        .into_iter()
        .map(update)
        .map(StreamEvent::Status)
        .collect();
    events.extend(TaskState::ALL.into_iter().map(task).map(StreamEvent::Task));
    events.push(StreamEvent::Message(message()));
    events.push(StreamEvent::Artifact(ArtifactUpdate {
        task: TaskId::new("t1"),
        context: None,
        artifact: Artifact::text(ArtifactId::new("a1"), "x"),
        append: true,
        last_chunk: true,
        metadata: Metadata::new(),
    }));
    events
}

#[test]
fn events_round_trip_in_every_wire_format() {
    for wire in WIRES {
        for event in events() {
            let json = event.to_json(wire);
            assert_eq!(
                StreamEvent::from_json(&json, wire).unwrap(),
                event,
                "{wire:?} {json}"
            );
        }
        let reply = SendReply::Task(task(TaskState::Completed));
        assert_eq!(
            SendReply::from_json(&reply.to_json(wire), wire).unwrap(),
            reply
        );
    }
}

#[test]
fn parts_match_their_version() {
    let file = Part {
        filename: Some("a.png".to_owned()),
        media_type: Some("image/png".to_owned()),
        ..Part::new(PartContent::Raw("aGk=".to_owned()))
    };
    let link = Part::new(PartContent::Url("https://f.example/a".to_owned()));
    let data = Part::new(PartContent::Data(json!({ "a": 1 })));
    // Data must be an object in 0.3.
    let array = Part::new(PartContent::Data(json!([1])));
    for (part, v1, v03_rpc, v03_rest) in [
        (
            Part::text("x"),
            json!({ "text": "x" }),
            json!({ "kind": "text", "text": "x" }),
            json!({ "text": "x" }),
        ),
        (
            file,
            json!({ "raw": "aGk=", "filename": "a.png", "mediaType": "image/png" }),
            json!({ "kind": "file", "file": { "bytes": "aGk=", "name": "a.png", "mimeType": "image/png" } }),
            json!({ "file": { "fileWithBytes": "aGk=", "mimeType": "image/png" } }),
        ),
        (
            link,
            json!({ "url": "https://f.example/a" }),
            json!({ "kind": "file", "file": { "uri": "https://f.example/a" } }),
            json!({ "file": { "fileWithUri": "https://f.example/a" } }),
        ),
        (
            data,
            json!({ "data": { "a": 1 } }),
            json!({ "kind": "data", "data": { "a": 1 } }),
            json!({ "data": { "data": { "a": 1 } } }),
        ),
        (
            array,
            json!({ "data": [1] }),
            json!({ "kind": "data", "data": { "value": [1] } }),
            json!({ "data": { "data": { "value": [1] } } }),
        ),
    ] {
        for (wire, expected) in WIRES.into_iter().zip([v1, v03_rpc, v03_rest]) {
            assert_eq!(part.to_json(wire), expected, "{wire:?}");
            let parsed = Part::from_json(&expected, wire).unwrap();
            assert_eq!(parsed.to_json(wire), expected, "{wire:?}");
        }
    }
    // Early versions of 0.2 called it `type`.
    assert_eq!(
        Part::from_json(&json!({ "type": "text", "text": "x" }), WireFormat::V03Rpc).unwrap(),
        Part::text("x")
    );
}

#[test]
fn messages_and_tasks_match_their_version() {
    let mut message = Message::text(MessageId::new("m"), Role::Agent, "hi");
    message.references = vec![TaskId::new("t0")];
    assert_eq!(
        message.to_json(WireFormat::V1),
        json!({ "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "text": "hi" }], "referenceTaskIds": ["t0"] })
    );
    assert_eq!(
        message.to_json(WireFormat::V03Rpc),
        json!({ "kind": "message", "messageId": "m", "role": "agent", "parts": [{ "kind": "text", "text": "hi" }],
                "referenceTaskIds": ["t0"] })
    );
    assert_eq!(
        message.to_json(WireFormat::V03Rest),
        json!({ "messageId": "m", "role": "ROLE_AGENT", "content": [{ "text": "hi" }] })
    );
    let canceled = task(TaskState::Canceled);
    assert_eq!(
        canceled.to_json(WireFormat::V1)["status"]["state"],
        "TASK_STATE_CANCELED"
    );
    assert_eq!(
        canceled.to_json(WireFormat::V03Rpc)["status"]["state"],
        "canceled"
    );
    assert_eq!(
        canceled.to_json(WireFormat::V03Rest)["status"]["state"],
        "TASK_STATE_CANCELLED"
    );
    assert_eq!(
        canceled.to_json(WireFormat::V1)["status"]["timestamp"],
        "2026-01-31T12:00:00.123Z"
    );
    assert_eq!(canceled.to_json(WireFormat::V03Rpc)["kind"], "task");
}

#[test]
fn streams_of_0_3_mark_the_final_event() {
    for event in events() {
        let json = event.to_json(WireFormat::V03Rpc);
        if let StreamEvent::Status(update) = &event {
            let is_final =
                update.status.state.is_terminal() || update.status.state.is_interrupted();
            assert_eq!(json["final"], is_final);
            assert_eq!(json["kind"], "status-update");
            assert!(
                event.to_json(WireFormat::V1)["statusUpdate"]
                    .get("final")
                    .is_none()
            );
        }
    }
}

fn requests() -> Vec<A2aRequest> {
    let (task, config) = (TaskId::new("t/1 ü"), PushConfigId::new("p:1"));
    let push = PushConfig {
        task: Some(task.clone()),
        id: Some(config.clone()),
        url: "https://hook.example/x".to_owned(),
        token: Some(Secret::new("s3cret-token")),
        authentication: Some(Authentication {
            scheme: "Bearer".to_owned(),
            credentials: Some(Secret::new("credentials")),
        }),
    };
    let send = SendMessage {
        return_mode: ReturnMode::Immediately,
        accepted_output_modes: vec!["text/plain".to_owned()],
        history: Some(3),
        push: Some(PushConfig {
            task: None,
            ..push.clone()
        }),
        ..SendMessage::new(message())
    };
    vec![
        A2aRequest::SendMessage(Box::new(SendMessage::new(message()))),
        A2aRequest::StreamMessage(Box::new(send)),
        A2aRequest::GetTask {
            task: task.clone(),
            history: Some(0),
        },
        A2aRequest::CancelTask { task: task.clone() },
        A2aRequest::SubscribeToTask { task: task.clone() },
        A2aRequest::CreatePushConfig(push),
        A2aRequest::GetPushConfig {
            task: task.clone(),
            config: Some(config.clone()),
        },
        A2aRequest::ListPushConfigs { task: task.clone() },
        A2aRequest::DeletePushConfig { task, config },
        A2aRequest::ExtendedCard,
        A2aRequest::ListTasks(ListTasks {
            context: Some(ContextId::new("c")),
            state: Some(TaskState::Working),
            page_size: Some(10),
            page_token: Some("next".to_owned()),
            history: Some(1),
            changed_after: Some("2026-01-31T12:00:00.123Z".parse().unwrap()),
            with_artifacts: true,
        }),
    ]
}

#[test]
fn requests_round_trip_over_json_rpc_in_both_versions() {
    for version in [ProtocolVersion::V1_0, ProtocolVersion::V0_3] {
        for request in requests() {
            let tenant = (version == ProtocolVersion::V1_0).then(|| "acme".to_owned());
            let call = A2aCall { tenant, request };
            let method = call.request.method();
            let Some(json) = rpc::encode_request(7, &call, version) else {
                assert_eq!(
                    (method, version),
                    (A2aMethod::ListTasks, ProtocolVersion::V0_3)
                );
                continue;
            };
            let body = serde_json::to_vec(&json).unwrap();
            let parsed = rpc::parse_request(&body, Some(version.as_str())).unwrap();
            assert_eq!(parsed.call, call, "{json}");
            assert_eq!(
                (parsed.version, parsed.id),
                (version, rpc::RpcId::Number(7))
            );
            assert_eq!(
                A2aMethod::from_rpc_name(method.name(version).unwrap()),
                Some((method, version))
            );
        }
    }
}

#[test]
fn requests_round_trip_over_http_in_both_versions() {
    for version in [ProtocolVersion::V1_0, ProtocolVersion::V0_3] {
        for request in requests() {
            for tenant in [None, Some("acme".to_owned())] {
                let tenant = tenant.filter(|_| version == ProtocolVersion::V1_0);
                let call = A2aCall {
                    tenant,
                    request: request.clone(),
                };
                let request = rest::encode_request(&call, version).unwrap();
                assert_eq!(
                    request.path.starts_with("/v1/"),
                    version == ProtocolVersion::V0_3,
                    "{}",
                    request.path
                );
                let parsed = rest::parse_request(&request, Some("1.0")).unwrap().unwrap();
                assert_eq!(parsed, (call, version), "{request:?}");
            }
        }
    }
}

#[test]
fn routes_match_the_protocol() {
    let request = |http_method, path: &str| HttpRequest {
        method: http_method,
        path: path.to_owned(),
        query: Vec::new(),
        body: None,
    };
    let parsed = |http_method, path: &str| {
        rest::parse_request(&request(http_method, path), Some("1.0"))
            .map(|parsed| parsed.map(|(call, _)| call.request.method()))
    };
    for (http_method, path, method) in [
        (HttpMethod::Get, "/tasks/t1", A2aMethod::GetTask),
        (HttpMethod::Get, "/tasks/t1/", A2aMethod::GetTask),
        (HttpMethod::Get, "/v1/tasks/a%3Ab", A2aMethod::GetTask),
        (HttpMethod::Post, "/tasks/t1:cancel", A2aMethod::CancelTask),
        (
            HttpMethod::Post,
            "/tasks/t1:subscribe",
            A2aMethod::SubscribeToTask,
        ),
        (
            HttpMethod::Get,
            "/tasks/t1:subscribe",
            A2aMethod::SubscribeToTask,
        ),
        (
            HttpMethod::Get,
            "/v1/tasks/t1:subscribe",
            A2aMethod::SubscribeToTask,
        ),
        (HttpMethod::Get, "/tasks", A2aMethod::ListTasks),
        (HttpMethod::Get, "/acme/tasks", A2aMethod::ListTasks),
        (
            HttpMethod::Get,
            "/extendedAgentCard",
            A2aMethod::ExtendedCard,
        ),
        (HttpMethod::Get, "/v1/card", A2aMethod::ExtendedCard),
        (
            HttpMethod::Delete,
            "/tasks/t/pushNotificationConfigs/c",
            A2aMethod::DeletePushConfig,
        ),
    ] {
        assert_eq!(parsed(http_method, path), Some(Ok(method)), "{path}");
    }
    for (http_method, path) in [
        (HttpMethod::Get, ""),
        (HttpMethod::Get, "/"),
        (HttpMethod::Get, "/nothing"),
        (HttpMethod::Get, "/message:send"),
        (HttpMethod::Delete, "/tasks/t"),
        (HttpMethod::Post, "/tasks/t"),
        (HttpMethod::Get, "/tasks/%ff"),
        (HttpMethod::Get, "/a/b/tasks"),
    ] {
        assert_eq!(parsed(http_method, path), None, "{path}");
    }
}

#[test]
fn requests_of_1_0_need_the_version_header() {
    let get = json!({ "jsonrpc": "2.0", "id": "x", "method": "GetTask", "params": { "id": "t" } });
    let body = serde_json::to_vec(&get).unwrap();
    for header in [None, Some(""), Some("0.3"), Some("9.9")] {
        let rejection = rpc::parse_request(&body, header).unwrap_err();
        assert_eq!(rejection.error.kind, ErrorKind::VersionNotSupported);
        let response = rejection.to_response();
        assert_eq!(
            (&response["id"], &response["error"]["code"]),
            (&json!("x"), &json!(-32009))
        );
    }
    assert!(rpc::parse_request(&body, Some("1.0")).is_ok());
    let v03 = json!({ "jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": { "id": "t" } });
    let v03 = serde_json::to_vec(&v03).unwrap();
    assert!(
        rpc::parse_request(&v03, None).is_ok() && rpc::parse_request(&v03, Some("0.3.0")).is_ok()
    );
    assert_eq!(
        rpc::parse_request(&v03, Some("9.9"))
            .unwrap_err()
            .error
            .kind,
        ErrorKind::VersionNotSupported
    );
    let v03 = HttpRequest {
        method: HttpMethod::Get,
        path: "/v1/tasks/t".to_owned(),
        query: Vec::new(),
        body: None,
    };
    assert!(rest::parse_request(&v03, None).unwrap().is_ok());
    let rejection = rest::parse_request(&v03, Some("9.9")).unwrap().unwrap_err();
    assert_eq!(rejection.kind, ErrorKind::VersionNotSupported);
    let request = |query| HttpRequest {
        method: HttpMethod::Get,
        path: "/tasks/t".to_owned(),
        query,
        body: None,
    };
    let rejection = rest::parse_request(&request(Vec::new()), None)
        .unwrap()
        .unwrap_err();
    assert_eq!(rejection.kind, ErrorKind::VersionNotSupported);
    let query_version = vec![("A2A-Version".to_owned(), "1.0".to_owned())];
    assert!(
        rest::parse_request(&request(query_version), None)
            .unwrap()
            .is_ok()
    );
}

#[test]
fn errors_have_their_codes_and_statuses() {
    let error =
        ProtocolError::new(ErrorKind::TaskNotFound, "no such task").with_metadata("taskId", "t1");
    let info = json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND",
        "domain": "a2a-protocol.org", "metadata": { "taskId": "t1" },
    });
    assert_eq!(
        error.to_rpc_json(ProtocolVersion::V1_0),
        json!({ "code": -32001, "message": "no such task", "data": [info] })
    );
    assert_eq!(
        error.to_rpc_json(ProtocolVersion::V0_3),
        json!({ "code": -32001, "message": "no such task", "data": { "taskId": "t1" } })
    );
    assert_eq!(
        error.to_rest_json(ProtocolVersion::V1_0),
        json!({ "error": { "code": 404, "status": "NOT_FOUND", "message": "no such task", "details": [info] } })
    );
    for (kind, code, status) in [
        (ErrorKind::TaskNotCancelable, -32002, 400),
        (ErrorKind::PushNotSupported, -32003, 400),
        (ErrorKind::UnsupportedOperation, -32004, 400),
        (ErrorKind::ContentTypeNotSupported, -32005, 400),
        (ErrorKind::InvalidAgentResponse, -32006, 500),
        (ErrorKind::ExtendedCardNotConfigured, -32007, 400),
        (ErrorKind::ExtensionRequired, -32008, 400),
        (ErrorKind::VersionNotSupported, -32009, 400),
        (ErrorKind::Parse, -32700, 400),
        (ErrorKind::InvalidParams, -32602, 400),
    ] {
        assert_eq!((kind.code(), kind.http_status()), (code, status));
        assert_eq!(ErrorKind::from_code(code), kind);
        let error = ProtocolError::new(kind, "x");
        assert_eq!(
            ProtocolError::from_rpc_json(&error.to_rpc_json(ProtocolVersion::V0_3)).kind,
            kind
        );
        assert_eq!(
            ProtocolError::from_rest_json(status, &error.to_rest_json(ProtocolVersion::V1_0)).kind,
            kind
        );
    }
}

#[test]
fn invalid_parameters_are_reported_with_the_field_path() {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage",
        "params": { "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": 3 }] } } });
    let rejection =
        rpc::parse_request(&serde_json::to_vec(&body).unwrap(), Some("1.0")).unwrap_err();
    let error = &rejection.to_response()["error"];
    assert_eq!(error["code"], -32602);
    assert_eq!(error["message"], "`message.parts[0].text` must be a string");
    assert_eq!(
        error["data"][1]["fieldViolations"][0]["field"],
        "message.parts[0].text"
    );
}

#[test]
fn lists_match_their_version() {
    let page = TaskPage {
        tasks: vec![task(TaskState::Working)],
        page_size: 50,
        total_size: 1,
        ..TaskPage::default()
    };
    let json = page.to_json(WireFormat::V1);
    assert_eq!(
        (&json["nextPageToken"], &json["totalSize"]),
        (&json!(""), &json!(1))
    );
    assert_eq!(push_configs_to_json(&[], WireFormat::V03Rpc), json!([]));
    assert_eq!(
        push_configs_to_json(&[], WireFormat::V1)["configs"],
        json!([])
    );
}

#[test]
fn push_config_secrets_are_not_shown() {
    let Some(A2aRequest::CreatePushConfig(push)) = requests().into_iter().nth(5) else {
        panic!("another request")
    };
    let debug_text = format!("{push:?}");
    assert!(
        !debug_text.contains("s3cret") && !debug_text.contains("credentials\""),
        "{debug_text}"
    );
    let json: Value = push.to_json(WireFormat::V1);
    assert_eq!(
        json["authentication"],
        json!({ "scheme": "Bearer", "credentials": "credentials" })
    );
    assert_eq!(
        push.to_json(WireFormat::V03Rpc)["pushNotificationConfig"]["authentication"]["schemes"],
        json!(["Bearer"])
    );
}
