//! Conversation memory with the offline model.

use lango_testkit::model_server::{ModelServer, ServerReply};
use serde_json::{Value, json};

use crate::setup::{CommandRun, TestDir};

const OFFLINE: [&str; 2] = ["--provider", "offline"];

fn ask(dir: &TestDir, request: &[&str]) -> CommandRun {
    let run = run_ask(dir, request);
    assert_eq!(run.exit, 0, "{}{}", run.stdout, run.stderr);
    run
}

/// Sends what the offline model has no phrase for. Its answer says so.
fn tell(dir: &TestDir, statement: &[&str]) {
    let run = run_ask(dir, statement);
    assert_eq!(run.exit, 1, "{}{}", run.stdout, run.stderr);
}

fn run_ask(dir: &TestDir, request: &[&str]) -> CommandRun {
    dir.lango(&[&["ask"], &OFFLINE[..], request].concat())
}

fn observations(dir: &TestDir) -> Vec<Value> {
    dir.lango(&["memory", "observations", "--json"]).json()["items"]
        .as_array()
        .unwrap()
        .clone()
}

/// S82
#[test]
fn recalls_memories_in_another_session() {
    let dir = TestDir::new();
    ask(&dir, &["--session", "first", "remember that I prefer tea"]);
    let events = ask(
        &dir,
        &["--json", "--session", "second", "what do I like to drink?"],
    )
    .stdout;
    let events: Vec<Value> = events
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let answer = events
        .iter()
        .find(|event| event["type"] == "answer")
        .unwrap();
    assert_eq!(answer["author"], "chronicler");
    assert!(
        answer["text"].as_str().unwrap().contains("I prefer tea"),
        "{answer}"
    );
    let context = events
        .iter()
        .find(|event| event["type"] == "context")
        .unwrap();
    assert!(
        context["source"] == "memory" && context["text"].as_str().unwrap().contains("I prefer tea")
    );
    let items = observations(&dir);
    let id = items[0]["id"].as_str().unwrap();
    assert_eq!(
        items[0]["sources"],
        json!([{ "session": "first", "seq": 1 }])
    );
    assert_eq!(
        (&items[0]["priority"], &items[0]["generation"]),
        (&json!("medium"), &json!(0))
    );
    let why = dir.lango(&["memory", "why", id]).stdout;
    for text in [
        "from session first",
        "event 1, user",
        "remember that I prefer tea",
    ] {
        assert!(why.contains(text), "{text} in {why}");
    }
    let why = dir.lango(&["memory", "why", id, "--json"]).json();
    assert_eq!(why["events"][0]["text"], "remember that I prefer tea");
    assert!(
        dir.lango(&["memory", "reflections"])
            .stdout
            .contains("There are no memories")
    );
}

/// S82: a backup contains memories; restoring it removes later ones.
#[test]
fn backup_restores_memory() {
    let dir = TestDir::new();
    ask(&dir, &["--session", "first", "remember that I prefer tea"]);
    assert_eq!(dir.lango(&["backup", "b.sqlite"]).exit, 0);
    assert_eq!(dir.lango(&["memory", "forget", "o1", "--yes"]).exit, 0);
    ask(
        &dir,
        &["--session", "later", "remember that I prefer cocoa"],
    );
    assert_eq!(dir.lango(&["restore", "b.sqlite"]).exit, 0);
    let items = observations(&dir);
    assert_eq!(
        (items.len(), &items[0]["text"]),
        (1, &json!("I prefer tea")),
        "{items:?}"
    );
    assert_eq!(
        items[0]["sources"],
        json!([{ "session": "first", "seq": 1 }])
    );
}

/// S82: rules observe if there is no model, and the status says so.
#[test]
fn rules_observe_statements_without_a_model() {
    let dir = TestDir::new();
    tell(&dir, &["--session", "a", "Hello! My name is Ada Lovelace."]);
    let items = observations(&dir);
    assert_eq!(
        (&items[0]["text"], &items[0]["origin"]),
        (&json!("My name is Ada Lovelace"), &json!("rules"))
    );
    let status = dir
        .lango(&[&["memory", "status"], &OFFLINE[..]].concat())
        .stdout;
    assert!(
        status.contains("Observations: 1") && status.contains("without a language model"),
        "{status}"
    );
    assert!(
        ask(&dir, &["what is my name?"])
            .stdout
            .contains("Ada Lovelace")
    );
}

#[test]
fn forget_asks_for_confirmation() {
    let dir = TestDir::new();
    ask(&dir, &["remember that I prefer tea"]);
    tell(&dir, &["remember that the office closes at six"]);
    let run = dir.lango(&["memory", "forget", "I prefer tea"]);
    assert_eq!(run.exit, 5);
    assert!(
        run.stderr.contains("I prefer tea") && !run.stderr.contains("office"),
        "{}",
        run.stderr
    );
    assert_eq!(
        dir.lango(&["memory", "forget", "something else", "--yes"])
            .exit,
        2
    );
    let denied = dir.lango(&[&["ask"], &OFFLINE[..], &["forget that I prefer tea"]].concat());
    assert!(denied.stdout.contains("Not done"), "{}", denied.stdout);
    assert_eq!(observations(&dir).len(), 2);
    ask(&dir, &["--yes", "forget that I prefer tea"]);
    assert_eq!(observations(&dir).len(), 1);
    assert!(
        ask(&dir, &["what do I like to drink?"])
            .stdout
            .contains("Nothing is remembered")
    );
    let forgotten = dir
        .lango(&["memory", "forget", "o2", "--yes", "--json"])
        .json();
    let item = json!({ "kind": "observation", "id": "o2", "text": "the office closes at six" });
    assert_eq!(forgotten["forgotten"], json!([item]));
    for invalid in [["why", "o2"], ["why", "tea"], ["forget", "o2"]] {
        assert_eq!(
            dir.lango(&["memory", invalid[0], invalid[1]]).exit,
            2,
            "{invalid:?}"
        );
    }
}

/// S82
#[test]
fn disabled_memory_removes_the_chronicler() {
    let dir = TestDir::new();
    let off = ["--set", "observationalMemory.enabled=false"];
    let tree = dir
        .lango(&[&["agent", "tree", "--json"], &off[..]].concat())
        .json();
    let names: Vec<&Value> = tree["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| &agent["name"])
        .collect();
    assert!(!names.contains(&&json!("chronicler")), "{names:?}");
    tell(&dir, &[&off[..], &["Hello! My name is Ada."]].concat());
    assert!(observations(&dir).is_empty());
    let status = dir
        .lango(&[&["memory", "status", "--json"], &off[..]].concat())
        .json();
    assert_eq!(
        (&status["enabled"], &status["observations"]),
        (&json!(false), &json!(0))
    );
}

/// A model observes after the answer, and its usage is counted.
#[test]
fn model_observes_after_the_answer() {
    let server = ModelServer::with_responder(|request, _| {
        let is_observing =
            String::from_utf8_lossy(&request.body).contains("priority | kind | numbers | text");
        ServerReply::text(if is_observing {
            "high | preference | 1 | The user prefers tea."
        } else {
            "Noted."
        })
    });
    let server = server.unwrap();
    let dir = TestDir::with_provider("openai", &server.base_url());
    let set = ["--set", "observationalMemory.bufferTokens=1"];
    let run = dir.lango(&[&["ask", "--session", "s"], &set[..], &["I like tea best"]].concat());
    assert!(
        run.stdout.contains("Noted."),
        "{}{}",
        run.stdout,
        run.stderr
    );
    let items = observations(&dir);
    assert_eq!(
        (&items[0]["text"], &items[0]["origin"]),
        (&json!("The user prefers tea."), &json!("x/m"))
    );
    assert_eq!(
        dir.lango(&["memory", "why", "o1", "--json"]).json()["events"][0]["text"],
        "I like tea best"
    );
    let usage = dir.lango(&["usage", "--json"]).json();
    let agents: Vec<&Value> = usage["by_agent"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["agent"])
        .collect();
    assert!(agents.contains(&&json!("chronicler")), "{usage}");
}
