//! Graceful shutdown and restart.

use lango_gateway::ServerSettings;
use serde_json::json;

use crate::client::Request;
use crate::harness::{Approve, Chat, TestGateway};

#[tokio::test]
async fn running_turns_finish_and_new_turns_are_rejected() {
    let script = "tool exec_shell is dangerous\nroot transfers operator\noperator calls exec_shell {}\noperator says done";
    let gateway = TestGateway::start(script).await;
    let token = gateway.token("ann", &[Chat, Approve]).await;
    let mut stream = gateway
        .stream(
            "/api/turns",
            &token,
            &json!({ "text": "rm", "session": "s" }),
        )
        .await;
    let question = stream.next_of_type("approval").await;
    let address = gateway.address;
    let stopping = gateway.shut_down();
    loop {
        let ready = Request::get("/ready").send(address).await;
        if ready.status == 503 {
            break;
        }
    }
    let rejected = Request::post("/api/turns", &json!({ "text": "more" }))
        .with_token(&token)
        .send(address)
        .await;
    assert_eq!((rejected.status, rejected.code()), (503, "closing".into()));
    let yes = json!({ "session": "s", "call": question["id"], "decision": "approve" });
    while Request::post("/api/approvals", &yes)
        .with_token(&token)
        .send(address)
        .await
        .status
        != 204
    {}
    let rest = stream.collect_rest().await;
    assert_eq!(rest.last().unwrap()["type"], "turn_done");
    stopping.wait().await;
}

/// B73
#[tokio::test]
async fn slow_turns_are_suspended_and_resumed_by_the_next_server() {
    let settings = ServerSettings {
        grace_seconds: 0,
        ..ServerSettings::default()
    };
    let script = "root transfers operator\noperator calls fs_read {\"path\":\"a\"}\noperator hangs";
    let gateway = TestGateway::start_with(script, settings.clone()).await;
    let token = gateway.token("ann", &[Chat]).await;
    let mut stream = gateway
        .stream(
            "/api/turns",
            &token,
            &json!({ "text": "read a", "session": "s" }),
        )
        .await;
    let turn = stream.next_of_type("tool_result").await["turn"].clone();
    let mut follower = Request::get("/api/sessions/s/events")
        .with_token(&token)
        .events(gateway.address)
        .await;
    follower.next_of_type("tool_result").await;
    let stopping = gateway.shut_down();
    assert!(
        stream
            .collect_rest()
            .await
            .iter()
            .all(|event| event["type"] != "turn_failed")
    );
    follower.collect_rest().await;
    let gateway = TestGateway::start_in(
        stopping.wait().await,
        "root always says picked up",
        settings,
    )
    .await;
    let resume = json!({ "session": "s", "resume": true });
    let events = gateway
        .stream("/api/turns", &token, &resume)
        .await
        .collect_rest()
        .await;
    assert_eq!(events.last().unwrap()["type"], "turn_done", "{events:?}");
    let answer = events
        .iter()
        .find(|event| event["type"] == "answer")
        .unwrap();
    assert_eq!(
        (&answer["text"], &answer["turn"]),
        (&json!("picked up"), &turn)
    );
    let again = gateway.post("/api/turns", &token, &resume).await;
    assert_eq!(
        (again.status, again.code()),
        (409, "nothing_to_resume".into())
    );
}

#[tokio::test]
async fn suspended_completions_end_with_an_error() {
    let gateway = TestGateway::start_with(
        "root hangs",
        ServerSettings {
            grace_seconds: 0,
            ..ServerSettings::default()
        },
    )
    .await;
    let token = gateway.token("ann", &[Chat]).await;
    let body = json!({ "stream": true, "messages": [{ "role": "user", "content": "hi" }] });
    let mut stream = gateway.stream("/v1/chat/completions", &token, &body).await;
    stream.next().await.unwrap();
    let stopping = gateway.shut_down();
    let chunks = stream.collect_rest().await;
    assert_eq!(chunks[0]["error"]["code"], "cancelled", "{chunks:?}");
    stopping.wait().await;
}
