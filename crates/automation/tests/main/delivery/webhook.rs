//! Webhooks against scripted servers, friendly and hostile.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use lango_automation::delivery::{SendError, sign_webhook};
use lango_domain::secret::Secret;
use lango_net::AddressPolicy;
use serde_json::Value;

use super::{DeliveryHarness, SECRET, delivery, send};

pub use std::sync::mpsc::Receiver;

/// Serves connections one after the other with `reply`, and returns the port and the requests.
fn serve(reply: impl Fn(&mut TcpStream) + Send + 'static) -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = sender.send(read_request(&mut stream));
            reply(&mut stream);
        }
    });
    (port, requests)
}

fn read_request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    let mut piece = [0; 8192];
    loop {
        let read = stream.read(&mut piece).unwrap_or(0);
        request.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&request);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            assert!(read > 0, "no request: {text}");
            continue;
        };
        let length = header(head, "content-length").map_or(0, |value| value.parse().unwrap());
        if body.len() >= length || read == 0 {
            return text.into_owned();
        }
    }
}

pub fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (own, value) = line.split_once(": ")?;
        own.eq_ignore_ascii_case(name).then_some(value)
    })
}

fn reply_with(status: &'static str) -> impl Fn(&mut TcpStream) {
    move |stream| {
        let text = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        let _ = stream.write_all(text.as_bytes());
    }
}

/// Serves one status after the other.
pub fn serve_statuses(statuses: Vec<u16>) -> (u16, Receiver<String>) {
    let statuses = Mutex::new(statuses.into_iter());
    serve(move |stream| {
        let status = statuses.lock().unwrap().next().unwrap();
        let text = format!("HTTP/1.1 {status} x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        let _ = stream.write_all(text.as_bytes());
    })
}

#[tokio::test]
async fn requests_are_signed_and_have_a_stable_key() {
    let (port, requests) = serve(reply_with("204 No Content"));
    let harness = DeliveryHarness::new();
    let target = format!("webhook:http://127.0.0.1:{port}/hook");
    let mut message = delivery(&target, "Disk\u{7}\nfull", "93 %\u{1b}[2J");
    for attempt in 1..3 {
        message.attempts = attempt;
        send(&harness.channels(), &message).await.unwrap();
    }
    let [first, second] = [requests.recv().unwrap(), requests.recv().unwrap()];
    let (head, body) = first.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /hook HTTP/1.1\r\n"), "{head}");
    assert_eq!(header(head, "content-type"), Some("application/json"));
    assert_eq!(header(head, "x-lango-timestamp"), Some("1800000060"));
    let at = jiff::Timestamp::from_second(1_800_000_060).unwrap();
    let signature = sign_webhook(&Secret::new(SECRET), at, body);
    assert_eq!(header(head, "x-lango-signature"), Some(signature.as_str()));
    let key = header(head, "idempotency-key").unwrap();
    assert_eq!(header(&second, "idempotency-key"), Some(key));
    assert!(!first.contains(SECRET));
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["id"], key);
    assert_eq!(body["title"], "Disk full");
    assert_eq!(body["text"], "93 %[2J");
    assert_eq!(body["from"], "morning");
    assert_eq!(body["failure"], false);
    assert_eq!(body["at"], "2027-01-15T08:00:00Z");
}

#[tokio::test]
async fn status_decides_about_another_attempt() {
    let harness = DeliveryHarness::new();
    for (status, is_temporary) in [
        ("408 Request Timeout", true),
        ("429 Too Many Requests", true),
        ("500 Internal Server Error", true),
        ("503 Service Unavailable", true),
        ("400 Bad Request", false),
        ("401 Unauthorized", false),
        ("404 Not Found", false),
        ("410 Gone", false),
        ("304 Not Modified", false),
    ] {
        let (port, _requests) = serve(reply_with(status));
        let target = format!("webhook:http://127.0.0.1:{port}/private-path");
        let error = harness.send(&target, "x").await.unwrap_err();
        assert_eq!(
            matches!(error, SendError::Temporary(_)),
            is_temporary,
            "{status}: {error}"
        );
        assert!(error.to_string().contains(&status[..3]), "{error}");
        assert!(!error.to_string().contains("private-path"), "{error}");
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let inner = TcpListener::bind("127.0.0.2:0").unwrap();
    inner.set_nonblocking(true).unwrap();
    let location = inner.local_addr().unwrap();
    let (port, _requests) = serve(move |stream| {
        let text = format!(
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://{location}/\r\nContent-Length: 0\r\n\r\n"
        );
        let _ = stream.write_all(text.as_bytes());
    });
    let target = format!("webhook:http://127.0.0.1:{port}/");
    let error = DeliveryHarness::new().send(&target, "x").await.unwrap_err();
    assert!(matches!(error, SendError::Permanent(_)), "{error}");
    assert!(error.to_string().contains("redirects are not followed"));
    assert!(inner.accept().is_err(), "unexpected connection");
}

#[tokio::test]
async fn private_addresses_are_refused_on_connect() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut harness = DeliveryHarness::new();
    harness.policy = AddressPolicy::Public;
    for host in ["127.0.0.1", "localhost", "2130706433", "[::ffff:7f00:1]"] {
        let target = format!("webhook:http://{host}:{port}/");
        let error = harness.send(&target, "x").await.unwrap_err();
        assert!(
            matches!(&error, SendError::Permanent(text) if text.contains("private network")),
            "{host}: {error}"
        );
    }
    assert!(listener.accept().is_err(), "unexpected connection");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn endless_responses_take_no_memory_and_end() {
    let (ended, is_ended) = channel();
    let (port, _requests) = serve(move |stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n");
        while stream.write_all(&[b'x'; 65_536]).is_ok() {}
        let _ = ended.send(());
    });
    let harness = DeliveryHarness::new();
    let target = format!("webhook:http://127.0.0.1:{port}/");
    harness.send(&target, "x").await.unwrap();
    is_ended
        .recv_timeout(Duration::from_secs(20))
        .expect("the connection is closed");

    let (port, _requests) = serve(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        while stream.write_all(b"X-More: and more\r\n").is_ok() {}
    });
    let target = format!("webhook:http://127.0.0.1:{port}/");
    let error = harness.send(&target, "x").await.unwrap_err();
    assert!(matches!(error, SendError::Temporary(_)), "{error}");
}

#[tokio::test]
async fn slow_and_absent_servers_are_tried_again_later() {
    let mut harness = DeliveryHarness::new();
    harness.webhook_timeout = Duration::from_millis(200);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let error = harness
        .send(&format!("webhook:http://127.0.0.1:{port}/"), "x")
        .await
        .unwrap_err();
    assert!(matches!(error, SendError::Temporary(_)), "{error}");
    drop(silent);
    harness.webhook_timeout = Duration::from_secs(20);
    let error = harness
        .send(&format!("webhook:http://127.0.0.1:{port}/"), "x")
        .await
        .unwrap_err();
    assert!(matches!(error, SendError::Temporary(_)), "{error}");
}

#[tokio::test]
async fn huge_texts_are_shortened() {
    let (port, requests) = serve(reply_with("200 OK"));
    let target = format!("webhook:http://127.0.0.1:{port}/");
    let huge = "é".repeat(5_000_000);
    DeliveryHarness::new().send(&target, &huge).await.unwrap();
    let request = requests.recv().unwrap();
    assert!(request.len() < 70_000, "{}", request.len());
    assert!(request.contains("bytes left out]"));
}
