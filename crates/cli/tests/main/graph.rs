//! The knowledge graph as people use it, with no key and no network.

use serde_json::{Value, json};

use crate::setup::TestDir;

const FACTS: &str = "Berlin\tcapital of\tGermany\nGermany\tmember of\tEuropean Union\nFrance\tmember of\tEuropean Union\nParis\tcapital of\tFrance\nSpree\tflows through\tBerlin\n";

fn facts_dir() -> TestDir {
    let desk = TestDir::new();
    desk.write("facts.tsv", FACTS);
    let imported = desk.lango(&["graph", "import", "facts.tsv", "--json"]);
    assert_eq!(
        imported.json(),
        json!({ "facts": 5, "known": 0, "skipped": 0, "mistakes": [] }),
        "{}",
        imported.stderr
    );
    desk
}

/// S80
#[test]
fn facts_are_imported_traversed_and_queried() {
    let desk = facts_dir();
    let around = desk
        .lango(&["graph", "traverse", "berlin", "--depth", "2", "--json"])
        .json();
    let ids: Vec<&str> = around["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["Berlin", "Germany", "Spree", "European Union"]);
    assert_eq!(around["nodes"][3]["depth"], 2);
    let edge = &around["edges"][0];
    assert_eq!(
        (&edge["subject"], &edge["predicate"], &edge["object"]),
        (&json!("Berlin"), &json!("capital of"), &json!("Germany"))
    );
    assert!(
        edge["source"].as_str().unwrap().ends_with("facts.tsv")
            && edge["valid_from"].is_null()
            && edge["valid_to"].is_null()
    );
    let items = desk
        .lango(&["graph", "query", "--object", "european union", "--json"])
        .json()["items"]
        .clone();
    assert_eq!(items.as_array().unwrap().len(), 2);
    let path = desk.lango(&["graph", "path", "spree", "paris"]);
    assert_eq!(path.stdout.lines().count(), 5, "{}", path.stdout);
    let stats = desk.lango(&["graph", "stats", "--json"]).json();
    assert_eq!(
        (&stats["facts"], &stats["names"], &stats["holding"]),
        (&json!(5), &json!(6), &json!(5))
    );
    let again = desk
        .lango(&["graph", "import", "facts.tsv", "--json"])
        .json();
    assert_eq!((&again["facts"], &again["known"]), (&json!(0), &json!(5)));
}

#[test]
fn mistakes_are_told_where_they_are() {
    let desk = facts_dir();
    let unknown = desk.lango(&["graph", "traverse", "Brelin", "--json"]);
    assert_eq!((unknown.exit, unknown.stdout.as_str()), (2, ""));
    assert_eq!(unknown.error()["hint"], "did you mean `Berlin`?");
    desk.write("bad.tsv", "one column\nRome\tcapital of\tItaly\n");
    let bad = desk.lango(&["graph", "import", "bad.tsv"]);
    assert_eq!(bad.exit, 0);
    assert!(bad.stderr.contains("bad.tsv:1: left out"), "{}", bad.stderr);
    assert!(
        desk.lango(&["graph", "query", "Rome"])
            .stdout
            .contains("Italy")
    );
    assert_eq!(desk.lango(&["graph", "import", "nowhere.tsv"]).exit, 2);
    assert_eq!(desk.lango(&["graph", "import", "."]).exit, 2);
    assert_eq!(desk.lango(&["graph", "query"]).exit, 2);
    assert_eq!(
        desk.lango(&["graph", "query", "Berlin", "--at", "someday"])
            .exit,
        2
    );
    assert_eq!(TestDir::new().lango(&["graph", "show"]).exit, 2);
}

#[test]
fn facts_are_added_retired_and_forgotten() {
    let desk = facts_dir();
    let add = [
        "graph",
        "add",
        "Bonn",
        "capital of",
        "Germany",
        "--from",
        "1949",
        "--to",
        "1990-10-03",
        "--property",
        "beta=true",
    ];
    assert_eq!(desk.lango(&add).exit, 0);
    assert!(
        !desk
            .lango(&["graph", "query", "Germany"])
            .stdout
            .contains("Bonn")
    );
    let then = desk
        .lango(&["graph", "query", "Germany", "--at", "1970", "--json"])
        .json();
    let bonn = then["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["subject"] == "Bonn")
        .unwrap()
        .clone();
    assert_eq!(
        (
            &bonn["valid_to"],
            &bonn["source"],
            &bonn["properties"]["beta"]
        ),
        (&json!("1990-10-03"), &json!("user"), &json!(true))
    );
    assert_eq!(
        desk.lango(&[
            "graph",
            "retire",
            "france",
            "member-of",
            "european union",
            "--json"
        ])
        .json()["retired"],
        1
    );
    assert!(
        !desk
            .lango(&["graph", "query", "France"])
            .stdout
            .contains("Union")
    );
    assert!(
        desk.lango(&["graph", "query", "France", "--ever"])
            .stdout
            .contains("Union")
    );
    assert_eq!(
        desk.lango(&["graph", "retire", "france", "member of", "european union"])
            .exit,
        2
    );
    assert_eq!(desk.lango(&["graph", "forget", "user"]).exit, 0);
    assert_eq!(desk.lango(&["graph", "forget", "user"]).exit, 2);
    assert!(
        desk.lango(&["graph", "query", "France"])
            .stdout
            .contains("Union"),
        "the end was told by the user, too"
    );
}

#[test]
fn export_and_import_give_the_same() {
    let desk = facts_dir();
    for format in ["tsv", "nt", "jsonl"] {
        let first = desk.lango(&["graph", "export", "--format", format]).stdout;
        let other = TestDir::new();
        let imported = other.lango_with_input(
            &["graph", "import", "-", "--format", format],
            first.as_bytes(),
        );
        assert_eq!((imported.exit, imported.stderr.as_str()), (0, ""));
        assert_eq!(
            other.lango(&["graph", "export", "--format", format]).stdout,
            first
        );
    }
    assert_eq!(desk.lango(&["graph", "export", "out.nt"]).exit, 0);
    assert!(
        std::fs::read_to_string(desk.path().join("out.nt"))
            .unwrap()
            .contains("<urn:lango:European%20Union>")
    );
    assert_eq!(
        desk.lango(&["graph", "export", "out.nt"]).exit,
        2,
        "nothing is overwritten"
    );
    assert_eq!(
        desk.lango(&["graph", "export", "--json"]).json()["items"]
            .as_array()
            .unwrap()
            .len(),
        5
    );
}

#[test]
fn pictures_hold_names_and_nothing_that_runs() {
    let desk = facts_dir();
    desk.lango(&[
        "graph",
        "add",
        "Berlin",
        "<script>alert(1)</script>",
        "\"quoted\" & co",
    ]);
    let svg = desk.lango(&["graph", "show", "berlin"]).stdout;
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    assert!(svg.contains(">European Union<") && svg.contains("prefers-color-scheme: dark"));
    assert!(!svg.contains("<script") && svg.contains("&lt;script&gt;"));
    let dot = desk.lango(&["graph", "show", "--format", "dot"]).stdout;
    assert!(
        dot.starts_with("digraph") && dot.contains(r#"\"quoted\" & co"#),
        "{dot}"
    );
}

/// S80: `graph.enabled`
#[test]
fn the_tools_are_there_unless_they_are_switched_off() {
    let tools = |set: &str| {
        let tree = TestDir::new()
            .lango(&["agent", "tree", "--json", "--set", set])
            .json();
        tree.to_string().matches("graph_").count()
    };
    assert_eq!(
        (tools("graph.enabled=true"), tools("graph.enabled=false")),
        (5, 0)
    );
}

#[test]
fn the_offline_model_asks_the_graph() {
    let desk = facts_dir();
    let ask = |text: &str| {
        let run = desk.lango(&[
            "ask",
            "--provider",
            "offline",
            "--session",
            "s",
            "--yes",
            text,
        ]);
        assert_eq!(run.exit, 0, "{text}: {}", run.stderr);
        run.stdout
    };
    assert!(ask("how is the Spree related to Germany?").contains("Berlin capital of Germany"));
    assert!(ask("how is Spree related to Germany?").contains("Berlin capital of Germany"));
    assert!(ask("what is connected to Paris?").contains("Paris capital of France"));
    assert!(
        ask("add the fact that Rome is the capital of Italy").contains("Kept: Rome capital Italy")
    );
    assert!(ask("what does the graph know about Rome?").contains("Rome capital Italy"));
    assert!(ask("retire the fact that Rome is the capital of Italy").contains("Ended on"));
    assert!(!ask("what does the graph know about Rome?").contains("Rome capital Italy"));
    let events = desk.lango(&["session", "show", "s", "--json"]).json();
    let results: Vec<Value> = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["type"] == "tool_result")
        .cloned()
        .collect();
    assert!(results.iter().any(|result| result["untrusted"] == true));
    assert_eq!(desk.lango(&["session", "delete", "s"]).exit, 0);
    assert_eq!(
        desk.lango(&["graph", "query", "Rome", "--ever"]).exit,
        2,
        "it went with the session"
    );
}
