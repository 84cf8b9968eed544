use std::sync::Arc;

use lango_domain::lazy::Lazy;
use lango_domain::memory::{MemoryKind, MemorySpeaker};
use lango_domain::{Safety, Tool, ToolContext, Trust};
use lango_memory::observational_memory::tools;
use serde_json::{Value, json};

use super::{MemoryHarness, WriterModel, conversation, texts, user_message};
use lango_testkit::tool_context_for as context_for;

fn memory_tools(harness: &MemoryHarness) -> Vec<Tool> {
    let memory = harness.memory();
    tools(Lazy::new(move || Ok(Arc::new(memory.clone()))))
}

async fn call(harness: &MemoryHarness, tool: &str, args: Value) -> Result<String, String> {
    let tools = memory_tools(harness);
    let tool = tools
        .iter()
        .find(|candidate| candidate.name == tool)
        .unwrap();
    let context = ToolContext {
        session: conversation("a").session,
        principal: super::me(),
        ..context_for("chronicler")
    };
    tool.intent(context.clone(), args.clone())
        .await
        .map_err(|error| error.0)?;
    tool.call(context, args)
        .await
        .map(|output| output.content.text)
        .map_err(|error| error.0)
}

/// S82
#[tokio::test]
async fn chronicler_has_its_tools() {
    let harness = MemoryHarness::new();
    let tools = memory_tools(&harness);
    let levels: Vec<(&str, Safety, Trust)> = tools
        .iter()
        .map(|tool| (tool.name.as_str(), tool.safety, tool.trust))
        .collect();
    assert_eq!(
        levels,
        [
            ("memory_store", Safety::Moderate, Trust::Own),
            ("memory_recall", Safety::Safe, Trust::Untrusted),
            ("memory_list_observations", Safety::Safe, Trust::Untrusted),
            ("memory_list_reflections", Safety::Safe, Trust::Untrusted),
            ("memory_forget", Safety::Dangerous, Trust::Own),
            ("observe_event", Safety::Moderate, Trust::Own),
            ("reflect_summary", Safety::Moderate, Trust::Untrusted),
        ]
    );
    assert!(tools.iter().all(|tool| !tool.phrases.is_empty()));
}

/// S82
#[tokio::test]
async fn stores_recalls_and_forgets() {
    let harness = MemoryHarness::new();
    harness
        .turn("a", "t1", vec![user_message("remember that I prefer tea")])
        .await;
    let run = async |tool: &str, args: Value| call(&harness, tool, args).await.unwrap();
    let stored = run("memory_store", json!({ "content": "I prefer tea" })).await;
    assert_eq!(stored, "Remembered as o1 (preference): I prefer tea");
    let again = run("memory_store", json!({ "content": "I PREFER tea" })).await;
    assert_eq!(again.split(' ').nth(2), Some("o1"));
    let event = json!({ "event": "The release went out" });
    run("observe_event", event).await;
    let found = harness.observations().await;
    assert_eq!(
        (found[0].sources.as_slice(), found[0].note.speaker),
        (&[1][..], MemorySpeaker::User)
    );
    assert_eq!(
        (found[1].note.kind, found[1].note.speaker),
        (MemoryKind::Event, MemorySpeaker::Others)
    );
    let drink = json!({ "query": "what do I like to drink?" });
    assert_eq!(
        run("memory_recall", drink).await,
        "- 2026-05-01: I prefer tea [preference, medium] (o1)"
    );
    let food = json!({ "query": "what do I like to eat?" });
    assert_eq!(
        run("memory_recall", food).await,
        "Nothing is remembered about that."
    );
    let what = json!({ "what": "I prefer tea" });
    assert_eq!(
        run("memory_forget", what.clone()).await,
        "Forgotten: observation o1."
    );
    assert!(call(&harness, "memory_forget", what).await.is_err());
}

/// S82
#[tokio::test]
async fn lists_observations_by_session() {
    let harness = MemoryHarness::new();
    harness.turn("a", "t1", vec![user_message("hello")]).await;
    let run = async |tool: &str, args: Value| call(&harness, tool, args).await.unwrap();
    let event = json!({ "event": "The release went out" });
    run("observe_event", event).await;
    let list = async |args: Value| run("memory_list_observations", args).await;
    let listed = list(json!({})).await;
    assert!(
        listed.contains("o1") && listed.contains("not in the user's own words"),
        "{listed}"
    );
    assert_eq!(list(json!({ "session": "" })).await, listed);
    assert_eq!(
        list(json!({ "session": "b" })).await,
        "There is nothing yet."
    );
}

#[tokio::test]
async fn errors_explain_invalid_calls() {
    let harness = MemoryHarness::new();
    for (tool, args, expected) in [
        ("memory_store", json!({}), "content"),
        ("memory_store", json!({ "content": 7 }), "content"),
        (
            "memory_store",
            json!({ "content": " \n\u{0}" }),
            "nothing to remember",
        ),
        (
            "memory_store",
            json!({ "content": "word ".repeat(5_000) }),
            "too long",
        ),
        (
            "memory_store",
            json!({ "content": "my password is hunter2" }),
            "secrets",
        ),
        (
            "memory_store",
            json!({ "content": "x", "kind": "mood" }),
            "kind",
        ),
        (
            "memory_recall",
            json!({ "query": "x", "limit": 0 }),
            "from 1 to 100",
        ),
        (
            "memory_list_reflections",
            json!({ "limit": 1_000 }),
            "from 1 to 100",
        ),
        ("memory_forget", json!({ "what": "" }), "nothing like that"),
    ] {
        let error = call(&harness, tool, args).await.unwrap_err();
        assert!(error.contains(expected), "{tool}: {error}");
    }
    assert!(harness.observations().await.is_empty());
}

#[tokio::test]
async fn reflects_on_request() {
    let harness = MemoryHarness::new();
    let nothing = call(&harness, "reflect_summary", json!({})).await.unwrap();
    assert_eq!(nothing, "Nothing was observed in this conversation yet.");
    for (turn, message) in [
        ("t2", "I prefer tea."),
        ("t3", "We decided to use SQLite."),
        ("t4", "I prefer TEA!"),
    ] {
        harness.say("a", turn, message).await;
    }
    let reflected = call(&harness, "reflect_summary", json!({})).await.unwrap();
    assert!(
        reflected.contains("decided to use SQLite") && reflected.contains("(r"),
        "{reflected}"
    );
    let reflections = harness.reflections().await;
    assert!(
        reflections
            .iter()
            .all(|reflection| !reflection.sources.is_empty())
    );
    let listed = call(
        &harness,
        "memory_list_reflections",
        json!({ "session": "a" }),
    )
    .await
    .unwrap();
    assert_eq!(listed.lines().count(), reflections.len());
}

#[tokio::test]
async fn reports_why_the_store_cannot_be_opened() {
    let tools = tools(Lazy::new(|| Err("the disk is full".to_owned())));
    let harness = MemoryHarness::observed_by(WriterModel::thorough());
    let context = ToolContext {
        session: conversation("a").session,
        principal: super::me(),
        ..context_for("chronicler")
    };
    let error = tools[1]
        .call(context, json!({ "query": "tea" }))
        .await
        .unwrap_err();
    assert_eq!(error.0, "memory is not available: the disk is full");
    assert!(texts(&harness.observations().await).is_empty());
}
