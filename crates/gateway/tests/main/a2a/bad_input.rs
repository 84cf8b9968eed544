//! What is not as it should be gets the error that the protocol has for it.

use super::harness::{A2aTestClient, A2aTestServer, message, start_server, start_server_with};
use lango_gateway::{A2aSettings, ServerSettings};
use serde_json::{Value, json};

async fn post_raw(peer: &A2aTestClient, body: &[u8], media_type: &str, version: &str) -> Value {
    let request = peer
        .request("POST", "/a2a/")
        .header("content-type", media_type);
    let request = request.header("A2A-Version", version).body(body.to_vec());
    let got = peer.send(request).await;
    assert_eq!(got.status, 200, "{got:?}");
    got.body
}

async fn start_quiet_server() -> A2aTestServer {
    start_server("root always says hi").await
}

#[tokio::test(flavor = "multi_thread")]
async fn json_rpc_that_cannot_be_carried_out_is_answered_with_the_right_number() {
    let house = start_quiet_server().await;
    let ann = house.client("ann");
    let call = |method: &str, params: Value| {
        json!({ "jsonrpc": "2.0", "id": "x", "method": method, "params": params }).to_string()
    };
    let send = |message: Value| call("SendMessage", json!({ "message": message }));
    let unsupported = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "raw": "AA==", "mediaType": "image/png" }] });
    let file = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "url": "http://169.254.169.254/", "mediaType": "text/plain" }] });
    let wants_images = call(
        "SendMessage",
        json!({ "message": message("m", "hi"), "configuration": { "acceptedOutputModes": ["image/png"] } }),
    );
    let odd_context = json!({ "messageId": "m", "role": "ROLE_USER", "contextId": "x".repeat(300), "parts": [{ "text": "hi" }] });
    for (body, code) in [
        ("{not json".to_owned(), -32700),
        ("\u{feff}".to_owned(), -32700),
        ("[]".to_owned(), -32600),
        ("7".to_owned(), -32600),
        (json!({ "id": 1, "method": "GetTask" }).to_string(), -32600),
        (
            json!({ "jsonrpc": "2.0", "id": {}, "method": "GetTask" }).to_string(),
            -32600,
        ),
        (
            json!({ "jsonrpc": "2.0", "id": 1, "method": 5 }).to_string(),
            -32600,
        ),
        (call("tasks/explode", json!({})), -32601),
        (
            json!({ "jsonrpc": "2.0", "method": "tasks/explode" }).to_string(),
            -32601,
        ),
        (
            json!({ "jsonrpc": "2.0", "method": "GetTask", "params": { "id": "none" } })
                .to_string(),
            -32600,
        ),
        (call("GetTask", json!([1])), -32602),
        (call("GetTask", json!({})), -32602),
        (call("GetTask", json!({ "id": 7 })), -32602),
        (call("GetTask", json!({ "id": "none" })), -32001),
        (call("CancelTask", json!({ "id": "none" })), -32001),
        (call("SendMessage", json!({})), -32602),
        (
            send(json!({ "messageId": "m", "role": "ROLE_USER", "parts": [] })),
            -32602,
        ),
        (
            send(json!({ "messageId": "m", "role": "ROLE_KING", "parts": [{ "text": "hi" }] })),
            -32602,
        ),
        (
            send(json!({ "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "text": "hi" }] })),
            -32602,
        ),
        (send(message("m", " ")), -32602),
        (send(odd_context), -32602),
        (send(unsupported), -32005),
        (send(file), -32005),
        (wants_images, -32005),
        (call("ListTasks", json!({ "pageToken": "🦀" })), -32602),
        (call("ListTasks", json!({ "pageSize": 0 })), -32602),
        (
            call("GetTask", json!({ "id": "x", "tenant": "acme" })),
            -32602,
        ),
    ] {
        let answer = post_raw(&ann, body.as_bytes(), "application/json", "1.0").await;
        assert_eq!(answer["error"]["code"], code, "{body}: {answer}");
    }
    assert_eq!(
        post_raw(&ann, b"\xff\xfe{", "application/json", "1.0").await["error"]["code"],
        -32700
    );
    let plain = post_raw(
        &ann,
        send(message("m", "hi")).as_bytes(),
        "text/plain",
        "1.0",
    )
    .await;
    assert_eq!(plain["error"]["code"], -32005);
    assert_eq!(
        ann.rpc("ListTasks", json!({})).await["result"]["totalSize"],
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_0_3_that_cannot_begin_says_so_as_a_stream() {
    let house = start_quiet_server().await;
    let ann = house.client("ann");
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
async fn the_version_must_fit_the_method() {
    let house = start_quiet_server().await;
    let ann = house.client("ann");
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
    let got = ann.send(in_query.body(body.to_string())).await;
    assert_eq!(
        got.body["result"]["task"]["status"]["state"],
        "TASK_STATE_COMPLETED"
    );

    let without = ann
        .request("POST", "/a2a/message:send")
        .header("content-type", "application/json");
    let got = ann
        .send(without.body(json!({ "message": message("m2", "hi") }).to_string()))
        .await;
    assert_eq!(
        (got.status, &got.body["error"]["details"][0]["reason"]),
        (400, &json!("VERSION_NOT_SUPPORTED"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn http_that_cannot_be_carried_out_is_answered_with_the_right_status() {
    let house = start_quiet_server().await;
    let ann = house.client("ann");
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
        let got = ann.rest(method, path, body).await;
        assert_eq!(got.status, status, "{path}: {got:?}");
        assert_eq!(got.body["error"]["details"][0]["reason"], reason, "{path}");
        assert_eq!(got.body["error"]["code"], status, "{path}");
    }
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
async fn without_the_right_token_nothing_is_done() {
    let house = start_quiet_server().await;
    let mut peer = house.client("reader");
    assert_eq!(peer.rest("GET", "/tasks", json!(null)).await.status, 403);
    peer.token = "lango_nonsense".to_owned();
    assert_eq!(peer.rest("GET", "/tasks", json!(null)).await.status, 401);
    let request = peer.rpc_request("ListTasks", json!({}));
    assert_eq!(peer.send(request).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_body_is_refused_unread() {
    let house = start_quiet_server().await;
    let ann = house.client("ann");
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message("m", &"x".repeat(2_000_000)) } });
    let request = ann
        .request("POST", "/a2a")
        .header("content-type", "application/json");
    let sent = request.body(body.to_string()).send().await;
    // The connection may be closed before all of it was sent.
    assert!(sent.map_or(true, |response| response.status() == 413));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_over_takes_no_more_messages() {
    let house = start_quiet_server().await;
    let ann = house.client("ann");
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
async fn there_are_limits_for_each_principal() {
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
    let house = start_server_with("root always hangs", settings).await;
    let (ann, bob) = (house.client("ann"), house.client("bob"));
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
    // One that is over makes room.
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
async fn what_is_sent_in_large_pieces_is_remembered_and_listed_in_small_ones() {
    let house = start_server_with("root always says done", ServerSettings::default()).await;
    let ann = house.client("ann");
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
    let different: std::collections::BTreeSet<&String> = seen.iter().collect();
    assert_eq!((seen.len(), different.len()), (9, 9));
}
