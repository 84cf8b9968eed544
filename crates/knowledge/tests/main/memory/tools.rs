use std::sync::Arc;

use lango_domain::memory::{MemoryKind, MemorySpeaker};
use lango_domain::{Safety, Tool, ToolContext, Trust};
use lango_knowledge::Lazy;
use lango_knowledge::memory::tools;
use serde_json::{Value, json};

use super::{MemoryHarness, WriterModel, conversation, texts, user_message};
use crate::tool_calls::context_for;

fn memory_tools(desk: &MemoryHarness) -> Vec<Tool> {
    let chronicle = desk.memory();
    tools(Lazy::new(move || Ok(Arc::new(chronicle.clone()))))
}

async fn call(desk: &MemoryHarness, tool: &str, args: Value) -> Result<String, String> {
    let tools = memory_tools(desk);
    let tool = tools.iter().find(|known| known.name == tool).unwrap();
    let context = ToolContext {
        session: conversation("a").session,
        principal: super::me(),
        ..context_for("chronicler")
    };
    tool.intent(context.clone(), args.clone())
        .await
        .map_err(|failure| failure.0)?;
    tool.call(context, args)
        .await
        .map(|output| output.text)
        .map_err(|failure| failure.0)
}

/// S82
#[tokio::test]
async fn the_chronicler_has_its_tools() {
    let desk = MemoryHarness::new();
    let tools = memory_tools(&desk);
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
async fn what_is_stored_is_recalled_and_forgotten() {
    let desk = MemoryHarness::new();
    desk.turn("a", "t1", vec![user_message("remember that I prefer tea")])
        .await;
    let stored = call(&desk, "memory_store", json!({ "content": "I prefer tea" }))
        .await
        .unwrap();
    assert_eq!(stored, "Remembered as o1 (preference): I prefer tea");
    assert_eq!(
        call(&desk, "memory_store", json!({ "content": "I PREFER tea" }))
            .await
            .unwrap()
            .split(' ')
            .nth(2),
        Some("o1")
    );
    call(
        &desk,
        "observe_event",
        json!({ "event": "The release went out" }),
    )
    .await
    .unwrap();
    let found = desk.observations().await;
    assert_eq!(
        (found[0].sources.as_slice(), found[0].note.speaker),
        (&[1][..], MemorySpeaker::User)
    );
    assert_eq!(
        (found[1].note.kind, found[1].note.speaker),
        (MemoryKind::Event, MemorySpeaker::Others)
    );
    let recalled = call(
        &desk,
        "memory_recall",
        json!({ "query": "what do I like to drink?" }),
    )
    .await
    .unwrap();
    assert_eq!(
        recalled,
        "- 2026-05-01: I prefer tea [preference, medium] (o1)"
    );
    let nothing = call(
        &desk,
        "memory_recall",
        json!({ "query": "what do I like to eat?" }),
    )
    .await
    .unwrap();
    assert_eq!(nothing, "Nothing is remembered about that.");
    let listed = call(&desk, "memory_list_observations", json!({}))
        .await
        .unwrap();
    assert!(
        listed.contains("o1") && listed.contains("not in the user's own words"),
        "{listed}"
    );
    assert_eq!(
        call(&desk, "memory_list_observations", json!({ "session": "" }))
            .await
            .unwrap(),
        listed
    );
    let other = call(&desk, "memory_list_observations", json!({ "session": "b" }))
        .await
        .unwrap();
    assert_eq!(other, "There is nothing yet.");
    assert_eq!(
        call(&desk, "memory_forget", json!({ "what": "I prefer tea" }))
            .await
            .unwrap(),
        "Forgotten: observation o1."
    );
    assert!(
        call(&desk, "memory_forget", json!({ "what": "I prefer tea" }))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn bad_input_is_answered_with_what_to_do() {
    let desk = MemoryHarness::new();
    for (tool, args, says) in [
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
        let failure = call(&desk, tool, args).await.unwrap_err();
        assert!(failure.contains(says), "{tool}: {failure}");
    }
    assert!(desk.observations().await.is_empty());
}

#[tokio::test]
async fn a_conversation_can_be_condensed_at_once() {
    let desk = MemoryHarness::new();
    let nothing = call(&desk, "reflect_summary", json!({})).await.unwrap();
    assert_eq!(nothing, "Nothing was observed in this conversation yet.");
    for (turn, words) in [
        ("t2", "I prefer tea."),
        ("t3", "We decided to use SQLite."),
        ("t4", "I prefer TEA!"),
    ] {
        desk.say("a", turn, words).await;
    }
    let told = call(&desk, "reflect_summary", json!({})).await.unwrap();
    assert!(
        told.contains("decided to use SQLite") && told.contains("(r"),
        "{told}"
    );
    let reflections = desk.reflections().await;
    assert!(
        reflections
            .iter()
            .all(|reflection| !reflection.sources.is_empty())
    );
    let listed = call(&desk, "memory_list_reflections", json!({ "session": "a" }))
        .await
        .unwrap();
    assert_eq!(listed.lines().count(), reflections.len());
}

#[tokio::test]
async fn without_a_place_to_keep_it_the_tools_say_so() {
    let tools = tools(Lazy::new(|| Err("the disk is full".to_owned())));
    let desk = MemoryHarness::observed_by(WriterModel::thorough());
    let context = ToolContext {
        session: conversation("a").session,
        principal: super::me(),
        ..context_for("chronicler")
    };
    let failure = tools[1]
        .call(context, json!({ "query": "tea" }))
        .await
        .unwrap_err();
    assert_eq!(failure.0, "memory cannot be used: the disk is full");
    assert!(texts(&desk.observations().await).is_empty());
}
