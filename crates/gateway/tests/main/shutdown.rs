//! Ending well, and beginning again.

use lango_gateway::ServerSettings;
use serde_json::json;

use crate::client::Request;
use crate::harness::{Approve, Chat, TestGateway};

#[tokio::test]
async fn running_turns_finish_with_the_answers_they_need_and_nothing_new_begins() {
    let script = "tool exec_shell is dangerous\nroot transfers operator\noperator calls exec_shell {}\noperator says done";
    let house = TestGateway::start(script).await;
    let token = house.token("ann", &[Chat, Approve]).await;
    let mut stream = house
        .stream(
            "/api/turns",
            &token,
            &json!({ "text": "rm", "session": "s" }),
        )
        .await;
    let asked = stream.next_of_type("approval").await;
    let address = house.address;
    let closing = house.shut_down();
    loop {
        let ready = Request::get("/ready").send(address).await;
        if ready.status == 503 {
            break;
        }
    }
    let refused = Request::post("/api/turns", &json!({ "text": "more" }))
        .with_token(&token)
        .send(address)
        .await;
    assert_eq!((refused.status, refused.code()), (503, "closing".into()));
    let yes = json!({ "session": "s", "call": asked["id"], "decision": "approve" });
    while Request::post("/api/approvals", &yes)
        .with_token(&token)
        .send(address)
        .await
        .status
        != 204
    {}
    let rest = stream.collect_rest().await;
    assert_eq!(rest.last().unwrap()["type"], "turn_done");
    closing.wait().await;
}

/// B73
#[tokio::test]
async fn a_turn_that_takes_too_long_is_parked_and_gone_on_with_by_the_next_server() {
    let settings = ServerSettings {
        grace_seconds: 0,
        ..ServerSettings::default()
    };
    let script = "root transfers operator\noperator calls fs_read {\"path\":\"a\"}\noperator hangs";
    let house = TestGateway::start_with(script, settings.clone()).await;
    let token = house.token("ann", &[Chat]).await;
    let mut stream = house
        .stream(
            "/api/turns",
            &token,
            &json!({ "text": "read a", "session": "s" }),
        )
        .await;
    let turn = stream.next_of_type("tool_result").await["turn"].clone();
    let mut follower = Request::get("/api/sessions/s/events")
        .with_token(&token)
        .events(house.address)
        .await;
    follower.next_of_type("tool_result").await;
    let closing = house.shut_down();
    assert!(
        stream
            .collect_rest()
            .await
            .iter()
            .all(|event| event["type"] != "turn_failed")
    );
    follower.collect_rest().await;
    let house =
        TestGateway::start_in(closing.wait().await, "root always says picked up", settings).await;
    let resume = json!({ "session": "s", "resume": true });
    let events = house
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
    let nothing = house.post("/api/turns", &token, &resume).await;
    assert_eq!(
        (nothing.status, nothing.code()),
        (409, "nothing_to_resume".into())
    );
}

#[tokio::test]
async fn a_completion_that_was_parked_says_so() {
    let house = TestGateway::start_with(
        "root hangs",
        ServerSettings {
            grace_seconds: 0,
            ..ServerSettings::default()
        },
    )
    .await;
    let token = house.token("ann", &[Chat]).await;
    let body = json!({ "stream": true, "messages": [{ "role": "user", "content": "hi" }] });
    let mut stream = house.stream("/v1/chat/completions", &token, &body).await;
    stream.next().await.unwrap();
    let closing = house.shut_down();
    let chunks = stream.collect_rest().await;
    assert_eq!(chunks[0]["error"]["code"], "cancelled", "{chunks:?}");
    closing.wait().await;
}
