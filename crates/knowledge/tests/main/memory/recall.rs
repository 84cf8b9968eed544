use lango_domain::event::{Principal, SessionId};
use lango_domain::hooks::{ContextRequest, ContextSource};
use lango_domain::memory::{
    MemoryKind, MemoryNote, MemoryPriority, MemorySpeaker, MemoryStore, NewMemory,
};
use lango_domain::token_estimate;
use lango_knowledge::forget::{ForgetSelection, Forgetter};
use lango_knowledge::memory::{ObservationalMemory, RecallMode, detect_kind};

use super::{MemoryHarness, conversation, me};

async fn store_memory(desk: &MemoryHarness, session: &str, text: &str) {
    store_memory_as(desk, session, text, detect_kind(text)).await;
}

async fn store_memory_as(desk: &MemoryHarness, session: &str, text: &str, kind: MemoryKind) {
    let at = *desk.now.lock().unwrap();
    let note = MemoryNote {
        text: text.to_owned(),
        kind,
        priority: MemoryPriority::Medium,
        speaker: MemorySpeaker::User,
        label: Default::default(),
        at,
    };
    let new = NewMemory {
        note,
        turn: lango_domain::event::TurnId::new("t"),
        sources: Vec::new(),
    };
    desk.store.store(&conversation(session), new).await.unwrap();
}

async fn recall_texts(chronicle: &ObservationalMemory, question: &str) -> Vec<String> {
    let found = chronicle
        .recall(&me(), question, RecallMode::Explicit, 5)
        .await
        .unwrap();
    found
        .into_iter()
        .map(|recalled| recalled.memory.note.text)
        .collect()
}

/// S82: kinds and topics find what no word of the question stands in.
#[tokio::test]
async fn questions_find_what_they_are_after_and_no_junk() {
    let desk = MemoryHarness::new();
    for text in [
        "I prefer tea",
        "I prefer dark mode in every editor",
        "My name is Ada",
        "my birthday is on 5 May",
        "We decided to use SQLite for the store",
        "I promised to send the invoice on Friday",
        "I live in Vienna",
        "my sister's name is Zoé",
        "저는 강아지를 좋아해요",
        "Die Übergabe der Schlüssel ist am Freitag",
        "اسم مشروعي هو لانغو",
        "🦀 is my mascot",
    ] {
        store_memory(&desk, "a", text).await;
    }
    let chronicle = desk.memory();
    for (question, first) in [
        ("what do I like to drink?", "I prefer tea"),
        (
            "do I prefer dark or light mode",
            "I prefer dark mode in every editor",
        ),
        ("what is my name", "My name is Ada"),
        ("when is my birthday", "my birthday is on 5 May"),
        (
            "what did we decide about the store?",
            "We decided to use SQLite for the store",
        ),
        (
            "what did I promise about the invoice",
            "I promised to send the invoice on Friday",
        ),
        ("where do I live?", "I live in Vienna"),
        ("what is my sister called", "my sister's name is Zoé"),
        ("제가 어떤 강아지를 좋아하나요?", "저는 강아지를 좋아해요"),
        (
            "wann ist die Übergabe der Schlüssel?",
            "Die Übergabe der Schlüssel ist am Freitag",
        ),
        ("مشروعي", "اسم مشروعي هو لانغو"),
        ("🦀", "🦀 is my mascot"),
    ] {
        assert_eq!(
            recall_texts(&chronicle, question)
                .await
                .first()
                .map(String::as_str),
            Some(first),
            "{question}"
        );
    }
    for question in [
        "what do I like to eat?",
        "what did we decide about Kubernetes",
        "quantum chromodynamics",
        "where do my parents hide gold",
    ] {
        assert_eq!(
            recall_texts(&chronicle, question).await,
            Vec::<String>::new(),
            "{question}"
        );
    }
    assert_eq!(
        chronicle
            .recall(&me(), "what do you know about me", RecallMode::Explicit, 99)
            .await
            .unwrap()
            .len(),
        12
    );
}

#[tokio::test]
async fn the_newest_of_what_fits_comes_first_and_is_told_once() {
    let desk = MemoryHarness::new();
    store_memory(&desk, "a", "I prefer tea").await;
    store_memory(&desk, "b", "I prefer coffee").await;
    desk.say("c", "t1", "i prefer COFFEE!").await;
    desk.memory()
        .process_session(&conversation("c"))
        .await
        .unwrap();
    assert_eq!(desk.observations().await.len(), 3);
    let found = recall_texts(&desk.memory(), "what do I like to drink").await;
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[1], "I prefer tea");
}

fn request(session: &str, principal: Principal, text: &str) -> ContextRequest {
    ContextRequest {
        session: SessionId::new(session),
        principal,
        text: text.to_owned(),
    }
}

/// B41, B74: recalled by itself is only what fits well, within its cap, of other sessions, and nobody else's.
#[tokio::test]
async fn a_request_is_given_what_fits_it_well() {
    let mut desk = MemoryHarness::new();
    desk.settings.recall_tokens = 60;
    desk.say("a", "t1", "I prefer tea.").await;
    desk.memory()
        .process_session(&conversation("a"))
        .await
        .unwrap();
    for number in 0..50 {
        store_memory_as(
            &desk,
            "a",
            &format!("the invoice of customer {number} was paid in full by bank transfer"),
            MemoryKind::Fact,
        )
        .await;
    }
    let chronicle = desk.memory();
    let gather = async |session: &str, text: &str| {
        chronicle
            .gather(request(session, me(), text))
            .await
            .unwrap()
            .map(|recalled| recalled.text)
    };
    let tea = gather("b", "what do I like to drink?").await.unwrap();
    assert!(
        tea.contains("I prefer tea") && tea.contains("(o1)"),
        "{tea}"
    );
    assert_eq!(
        gather("a", "what do I like to drink?").await,
        None,
        "it stands in the session itself"
    );
    assert_eq!(
        gather("b", "run the tests and tell me what failed").await,
        None
    );
    assert_eq!(gather("b", "hello").await, None);
    assert_eq!(gather("b", "").await, None);
    assert_eq!(gather("b", &"word ".repeat(100_000)).await, None);
    let invoices = gather("b", "was the invoice of customer 7 paid?")
        .await
        .unwrap();
    assert!(
        token_estimate::estimate(&invoices) <= 60 && invoices.contains("customer"),
        "{invoices}"
    );
    let bobs = chronicle
        .gather(request(
            "b",
            Principal::new("bob"),
            "what do I like to drink?",
        ))
        .await
        .unwrap();
    assert_eq!(bobs, None);
    desk.settings.recall_tokens = 0;
    let silent = desk
        .memory()
        .gather(request("b", me(), "what do I like to drink?"))
        .await
        .unwrap();
    assert_eq!(silent, None);
}

/// What another process remembers or forgets is known at once.
#[tokio::test]
async fn what_changes_elsewhere_is_seen() {
    let desk = MemoryHarness::new();
    let (here, there) = (
        desk.memory(),
        Forgetter::new(std::sync::Arc::new(desk.reopened())),
    );
    assert!(recall_texts(&here, "tea").await.is_empty());
    store_memory(&desk, "a", "I prefer tea").await;
    store_memory(&desk, "a", "tea is grown in Assam").await;
    assert_eq!(recall_texts(&here, "tea").await.len(), 2);
    let ForgetSelection::Matched {
        to_forget: gone, ..
    } = there.find_to_forget(&me(), "o1").await.unwrap()
    else {
        panic!("it is there")
    };
    assert_eq!(gone[0].text, "I prefer tea");
    there.forget(&me(), &gone).await.unwrap();
    assert_eq!(recall_texts(&here, "tea").await, ["tea is grown in Assam"]);
}
