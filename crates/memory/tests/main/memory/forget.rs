use std::sync::Arc;

use lango_domain::event::SessionId;
use lango_domain::hooks::{AfterTurn, DigestSource};
use lango_domain::memory::MemoryId;
use lango_domain::session_catalog::SessionCatalog as _;
use lango_memory::forget::LearnedItemId;

use super::{MemoryHarness, WriterModel, conversation, me, texts};

fn long(start: &str) -> String {
    format!("{start} {}", "and so on and on ".repeat(20))
}

/// A session with reflections of all observations, and a digest.
async fn reflected_harness() -> MemoryHarness {
    let writer = WriterModel::new(|_, lines| {
        let is_reflecting = lines.iter().all(|(id, _)| id.starts_with(['o', 'r']));
        let line = |(id, text): &(String, String)| {
            let number = text
                .split("number ")
                .nth(1)
                .and_then(|rest| rest.split([' ', '.']).next())
                .unwrap_or("x");
            format!("high | fact | {id} | Of number {number}.")
        };
        if is_reflecting {
            // Two reflections: one of the first two observations, one of the rest.
            let ids: Vec<&str> = lines.iter().map(|(id, _)| id.as_str()).collect();
            return Ok(format!(
                "high | fact | {}, {} | The first two.\nlow | fact | {} | The rest.",
                ids[0],
                ids[1],
                ids[2..].join(",")
            ));
        }
        Ok(lines
            .iter()
            .filter(|(_, text)| text.contains("user: "))
            .map(line)
            .collect::<Vec<_>>()
            .join("\n"))
    });
    let harness = MemoryHarness::observed_by(writer);
    let memory = harness.memory();
    for turn in 0..12 {
        harness
            .say(
                "a",
                &format!("t{turn}"),
                &long(&format!("number {turn} matters")),
            )
            .await;
        memory.on_turn_end(conversation("a")).await;
    }
    assert!(memory.reflect(&conversation("a")).await.unwrap());
    assert_eq!(harness.reflections().await.len(), 2);
    harness
}

/// S82: forgetting removes an observation from reflections, the digest and the file, permanently.
#[tokio::test]
async fn forgetting_removes_everything_derived() {
    let harness = reflected_harness().await;
    let memory = harness.memory();
    let first = harness.observations().await.remove(0);
    assert_eq!(first.note.text, "Of number 0.");
    assert_eq!(
        harness.forget(&first.id.to_string()).await,
        ["Of number 0.", "The first two."]
    );
    assert_eq!(texts(&harness.reflections().await), ["The rest."]);
    let digest = memory.digest(conversation("a")).await.unwrap().unwrap();
    assert!(
        !digest.text.contains("number 0") && digest.text.contains("Of number 1."),
        "{}",
        digest.text
    );
    assert!(memory.evidence(&me(), first.id).await.unwrap().is_none());
    memory.on_turn_end(conversation("a")).await;
    assert!(!texts(&harness.observations().await).contains(&"Of number 0."));
    let files = std::fs::read(harness.store.location().path()).unwrap();
    let forgotten = b"Of number 0.";
    assert!(
        !files
            .windows(forgotten.len())
            .any(|window| window == forgotten),
        "the row is overwritten"
    );
}

/// An unobserved copy of the session does not restore forgotten memories.
#[tokio::test]
async fn forgotten_events_are_not_observed_again() {
    let harness = MemoryHarness::new();
    let memory = harness.memory();
    harness
        .say("a", "t1", "I prefer tea. My name is Ada.")
        .await;
    harness.say("a", "t2", "I live in Vienna.").await;
    memory.on_turn_end(conversation("a")).await;
    assert_eq!(harness.forget("that I prefer tea").await, ["I prefer tea"]);
    harness
        .store
        .fork(&me(), &SessionId::new("a"), 99, &SessionId::new("b"))
        .await
        .unwrap();
    memory.on_turn_end(conversation("b")).await;
    let found = harness.observations().await;
    assert_eq!(
        texts(&found),
        ["My name is Ada", "I live in Vienna", "I live in Vienna"]
    );
}

/// A memory that is stored on request and forgotten before the session is observed.
#[tokio::test]
async fn memories_forgotten_during_observation_are_not_saved() {
    let harness = Arc::new(MemoryHarness::observed_by(WriterModel::thorough()));
    harness.say("a", "t1", &long("number 0 matters")).await;
    harness.say("a", "t2", &long("number 1 matters")).await;
    let at = *harness.now.lock().unwrap();
    let note = lango_domain::memory::MemoryNote {
        text: "stored on request".to_owned(),
        kind: lango_domain::memory::MemoryKind::Fact,
        priority: lango_domain::memory::MemoryPriority::High,
        speaker: lango_domain::memory::MemorySpeaker::User,
        label: Default::default(),
        at,
    };
    let new = lango_domain::memory::NewMemory {
        note,
        turn: lango_domain::event::TurnId::new("t1"),
        sources: vec![1],
    };
    let id =
        lango_domain::memory::MemoryStore::store(&harness.store, &conversation("a"), new.clone())
            .await
            .unwrap();
    assert_eq!(harness.forget(&id.to_string()).await, ["stored on request"]);
    let span = lango_domain::memory::ObservedSpan {
        after: 0,
        last: 6,
        tokens: 10,
        origin: lango_domain::memory::MemoryOrigin::Rules,
        observations: vec![new],
    };
    lango_domain::memory::MemoryStore::save_span(&harness.store, &conversation("a"), span)
        .await
        .unwrap();
    assert!(harness.observations().await.is_empty());
}

#[tokio::test]
async fn forgetting_a_reflection_removes_its_observations() {
    let harness = reflected_harness().await;
    let first = harness.reflections().await.remove(0);
    let removed = harness.forget(&first.id.to_string()).await;
    assert_eq!(removed, ["Of number 0.", "Of number 1.", "The first two."]);
    assert_eq!(texts(&harness.reflections().await), ["The rest."]);
}

#[tokio::test]
async fn selects_only_matching_memories() {
    let harness = reflected_harness().await;
    let count_selected = async |query: &str| harness.find_to_forget(query).await.len();
    for nothing in [
        "",
        "it",
        "that",
        "what I said",
        "o9999",
        "r77",
        "o1, nonsense words",
        "unrelated things entirely",
        "\u{0}",
    ] {
        assert_eq!(count_selected(nothing).await, 0, "{nothing}");
    }
    // Includes the reflection that condenses them.
    assert_eq!(count_selected("o1, o2").await, 3);
    assert_eq!(count_selected("everything you know about me").await, 14);
    assert!(
        harness
            .find_to_forget("R1")
            .await
            .iter()
            .any(|item| item.id == LearnedItemId::Memory(MemoryId::Reflection(1)))
    );
}

/// Deleting a session deletes its memories. Pruning by age keeps memories that the user asked for.
#[tokio::test]
async fn deleting_a_session_deletes_its_memories() {
    let harness = MemoryHarness::new();
    let memory = harness.memory();
    for session in ["a", "b"] {
        harness.say(session, "t1", "I prefer tea.").await;
        memory.on_turn_end(conversation(session)).await;
        let note = harness.observations().await.remove(0).note;
        let note = lango_domain::memory::MemoryNote {
            text: format!("asked in {session}"),
            ..note
        };
        let new = lango_domain::memory::NewMemory {
            note,
            turn: lango_domain::event::TurnId::new("t1"),
            sources: vec![1],
        };
        lango_domain::memory::MemoryStore::store(&harness.store, &conversation(session), new)
            .await
            .unwrap();
    }
    assert_eq!(harness.observations().await.len(), 4);
    harness
        .store
        .delete(&me(), &SessionId::new("a"))
        .await
        .unwrap();
    assert_eq!(
        texts(&harness.observations().await),
        ["I prefer tea", "asked in b"]
    );
    harness
        .store
        .prune(&me(), jiff::Timestamp::MAX)
        .await
        .unwrap();
    let remaining = harness.observations().await;
    assert_eq!(
        (texts(&remaining), remaining[0].sources.len()),
        (vec!["asked in b"], 0)
    );
}
