//! The graph tools, with valid and invalid calls.

use lango_domain::{Safety, Trust};
use serde_json::{Value, json};

use super::GraphHarness;
use super::expansion::lazy;
use lango_testkit::tool_context as context;

async fn call(harness: &GraphHarness, tool: &str, args: Value) -> Result<String, String> {
    let tools = lango_graph::tools(&lazy(harness));
    let tool = tools.iter().find(|found| found.name == tool).unwrap();
    tool.call(context(), args)
        .await
        .map(|output| output.content.text)
        .map_err(|error| error.0)
}

async fn call_json(harness: &GraphHarness, tool: &str, args: Value) -> Value {
    let text = call(harness, tool, args).await.unwrap();
    serde_json::from_str(&text).unwrap()
}

/// S80
#[tokio::test]
async fn adds_and_finds_facts() {
    let harness = GraphHarness::new();
    let fact = json!({ "subject": "Ann", "predicate": "works at", "object": "Acme", "subject_type": "person", "properties": { "as": "baker" }, "valid_from": "2020" });
    assert_eq!(
        call(&harness, "graph_add_fact", fact).await.unwrap(),
        "Kept: Ann works at Acme, from 2020-01-01."
    );
    let found = call_json(&harness, "graph_query", json!({ "subject": "ann" })).await;
    assert_eq!(
        found["items"][0],
        json!({ "subject": "Ann", "predicate": "works at", "object": "Acme", "valid_from": "2020-01-01", "valid_to": null,
            "source": "session:s#c1", "subject_type": "person", "properties": { "as": "baker" } })
    );
}

/// S80
#[tokio::test]
async fn traverses_and_retires_facts() {
    let harness = GraphHarness::new();
    harness
        .add_facts("Ann | works at | Acme\n Bob | works at | ACME")
        .await;
    let around =
        json!({ "start_node": "ann", "max_depth": 2, "predicates": ["works_at"], "limit": 10 });
    let around = call_json(&harness, "graph_traverse", around).await;
    assert_eq!(
        around["nodes"],
        json!([{ "id": "Ann", "depth": 0 }, { "id": "Acme", "depth": 1 }, { "id": "Bob", "depth": 2 }])
    );
    assert_eq!(around["edges"].as_array().unwrap().len(), 2);
    let ends = json!({ "from": "Ann", "to": "Bob" });
    let path = call_json(&harness, "graph_path", ends.clone()).await;
    assert_eq!(path["items"].as_array().unwrap().len(), 2);
    let retirement =
        json!({ "subject": "ann", "predicate": "works-at", "object": "acme", "valid_to": "2025" });
    assert_eq!(
        call(&harness, "graph_retire_fact", retirement)
            .await
            .unwrap(),
        "Ended on 2025-01-01: Ann works at Acme."
    );
    let path = call(&harness, "graph_path", ends).await.unwrap();
    assert!(path.starts_with("No chain"));
    let earlier = json!({ "object": "acme", "at": "2024-06-01" });
    let earlier = call(&harness, "graph_query", earlier).await.unwrap();
    assert!(earlier.contains("Ann") && earlier.contains("2025-01-01"));
    let again = json!({ "subject": "ann", "predicate": "works at", "object": "acme" });
    let again = call(&harness, "graph_retire_fact", again).await;
    assert!(again.unwrap_err().contains("no such fact that is valid"));
}

#[tokio::test]
async fn errors_explain_invalid_reads() {
    let harness = GraphHarness::new();
    harness.add_facts("Berlin | capital of | Germany").await;
    let query = |args: Value| ("graph_query", args);
    let traverse = |args: Value| ("graph_traverse", args);
    for ((tool, args), expected) in [
        (query(json!({})), "at least one of `subject`, `object`"),
        (query(json!({ "subject": "Berlni" })), "mean `Berlin`?"),
        (
            query(json!({ "subject": "Berlin", "predicate": "capitol of" })),
            "did you mean `capital of`?",
        ),
        (query(json!({ "subject": 7 })), "argument `subject`"),
        (
            query(json!({ "subject": "Berlin", "limit": 0 })),
            "from 1 to 1000",
        ),
        (
            query(json!({ "subject": "Berlin", "at": "some day" })),
            "invalid date `some day`",
        ),
        (traverse(json!({ "start_node": "" })), "has no name"),
        (
            traverse(json!({ "start_node": "Berlin", "max_depth": 99 })),
            "from 1 to 6",
        ),
        (
            traverse(json!({ "start_node": "Berlin", "predicates": ["x"] })),
            "has no predicate",
        ),
        (
            ("graph_path", json!({ "from": "Berlin" })),
            "missing field `to`",
        ),
    ] {
        let error = call(&harness, tool, args.clone()).await.unwrap_err();
        assert!(error.contains(expected), "{tool} {args}: {error}");
    }
}

#[tokio::test]
async fn errors_explain_invalid_writes() {
    let harness = GraphHarness::new();
    harness.add_facts("Berlin | capital of | Germany").await;
    for (tool, args, expected) in [
        (
            "graph_add_fact",
            json!({ "subject": " ", "predicate": "p", "object": "o" }),
            "the subject is empty",
        ),
        (
            "graph_add_fact",
            json!({ "subject": "s", "predicate": "p", "object": "o", "valid_from": "2020", "valid_to": "2019" }),
            "is before the start",
        ),
        (
            "graph_retire_fact",
            json!({ "subject": "Germany", "predicate": "capital of", "object": "Berlin" }),
            "the graph has no such fact",
        ),
    ] {
        let error = call(&harness, tool, args.clone()).await.unwrap_err();
        assert!(error.contains(expected), "{tool} {args}: {error}");
    }
    assert_eq!(harness.snapshot().await.facts().len(), 1);
}

#[tokio::test]
async fn reading_is_safe_and_untrusted_and_writing_is_moderate() {
    let harness = GraphHarness::new();
    let tools = lango_graph::tools(&lazy(&harness));
    for tool in &tools {
        let is_read_only = !tool.name.ends_with("_fact");
        assert_eq!(
            tool.safety,
            if is_read_only {
                Safety::Safe
            } else {
                Safety::Moderate
            },
            "{}",
            tool.name
        );
        assert_eq!(
            tool.trust,
            if is_read_only {
                Trust::Untrusted
            } else {
                Trust::Own
            },
            "{}",
            tool.name
        );
    }
    let add = tools
        .iter()
        .find(|tool| tool.name == "graph_add_fact")
        .unwrap();
    let intent = add
        .intent(
            context(),
            json!({ "subject": "a", "predicate": "is", "object": "b" }),
        )
        .await
        .unwrap();
    assert_eq!(intent.shows, "add the fact: a is b");
}
