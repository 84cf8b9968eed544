//! A store that the release before this one wrote, with its sessions, documents, facts and memory.

use serde_json::json;

use crate::setup::TestDir;

const STORE: &[u8] = include_bytes!("../../../store/tests/fixtures/release-0.1.sqlite");

fn with_older_store() -> TestDir {
    let dir = TestDir::new();
    std::fs::create_dir_all(dir.path().join("home")).unwrap();
    std::fs::write(dir.path().join("home/lango.sqlite"), STORE).unwrap();
    dir
}

#[test]
fn lists_searches_and_shows_sessions() {
    let dir = with_older_store();
    let listed = dir.lango(&["session", "list", "--json"]).json();
    let ids: Vec<&str> = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["notes", "docs", "shell"]);
    let found = dir.lango(&["session", "search", "sister", "--json"]).json();
    assert_eq!(found["items"][0]["session"], "notes");
    let shown = dir.lango(&["session", "show", "shell", "--json"]).json();
    assert_eq!(shown["events"][0]["text"], "run echo fixture");
    let audit = dir.lango(&["audit", "--session", "shell", "--json"]).json();
    assert_eq!(audit["items"][0]["tool"], "exec_shell");
    let doctor = dir.lango(&["doctor", "--json"]).json();
    let rows = doctor["checks"].as_array().unwrap();
    let rows = rows.iter().find(|check| check["id"] == "rows").unwrap();
    assert_eq!(rows["status"], "pass");
}

#[test]
fn finds_what_was_learned_and_indexed() {
    let dir = with_older_store();
    let memories = dir.lango(&["memory", "observations"]).stdout;
    assert!(memories.contains("Ada lives in Vienna"), "{memories}");
    let facts = dir.lango(&["graph", "query", "Ada", "--json"]).json();
    assert!(facts.to_string().contains("Vienna"), "{facts}");
    let passages = dir.lango(&["index", "search", "ferns", "--json"]).json();
    assert!(passages.to_string().contains("every Monday"), "{passages}");
    let tokens = dir.lango(&["token", "list", "--json"]).json();
    assert_eq!(tokens["items"][0]["name"], json!("fixture"));
}

#[test]
fn continues_a_session() {
    let dir = with_older_store();
    let before = dir.lango(&["session", "show", "notes", "--json"]).json();
    let args = [
        "ask",
        "--provider",
        "offline",
        "--session",
        "notes",
        "hello",
    ];
    let run = dir.lango(&args);
    assert_eq!(run.exit, 0, "{}", run.stderr);
    let after = dir.lango(&["session", "show", "notes", "--json"]).json();
    let (before, after) = (
        before["events"].as_array().unwrap(),
        after["events"].as_array().unwrap(),
    );
    assert!(after.len() > before.len());
    assert_eq!(after[..before.len()], before[..]);
}
