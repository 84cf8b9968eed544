//! `lango serve` and `lango token`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use lango_testkit::model_server::{ModelServer, ServerReply};
use serde_json::{Value, json};

use crate::setup::TestDir;

/// A server process that is killed at the end of the test.
struct TestServer {
    child: Child,
    port: u16,
}

impl TestServer {
    fn start(dir: &TestDir, args: &[&str]) -> Self {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("lango"))
            .args(["serve", "--port", "0", "--json"])
            .args(args)
            .current_dir(dir.path())
            .env_clear()
            .env("LANGO_HOME", dir.path().join("home"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let announcement: Value =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        Self {
            child,
            port: announcement["port"].as_u64().unwrap().try_into().unwrap(),
        }
    }

    fn ask(&self, path: &str, token: &str, body: &Value) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let body = body.to_string();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    /// Sends SIGTERM and waits for the process. Returns its exit code and stderr.
    fn shut_down(mut self) -> (Option<i32>, String) {
        let signalled = Command::new("kill")
            .arg(self.child.id().to_string())
            .status()
            .unwrap();
        assert!(signalled.success());
        let mut stderr = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut stderr)
            .unwrap();
        (self.child.wait().unwrap().code(), stderr)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn token_grants_access_until_revoked() {
    let model = ModelServer::start(vec![ServerReply::text("Hello.")]).unwrap();
    let dir = TestDir::with_provider("openai", &model.base_url());
    let created = dir
        .lango(&[
            "token",
            "create",
            "ann",
            "--scope",
            "chat",
            "--expires",
            "30d",
            "--json",
        ])
        .json();
    let token = created["token"].as_str().unwrap();
    assert_eq!(
        (&created["name"], &created["scopes"]),
        (&json!("ann"), &json!(["chat"]))
    );
    let server = TestServer::start(&dir, &[]);
    let body = json!({ "model": "lango", "messages": [{ "role": "user", "content": "hi" }] });
    let answer = server.ask("/v1/chat/completions", token, &body);
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("Hello."),
        "{answer}"
    );
    let listed = dir.lango(&["token", "list", "--json"]);
    assert_eq!(listed.json()["items"][0]["name"], "ann");
    assert!(!listed.stdout.contains(token));
    // Sessions over HTTP belong to another principal than the terminal's.
    assert_eq!(
        dir.lango(&["session", "list", "--json"]).json(),
        json!({ "items": [] })
    );
    let (exit, stderr) = server.shut_down();
    assert_eq!(exit, Some(0), "{stderr}");
    assert!(!stderr.contains(token));
    assert_eq!(dir.lango(&["token", "revoke", "ann"]).exit, 0);
    let server = TestServer::start(&dir, &[]);
    assert!(
        server
            .ask("/v1/chat/completions", token, &body)
            .starts_with("HTTP/1.1 401")
    );
}

#[test]
fn rejects_duplicate_and_invalid_tokens() {
    let dir = TestDir::new();
    let plain = dir.lango(&["token", "create", "ann"]);
    assert!(plain.stdout.starts_with("lango_"), "{}", plain.stdout);
    let again = dir.lango(&["token", "create", "ann", "--json"]);
    assert_eq!((again.exit, &again.error()["code"]), (2, &json!("usage")));
    for wrong in [
        &["token", "create", "a b"][..],
        &["token", "create", ""],
        &["token", "create", "x", "--scope", "everything"],
        &["token", "create", "x", "--expires", "tomorrow"],
        &["token", "revoke", "nobody"],
    ] {
        assert_eq!(dir.lango(wrong).exit, 2, "{wrong:?}");
    }
}

#[test]
fn requires_token_for_non_loopback_address() {
    let dir = TestDir::new();
    let rejected = dir.lango(&[
        "serve",
        "--provider",
        "offline",
        "--host",
        "0.0.0.0",
        "--port",
        "0",
        "--json",
    ]);
    assert_eq!(rejected.exit, 2);
    assert!(
        rejected.error()["hint"]
            .as_str()
            .unwrap()
            .contains("lango token create")
    );
    let server = TestServer::start(&dir, &["--provider", "offline"]);
    let (_, stderr) = server.shut_down();
    assert!(stderr.contains("lango token create"), "{stderr}");
}

#[test]
fn reports_port_in_use() {
    let dir = TestDir::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let rejected = dir.lango(&["serve", "--provider", "offline", "--port", &port, "--json"]);
    assert_eq!(rejected.exit, 2);
    assert!(
        rejected.error()["message"]
            .as_str()
            .unwrap()
            .contains(&port)
    );
}

/// B71: however many tools and parts use it, one process opens its store once.
#[test]
fn server_opens_its_store_once() {
    let dir = TestDir::new();
    let created = dir
        .lango(&["token", "create", "ann", "--scope", "admin", "--json"])
        .json();
    let token = created["token"].as_str().unwrap();
    let server = TestServer::start(&dir, &["--provider", "offline"]);
    for request in [
        "what do you know about the office?",
        "remember that I prefer tea",
        "what do I like to drink?",
        "search my documents for tea",
        "which facts does the graph have about Ann?",
    ] {
        let body =
            json!({ "model": "lango", "messages": [{ "role": "user", "content": request }] });
        let answer = server.ask("/v1/chat/completions", token, &body);
        assert!(answer.starts_with("HTTP/1.1 200"), "{request}: {answer}");
    }
    // Each open store has one writer thread.
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.child.id())).unwrap();
    let names =
        tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).unwrap());
    assert_eq!(names.filter(|name| name.trim() == "lango-store").count(), 1);
}
