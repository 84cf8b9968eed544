//! Authentication, scopes, origins and limits.

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
async fn rejects_missing_and_invalid_tokens() {
    let gateway = TestGateway::start("").await;
    let good = gateway.token("ann", &[Chat]).await;
    let code = async |request: Request| {
        let reply = request.send(gateway.address).await;
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
    for token in [
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
            code(models().with_token(token)).await,
            (401, "token.unknown".into(), bearer.clone()),
            "{token}"
        );
    }
    let basic = models().with("authorization", &format!("Basic {good}"));
    assert_eq!(code(basic).await.0, 401);
    assert_eq!(
        models()
            .with_token(&good)
            .send(gateway.address)
            .await
            .status,
        200
    );
    let lower = models().with("authorization", &format!("bearer {good}"));
    assert_eq!(lower.send(gateway.address).await.status, 200);
}

#[tokio::test]
async fn rejects_expired_and_revoked_tokens() {
    let gateway = TestGateway::start("").await;
    let end = Timestamp::now() + 1.hour();
    let brief = gateway
        .token_with_expiry("brief", "ann", &[Chat], Some(end))
        .await;
    let other = gateway.token("other", &[Chat]).await;
    assert_eq!(gateway.get("/v1/models", &brief).await.status, 200);
    assert_eq!(gateway.get("/v1/models", &other).await.status, 200);
    gateway.clock_offset.store(3_601, Ordering::Relaxed);
    assert_eq!(
        gateway.get("/v1/models", &brief).await.code(),
        "token.expired"
    );
    gateway
        .stores
        .access_tokens
        .revoke_token("other")
        .await
        .unwrap();
    gateway.clock_offset.store(3_700, Ordering::Relaxed);
    assert_eq!(
        gateway.get("/v1/models", &other).await.code(),
        "token.unknown"
    );
}

#[tokio::test]
async fn stores_tokens_as_hashes_and_records_their_use() {
    let gateway = TestGateway::start("").await;
    let token = gateway.token("ann", &[Chat]).await;
    assert_eq!(gateway.get("/v1/models", &token).await.status, 200);
    while gateway.stores.access_tokens.tokens().await.unwrap()[0]
        .used
        .is_none()
    {
        tokio::task::yield_now().await;
    }
    for file in std::fs::read_dir(gateway.folder.path())
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

/// Returns requests with the scopes that allow them and the status for an allowed token.
fn requests_by_scope() -> Vec<(Request, &'static str, u16)> {
    let answer = json!({ "session": "s", "call": "c", "decision": "approve" });
    let deleting = Request {
        method: "DELETE",
        ..Request::get("/api/sessions/none")
    };
    vec![
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
    ]
}

/// Each scope grants access to its own routes and no others.
#[tokio::test]
async fn scopes_grant_access_to_their_routes_only() {
    let gateway = TestGateway::start("root always says hi").await;
    let requests = requests_by_scope();
    for (name, scope) in [
        ("chat", Chat),
        ("read", Read),
        ("approve", Approve),
        ("admin", Admin),
    ] {
        let token = gateway.token(name, &[scope]).await;
        for (request, scopes, status) in &requests {
            let reply = request
                .clone()
                .with_token(&token)
                .send(gateway.address)
                .await;
            let is_allowed = name == "admin" || scopes.split(' ').any(|scope| scope == name);
            let expected = if is_allowed { *status } else { 403 };
            assert_eq!(
                reply.status, expected,
                "{name} {} {}: {}",
                request.method, request.path, reply.body
            );
            if !is_allowed {
                assert_eq!(reply.code(), "scope");
            }
        }
    }
}

#[tokio::test]
async fn rejects_foreign_hosts_and_origins() {
    let settings = ServerSettings {
        origins: vec!["https://chat.example.org".into()],
        ..ServerSettings::default()
    };
    let gateway = TestGateway::start_with("", settings).await;
    let token = gateway.token("ann", &[Chat]).await;
    let models = || Request::get("/v1/models").with_token(&token);
    let rebound = models()
        .with("host", "evil.example")
        .send(gateway.address)
        .await;
    assert_eq!((rebound.status, rebound.code()), (421, "host".into()));
    // Public routes check the host as well.
    assert_eq!(
        Request::get("/health")
            .with("host", "evil.example")
            .send(gateway.address)
            .await
            .status,
        421
    );
    let foreign = models()
        .with("origin", "https://evil.example")
        .send(gateway.address)
        .await;
    assert_eq!((foreign.status, foreign.code()), (403, "origin".into()));
    assert_eq!(foreign.header("access-control-allow-origin"), None);
    let configured = models()
        .with("origin", "https://chat.example.org")
        .send(gateway.address)
        .await;
    assert_eq!(configured.status, 200);
    assert_eq!(
        configured.header("access-control-allow-origin").unwrap(),
        "https://chat.example.org"
    );
    let own = models()
        .with("origin", &format!("http://{}", gateway.address))
        .send(gateway.address)
        .await;
    assert_eq!(own.status, 200);
    assert_eq!(
        configured.header("access-control-expose-headers").unwrap(),
        "x-lango-session, retry-after"
    );
    let form = Request::post("/api/turns", &json!({ "text": "hi" })).with_token(&token);
    let form = form
        .with("content-type", "text/plain")
        .send(gateway.address)
        .await;
    assert_eq!((form.status, form.code()), (415, "media_type".into()));
}

#[tokio::test]
async fn preflights_allow_known_headers() {
    let settings = ServerSettings {
        origins: vec!["https://chat.example.org".into()],
        ..ServerSettings::default()
    };
    let gateway = TestGateway::start_with("", settings).await;
    let preflight = Request {
        method: "OPTIONS",
        ..Request::get("/api/turns")
    };
    let preflight = preflight
        .with("origin", "https://chat.example.org")
        .with("access-control-request-method", "POST");
    let requested =
        "authorization,content-type,x-stainless-os, X-Stainless-Retry-Count,x-evil,x-stainless-a b";
    let preflight = preflight
        .with("access-control-request-headers", requested)
        .send(gateway.address)
        .await;
    assert_eq!(preflight.status, 204);
    assert_eq!(
        preflight.header("access-control-allow-headers").unwrap(),
        "authorization, content-type, last-event-id, a2a-version, x-stainless-os, x-stainless-retry-count"
    );
}

#[tokio::test]
async fn rejects_large_requests() {
    let gateway = TestGateway::start("").await;
    let token = gateway.token("ann", &[Chat]).await;
    let large = json!({ "text": "x".repeat(16 * 1024 * 1024) });
    let reply = gateway.post("/api/turns", &token, &large).await;
    assert_eq!((reply.status, reply.code()), (413, "size".into()));
    let header = Request::get("/health")
        .with("x-large", &"x".repeat(20 * 1024))
        .send(gateway.address)
        .await;
    assert_eq!(header.status, 431);
    // An oversized `Content-Length` is rejected without waiting for the body.
    let announced = Request {
        body: None,
        ..Request::post("/api/turns", &json!({}))
    };
    let announced = announced
        .with_token(&token)
        .with("content-length", "99999999")
        .send(gateway.address)
        .await;
    assert_eq!((announced.status, announced.code()), (413, "size".into()));
}

#[tokio::test]
async fn rejects_malformed_bodies() {
    let gateway = TestGateway::start("").await;
    let token = gateway.token("ann", &[Chat]).await;
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
        let reply = request.with_token(&token).send(gateway.address).await;
        assert_eq!(
            (reply.status, reply.code()),
            (400, "request".into()),
            "{}",
            reply.body
        );
    }
    for media_type in ["application/jsonp", "application/json-patch+json", ""] {
        let reply = Request::post("/api/turns", &json!({ "text": "hi" }))
            .with_token(&token)
            .with("content-type", media_type);
        let reply = reply.send(gateway.address).await;
        assert_eq!(
            (reply.status, reply.code()),
            (415, "media_type".into()),
            "{media_type}"
        );
    }
}

#[tokio::test]
async fn rejects_invalid_paths_and_session_ids() {
    let gateway = TestGateway::start("").await;
    let token = gateway.token("ann", &[Chat]).await;
    let reader = gateway.token("reader", &[Chat, Read]).await;
    for path in [
        "/api/sessions/%ff",
        "/v1/models/%ff",
        "/api/sessions/%ff/events",
    ] {
        let reply = gateway.get(path, &reader).await;
        assert_eq!(
            (reply.status, reply.code()),
            (400, "request".into()),
            "{}",
            reply.body
        );
    }
    let unknown = gateway.get("/api/nothing", &token).await;
    assert_eq!((unknown.status, unknown.code()), (404, "not_found".into()));
    let wrong_method = gateway.get("/api/turns", &token).await;
    assert_eq!(
        (wrong_method.status, wrong_method.code()),
        (405, "method".into())
    );
    for session in ["", "a\u{1b}[2Jb", &"x".repeat(201)] {
        let reply = gateway
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
async fn limits_requests_per_token() {
    let settings = ServerSettings {
        requests_per_minute: NonZeroU32::new(3).unwrap(),
        ..ServerSettings::default()
    };
    let gateway = TestGateway::start_with("", settings).await;
    let (ann, bob) = (
        gateway.token("ann", &[Chat]).await,
        gateway.token("bob", &[Chat]).await,
    );
    for _ in 0..3 {
        assert_eq!(gateway.get("/v1/models", &ann).await.status, 200);
    }
    let reply = gateway.get("/v1/models", &ann).await;
    assert_eq!((reply.status, reply.code()), (429, "rate".into()));
    assert!(reply.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    assert_eq!(gateway.get("/v1/models", &bob).await.status, 200);
}

#[tokio::test]
async fn limits_concurrent_turns() {
    let settings = ServerSettings {
        turns: NonZeroUsize::new(2).unwrap(),
        turns_per_principal: NonZeroUsize::new(1).unwrap(),
        ..ServerSettings::default()
    };
    let gateway = TestGateway::start_with("root always hangs", settings).await;
    let names = ["ann", "bob", "cem"];
    let mut tokens = Vec::new();
    for name in names {
        tokens.push(gateway.token(name, &[Chat]).await);
    }
    let body = json!({ "text": "hi" });
    let mut first = gateway.stream("/api/turns", &tokens[0], &body).await;
    first.next_of_type("user").await;
    let again = gateway.post("/api/turns", &tokens[0], &body).await;
    assert_eq!((again.status, again.code()), (429, "turns".into()));
    let mut second = gateway.stream("/api/turns", &tokens[1], &body).await;
    second.next_of_type("user").await;
    let full = gateway.post("/api/turns", &tokens[2], &body).await;
    assert_eq!((full.status, full.code()), (503, "turns".into()));
}

#[tokio::test]
async fn disconnects_slow_clients() {
    let one = NonZeroU64::new(1).unwrap();
    let settings = ServerSettings {
        header_seconds: one,
        body_seconds: one,
        connections: NonZeroUsize::new(1).unwrap(),
        ..ServerSettings::default()
    };
    let gateway = TestGateway::start_with("", settings).await;
    let token = gateway.token("ann", &[Chat]).await;
    let mut slow = TcpStream::connect(gateway.address).await.unwrap();
    slow.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\nx-a")
        .await
        .unwrap();
    let idle = TcpStream::connect(gateway.address).await.unwrap();
    // Each connection waits until the one before it is closed.
    assert_eq!(
        Request::get("/health").send(gateway.address).await.status,
        200
    );
    assert!(read_reply(slow).await.status != 200);
    assert_eq!(read_reply(idle).await.body, "");
    let mut halting = TcpStream::connect(gateway.address).await.unwrap();
    let head = format!(
        "POST /api/turns HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{{"
    );
    halting.write_all(head.as_bytes()).await.unwrap();
    let reply = read_reply(halting).await;
    assert_eq!((reply.status, reply.code()), (408, "slow".into()));
}

/// B74
#[tokio::test]
async fn streams_end_with_their_token() {
    let gateway = TestGateway::start("root says hi\nroot hangs").await;
    let valid = gateway.token_for("valid", "ann", &[Chat]).await;
    let revoked = gateway.token_for("revoked", "ann", &[Chat]).await;
    let in_an_hour = Timestamp::now() + 1.hours();
    let expiring = gateway
        .token_with_expiry("expiring", "ann", &[Chat], Some(in_an_hour))
        .await;
    gateway
        .stream(
            "/api/turns",
            &valid,
            &json!({ "text": "hi", "session": "s" }),
        )
        .await
        .collect_rest()
        .await;
    let follow = |token: &str| Request::get("/api/sessions/s/events").with_token(token);
    let mut remaining = follow(&valid).events(gateway.address).await;
    let mut first = follow(&revoked).events(gateway.address).await;
    let own = json!({ "text": "more", "session": "t" });
    let mut turn = gateway.stream("/api/turns", &revoked, &own).await;
    gateway
        .stores
        .access_tokens
        .revoke_token("revoked")
        .await
        .unwrap();
    assert_eq!(
        first.collect_rest().await.last().unwrap()["type"],
        "turn_done"
    );
    // The turn is cancelled, as after a disconnect.
    turn.collect_rest().await;
    let is_failed = |event: &Event| matches!(event.body, EventBody::TurnFailed { .. });
    while !gateway
        .log("ann", "t")
        .await
        .last()
        .is_some_and(|event| is_failed(event))
    {
        tokio::task::yield_now().await;
    }
    let mut second = follow(&expiring).events(gateway.address).await;
    gateway.clock_offset.store(3_700, Ordering::Relaxed);
    assert_eq!(
        second.collect_rest().await.last().unwrap()["type"],
        "turn_done"
    );
    let more = json!({ "text": "still here", "session": "s", "detach": true });
    drop(gateway.stream("/api/turns", &valid, &more).await);
    remaining.next_of_type("turn_done").await;
    assert_eq!(remaining.next_of_type("user").await["text"], "still here");
}
