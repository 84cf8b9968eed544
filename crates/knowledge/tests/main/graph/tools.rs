//! The tools as a model calls them, rightly and wrongly.

use lango_domain::{Safety, Trust};
use serde_json::{Value, json};

use super::GraphHarness;
use super::expansion::lazy;
use crate::tool_calls::context;

async fn call(desk: &GraphHarness, tool: &str, args: Value) -> Result<String, String> {
    let tools = lango_knowledge::graph::tools(&lazy(desk));
    let tool = tools.iter().find(|found| found.name == tool).unwrap();
    tool.call(context(), args)
        .await
        .map(|output| output.text)
        .map_err(|failure| failure.0)
}

/// S80
#[tokio::test]
async fn facts_are_added_found_followed_and_retired() {
    let desk = GraphHarness::new();
    let fact = json!({ "subject": "Ann", "predicate": "works at", "object": "Acme", "subject_type": "person", "properties": { "as": "baker" }, "valid_from": "2020" });
    assert_eq!(
        call(&desk, "graph_add_fact", fact).await.unwrap(),
        "Kept: Ann works at Acme, from 2020-01-01."
    );
    call(
        &desk,
        "graph_add_fact",
        json!({ "subject": "Bob", "predicate": "works at", "object": "ACME" }),
    )
    .await
    .unwrap();
    let found = call(&desk, "graph_query", json!({ "subject": "ann" }))
        .await
        .unwrap();
    let item = serde_json::from_str::<Value>(&found).unwrap()["items"][0].clone();
    assert_eq!(
        item,
        json!({ "subject": "Ann", "predicate": "works at", "object": "Acme", "valid_from": "2020-01-01", "valid_to": null,
            "source": "session:s#c1", "subject_type": "person", "properties": { "as": "baker" } })
    );
    let around = call(
        &desk,
        "graph_traverse",
        json!({ "start_node": "ann", "max_depth": 2, "predicates": ["works_at"], "limit": 10 }),
    )
    .await;
    let around: Value = serde_json::from_str(&around.unwrap()).unwrap();
    assert_eq!(
        around["nodes"],
        json!([{ "id": "Ann", "depth": 0 }, { "id": "Acme", "depth": 1 }, { "id": "Bob", "depth": 2 }])
    );
    assert_eq!(around["edges"].as_array().unwrap().len(), 2);
    let way = call(&desk, "graph_path", json!({ "from": "Ann", "to": "Bob" }))
        .await
        .unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&way).unwrap()["items"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let gone =
        json!({ "subject": "ann", "predicate": "works-at", "object": "acme", "valid_to": "2025" });
    assert_eq!(
        call(&desk, "graph_retire_fact", gone).await.unwrap(),
        "Ended on 2025-01-01: Ann works at Acme."
    );
    assert!(
        call(&desk, "graph_path", json!({ "from": "Ann", "to": "Bob" }))
            .await
            .unwrap()
            .starts_with("No chain")
    );
    let before = call(
        &desk,
        "graph_query",
        json!({ "object": "acme", "at": "2024-06-01" }),
    )
    .await
    .unwrap();
    assert!(before.contains("Ann") && before.contains("2025-01-01"));
    let again = call(
        &desk,
        "graph_retire_fact",
        json!({ "subject": "ann", "predicate": "works at", "object": "acme" }),
    )
    .await;
    assert!(again.unwrap_err().contains("does not hold"));
}

#[tokio::test]
async fn wrong_calls_say_what_would_be_right() {
    let desk = GraphHarness::new();
    desk.add_facts("Berlin | capital of | Germany").await;
    for (tool, args, words) in [
        ("graph_query", json!({}), "say `subject`"),
        (
            "graph_query",
            json!({ "subject": "Berlni" }),
            "did you mean `Berlin`?",
        ),
        (
            "graph_query",
            json!({ "subject": "Berlin", "predicate": "capitol of" }),
            "did you mean `capital of`?",
        ),
        ("graph_query", json!({ "subject": 7 }), "argument `subject`"),
        (
            "graph_query",
            json!({ "subject": "Berlin", "limit": 0 }),
            "from 1 to 1000",
        ),
        (
            "graph_query",
            json!({ "subject": "Berlin", "at": "some day" }),
            "is no date",
        ),
        (
            "graph_traverse",
            json!({ "start_node": "" }),
            "knows no name",
        ),
        (
            "graph_traverse",
            json!({ "start_node": "Berlin", "max_depth": 99 }),
            "from 1 to 6",
        ),
        (
            "graph_traverse",
            json!({ "start_node": "Berlin", "predicates": ["x"] }),
            "knows no predicate",
        ),
        (
            "graph_path",
            json!({ "from": "Berlin" }),
            "missing field `to`",
        ),
        (
            "graph_add_fact",
            json!({ "subject": " ", "predicate": "p", "object": "o" }),
            "the subject is empty",
        ),
        (
            "graph_add_fact",
            json!({ "subject": "s", "predicate": "p", "object": "o", "valid_from": "2020", "valid_to": "2019" }),
            "before it begins",
        ),
        (
            "graph_retire_fact",
            json!({ "subject": "Germany", "predicate": "capital of", "object": "Berlin" }),
            "not known",
        ),
    ] {
        let failure = call(&desk, tool, args.clone()).await.unwrap_err();
        assert!(failure.contains(words), "{tool} {args}: {failure}");
    }
    assert_eq!(desk.snapshot().await.facts().len(), 1);
}

#[tokio::test]
async fn looking_is_safe_telling_is_not_and_facts_are_data() {
    let desk = GraphHarness::new();
    let tools = lango_knowledge::graph::tools(&lazy(&desk));
    for tool in &tools {
        let looks = !tool.name.ends_with("_fact");
        assert_eq!(
            tool.safety,
            if looks {
                Safety::Safe
            } else {
                Safety::Moderate
            },
            "{}",
            tool.name
        );
        assert_eq!(
            tool.trust,
            if looks { Trust::Untrusted } else { Trust::Own },
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
