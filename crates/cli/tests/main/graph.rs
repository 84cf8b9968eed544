//! The knowledge graph with the offline model.

use serde_json::{Value, json};

use crate::setup::TestDir;

const FACTS: &str = "Berlin\tcapital of\tGermany\nGermany\tmember of\tEuropean Union\nFrance\tmember of\tEuropean Union\nParis\tcapital of\tFrance\nSpree\tflows through\tBerlin\n";

fn facts_dir() -> TestDir {
    let dir = TestDir::new();
    dir.write("facts.tsv", FACTS);
    let imported = dir.lango(&["graph", "import", "facts.tsv", "--json"]);
    assert_eq!(
        imported.json(),
        json!({ "facts": 5, "known": 0, "skipped": 0, "mistakes": [] }),
        "{}",
        imported.stderr
    );
    dir
}

/// S80
#[test]
fn imports_traverses_and_queries_facts() {
    let dir = facts_dir();
    let neighborhood = dir
        .lango(&["graph", "traverse", "berlin", "--depth", "2", "--json"])
        .json();
    let ids: Vec<&str> = neighborhood["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["Berlin", "Germany", "Spree", "European Union"]);
    assert_eq!(neighborhood["nodes"][3]["depth"], 2);
    let edge = &neighborhood["edges"][0];
    assert_eq!(
        (&edge["subject"], &edge["predicate"], &edge["object"]),
        (&json!("Berlin"), &json!("capital of"), &json!("Germany"))
    );
    assert!(
        edge["source"].as_str().unwrap().ends_with("facts.tsv")
            && edge["valid_from"].is_null()
            && edge["valid_to"].is_null()
    );
    let items = dir
        .lango(&["graph", "query", "--object", "european union", "--json"])
        .json()["items"]
        .clone();
    assert_eq!(items.as_array().unwrap().len(), 2);
    let path = dir.lango(&["graph", "path", "spree", "paris"]);
    assert_eq!(path.stdout.lines().count(), 5, "{}", path.stdout);
    let stats = dir.lango(&["graph", "stats", "--json"]).json();
    assert_eq!(
        (&stats["facts"], &stats["names"], &stats["holding"]),
        (&json!(5), &json!(6), &json!(5))
    );
    let again = dir
        .lango(&["graph", "import", "facts.tsv", "--json"])
        .json();
    assert_eq!((&again["facts"], &again["known"]), (&json!(0), &json!(5)));
}

#[test]
fn reports_invalid_lines_and_arguments() {
    let dir = facts_dir();
    let unknown = dir.lango(&["graph", "traverse", "Brelin", "--json"]);
    assert_eq!((unknown.exit, unknown.stdout.as_str()), (2, ""));
    assert_eq!(unknown.error()["hint"], "did you mean `Berlin`?");
    dir.write("bad.tsv", "one column\nRome\tcapital of\tItaly\n");
    let bad = dir.lango(&["graph", "import", "bad.tsv"]);
    assert_eq!(bad.exit, 0);
    assert!(bad.stderr.contains("bad.tsv:1: skipped"), "{}", bad.stderr);
    assert!(
        dir.lango(&["graph", "query", "Rome"])
            .stdout
            .contains("Italy")
    );
    assert_eq!(dir.lango(&["graph", "import", "nowhere.tsv"]).exit, 2);
    assert_eq!(dir.lango(&["graph", "import", "."]).exit, 2);
    assert_eq!(dir.lango(&["graph", "query"]).exit, 2);
    assert_eq!(
        dir.lango(&["graph", "query", "Berlin", "--at", "someday"])
            .exit,
        2
    );
    assert_eq!(TestDir::new().lango(&["graph", "show"]).exit, 2);
}

#[test]
fn added_fact_has_validity_and_properties() {
    let dir = facts_dir();
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
    assert_eq!(dir.lango(&add).exit, 0);
    assert!(
        !dir.lango(&["graph", "query", "Germany"])
            .stdout
            .contains("Bonn")
    );
    let then = dir
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
}

#[test]
fn retires_and_forgets_facts() {
    let dir = facts_dir();
    assert_eq!(
        dir.lango(&[
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
        !dir.lango(&["graph", "query", "France"])
            .stdout
            .contains("Union")
    );
    assert!(
        dir.lango(&["graph", "query", "France", "--ever"])
            .stdout
            .contains("Union")
    );
    assert_eq!(
        dir.lango(&["graph", "retire", "france", "member of", "european union"])
            .exit,
        2
    );
    assert_eq!(dir.lango(&["graph", "forget", "user"]).exit, 0);
    assert_eq!(dir.lango(&["graph", "forget", "user"]).exit, 2);
    assert!(
        dir.lango(&["graph", "query", "France"])
            .stdout
            .contains("Union"),
        "the end of the fact came from the user, too"
    );
}

#[test]
fn export_and_import_round_trip() {
    let dir = facts_dir();
    for format in ["tsv", "nt", "jsonl"] {
        let first = dir.lango(&["graph", "export", "--format", format]).stdout;
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
    assert_eq!(dir.lango(&["graph", "export", "out.nt"]).exit, 0);
    assert!(
        std::fs::read_to_string(dir.path().join("out.nt"))
            .unwrap()
            .contains("<urn:lango:European%20Union>")
    );
    assert_eq!(
        dir.lango(&["graph", "export", "out.nt"]).exit,
        2,
        "existing files are not overwritten"
    );
    assert_eq!(
        dir.lango(&["graph", "export", "--json"]).json()["items"]
            .as_array()
            .unwrap()
            .len(),
        5
    );
}

#[test]
fn diagrams_escape_names() {
    let dir = facts_dir();
    dir.lango(&[
        "graph",
        "add",
        "Berlin",
        "<script>alert(1)</script>",
        "\"quoted\" & co",
    ]);
    let svg = dir.lango(&["graph", "show", "berlin"]).stdout;
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    assert!(svg.contains(">European Union<") && svg.contains("prefers-color-scheme: dark"));
    assert!(!svg.contains("<script") && svg.contains("&lt;script&gt;"));
    let dot = dir.lango(&["graph", "show", "--format", "dot"]).stdout;
    assert!(
        dot.starts_with("digraph") && dot.contains(r#"\"quoted\" & co"#),
        "{dot}"
    );
}

/// S80: `graph.enabled`
#[test]
fn graph_tools_can_be_disabled() {
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
fn offline_model_queries_the_graph() {
    let dir = facts_dir();
    let ask = |text: &str| {
        let run = dir.lango(&[
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
    let events = dir.lango(&["session", "show", "s", "--json"]).json();
    let results: Vec<Value> = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["type"] == "tool_result")
        .cloned()
        .collect();
    assert!(results.iter().any(|result| result["untrusted"] == true));
    assert_eq!(dir.lango(&["session", "delete", "s"]).exit, 0);
    assert_eq!(
        dir.lango(&["graph", "query", "Rome", "--ever"]).exit,
        2,
        "the facts are deleted with the session"
    );
}
