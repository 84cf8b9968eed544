//! The server as people start it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use lango_testkit::model_server::{ModelServer, ServerReply};
use serde_json::{Value, json};

use crate::setup::TestDir;

/// A server that ends with the test.
struct TestServer {
    child: Child,
    port: u16,
}

impl TestServer {
    fn start(desk: &TestDir, args: &[&str]) -> Self {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("lango"))
            .args(["serve", "--port", "0", "--json"])
            .args(args)
            .current_dir(desk.path())
            .env_clear()
            .env("LANGO_HOME", desk.path().join("home"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let said: Value =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        Self {
            child,
            port: said["port"].as_u64().unwrap().try_into().unwrap(),
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
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        said
    }

    /// Tells it to end, and waits until it has.
    fn shut_down(mut self) -> (Option<i32>, String) {
        let killed = Command::new("kill")
            .arg(self.child.id().to_string())
            .status()
            .unwrap();
        assert!(killed.success());
        let mut said = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_token_opens_the_door_until_it_is_revoked() {
    let model = ModelServer::start(vec![ServerReply::text("Hello.")]).unwrap();
    let desk = TestDir::with_provider("openai", &model.base_url());
    let made = desk
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
    let token = made["token"].as_str().unwrap();
    assert_eq!(
        (&made["name"], &made["scopes"]),
        (&json!("ann"), &json!(["chat"]))
    );
    let served = TestServer::start(&desk, &[]);
    let body = json!({ "model": "lango", "messages": [{ "role": "user", "content": "hi" }] });
    let answer = served.ask("/v1/chat/completions", token, &body);
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("Hello."),
        "{answer}"
    );
    let listed = desk.lango(&["token", "list", "--json"]);
    assert_eq!(listed.json()["items"][0]["name"], "ann");
    assert!(!listed.stdout.contains(token));
    // What was said over HTTP is not this terminal's.
    assert_eq!(
        desk.lango(&["session", "list", "--json"]).json(),
        json!({ "items": [] })
    );
    let (exit, said) = served.shut_down();
    assert_eq!(exit, Some(0), "{said}");
    assert!(!said.contains(token));
    assert_eq!(desk.lango(&["token", "revoke", "ann"]).exit, 0);
    let served = TestServer::start(&desk, &[]);
    assert!(
        served
            .ask("/v1/chat/completions", token, &body)
            .starts_with("HTTP/1.1 401")
    );
}

#[test]
fn a_token_is_made_once_and_in_words() {
    let desk = TestDir::new();
    let plain = desk.lango(&["token", "create", "ann"]);
    assert!(plain.stdout.starts_with("lango_"), "{}", plain.stdout);
    let again = desk.lango(&["token", "create", "ann", "--json"]);
    assert_eq!((again.exit, &again.error()["code"]), (2, &json!("usage")));
    for wrong in [
        &["token", "create", "a b"][..],
        &["token", "create", ""],
        &["token", "create", "x", "--scope", "everything"],
        &["token", "create", "x", "--expires", "tomorrow"],
        &["token", "revoke", "nobody"],
    ] {
        assert_eq!(desk.lango(wrong).exit, 2, "{wrong:?}");
    }
}

#[test]
fn without_a_token_only_this_machine_is_listened_to() {
    let desk = TestDir::new();
    let refused = desk.lango(&[
        "serve",
        "--provider",
        "offline",
        "--host",
        "0.0.0.0",
        "--port",
        "0",
        "--json",
    ]);
    assert_eq!(refused.exit, 2);
    assert!(
        refused.error()["hint"]
            .as_str()
            .unwrap()
            .contains("lango token create")
    );
    let served = TestServer::start(&desk, &["--provider", "offline"]);
    let (_, said) = served.shut_down();
    assert!(said.contains("lango token create"), "{said}");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let desk = TestDir::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let refused = desk.lango(&["serve", "--provider", "offline", "--port", &port, "--json"]);
    assert_eq!(refused.exit, 2);
    assert!(refused.error()["message"].as_str().unwrap().contains(&port));
}

/// B71: however many tools and parts use it, one process opens its store once.
#[test]
fn a_server_opens_its_store_once() {
    let desk = TestDir::new();
    let made = desk
        .lango(&["token", "create", "ann", "--scope", "admin", "--json"])
        .json();
    let token = made["token"].as_str().unwrap();
    let served = TestServer::start(&desk, &["--provider", "offline"]);
    for request in [
        "what do you know about the office?",
        "remember that I prefer tea",
        "what do I like to drink?",
        "search my documents for tea",
        "which facts does the graph have about Ann?",
    ] {
        let body =
            json!({ "model": "lango", "messages": [{ "role": "user", "content": request }] });
        let answer = served.ask("/v1/chat/completions", token, &body);
        assert!(answer.starts_with("HTTP/1.1 200"), "{request}: {answer}");
    }
    // Each open store has one thread that writes.
    let tasks = std::fs::read_dir(format!("/proc/{}/task", served.child.id())).unwrap();
    let names =
        tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).unwrap());
    assert_eq!(names.filter(|name| name.trim() == "lango-store").count(), 1);
}
