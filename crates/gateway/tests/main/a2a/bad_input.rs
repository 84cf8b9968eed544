//! Invalid requests and their protocol errors.

use super::harness::{A2aTestClient, A2aTestServer, message, start_server, start_server_with};
use lango_gateway::{A2aSettings, ServerSettings};
use serde_json::{Value, json};

async fn post_raw(client: &A2aTestClient, body: &[u8], media_type: &str, version: &str) -> Value {
    let request = client
        .request("POST", "/a2a/")
        .header("content-type", media_type);
    let request = request.header("A2A-Version", version).body(body.to_vec());
    let reply = client.send(request).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.body
}

async fn start_default_server() -> A2aTestServer {
    start_server("root always says hi").await
}

fn call(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": "x", "method": method, "params": params })
}

fn send(message: Value) -> Value {
    call("SendMessage", json!({ "message": message }))
}

/// Returns a message with these parts and role.
fn message_with(role: &str, parts: Value) -> Value {
    json!({ "messageId": "m", "role": role, "parts": parts })
}

/// Asserts that each body is answered with the error code, and that no task is created.
async fn assert_error_codes(bodies: Vec<(String, i32)>) {
    let server = start_default_server().await;
    let ann = server.client("ann");
    for (body, code) in bodies {
        let answer = post_raw(&ann, body.as_bytes(), "application/json", "1.0").await;
        assert_eq!(answer["error"]["code"], code, "{body}: {answer}");
    }
    let tasks = ann.rpc("ListTasks", json!({})).await;
    assert_eq!(tasks["result"]["totalSize"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_json_rpc_has_the_right_error_code() {
    let texts = [
        ("{not json", -32700),
        ("\u{feff}", -32700),
        ("[]", -32600),
        ("7", -32600),
    ];
    let requests = [
        (json!({ "id": 1, "method": "GetTask" }), -32600),
        (
            json!({ "jsonrpc": "2.0", "id": {}, "method": "GetTask" }),
            -32600,
        ),
        (json!({ "jsonrpc": "2.0", "id": 1, "method": 5 }), -32600),
        (call("tasks/explode", json!({})), -32601),
        (
            json!({ "jsonrpc": "2.0", "method": "tasks/explode" }),
            -32601,
        ),
        (
            json!({ "jsonrpc": "2.0", "method": "GetTask", "params": { "id": "none" } }),
            -32600,
        ),
    ];
    let texts = texts.map(|(text, code)| (text.to_owned(), code));
    let requests = requests.map(|(request, code)| (request.to_string(), code));
    assert_error_codes(texts.into_iter().chain(requests).collect()).await;

    let server = start_default_server().await;
    let ann = server.client("ann");
    let not_utf8 = post_raw(&ann, b"\xff\xfe{", "application/json", "1.0").await;
    assert_eq!(not_utf8["error"]["code"], -32700);
    let body = send(message("m", "hi")).to_string();
    let plain = post_raw(&ann, body.as_bytes(), "text/plain", "1.0").await;
    assert_eq!(plain["error"]["code"], -32005);
    let tasks = ann.rpc("ListTasks", json!({})).await;
    assert_eq!(tasks["result"]["totalSize"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_json_rpc_params_have_the_right_error_code() {
    let text = || json!([{ "text": "hi" }]);
    let image = json!([{ "raw": "AA==", "mediaType": "image/png" }]);
    let file = json!([{ "url": "http://169.254.169.254/", "mediaType": "text/plain" }]);
    let mut long_context = message_with("ROLE_USER", text());
    long_context["contextId"] = json!("x".repeat(300));
    let mut image_only = send(message("m", "hi"));
    image_only["params"]["configuration"] = json!({ "acceptedOutputModes": ["image/png"] });
    let requests = [
        (call("GetTask", json!([1])), -32602),
        (call("GetTask", json!({})), -32602),
        (call("GetTask", json!({ "id": 7 })), -32602),
        (call("GetTask", json!({ "id": "none" })), -32001),
        (call("CancelTask", json!({ "id": "none" })), -32001),
        (call("SendMessage", json!({})), -32602),
        (send(message_with("ROLE_USER", json!([]))), -32602),
        (send(message_with("ROLE_KING", text())), -32602),
        (send(message_with("ROLE_AGENT", text())), -32602),
        (send(message("m", " ")), -32602),
        (send(long_context), -32602),
        (send(message_with("ROLE_USER", image)), -32005),
        (send(message_with("ROLE_USER", file)), -32005),
        (image_only, -32005),
        (call("ListTasks", json!({ "pageToken": "🦀" })), -32602),
        (call("ListTasks", json!({ "pageSize": 0 })), -32602),
        (
            call("GetTask", json!({ "id": "x", "tenant": "acme" })),
            -32602,
        ),
    ];
    let bodies = requests.map(|(request, code)| (request.to_string(), code));
    assert_error_codes(bodies.to_vec()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn version_0_3_stream_errors_are_sent_as_a_stream() {
    let server = start_default_server().await;
    let ann = server.client("ann");
    let events = ann
        .events(ann.rpc_request("tasks/resubscribe", json!({ "id": "none" })))
        .await;
    assert_eq!(
        (events.len(), &events[0]["error"]["code"]),
        (1, &json!(-32001))
    );
    let newer = ann.rpc("SubscribeToTask", json!({ "id": "none" })).await;
    assert_eq!(newer["error"]["code"], -32001);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_version_must_match_the_method() {
    let server = start_default_server().await;
    let ann = server.client("ann");
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message("m", "hi") } });
    for (version, code) in [("", -32009), ("0.3", -32009), ("9.9", -32009)] {
        let answer = post_raw(
            &ann,
            body.to_string().as_bytes(),
            "application/json",
            version,
        )
        .await;
        assert_eq!(answer["error"]["code"], code, "{version}");
        assert_eq!(
            answer["error"]["data"][0]["reason"],
            "VERSION_NOT_SUPPORTED"
        );
    }
    let in_query = ann
        .request("POST", "/a2a?A2A-Version=1.0")
        .header("content-type", "application/json");
    let reply = ann.send(in_query.body(body.to_string())).await;
    assert_eq!(
        reply.body["result"]["task"]["status"]["state"],
        "TASK_STATE_COMPLETED"
    );

    let without = ann
        .request("POST", "/a2a/message:send")
        .header("content-type", "application/json");
    let reply = ann
        .send(without.body(json!({ "message": message("m2", "hi") }).to_string()))
        .await;
    assert_eq!(
        (reply.status, &reply.body["error"]["details"][0]["reason"]),
        (400, &json!("VERSION_NOT_SUPPORTED"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn http_errors_have_the_right_status() {
    let server = start_default_server().await;
    let ann = server.client("ann");
    for (method, path, body, status, reason) in [
        ("GET", "/tasks/none", json!(null), 404, "TASK_NOT_FOUND"),
        (
            "POST",
            "/tasks/none:cancel",
            json!({}),
            404,
            "TASK_NOT_FOUND",
        ),
        (
            "POST",
            "/message:send",
            json!({ "message": 7 }),
            400,
            "INVALID_PARAMS",
        ),
        ("POST", "/message:send", json!([]), 400, "INVALID_REQUEST"),
        (
            "GET",
            "/tasks?pageSize=zero",
            json!(null),
            400,
            "INVALID_PARAMS",
        ),
        (
            "GET",
            "/nothing/here/at/all",
            json!(null),
            404,
            "METHOD_NOT_FOUND",
        ),
        ("PUT", "/tasks/none", json!({}), 404, "METHOD_NOT_FOUND"),
        (
            "POST",
            "/acme/message:send",
            json!({ "message": message("m", "hi") }),
            400,
            "INVALID_PARAMS",
        ),
    ] {
        let reply = ann.rest(method, path, body).await;
        assert_eq!(reply.status, status, "{path}: {reply:?}");
        assert_eq!(
            reply.body["error"]["details"][0]["reason"], reason,
            "{path}"
        );
        assert_eq!(reply.body["error"]["code"], status, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn http_rejects_bodies_that_are_not_json() {
    let server = start_default_server().await;
    let ann = server.client("ann");
    let request = ann
        .request("POST", "/a2a/message:send")
        .header("A2A-Version", "1.0");
    let broken = ann
        .send(request.header("content-type", "application/json").body("{"))
        .await;
    assert_eq!(broken.status, 400);
    let request = ann
        .request("POST", "/a2a/message:send")
        .header("A2A-Version", "1.0");
    let form = ann
        .send(request.header("content-type", "text/plain").body("hi"))
        .await;
    assert_eq!(
        (form.status, &form.body["error"]["details"][0]["reason"]),
        (400, &json!("CONTENT_TYPE_NOT_SUPPORTED"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_invalid_tokens_and_missing_scopes() {
    let server = start_default_server().await;
    let mut client = server.client("reader");
    assert_eq!(client.rest("GET", "/tasks", json!(null)).await.status, 403);
    client.token = "lango_nonsense".to_owned();
    assert_eq!(client.rest("GET", "/tasks", json!(null)).await.status, 401);
    let request = client.rpc_request("ListTasks", json!({}));
    assert_eq!(client.send(request).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_huge_bodies_unread() {
    let server = start_default_server().await;
    let ann = server.client("ann");
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message("m", &"x".repeat(20_000_000)) } });
    let request = ann
        .request("POST", "/a2a")
        .header("content-type", "application/json");
    let sent = request.body(body.to_string()).send().await;
    // The connection may be closed before all of it was sent.
    assert!(sent.map_or(true, |response| response.status() == 413));
}

#[tokio::test(flavor = "multi_thread")]
async fn finished_tasks_accept_no_messages() {
    let server = start_default_server().await;
    let ann = server.client("ann");
    let task = ann.ask("m1", "hi").await;
    let mut more = message("m2", "and?");
    more["taskId"] = task["id"].clone();
    let answer = ann.rpc("SendMessage", json!({ "message": more })).await;
    assert_eq!(answer["error"]["code"], -32004);
    more["contextId"] = json!("another");
    let answer = ann.rpc("SendMessage", json!({ "message": more })).await;
    assert_eq!(answer["error"]["code"], -32602);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_apply_per_principal() {
    let one = std::num::NonZeroUsize::MIN;
    let a2a = A2aSettings {
        tasks: one,
        ..A2aSettings::default()
    };
    let settings = ServerSettings {
        a2a,
        streams_per_principal: one,
        ..ServerSettings::default()
    };
    let server = start_server_with("root always hangs", settings).await;
    let (ann, bob) = (server.client("ann"), server.client("bob"));
    let task = ann.start_task("m1", "hi").await;
    let params = json!({ "message": message("m2", "hi") });
    assert_eq!(
        ann.rpc("SendMessage", params.clone()).await["error"]["code"],
        -32042
    );
    assert_eq!(
        ann.rpc("ListTasks", json!({})).await["result"]["totalSize"],
        1
    );
    let follow = || ann.rpc_request("SubscribeToTask", json!({ "id": task["id"] }));
    let mut first = super::harness::EventStream::open(follow()).await;
    first.next().await.unwrap();
    assert_eq!(ann.send(follow()).await.body["error"]["code"], -32042);
    assert_eq!(
        bob.start_task("m1", "hi").await["status"]["state"],
        "TASK_STATE_SUBMITTED"
    );
    // A finished task is deleted to make room.
    ann.rpc("CancelTask", json!({ "id": task["id"] })).await;
    assert_eq!(
        ann.start_task("m3", "hi").await["status"]["state"],
        "TASK_STATE_SUBMITTED"
    );
    assert_eq!(
        ann.rpc("GetTask", json!({ "id": task["id"] })).await["error"]["code"],
        -32001
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_the_size_of_histories_and_pages() {
    let server = start_server_with("root always says done", ServerSettings::default()).await;
    let ann = server.client("ann");
    let long = "long ".repeat(40_000);
    for number in 0..8 {
        let task = ann.ask(&format!("m{number}"), &long).await;
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    }
    let longest = ann.ask("longest", &"long ".repeat(150_000)).await;
    assert!(longest["history"].to_string().len() < 256 * 1024);
    let (mut seen, mut token) = (Vec::new(), json!(""));
    loop {
        let mut params = json!({ "historyLength": 5 });
        if token != "" {
            params["pageToken"] = token;
        }
        let page = ann.rpc("ListTasks", params).await["result"].clone();
        assert!(page.to_string().len() < 1024 * 1024 + 10_000);
        seen.extend(
            page["tasks"]
                .as_array()
                .unwrap()
                .iter()
                .map(|task| task["id"].to_string()),
        );
        token = page["nextPageToken"].clone();
        if token == "" {
            break;
        }
    }
    let unique: std::collections::BTreeSet<&String> = seen.iter().collect();
    assert_eq!((seen.len(), unique.len()), (9, 9));
}
