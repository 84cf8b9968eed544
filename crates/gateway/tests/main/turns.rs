//! Turns over HTTP.

use lango_domain::event::EventBody;
use lango_domain::failure::FailureCode;
use lango_gateway::ServerSettings;
use serde_json::{Value, json};

use crate::client::Request;
use crate::harness::{Admin, Chat, Read, TestGateway};

const READ_SCRIPT: &str = "root transfers operator: read it\noperator calls fs_read {\"path\":\"a\"} + uses 7 tokens\noperator streams 안녕|하세요 + uses 5 tokens";

#[tokio::test]
async fn streamed_events_equal_the_stored_log() {
    let gateway = TestGateway::start(READ_SCRIPT).await;
    let token = gateway.token("ann", &[Chat, Read]).await;
    let body = json!({ "text": "읽어 줘 a", "session": "첫 대화", "deltas": true });
    let mut stream = gateway.stream("/api/turns", &token, &body).await;
    let mut events = Vec::new();
    let mut text = String::new();
    while let Some((id, data)) = stream.next().await {
        let event: Value = serde_json::from_str(&data).unwrap();
        match id {
            Some(id) => {
                assert_eq!(event["seq"], id);
                events.push(event);
            }
            None => text += event["text"].as_str().unwrap(),
        }
    }
    assert_eq!(text, "안녕하세요");
    let stored: Vec<Value> = gateway
        .log("ann", "첫 대화")
        .await
        .iter()
        .map(|event| serde_json::to_value(&**event).unwrap())
        .collect();
    assert_eq!(events, stored);
    let kinds: Vec<&str> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds.first(), Some(&"user"));
    assert_eq!(kinds.last(), Some(&"turn_done"));
    let shown = gateway
        .get("/api/sessions/%EC%B2%AB%20%EB%8C%80%ED%99%94", &token)
        .await
        .json();
    assert_eq!(shown["events"], Value::from(stored));
    assert_eq!(shown["session"]["title"], "읽어 줘 a");
    let usage = gateway.get("/api/usage", &token).await.json();
    assert_eq!(
        (usage["tokens_in"].as_u64(), usage["calls"].as_u64()),
        (Some(12), Some(3))
    );
    let audit = gateway.get("/api/audit?limit=5", &token).await.json();
    assert_eq!(audit["items"][0]["tool"], "fs_read");
    assert_eq!(audit["items"][0]["principal"], "ann");
}

#[tokio::test]
async fn streams_only_stored_events_without_deltas_and_names_the_new_session() {
    let gateway = TestGateway::start("root streams he|llo").await;
    let token = gateway.token("ann", &[Chat]).await;
    let mut stream = gateway
        .stream("/api/turns", &token, &json!({ "text": "hi" }))
        .await;
    assert!(
        stream.head.contains("x-lango-session: id-0"),
        "{}",
        stream.head
    );
    let events = stream.collect_rest().await;
    assert!(
        events
            .iter()
            .all(|event| event["seq"].is_u64() && event["session"] == "id-0"),
        "{events:?}"
    );
}

/// B74
#[tokio::test]
async fn sessions_of_others_do_not_exist() {
    let gateway = TestGateway::start("root always says hi").await;
    let (ann, eve) = (
        gateway.token("ann", &[Chat]).await,
        gateway.token("eve", &[Admin]).await,
    );
    gateway
        .stream(
            "/api/turns",
            &ann,
            &json!({ "text": "secret plan", "session": "s" }),
        )
        .await
        .collect_rest()
        .await;
    assert_eq!(
        gateway.get("/api/sessions", &eve).await.json(),
        json!({ "items": [] })
    );
    let missing = |path: &str| (404, path.to_owned());
    for path in [
        "/api/sessions/s",
        "/api/sessions/s/events",
        "/api/usage?session=s",
        "/api/audit?session=s",
    ] {
        assert_eq!(
            (gateway.get(path, &eve).await.status, path.to_owned()),
            missing(path)
        );
    }
    let deleting = Request {
        method: "DELETE",
        ..Request::get("/api/sessions/s")
    };
    assert_eq!(
        deleting.with_token(&eve).send(gateway.address).await.status,
        404
    );
    assert_eq!(
        gateway
            .post("/api/sessions/s/cancel", &eve, &json!({}))
            .await
            .status,
        404
    );
    let resume = json!({ "session": "s", "resume": true });
    assert_eq!(gateway.post("/api/turns", &eve, &resume).await.status, 404);
    // The same id of another principal is another session.
    gateway
        .stream(
            "/api/turns",
            &eve,
            &json!({ "text": "mine", "session": "s" }),
        )
        .await
        .collect_rest()
        .await;
    let shown = gateway.get("/api/sessions/s", &eve).await;
    assert!(!shown.body.contains("secret plan") && shown.body.contains("mine"));
    assert_eq!(gateway.log("ann", "s").await.len(), 4);
}

#[tokio::test]
async fn disconnecting_cancels_the_turn() {
    let gateway = TestGateway::start("root hangs\nroot says back again").await;
    let token = gateway.token("ann", &[Chat]).await;
    let body = json!({ "text": "wait", "session": "s" });
    let mut stream = gateway.stream("/api/turns", &token, &body).await;
    stream.next_of_type("user").await;
    drop(stream);
    // Waits for the cancelled turn to end.
    let mut next = gateway.stream("/api/turns", &token, &body).await;
    assert_eq!(next.next_of_type("answer").await["text"], "back again");
    let log = gateway.log("ann", "s").await;
    let is_cancelled = |body: &EventBody| {
        matches!(
            body,
            EventBody::TurnFailed {
                code: FailureCode::Cancelled,
                ..
            }
        )
    };
    assert!(log.iter().any(|event| is_cancelled(&event.body)), "{log:?}");
}

#[tokio::test]
async fn detached_turns_can_be_followed_and_cancelled() {
    let gateway = TestGateway::start("root hangs").await;
    let token = gateway.token("ann", &[Chat]).await;
    let body = json!({ "text": "wait", "session": "s", "detach": true });
    let mut stream = gateway.stream("/api/turns", &token, &body).await;
    stream.next_of_type("user").await;
    drop(stream);
    let mut follower = Request::get("/api/sessions/s/events")
        .with_token(&token)
        .events(gateway.address)
        .await;
    assert_eq!(follower.next_of_type("user").await["seq"], 1);
    let cancelled = gateway
        .post("/api/sessions/s/cancel", &token, &json!({}))
        .await;
    assert_eq!(cancelled.json(), json!({ "cancelled": true }));
    assert_eq!(
        follower.next_of_type("turn_failed").await["code"],
        "cancelled"
    );
    let again = gateway
        .post("/api/sessions/s/cancel", &token, &json!({}))
        .await;
    assert_eq!(again.json(), json!({ "cancelled": false }));
}

#[tokio::test]
async fn streams_resume_after_the_last_event_id() {
    let gateway = TestGateway::start("root says one\nroot streams t|wo").await;
    let token = gateway.token("ann", &[Chat]).await;
    let ask = async |text: &str| {
        gateway
            .stream(
                "/api/turns",
                &token,
                &json!({ "text": text, "session": "s" }),
            )
            .await
            .collect_rest()
            .await
    };
    ask("first").await;
    let follow = Request::get("/api/sessions/s/events?deltas=true")
        .with_token(&token)
        .with("last-event-id", "2");
    let mut follower = follow.events(gateway.address).await;
    assert_eq!(follower.next().await.unwrap().0, Some(3));
    assert_eq!(follower.next().await.unwrap().0, Some(4));
    ask("second").await;
    let mut ids = Vec::new();
    let mut text = String::new();
    while ids.last() != Some(&8) {
        match follower.next().await.unwrap() {
            (Some(id), _) => ids.push(id),
            (None, data) => {
                text += serde_json::from_str::<Value>(&data).unwrap()["text"]
                    .as_str()
                    .unwrap();
            }
        }
    }
    assert_eq!((ids, text.as_str()), (vec![5, 6, 7, 8], "two"));
}

#[tokio::test]
async fn turns_run_in_parallel_but_in_order_within_a_session() {
    let gateway = TestGateway::start("root always says hi").await;
    let token = gateway.token("ann", &[Chat]).await;
    let ask = async |session: String| {
        let body = json!({ "text": "hi", "session": session });
        gateway
            .stream("/api/turns", &token, &body)
            .await
            .collect_rest()
            .await
    };
    let many = (0..12).map(|n| ask(format!("s{}", n % 3)));
    for events in futures::future::join_all(many).await {
        assert_eq!(events.last().unwrap()["type"], "turn_done");
    }
    for session in ["s0", "s1", "s2"] {
        let log = gateway.log("ann", session).await;
        let turns: Vec<_> = log.iter().map(|event| event.turn.clone()).collect();
        let mut changes = turns.clone();
        changes.dedup();
        assert_eq!(
            changes.len(),
            4,
            "turns of one session never mix: {turns:?}"
        );
    }
}

#[tokio::test]
async fn a_single_agent_can_answer() {
    let gateway = TestGateway::start("operator says done").await;
    let token = gateway.token("ann", &[Chat]).await;
    let body = json!({ "text": "read it", "agent": "operator" });
    let answer = gateway
        .stream("/api/turns", &token, &body)
        .await
        .next_of_type("answer")
        .await;
    assert_eq!(
        (answer["author"].as_str(), answer["branch"].as_str()),
        (Some("operator"), Some("operator"))
    );
    for agent in ["nobody", "Operator!", ""] {
        let reply = gateway
            .post(
                "/api/turns",
                &token,
                &json!({ "text": "hi", "agent": agent }),
            )
            .await;
        assert!(matches!(reply.status, 400 | 404), "{agent}: {}", reply.body);
    }
}

#[tokio::test]
async fn deleted_sessions_are_gone() {
    let gateway = TestGateway::start("root says hi").await;
    let token = gateway.token("ann", &[Admin]).await;
    gateway
        .stream(
            "/api/turns",
            &token,
            &json!({ "text": "hi", "session": "s" }),
        )
        .await
        .collect_rest()
        .await;
    let deleting = Request {
        method: "DELETE",
        ..Request::get("/api/sessions/s")
    }
    .with_token(&token);
    assert_eq!(deleting.send(gateway.address).await.status, 204);
    assert_eq!(deleting.send(gateway.address).await.status, 404);
}

#[tokio::test]
async fn limits_streams_per_principal() {
    let two = std::num::NonZeroUsize::new(2).unwrap();
    let settings = ServerSettings {
        streams_per_principal: two,
        ..ServerSettings::default()
    };
    let gateway = TestGateway::start_with("root always says hi", settings).await;
    let (ann, again) = (
        gateway.token("ann", &[Chat]).await,
        gateway.token_for("again", "ann", &[Chat]).await,
    );
    let bob = gateway.token("bob", &[Chat]).await;
    for token in [&ann, &bob] {
        gateway
            .stream(
                "/api/turns",
                token,
                &json!({ "text": "hi", "session": "s" }),
            )
            .await
            .collect_rest()
            .await;
    }
    let follow = |token: &str| Request::get("/api/sessions/s/events").with_token(token);
    let first = follow(&ann).events(gateway.address).await;
    let _second = follow(&again).events(gateway.address).await;
    let rejected = follow(&ann).send(gateway.address).await;
    assert_eq!((rejected.status, rejected.code()), (429, "streams".into()));
    assert!(rejected.header("retry-after").is_some(), "{rejected:?}");
    let _other = follow(&bob).events(gateway.address).await;
    // Turns do not count as streams.
    gateway
        .stream("/api/turns", &ann, &json!({ "text": "hi", "session": "t" }))
        .await
        .collect_rest()
        .await;
    drop(first);
}

#[tokio::test]
async fn cancel_ends_the_running_turn_but_no_queued_ones() {
    let gateway = TestGateway::start("root hangs\nroot hangs\nroot says third").await;
    let token = gateway.token("ann", &[Chat]).await;
    let ask = async |text: &str| {
        gateway
            .stream(
                "/api/turns",
                &token,
                &json!({ "text": text, "session": "s" }),
            )
            .await
    };
    let mut first = ask("first").await;
    first.next_of_type("user").await;
    let (mut second, mut third) = (ask("second").await, ask("third").await);
    let cancel = async || {
        gateway
            .post("/api/sessions/s/cancel", &token, &json!({}))
            .await
            .json()
    };
    assert_eq!(cancel().await["cancelled"], true);
    assert_eq!(
        first.collect_rest().await.last().unwrap()["code"],
        "cancelled"
    );
    second.next_of_type("user").await;
    assert_eq!(cancel().await["cancelled"], true);
    assert_eq!(
        second.collect_rest().await.last().unwrap()["code"],
        "cancelled"
    );
    assert_eq!(third.next_of_type("answer").await["text"], "third");
    assert_eq!(
        third.collect_rest().await.last().unwrap()["type"],
        "turn_done"
    );
}

#[tokio::test]
async fn queued_turns_end_with_an_error_on_shutdown() {
    let gateway = TestGateway::start_with(
        "root hangs",
        ServerSettings {
            grace_seconds: 0,
            ..ServerSettings::default()
        },
    )
    .await;
    let token = gateway.token("ann", &[Chat]).await;
    let body = json!({ "text": "hi", "session": "s" });
    let mut first = gateway.stream("/api/turns", &token, &body).await;
    first.next_of_type("user").await;
    let mut queued = gateway.stream("/api/turns", &token, &body).await;
    let stopping = gateway.shut_down();
    let events = queued.collect_rest().await;
    assert_eq!(
        (events.len(), &events[0]["type"], &events[0]["code"]),
        (1, &json!("turn_failed"), &json!("cancelled"))
    );
    stopping.wait().await;
}
