//! The knowledge base and inquiries with the offline model.

use serde_json::{Value, json};

use crate::setup::{CommandRun, TestDir};

fn ask(dir: &TestDir, request: &str) -> CommandRun {
    dir.lango(&["ask", "--provider", "offline", "--session", "s", request])
}

fn events(dir: &TestDir, request: &str) -> Vec<Value> {
    let run = dir.lango(&[
        "ask",
        "--provider",
        "offline",
        "--session",
        "s",
        "--json",
        request,
    ]);
    run.stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// S83
#[test]
fn saves_and_finds_entries_but_no_secrets() {
    let dir = TestDir::new();
    assert!(
        ask(&dir, "save this fact: the office closes at six")
            .stdout
            .contains("Kept as")
    );
    assert!(
        ask(&dir, "save this fact: the office closes at six")
            .stdout
            .contains("nothing changed")
    );
    assert!(
        ask(&dir, "what do you know about the office?")
            .stdout
            .contains("the office closes at six")
    );
    let alone = [
        "ask",
        "--provider",
        "offline",
        "--set",
        "agent.multiAgent=false",
    ];
    let secret = dir.lango(
        &[
            &alone[..],
            &["save this fact: the wifi password is hunter2"],
        ]
        .concat(),
    );
    assert!(
        secret.stdout.contains("secrets are never saved"),
        "{}",
        secret.stdout
    );
    let items = dir.lango(&["knowledge", "list", "--json"]).json()["items"].clone();
    assert_eq!(items.as_array().unwrap().len(), 1);
}

/// S83
#[test]
fn lists_shows_and_deletes_entries() {
    let dir = TestDir::new();
    ask(&dir, "save this fact: the office closes at six");
    let items = dir.lango(&["knowledge", "list", "--json"]).json()["items"].clone();
    let key = items[0]["key"].as_str().unwrap();
    assert_eq!(
        (items.as_array().unwrap().len(), &items[0]["version"]),
        (1, &json!(1))
    );
    assert_eq!(
        (&items[0]["source"]["session"], &items[0]["source"]["by"]),
        (&json!("s"), &json!("librarian"))
    );
    ask(
        &dir,
        &format!("save the fact \"{key}\" as \"the office closes at seven\""),
    );
    let history = dir.lango(&["knowledge", "history", key, "--json"]).json()["items"].clone();
    let versions: Vec<&str> = history
        .as_array()
        .unwrap()
        .iter()
        .map(|version| version["content"].as_str().unwrap())
        .collect();
    assert_eq!(
        versions,
        ["the office closes at seven", "the office closes at six"]
    );
    assert!(
        dir.lango(&["knowledge", "show", key])
            .stdout
            .contains("session s")
    );
    assert_eq!(
        dir.lango(&["knowledge", "list", "--category", "rule", "--json"])
            .json()["items"],
        json!([])
    );
    assert_eq!(
        dir.lango(&["knowledge", "list", "--category", "ruel"]).exit,
        2
    );
    assert_eq!(
        dir.lango(&["knowledge", "delete", key, "nothing"]).exit,
        2,
        "all or nothing"
    );
    assert_eq!(
        dir.lango(&["knowledge", "delete", key, "--json"]).json()["versions"],
        2
    );
    assert!(
        dir.lango(&["knowledge", "list"])
            .stdout
            .contains("no entries")
    );
    assert_eq!(dir.lango(&["knowledge", "show", key]).exit, 2);
}

/// S83
#[test]
fn failed_call_gets_advice_from_learnings() {
    let dir = TestDir::new();
    ask(
        &dir,
        "save the lesson for fs_read no file notes is to look in docs",
    );
    let result = |request: &str| {
        events(&dir, request)
            .into_iter()
            .find(|event| event["type"] == "tool_result")
            .unwrap()
    };
    let failed = result("read the file notes.txt");
    assert!(
        failed["advice"].as_str().unwrap().contains("look in docs"),
        "{failed}"
    );
    assert_eq!(result("read the file other.md").get("advice"), None);
    let learning = dir
        .lango(&["knowledge", "list", "--learnings", "--json"])
        .json()["items"][0]
        .clone();
    assert_eq!(
        (&learning["helped"], &learning["failed"]),
        (&json!(0), &json!(0))
    );
}

/// S37
#[test]
fn asks_inquiry_and_saves_its_answer() {
    let dir = TestDir::new();
    ask(&dir, "list the files for my sister");
    let pending = dir.lango(&["inquiry", "list", "--json"]).json()["items"].clone();
    assert_eq!(
        (&pending[0]["topic"], &pending[0]["found_by"]),
        (&json!("sister"), &json!("rule"))
    );
    let question = "What is your sister's name?";
    let asked = ask(&dir, "hello").stdout;
    assert_eq!(asked.matches(question).count(), 1, "{asked}");
    assert!(!ask(&dir, "hello").stdout.contains(question));
    ask(&dir, "My sister is called Anna.");
    assert_eq!(
        dir.lango(&["inquiry", "list", "--json"]).json()["items"],
        json!([])
    );
    let all = dir.lango(&["inquiry", "list", "--all", "--json"]).json()["items"].clone();
    assert_eq!(
        (&all[0]["status"], &all[0]["knowledge_key"]),
        (&json!("resolved"), &json!("sister"))
    );
    assert!(
        dir.lango(&["knowledge", "show", "sister"])
            .stdout
            .contains("Anna")
    );
}

/// S83
#[test]
fn dismisses_inquiries_and_disables_tools() {
    let dir = TestDir::new();
    ask(&dir, "list the files for my sister");
    assert!(
        ask(&dir, "list the pending inquiries")
            .stdout
            .contains("sister")
    );
    assert_eq!(dir.lango(&["inquiry", "dismiss", "7"]).exit, 2);
    assert_eq!(
        dir.lango(&["inquiry", "dismiss", "1", "--json"]).json()["dismissed"],
        json!([1])
    );
    assert!(
        dir.lango(&["inquiry", "list"])
            .stdout
            .contains("No inquiry")
    );
    let tools = |set: &str| {
        let agents = dir.lango(&["agent", "list", "--set", set, "--json"]).json();
        let agents = agents["agents"].as_array().unwrap().clone();
        agents
            .into_iter()
            .find(|agent| agent["name"] == "librarian")
            .unwrap()["tools"]
            .clone()
    };
    let has = |tools: &Value, name: &str| tools.as_array().unwrap().contains(&json!(name));
    let names = [
        "save_knowledge",
        "search_knowledge",
        "save_learning",
        "search_learnings",
    ];
    let inquiries = ["librarian_pending_inquiries", "librarian_dismiss_inquiry"];
    let all = tools("knowledge.enabled=true");
    assert!(
        names.iter().chain(&inquiries).all(|name| has(&all, name)),
        "{all}"
    );
    let without = tools("librarian.enabled=false");
    assert!(
        names.iter().all(|name| has(&without, name))
            && !inquiries.iter().any(|name| has(&without, name))
    );
    let none = tools("knowledge.enabled=false");
    assert!(
        !names.iter().chain(&inquiries).any(|name| has(&none, name)),
        "{none}"
    );
}
