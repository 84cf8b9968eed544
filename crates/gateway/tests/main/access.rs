//! Who is let in, and who is not.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::sync::atomic::Ordering;

use jiff::{Timestamp, ToSpan};
use lango_domain::event::{Event, EventBody};
use lango_gateway::ServerSettings;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::client::{Request, read_reply};
use crate::harness::{Admin, Approve, Chat, Read, TestGateway};

#[tokio::test]
async fn without_a_good_token_nobody_comes_in() {
    let house = TestGateway::start("").await;
    let good = house.token("ann", &[Chat]).await;
    let code = async |request: Request| {
        let reply = request.send(house.address).await;
        (reply.status, reply.code(), reply.header("www-authenticate"))
    };
    let models = || Request::get("/v1/models");
    let bearer = Some("Bearer".to_owned());
    assert_eq!(
        code(models()).await,
        (401, "token.missing".into(), bearer.clone())
    );
    let other = format!("lango_{}", "0".repeat(64));
    let short = &good[..good.len() - 1];
    let long = format!("{good}0");
    let upper = good.to_uppercase();
    for wrong in [
        other.as_str(),
        "",
        "x",
        short,
        &long,
        &upper,
        "🦀",
        "'; DROP TABLE tokens; --",
    ] {
        assert_eq!(
            code(models().with_token(wrong)).await,
            (401, "token.unknown".into(), bearer.clone()),
            "{wrong}"
        );
    }
    let basic = models().with("authorization", &format!("Basic {good}"));
    assert_eq!(code(basic).await.0, 401);
    assert_eq!(
        models().with_token(&good).send(house.address).await.status,
        200
    );
    let lower = models().with("authorization", &format!("bearer {good}"));
    assert_eq!(lower.send(house.address).await.status, 200);
}

#[tokio::test]
async fn a_token_ends_when_it_expires_or_is_revoked() {
    let house = TestGateway::start("").await;
    let end = Timestamp::now() + 1.hour();
    let brief = house
        .token_with_expiry("brief", "ann", &[Chat], Some(end))
        .await;
    let other = house.token("other", &[Chat]).await;
    assert_eq!(house.get("/v1/models", &brief).await.status, 200);
    assert_eq!(house.get("/v1/models", &other).await.status, 200);
    house.clock_offset.store(3_601, Ordering::Relaxed);
    assert_eq!(
        house.get("/v1/models", &brief).await.code(),
        "token.expired"
    );
    house.store.revoke_token("other").await.unwrap();
    house.clock_offset.store(3_700, Ordering::Relaxed);
    assert_eq!(
        house.get("/v1/models", &other).await.code(),
        "token.unknown"
    );
}

#[tokio::test]
async fn a_token_is_kept_as_a_hash_and_its_use_is_noted() {
    let house = TestGateway::start("").await;
    let token = house.token("ann", &[Chat]).await;
    assert_eq!(house.get("/v1/models", &token).await.status, 200);
    while house.store.tokens().await.unwrap()[0].used.is_none() {
        tokio::task::yield_now().await;
    }
    for file in std::fs::read_dir(house.folder.path())
        .unwrap()
        .flatten()
        .filter(|file| file.path().is_file())
    {
        let bytes = std::fs::read(file.path()).unwrap();
        let secret = token.trim_start_matches("lango_").as_bytes();
        assert!(
            !bytes.windows(secret.len()).any(|window| window == secret),
            "{:?}",
            file.path()
        );
    }
}

/// Each scope reaches what it is for and nothing else.
#[tokio::test]
async fn a_scope_reaches_what_it_is_for() {
    let house = TestGateway::start("root always says hi").await;
    let answer = json!({ "session": "s", "call": "c", "decision": "approve" });
    let deleting = Request {
        method: "DELETE",
        ..Request::get("/api/sessions/none")
    };
    let requests = [
        (Request::get("/v1/models"), "chat", 200),
        (
            Request::post("/v1/chat/completions", &json!({ "messages": [] })),
            "chat",
            400,
        ),
        (
            Request::post("/api/turns", &json!({ "text": " " })),
            "chat",
            400,
        ),
        (
            Request::post("/api/sessions/none/cancel", &json!({})),
            "chat",
            404,
        ),
        (Request::get("/api/sessions"), "read", 200),
        (Request::get("/api/sessions/none"), "read", 404),
        (Request::get("/api/usage"), "read", 200),
        (Request::get("/api/audit"), "read", 200),
        (Request::get("/api/approvals"), "approve", 200),
        (Request::post("/api/approvals", &answer), "approve", 404),
        (deleting, "admin", 404),
        (Request::get("/metrics"), "admin", 200),
        (Request::get("/api/agents"), "chat read approve", 200),
        (
            Request::post("/api/route", &json!({ "text": "read a.txt" })),
            "chat read approve",
            200,
        ),
        (
            Request::get("/api/sessions/none/events"),
            "chat read approve",
            404,
        ),
        (Request::get("/api/openapi.json"), "chat read approve", 200),
    ];
    for (name, scope) in [
        ("chat", Chat),
        ("read", Read),
        ("approve", Approve),
        ("admin", Admin),
    ] {
        let token = house.token(name, &[scope]).await;
        for (request, scopes, expected) in &requests {
            let reply = request.clone().with_token(&token).send(house.address).await;
            let may = name == "admin" || scopes.split(' ').any(|known| known == name);
            let wanted = if may { *expected } else { 403 };
            assert_eq!(
                reply.status, wanted,
                "{name} {} {}: {}",
                request.method, request.path, reply.body
            );
            if !may {
                assert_eq!(reply.code(), "scope");
            }
        }
    }
}

#[tokio::test]
async fn a_browser_cannot_be_talked_into_it() {
    let settings = ServerSettings {
        origins: vec!["https://chat.example.org".into()],
        ..ServerSettings::default()
    };
    let house = TestGateway::start_with("", settings).await;
    let token = house.token("ann", &[Chat]).await;
    let models = || Request::get("/v1/models").with_token(&token);
    let rebound = models()
        .with("host", "evil.example")
        .send(house.address)
        .await;
    assert_eq!((rebound.status, rebound.code()), (421, "host".into()));
    // The open addresses are as closed to other names.
    assert_eq!(
        Request::get("/health")
            .with("host", "evil.example")
            .send(house.address)
            .await
            .status,
        421
    );
    let foreign = models()
        .with("origin", "https://evil.example")
        .send(house.address)
        .await;
    assert_eq!((foreign.status, foreign.code()), (403, "origin".into()));
    assert_eq!(foreign.header("access-control-allow-origin"), None);
    let named = models()
        .with("origin", "https://chat.example.org")
        .send(house.address)
        .await;
    assert_eq!(named.status, 200);
    assert_eq!(
        named.header("access-control-allow-origin").unwrap(),
        "https://chat.example.org"
    );
    let own = models()
        .with("origin", &format!("http://{}", house.address))
        .send(house.address)
        .await;
    assert_eq!(own.status, 200);
    let first = Request {
        method: "OPTIONS",
        ..Request::get("/api/turns")
    };
    let first = first
        .with("origin", "https://chat.example.org")
        .with("access-control-request-method", "POST");
    let asks =
        "authorization,content-type,x-stainless-os, X-Stainless-Retry-Count,x-evil,x-stainless-a b";
    let first = first
        .with("access-control-request-headers", asks)
        .send(house.address)
        .await;
    assert_eq!(first.status, 204);
    assert_eq!(
        first.header("access-control-allow-headers").unwrap(),
        "authorization, content-type, last-event-id, a2a-version, x-stainless-os, x-stainless-retry-count"
    );
    assert_eq!(
        named.header("access-control-expose-headers").unwrap(),
        "x-lango-session, retry-after"
    );
    let form = Request::post("/api/turns", &json!({ "text": "hi" })).with_token(&token);
    let form = form
        .with("content-type", "text/plain")
        .send(house.address)
        .await;
    assert_eq!((form.status, form.code()), (415, "media_type".into()));
}

#[tokio::test]
async fn what_is_too_large_or_makes_no_sense_is_refused_in_words() {
    let house = TestGateway::start("").await;
    let token = house.token("ann", &[Chat]).await;
    let reader = house.token("reader", &[Chat, Read]).await;
    let large = json!({ "text": "x".repeat(1024 * 1024) });
    let reply = house.post("/api/turns", &token, &large).await;
    assert_eq!((reply.status, reply.code()), (413, "size".into()));
    let header = Request::get("/health")
        .with("x-large", &"x".repeat(20 * 1024))
        .send(house.address)
        .await;
    assert_eq!(header.status, 431);
    for body in [
        &b"{"[..],
        b"[]",
        b" [\"hi\"]",
        b"\xff\xfe",
        b"",
        b"{\"text\": 5}",
        b"{\"text\":\"hi\",\"txet\":1}",
    ] {
        let request = Request {
            body: Some(body.to_vec()),
            ..Request::post("/api/turns", &json!({}))
        };
        let reply = request.with_token(&token).send(house.address).await;
        assert_eq!(
            (reply.status, reply.code()),
            (400, "request".into()),
            "{}",
            reply.body
        );
    }
    for odd in ["application/jsonp", "application/json-patch+json", ""] {
        let reply = Request::post("/api/turns", &json!({ "text": "hi" }))
            .with_token(&token)
            .with("content-type", odd);
        let reply = reply.send(house.address).await;
        assert_eq!(
            (reply.status, reply.code()),
            (415, "media_type".into()),
            "{odd}"
        );
    }
    for path in [
        "/api/sessions/%ff",
        "/v1/models/%ff",
        "/api/sessions/%ff/events",
    ] {
        let reply = house.get(path, &reader).await;
        assert_eq!(
            (reply.status, reply.code()),
            (400, "request".into()),
            "{}",
            reply.body
        );
    }
    // What is too large by its own account is not waited for.
    let announced = Request {
        body: None,
        ..Request::post("/api/turns", &json!({}))
    };
    let announced = announced
        .with_token(&token)
        .with("content-length", "99999999")
        .send(house.address)
        .await;
    assert_eq!((announced.status, announced.code()), (413, "size".into()));
    let nowhere = house.get("/api/nothing", &token).await;
    assert_eq!((nowhere.status, nowhere.code()), (404, "not_found".into()));
    let wrong_way = house.get("/api/turns", &token).await;
    assert_eq!((wrong_way.status, wrong_way.code()), (405, "method".into()));
    for session in ["", "a\u{1b}[2Jb", &"x".repeat(201)] {
        let reply = house
            .post(
                "/api/turns",
                &token,
                &json!({ "text": "hi", "session": session }),
            )
            .await;
        assert_eq!(reply.status, 400, "{session}");
    }
}

#[tokio::test]
async fn a_token_that_asks_too_often_is_slowed_down() {
    let settings = ServerSettings {
        requests_per_minute: NonZeroU32::new(3).unwrap(),
        ..ServerSettings::default()
    };
    let house = TestGateway::start_with("", settings).await;
    let (ann, bob) = (
        house.token("ann", &[Chat]).await,
        house.token("bob", &[Chat]).await,
    );
    for _ in 0..3 {
        assert_eq!(house.get("/v1/models", &ann).await.status, 200);
    }
    let reply = house.get("/v1/models", &ann).await;
    assert_eq!((reply.status, reply.code()), (429, "rate".into()));
    assert!(reply.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    assert_eq!(house.get("/v1/models", &bob).await.status, 200);
}

#[tokio::test]
async fn more_turns_than_there_are_places_for_are_refused() {
    let settings = ServerSettings {
        turns: NonZeroUsize::new(2).unwrap(),
        turns_per_principal: NonZeroUsize::new(1).unwrap(),
        ..ServerSettings::default()
    };
    let house = TestGateway::start_with("root always hangs", settings).await;
    let names = ["ann", "bob", "cem"];
    let mut tokens = Vec::new();
    for name in names {
        tokens.push(house.token(name, &[Chat]).await);
    }
    let body = json!({ "text": "hi" });
    let mut first = house.stream("/api/turns", &tokens[0], &body).await;
    first.next_of_type("user").await;
    let again = house.post("/api/turns", &tokens[0], &body).await;
    assert_eq!((again.status, again.code()), (429, "turns".into()));
    let mut second = house.stream("/api/turns", &tokens[1], &body).await;
    second.next_of_type("user").await;
    let full = house.post("/api/turns", &tokens[2], &body).await;
    assert_eq!((full.status, full.code()), (503, "turns".into()));
}

#[tokio::test]
async fn slow_clients_do_not_keep_a_place() {
    let one = NonZeroU64::new(1).unwrap();
    let settings = ServerSettings {
        header_seconds: one,
        body_seconds: one,
        connections: NonZeroUsize::new(1).unwrap(),
        ..ServerSettings::default()
    };
    let house = TestGateway::start_with("", settings).await;
    let token = house.token("ann", &[Chat]).await;
    let mut slow = TcpStream::connect(house.address).await.unwrap();
    slow.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\nx-a")
        .await
        .unwrap();
    let idle = TcpStream::connect(house.address).await.unwrap();
    // Each waits for the place of the one before it.
    assert_eq!(
        Request::get("/health").send(house.address).await.status,
        200
    );
    assert!(read_reply(slow).await.status != 200);
    assert_eq!(read_reply(idle).await.body, "");
    let mut halting = TcpStream::connect(house.address).await.unwrap();
    let head = format!(
        "POST /api/turns HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{{"
    );
    halting.write_all(head.as_bytes()).await.unwrap();
    let reply = read_reply(halting).await;
    assert_eq!((reply.status, reply.code()), (408, "slow".into()));
}

/// B74
#[tokio::test]
async fn a_stream_ends_with_its_token() {
    let house = TestGateway::start("root says hi\nroot hangs").await;
    let kept = house.token_for("kept", "ann", &[Chat]).await;
    let revoked = house.token_for("revoked", "ann", &[Chat]).await;
    let in_an_hour = Timestamp::now() + 1.hours();
    let expiring = house
        .token_with_expiry("expiring", "ann", &[Chat], Some(in_an_hour))
        .await;
    house
        .stream(
            "/api/turns",
            &kept,
            &json!({ "text": "hi", "session": "s" }),
        )
        .await
        .collect_rest()
        .await;
    let follow = |token: &str| Request::get("/api/sessions/s/events").with_token(token);
    let mut stays = follow(&kept).events(house.address).await;
    let mut first = follow(&revoked).events(house.address).await;
    let own = json!({ "text": "more", "session": "t" });
    let mut turn = house.stream("/api/turns", &revoked, &own).await;
    house.store.revoke_token("revoked").await.unwrap();
    assert_eq!(
        first.collect_rest().await.last().unwrap()["type"],
        "turn_done"
    );
    // Its turn ends with it, as with whoever goes away.
    turn.collect_rest().await;
    let is_failed = |event: &Event| matches!(event.body, EventBody::TurnFailed { .. });
    while !house
        .log("ann", "t")
        .await
        .last()
        .is_some_and(|event| is_failed(event))
    {
        tokio::task::yield_now().await;
    }
    let mut second = follow(&expiring).events(house.address).await;
    house.clock_offset.store(3_700, Ordering::Relaxed);
    assert_eq!(
        second.collect_rest().await.last().unwrap()["type"],
        "turn_done"
    );
    let more = json!({ "text": "still here", "session": "s", "detach": true });
    drop(house.stream("/api/turns", &kept, &more).await);
    stays.next_of_type("turn_done").await;
    assert_eq!(stays.next_of_type("user").await["text"], "still here");
}
