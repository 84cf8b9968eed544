//! Memory as people use it, with no key and no network.

use lango_testkit::model_server::{ModelServer, ServerReply};
use serde_json::{Value, json};

use crate::setup::{CommandRun, TestDir};

const OFFLINE: [&str; 2] = ["--provider", "offline"];

fn ask(desk: &TestDir, request: &[&str]) -> CommandRun {
    let asked = desk.lango(&[&["ask"], &OFFLINE[..], request].concat());
    assert_eq!(asked.exit, 0, "{}{}", asked.stdout, asked.stderr);
    asked
}

fn observations(desk: &TestDir) -> Vec<Value> {
    desk.lango(&["memory", "observations", "--json"]).json()["items"]
        .as_array()
        .unwrap()
        .clone()
}

/// S82
#[test]
fn what_is_remembered_is_recalled_in_another_session() {
    let desk = TestDir::new();
    ask(&desk, &["--session", "first", "remember that I prefer tea"]);
    let events = ask(
        &desk,
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
    let found = observations(&desk);
    let id = found[0]["id"].as_str().unwrap();
    assert_eq!(
        found[0]["sources"],
        json!([{ "session": "first", "seq": 1 }])
    );
    assert_eq!(
        (&found[0]["priority"], &found[0]["generation"]),
        (&json!("medium"), &json!(0))
    );
    let why = desk.lango(&["memory", "why", id]).stdout;
    for told in [
        "from session first",
        "event 1, user",
        "remember that I prefer tea",
    ] {
        assert!(why.contains(told), "{told} in {why}");
    }
    let why = desk.lango(&["memory", "why", id, "--json"]).json();
    assert_eq!(why["events"][0]["text"], "remember that I prefer tea");
    assert!(
        desk.lango(&["memory", "reflections"])
            .stdout
            .contains("There is nothing")
    );
}

/// S82: a backup holds what is remembered; whatever was remembered since goes with restoring it.
#[test]
fn a_backup_brings_memory_back() {
    let desk = TestDir::new();
    ask(&desk, &["--session", "first", "remember that I prefer tea"]);
    assert_eq!(desk.lango(&["backup", "b.sqlite"]).exit, 0);
    assert_eq!(desk.lango(&["memory", "forget", "o1", "--yes"]).exit, 0);
    ask(
        &desk,
        &["--session", "later", "remember that I prefer cocoa"],
    );
    assert_eq!(desk.lango(&["restore", "b.sqlite"]).exit, 0);
    let found = observations(&desk);
    assert_eq!(
        (found.len(), &found[0]["text"]),
        (1, &json!("I prefer tea")),
        "{found:?}"
    );
    assert_eq!(
        found[0]["sources"],
        json!([{ "session": "first", "seq": 1 }])
    );
}

/// S82: rules observe when there is no model, and it is said that they do.
#[test]
fn what_is_said_in_passing_is_observed() {
    let desk = TestDir::new();
    ask(
        &desk,
        &["--session", "a", "Hello! My name is Ada Lovelace."],
    );
    let found = observations(&desk);
    assert_eq!(
        (&found[0]["text"], &found[0]["origin"]),
        (&json!("My name is Ada Lovelace"), &json!("rules"))
    );
    let status = desk
        .lango(&[&["memory", "status"], &OFFLINE[..]].concat())
        .stdout;
    assert!(
        status.contains("Observations: 1") && status.contains("no language model"),
        "{status}"
    );
    assert!(
        ask(&desk, &["what is my name?"])
            .stdout
            .contains("Ada Lovelace")
    );
}

#[test]
fn forgetting_asks_first() {
    let desk = TestDir::new();
    ask(&desk, &["remember that I prefer tea"]);
    ask(&desk, &["remember that the office closes at six"]);
    let asked = desk.lango(&["memory", "forget", "I prefer tea"]);
    assert_eq!(asked.exit, 5);
    assert!(
        asked.stderr.contains("I prefer tea") && !asked.stderr.contains("office"),
        "{}",
        asked.stderr
    );
    assert_eq!(
        desk.lango(&["memory", "forget", "something else", "--yes"])
            .exit,
        2
    );
    let denied = desk.lango(&[&["ask"], &OFFLINE[..], &["forget that I prefer tea"]].concat());
    assert!(denied.stdout.contains("Not done"), "{}", denied.stdout);
    assert_eq!(observations(&desk).len(), 2);
    ask(&desk, &["--yes", "forget that I prefer tea"]);
    assert_eq!(observations(&desk).len(), 1);
    assert!(
        ask(&desk, &["what do I like to drink?"])
            .stdout
            .contains("Nothing is remembered")
    );
    let gone = desk
        .lango(&["memory", "forget", "o2", "--yes", "--json"])
        .json();
    let item = json!({ "kind": "observation", "id": "o2", "text": "the office closes at six" });
    assert_eq!(gone["forgotten"], json!([item]));
    for wrong in [["why", "o2"], ["why", "tea"], ["forget", "o2"]] {
        assert_eq!(
            desk.lango(&["memory", wrong[0], wrong[1]]).exit,
            2,
            "{wrong:?}"
        );
    }
}

/// S82
#[test]
fn switched_off_there_is_no_memory_and_no_chronicler() {
    let desk = TestDir::new();
    let off = ["--set", "observationalMemory.enabled=false"];
    let tree = desk
        .lango(&[&["agent", "tree", "--json"], &off[..]].concat())
        .json();
    let names: Vec<&Value> = tree["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| &agent["name"])
        .collect();
    assert!(!names.contains(&&json!("chronicler")), "{names:?}");
    ask(&desk, &[&off[..], &["Hello! My name is Ada."]].concat());
    assert!(observations(&desk).is_empty());
    let status = desk
        .lango(&[&["memory", "status", "--json"], &off[..]].concat())
        .json();
    assert_eq!(
        (&status["enabled"], &status["observations"]),
        (&json!(false), &json!(0))
    );
}

/// A model that observes is asked behind the answer, and what it took is on the bill.
#[test]
fn a_model_observes_behind_the_answer() {
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
    let desk = TestDir::with_provider("openai", &server.base_url());
    let set = ["--set", "observationalMemory.bufferTokens=1"];
    let asked = desk.lango(&[&["ask", "--session", "s"], &set[..], &["I like tea best"]].concat());
    assert!(
        asked.stdout.contains("Noted."),
        "{}{}",
        asked.stdout,
        asked.stderr
    );
    let found = observations(&desk);
    assert_eq!(
        (&found[0]["text"], &found[0]["origin"]),
        (&json!("The user prefers tea."), &json!("x/m"))
    );
    assert_eq!(
        desk.lango(&["memory", "why", "o1", "--json"]).json()["events"][0]["text"],
        "I like tea best"
    );
    let bill = desk.lango(&["usage", "--json"]).json();
    let agents: Vec<&Value> = bill["by_agent"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["agent"])
        .collect();
    assert!(agents.contains(&&json!("chronicler")), "{bill}");
}
