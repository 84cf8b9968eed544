//! Turns over HTTP.

use lango_domain::event::EventBody;
use lango_domain::failure::FailureCode;
use lango_gateway::ServerSettings;
use serde_json::{Value, json};

use crate::client::Request;
use crate::harness::{Admin, Chat, Read, TestGateway};

const READ_SCRIPT: &str = "root transfers operator: read it\noperator calls fs_read {\"path\":\"a\"} + uses 7 tokens\noperator streams 안녕|하세요 + uses 5 tokens";

#[tokio::test]
async fn the_stream_is_the_log() {
    let house = TestGateway::start(READ_SCRIPT).await;
    let token = house.token("ann", &[Chat, Read]).await;
    let body = json!({ "text": "읽어 줘 a", "session": "첫 대화", "deltas": true });
    let mut stream = house.stream("/api/turns", &token, &body).await;
    let mut events = Vec::new();
    let mut words = String::new();
    while let Some((id, data)) = stream.next().await {
        let event: Value = serde_json::from_str(&data).unwrap();
        match id {
            Some(id) => {
                assert_eq!(event["seq"], id);
                events.push(event);
            }
            None => words += event["text"].as_str().unwrap(),
        }
    }
    assert_eq!(words, "안녕하세요");
    let kept: Vec<Value> = house
        .log("ann", "첫 대화")
        .await
        .iter()
        .map(|event| serde_json::to_value(&**event).unwrap())
        .collect();
    assert_eq!(events, kept);
    let kinds: Vec<&str> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds.first(), Some(&"user"));
    assert_eq!(kinds.last(), Some(&"turn_done"));
    let shown = house
        .get("/api/sessions/%EC%B2%AB%20%EB%8C%80%ED%99%94", &token)
        .await
        .json();
    assert_eq!(shown["events"], Value::from(kept));
    assert_eq!(shown["session"]["title"], "읽어 줘 a");
    let usage = house.get("/api/usage", &token).await.json();
    assert_eq!(
        (usage["tokens_in"].as_u64(), usage["calls"].as_u64()),
        (Some(12), Some(3))
    );
    let audit = house.get("/api/audit?limit=5", &token).await.json();
    assert_eq!(audit["items"][0]["tool"], "fs_read");
    assert_eq!(audit["items"][0]["principal"], "ann");
}

#[tokio::test]
async fn without_deltas_only_what_is_kept_is_told_and_a_new_session_is_named() {
    let house = TestGateway::start("root streams he|llo").await;
    let token = house.token("ann", &[Chat]).await;
    let mut stream = house
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
    let house = TestGateway::start("root always says hi").await;
    let (ann, eve) = (
        house.token("ann", &[Chat]).await,
        house.token("eve", &[Admin]).await,
    );
    house
        .stream(
            "/api/turns",
            &ann,
            &json!({ "text": "secret plan", "session": "s" }),
        )
        .await
        .collect_rest()
        .await;
    assert_eq!(
        house.get("/api/sessions", &eve).await.json(),
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
            (house.get(path, &eve).await.status, path.to_owned()),
            missing(path)
        );
    }
    let deleting = Request {
        method: "DELETE",
        ..Request::get("/api/sessions/s")
    };
    assert_eq!(
        deleting.with_token(&eve).send(house.address).await.status,
        404
    );
    assert_eq!(
        house
            .post("/api/sessions/s/cancel", &eve, &json!({}))
            .await
            .status,
        404
    );
    let resume = json!({ "session": "s", "resume": true });
    assert_eq!(house.post("/api/turns", &eve, &resume).await.status, 404);
    // The same name is another session.
    house
        .stream(
            "/api/turns",
            &eve,
            &json!({ "text": "mine", "session": "s" }),
        )
        .await
        .collect_rest()
        .await;
    let shown = house.get("/api/sessions/s", &eve).await;
    assert!(!shown.body.contains("secret plan") && shown.body.contains("mine"));
    assert_eq!(house.log("ann", "s").await.len(), 4);
}

#[tokio::test]
async fn a_client_that_leaves_cancels_its_turn() {
    let house = TestGateway::start("root hangs\nroot says back again").await;
    let token = house.token("ann", &[Chat]).await;
    let body = json!({ "text": "wait", "session": "s" });
    let mut stream = house.stream("/api/turns", &token, &body).await;
    stream.next_of_type("user").await;
    drop(stream);
    // Waits for the one before it to end.
    let mut next = house.stream("/api/turns", &token, &body).await;
    assert_eq!(next.next_of_type("answer").await["text"], "back again");
    let log = house.log("ann", "s").await;
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
async fn a_detached_turn_goes_on_and_can_be_followed_and_cancelled() {
    let house = TestGateway::start("root hangs").await;
    let token = house.token("ann", &[Chat]).await;
    let body = json!({ "text": "wait", "session": "s", "detach": true });
    let mut stream = house.stream("/api/turns", &token, &body).await;
    stream.next_of_type("user").await;
    drop(stream);
    let mut follower = Request::get("/api/sessions/s/events")
        .with_token(&token)
        .events(house.address)
        .await;
    assert_eq!(follower.next_of_type("user").await["seq"], 1);
    let cancelled = house
        .post("/api/sessions/s/cancel", &token, &json!({}))
        .await;
    assert_eq!(cancelled.json(), json!({ "cancelled": true }));
    assert_eq!(
        follower.next_of_type("turn_failed").await["code"],
        "cancelled"
    );
    let nothing = house
        .post("/api/sessions/s/cancel", &token, &json!({}))
        .await;
    assert_eq!(nothing.json(), json!({ "cancelled": false }));
}

#[tokio::test]
async fn a_stream_goes_on_where_it_broke_off() {
    let house = TestGateway::start("root says one\nroot streams t|wo").await;
    let token = house.token("ann", &[Chat]).await;
    let ask = async |text: &str| {
        house
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
    let mut follower = follow.events(house.address).await;
    assert_eq!(follower.next().await.unwrap().0, Some(3));
    assert_eq!(follower.next().await.unwrap().0, Some(4));
    ask("second").await;
    let mut ids = Vec::new();
    let mut words = String::new();
    while ids.last() != Some(&8) {
        match follower.next().await.unwrap() {
            (Some(id), _) => ids.push(id),
            (None, data) => {
                words += serde_json::from_str::<Value>(&data).unwrap()["text"]
                    .as_str()
                    .unwrap();
            }
        }
    }
    assert_eq!((ids, words.as_str()), (vec![5, 6, 7, 8], "two"));
}

#[tokio::test]
async fn turns_run_side_by_side_and_those_of_one_session_in_order() {
    let house = TestGateway::start("root always says hi").await;
    let token = house.token("ann", &[Chat]).await;
    let ask = async |session: String| {
        let body = json!({ "text": "hi", "session": session });
        house
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
        let log = house.log("ann", session).await;
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
async fn one_agent_can_be_asked_alone() {
    let house = TestGateway::start("operator says done").await;
    let token = house.token("ann", &[Chat]).await;
    let body = json!({ "text": "read it", "agent": "operator" });
    let answer = house
        .stream("/api/turns", &token, &body)
        .await
        .next_of_type("answer")
        .await;
    assert_eq!(
        (answer["author"].as_str(), answer["branch"].as_str()),
        (Some("operator"), Some("operator"))
    );
    for agent in ["nobody", "Operator!", ""] {
        let reply = house
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
async fn what_is_deleted_is_gone() {
    let house = TestGateway::start("root says hi").await;
    let token = house.token("ann", &[Admin]).await;
    house
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
    assert_eq!(deleting.send(house.address).await.status, 204);
    assert_eq!(deleting.send(house.address).await.status, 404);
}

#[tokio::test]
async fn nobody_follows_with_more_streams_than_their_share() {
    let two = std::num::NonZeroUsize::new(2).unwrap();
    let settings = ServerSettings {
        streams_per_principal: two,
        ..ServerSettings::default()
    };
    let house = TestGateway::start_with("root always says hi", settings).await;
    let (ann, again) = (
        house.token("ann", &[Chat]).await,
        house.token_for("again", "ann", &[Chat]).await,
    );
    let bob = house.token("bob", &[Chat]).await;
    for token in [&ann, &bob] {
        house
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
    let first = follow(&ann).events(house.address).await;
    let _second = follow(&again).events(house.address).await;
    let refused = follow(&ann).send(house.address).await;
    assert_eq!((refused.status, refused.code()), (429, "streams".into()));
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    let _other = follow(&bob).events(house.address).await;
    // A turn has a place of its own.
    house
        .stream("/api/turns", &ann, &json!({ "text": "hi", "session": "t" }))
        .await
        .collect_rest()
        .await;
    drop(first);
}

#[tokio::test]
async fn cancelling_ends_the_running_turn_and_none_that_waits_behind_it() {
    let house = TestGateway::start("root hangs\nroot hangs\nroot says third").await;
    let token = house.token("ann", &[Chat]).await;
    let ask = async |text: &str| {
        house
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
        house
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
async fn a_turn_that_never_began_says_so() {
    let house = TestGateway::start_with(
        "root hangs",
        ServerSettings {
            grace_seconds: 0,
            ..ServerSettings::default()
        },
    )
    .await;
    let token = house.token("ann", &[Chat]).await;
    let body = json!({ "text": "hi", "session": "s" });
    let mut first = house.stream("/api/turns", &token, &body).await;
    first.next_of_type("user").await;
    let mut waits = house.stream("/api/turns", &token, &body).await;
    let closing = house.shut_down();
    let events = waits.collect_rest().await;
    assert_eq!(
        (events.len(), &events[0]["type"], &events[0]["code"]),
        (1, &json!("turn_failed"), &json!("cancelled"))
    );
    closing.wait().await;
}
