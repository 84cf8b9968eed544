//! Hostile and invalid JSON.

use lango_remote::a2a::{
    A2aCall, A2aMethod, AgentCard, ProtocolVersion, SendReply, StreamEvent, Task, WireFormat, rest,
    rpc,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const WIRES: [WireFormat; 3] = [WireFormat::V1, WireFormat::V03Rpc, WireFormat::V03Rest];

fn valid_events() -> [Value; 3] {
    let status = |state| json!({ "state": state, "message": null });
    [
        json!({ "task": { "id": "t", "contextId": "c", "status": status("TASK_STATE_WORKING"),
            "artifacts": [{ "artifactId": "a", "parts": [{ "text": "x" }] }] } }),
        json!({ "kind": "task", "id": "t", "contextId": "c", "status": status("working"),
            "artifacts": [{ "artifactId": "a", "parts": [{ "kind": "text", "text": "x" }] }] }),
        json!({ "task": { "id": "t", "contextId": "c", "status": status("TASK_STATE_WORKING"),
            "artifacts": [{ "artifactId": "a", "parts": [{ "text": "x" }] }] } }),
    ]
}

/// Returns copies of `value`, each with one part replaced by `replacement`.
fn corruptions(value: &Value, replacement: &Value) -> Vec<Value> {
    let mut all = vec![replacement.clone()];
    match value {
        Value::Object(map) => {
            for (name, inner) in map {
                for corrupted in corruptions(inner, replacement) {
                    let mut copy = map.clone();
                    copy.insert(name.clone(), corrupted);
                    all.push(Value::Object(copy));
                }
            }
        }
        Value::Array(items) => {
            for (at, inner) in items.iter().enumerate() {
                for corrupted in corruptions(inner, replacement) {
                    let mut copy = items.clone();
                    copy[at] = corrupted;
                    all.push(Value::Array(copy));
                }
            }
        }
        _ => {}
    }
    all
}

#[test]
fn wrong_types_are_rejected() {
    for (wire, valid) in WIRES.into_iter().zip(valid_events()) {
        assert!(SendReply::from_json(&valid, wire).is_ok(), "{wire:?}");
        for replacement in [json!(17), json!(true), json!([[]]), json!({ "x": 1 })] {
            for corrupted in corruptions(&valid, &replacement) {
                let parsed = SendReply::from_json(&corrupted, wire);
                assert!(parsed.is_err(), "{wire:?} {corrupted}");
            }
        }
    }
}

#[test]
fn unknown_fields_are_ignored() {
    for (wire, mut value) in WIRES.into_iter().zip(valid_events()) {
        value["fromTheFuture"] = json!({ "deep": [1, 2, 3] });
        assert!(StreamEvent::from_json(&value, wire).is_ok(), "{wire:?}");
    }
}

#[test]
fn events_have_exactly_one_payload() {
    let mut two = valid_events()[0].clone();
    two["message"] = json!({ "messageId": "m", "role": "ROLE_AGENT", "parts": [] });
    assert!(StreamEvent::from_json(&two, WireFormat::V1).is_err());
    assert!(StreamEvent::from_json(&json!({}), WireFormat::V1).is_err());
    assert!(StreamEvent::from_json(&json!({ "kind": "party" }), WireFormat::V03Rpc).is_err());
    let both =
        json!({ "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "text": "a", "url": "b" }] });
    assert!(SendReply::from_json(&json!({ "message": both }), WireFormat::V1).is_err());
}

#[test]
fn rejects_unknown_states_and_invalid_page_sizes() {
    for state in ["", "TASK_STATE_PARTY", "Working", "working ", "3"] {
        let task = json!({ "id": "t", "status": { "state": state } });
        assert!(Task::from_json(&task, WireFormat::V1).is_err(), "{state}");
    }
    let params = json!({ "status": "TASK_STATE_PARTY" });
    assert!(A2aCall::from_params(A2aMethod::ListTasks, &params, WireFormat::V1).is_err());
    for corrupted in [json!(0), json!(101), json!(-5), json!(1e99)] {
        assert!(
            A2aCall::from_params(
                A2aMethod::ListTasks,
                &json!({ "pageSize": corrupted }),
                WireFormat::V1
            )
            .is_err(),
            "{corrupted}"
        );
    }
}

#[test]
fn invalid_requests_get_their_error_code() {
    for (body, code) in [
        (&b""[..], -32700),
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"[]", -32600),
        (b"3", -32600),
        (b"{}", -32600),
        (b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"GetTask\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"GetTask\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"GetTask\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"Party\"}", -32601),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"GetTask\",\"params\":[]}", -32602),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"GetTask\"}", -32602),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"message/send\",\"params\":{\"message\":\"hi\"}}",
            -32602,
        ),
    ] {
        let rejection = rpc::parse_request(body, Some("1.0")).unwrap_err();
        assert_eq!(rejection.to_response()["error"]["code"], code, "{}", String::from_utf8_lossy(body));
    }
}

#[test]
fn rejects_deep_nesting() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let body = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"message/send\",\"params\":{{\"metadata\":{deep}}}}}"
    );
    assert_eq!(
        rpc::parse_request(body.as_bytes(), None)
            .unwrap_err()
            .to_response()["error"]["code"],
        -32700
    );
}

#[test]
fn rejects_huge_lists_and_ids() {
    let part = json!({ "text": "x" });
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": vec![part; 10_001] });
    assert!(
        A2aCall::from_params(
            A2aMethod::SendMessage,
            &json!({ "message": message }),
            WireFormat::V1
        )
        .is_err()
    );
    let task = json!({ "id": "x".repeat(1_000_000) });
    let rejection = A2aCall::from_params(A2aMethod::GetTask, &task, WireFormat::V1).unwrap_err();
    assert!(rejection.to_string().len() < 100);
    assert!(
        A2aCall::from_params(
            A2aMethod::GetTask,
            &json!({ "id": "a\u{1b}]0;x\u{7}" }),
            WireFormat::V1
        )
        .is_err()
    );
}

#[test]
fn rejects_messages_without_parts_or_with_invalid_base64() {
    let send = |parts: Value| {
        let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": parts });
        A2aCall::from_params(
            A2aMethod::SendMessage,
            &json!({ "message": message }),
            WireFormat::V1,
        )
    };
    assert!(send(json!([])).is_err());
    assert!(send(json!([{ "raw": "not base64!" }])).is_err());
    assert!(send(json!([{ "raw": "aGk=" }])).is_ok());
}

#[test]
fn responses_are_results_or_errors() {
    assert_eq!(rpc::parse_response(json!({ "result": 1 })), Ok(json!(1)));
    assert!(rpc::parse_response(json!({ "result": 1, "error": null })).is_ok());
    let long = "\u{1b}[31m".to_owned() + &"x".repeat(10_000);
    let error =
        rpc::parse_response(json!({ "error": { "code": "?", "message": long } })).unwrap_err();
    assert!(error.message.len() < 300 && !error.message.contains('\u{1b}'));
    for invalid in [json!([]), json!({}), json!("x"), json!({ "error": 3 })] {
        assert!(rpc::parse_response(invalid).is_err());
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        prop::sample::select(vec![
            "task",
            "text",
            "working",
            "user",
            "ROLE_USER",
            "status-update",
            "2.0"
        ])
        .prop_map(Value::from),
    ];
    let names = prop::sample::select(vec![
        "kind",
        "task",
        "message",
        "status",
        "state",
        "parts",
        "content",
        "text",
        "file",
        "data",
        "id",
        "taskId",
        "contextId",
        "artifact",
        "artifactId",
        "messageId",
        "role",
        "url",
        "supportedInterfaces",
        "skills",
        "name",
        "securitySchemes",
        "security",
        "capabilities",
        "params",
        "method",
        "jsonrpc",
        "error",
        "metadata",
    ]);
    leaf.prop_recursive(5, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names.clone(), inner), 0..6).prop_map(|fields| fields
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()),
        ]
    })
}

proptest! {
    #[test]
    fn no_json_breaks_a_parser(value in any_json()) {
        for wire in WIRES {
            if let Ok(event) = StreamEvent::from_json(&value, wire) {
                prop_assert_eq!(StreamEvent::from_json(&event.to_json(wire), wire).unwrap(), event);
            }
            for method in A2aMethod::ALL {
                _ = A2aCall::from_params(method, &value, wire);
            }
        }
        if let Ok(parsed) = AgentCard::from_json(&value) {
            prop_assert!(AgentCard::from_json(&parsed.card.to_json()).is_ok());
        }
        _ = rpc::parse_request(&serde_json::to_vec(&value).unwrap(), Some("1.0"));
        _ = rpc::parse_response(value);
    }

    #[test]
    fn no_path_breaks_a_route(path in "(/[a-zA-Z:%/.0-9]{0,12}){0,5}") {
        for method in [rest::HttpMethod::Get, rest::HttpMethod::Post, rest::HttpMethod::Delete] {
            let request = rest::HttpRequest { method, path: path.clone(), query: Vec::new(), body: None };
            if let Some(Ok((_, version))) = rest::parse_request(&request, Some("1.0")) {
                prop_assert_eq!(version == ProtocolVersion::V0_3, path.starts_with("/v1/"));
            }
        }
    }
}
