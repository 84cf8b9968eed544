use std::sync::Arc;

use lango_domain::event::SessionId;
use lango_domain::hooks::{AfterTurn, DigestSource};
use lango_domain::memory::MemoryId;
use lango_knowledge::forget::LearnedItemId;

use super::{MemoryHarness, WriterModel, conversation, me, texts};

fn long(words: &str) -> String {
    format!("{words} {}", "and so on and on ".repeat(20))
}

/// A session with a reflection of everything, and a digest.
async fn reflected_harness() -> MemoryHarness {
    let writer = WriterModel::new(|_, lines| {
        let is_reflecting = lines.iter().all(|(mark, _)| mark.starts_with(['o', 'r']));
        let line = |(mark, text): &(String, String)| {
            let number = text
                .split("number ")
                .nth(1)
                .and_then(|rest| rest.split([' ', '.']).next())
                .unwrap_or("x");
            format!("high | fact | {mark} | Of number {number}.")
        };
        if is_reflecting {
            // Two reflections: one of the first observation and the second, one of the rest.
            let marks: Vec<&str> = lines.iter().map(|(mark, _)| mark.as_str()).collect();
            return Ok(format!(
                "high | fact | {}, {} | The first two.\nlow | fact | {} | The rest.",
                marks[0],
                marks[1],
                marks[2..].join(",")
            ));
        }
        Ok(lines
            .iter()
            .filter(|(_, text)| text.contains("user: "))
            .map(line)
            .collect::<Vec<_>>()
            .join("\n"))
    });
    let desk = MemoryHarness::observed_by(writer);
    let chronicle = desk.memory();
    for turn in 0..12 {
        desk.say(
            "a",
            &format!("t{turn}"),
            &long(&format!("number {turn} matters")),
        )
        .await;
        chronicle.on_turn_end(conversation("a")).await;
    }
    assert!(chronicle.reflect(&conversation("a")).await.unwrap());
    assert_eq!(desk.reflections().await.len(), 2);
    desk
}

/// S82: what is forgotten is gone from reflections and digest, everywhere else, and stays so.
#[tokio::test]
async fn forgetting_reaches_everything_that_was_made_of_it() {
    let desk = reflected_harness().await;
    let chronicle = desk.memory();
    let first = desk.observations().await.remove(0);
    assert_eq!(first.note.text, "Of number 0.");
    assert_eq!(
        desk.forget(&first.id.to_string()).await,
        ["Of number 0.", "The first two."]
    );
    assert_eq!(texts(&desk.reflections().await), ["The rest."]);
    let digest = chronicle.digest(conversation("a")).await.unwrap().unwrap();
    assert!(
        !digest.text.contains("number 0") && digest.text.contains("Of number 1."),
        "{}",
        digest.text
    );
    assert!(chronicle.evidence(&me(), first.id).await.unwrap().is_none());
    chronicle.on_turn_end(conversation("a")).await;
    assert!(!texts(&desk.observations().await).contains(&"Of number 0."));
    let files = std::fs::read(desk.store.location().path()).unwrap();
    let gone_for_good = b"Of number 0.";
    assert!(
        !files
            .windows(gone_for_good.len())
            .any(|window| window == gone_for_good),
        "its row is overwritten"
    );
}

/// A copy of the session, which nobody has observed yet, brings nothing back.
#[tokio::test]
async fn forgotten_events_are_not_observed_again() {
    let desk = MemoryHarness::new();
    let chronicle = desk.memory();
    desk.say("a", "t1", "I prefer tea. My name is Ada.").await;
    desk.say("a", "t2", "I live in Vienna.").await;
    chronicle.on_turn_end(conversation("a")).await;
    assert_eq!(desk.forget("that I prefer tea").await, ["I prefer tea"]);
    desk.store
        .fork(&me(), &SessionId::new("a"), 99, &SessionId::new("b"))
        .await
        .unwrap();
    chronicle.on_turn_end(conversation("b")).await;
    let found = desk.observations().await;
    assert_eq!(
        texts(&found),
        ["My name is Ada", "I live in Vienna", "I live in Vienna"]
    );
}

/// Asked to be remembered and forgotten before the observer came by.
#[tokio::test]
async fn what_is_forgotten_while_it_is_observed_is_not_kept() {
    let desk = Arc::new(MemoryHarness::observed_by(WriterModel::thorough()));
    desk.say("a", "t1", &long("number 0 matters")).await;
    desk.say("a", "t2", &long("number 1 matters")).await;
    let at = *desk.now.lock().unwrap();
    let note = lango_domain::memory::MemoryNote {
        text: "kept by wish".to_owned(),
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
    let id = lango_domain::memory::MemoryStore::store(&desk.store, &conversation("a"), new.clone())
        .await
        .unwrap();
    assert_eq!(desk.forget(&id.to_string()).await, ["kept by wish"]);
    let piece = lango_domain::memory::ObservedSpan {
        after: 0,
        last: 6,
        tokens: 10,
        origin: lango_domain::memory::MemoryOrigin::Rules,
        observations: vec![new],
    };
    lango_domain::memory::MemoryStore::save_span(&desk.store, &conversation("a"), piece)
        .await
        .unwrap();
    assert!(desk.observations().await.is_empty());
}

#[tokio::test]
async fn a_reflection_is_forgotten_with_what_it_condenses() {
    let desk = reflected_harness().await;
    let first = desk.reflections().await.remove(0);
    let gone = desk.forget(&first.id.to_string()).await;
    assert_eq!(gone, ["Of number 0.", "Of number 1.", "The first two."]);
    assert_eq!(texts(&desk.reflections().await), ["The rest."]);
}

#[tokio::test]
async fn only_what_is_meant_is_forgotten() {
    let desk = reflected_harness().await;
    let meant = async |what: &str| desk.find_to_forget(what).await.len();
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
        assert_eq!(meant(nothing).await, 0, "{nothing}");
    }
    // With the reflection that was made of them.
    assert_eq!(meant("o1, o2").await, 3);
    assert_eq!(meant("everything you know about me").await, 14);
    assert!(
        desk.find_to_forget("R1")
            .await
            .iter()
            .any(|trace| trace.id == LearnedItemId::Memory(MemoryId::Reflection(1)))
    );
}

/// A deleted session takes its memory along; what was asked for stays when old sessions only go by age.
#[tokio::test]
async fn memory_goes_with_its_session() {
    let desk = MemoryHarness::new();
    let chronicle = desk.memory();
    for session in ["a", "b"] {
        desk.say(session, "t1", "I prefer tea.").await;
        chronicle.on_turn_end(conversation(session)).await;
        let note = desk.observations().await.remove(0).note;
        let note = lango_domain::memory::MemoryNote {
            text: format!("asked in {session}"),
            ..note
        };
        let new = lango_domain::memory::NewMemory {
            note,
            turn: lango_domain::event::TurnId::new("t1"),
            sources: vec![1],
        };
        lango_domain::memory::MemoryStore::store(&desk.store, &conversation(session), new)
            .await
            .unwrap();
    }
    assert_eq!(desk.observations().await.len(), 4);
    desk.store
        .delete(&me(), &SessionId::new("a"))
        .await
        .unwrap();
    assert_eq!(
        texts(&desk.observations().await),
        ["I prefer tea", "asked in b"]
    );
    desk.store.prune(&me(), jiff::Timestamp::MAX).await.unwrap();
    let left = desk.observations().await;
    assert_eq!(
        (texts(&left), left[0].sources.len()),
        (vec!["asked in b"], 0)
    );
}
