use lango_domain::event::{Principal, SessionId};
use lango_domain::hooks::{ContextRequest, ContextSource};
use lango_domain::memory::{
    MemoryKind, MemoryNote, MemoryPriority, MemorySpeaker, MemoryStore, NewMemory,
};
use lango_memory::forget::{ForgetSelection, Forgetter};
use lango_memory::observational_memory::{ObservationalMemory, RecallMode, detect_kind};
use lango_text::token_estimate;

use super::{MemoryHarness, conversation, me};

async fn store_memory(harness: &MemoryHarness, session: &str, text: &str) {
    store_memory_as(harness, session, text, detect_kind(text)).await;
}

async fn store_memory_as(harness: &MemoryHarness, session: &str, text: &str, kind: MemoryKind) {
    let at = *harness.now.lock().unwrap();
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
    harness
        .store
        .store(&conversation(session), new)
        .await
        .unwrap();
}

async fn recall_texts(memory: &ObservationalMemory, question: &str) -> Vec<String> {
    let found = memory
        .recall(&me(), question, RecallMode::Explicit, 5)
        .await
        .unwrap();
    found
        .into_iter()
        .map(|recalled| recalled.memory.note.text)
        .collect()
}

const MEMORIES: [&str; 12] = [
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
];

/// S82: kinds and topics match memories that share no word with the query.
#[tokio::test]
async fn recalls_matching_memories_only() {
    let harness = MemoryHarness::new();
    for text in MEMORIES {
        store_memory(&harness, "a", text).await;
    }
    let memory = harness.memory();
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
        let found = recall_texts(&memory, question).await;
        assert_eq!(found.first().map(String::as_str), Some(first), "{question}");
    }
    for question in [
        "what do I like to eat?",
        "what did we decide about Kubernetes",
        "quantum chromodynamics",
        "where do my parents hide gold",
    ] {
        assert_eq!(
            recall_texts(&memory, question).await,
            Vec::<String>::new(),
            "{question}"
        );
    }
    assert_eq!(
        memory
            .recall(&me(), "what do you know about me", RecallMode::Explicit, 99)
            .await
            .unwrap()
            .len(),
        12
    );
}

#[tokio::test]
async fn recalls_newest_first_without_duplicates() {
    let harness = MemoryHarness::new();
    store_memory(&harness, "a", "I prefer tea").await;
    store_memory(&harness, "b", "I prefer coffee").await;
    harness.say("c", "t1", "i prefer COFFEE!").await;
    harness
        .memory()
        .process_session(&conversation("c"))
        .await
        .unwrap();
    assert_eq!(harness.observations().await.len(), 3);
    let found = recall_texts(&harness.memory(), "what do I like to drink").await;
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

/// B41, B74: automatic recall returns only good matches, within its cap, from other sessions of the
/// same principal.
#[tokio::test]
async fn recalls_good_matches_automatically() {
    let mut harness = MemoryHarness::new();
    harness.settings.recall_tokens = 60;
    harness.say("a", "t1", "I prefer tea.").await;
    harness
        .memory()
        .process_session(&conversation("a"))
        .await
        .unwrap();
    for number in 0..50 {
        store_memory_as(
            &harness,
            "a",
            &format!("the invoice of customer {number} was paid in full by bank transfer"),
            MemoryKind::Fact,
        )
        .await;
    }
    let memory = harness.memory();
    let gather = async |session: &str, text: &str| {
        memory
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
        "the session itself already contains it"
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
    let question = "what do I like to drink?";
    let foreign = memory.gather(request("b", Principal::new("bob"), question));
    assert_eq!(foreign.await.unwrap(), None);
    harness.settings.recall_tokens = 0;
    let disabled = harness.memory().gather(request("b", me(), question));
    assert_eq!(disabled.await.unwrap(), None);
}

/// Changes by another process are visible at once.
#[tokio::test]
async fn sees_changes_of_other_processes() {
    let harness = MemoryHarness::new();
    let (local, remote) = (
        harness.memory(),
        Forgetter::new(
            std::sync::Arc::new(harness.reopened()),
            std::sync::Arc::new(lango_graph::GraphBatchFormat),
        ),
    );
    assert!(recall_texts(&local, "tea").await.is_empty());
    store_memory(&harness, "a", "I prefer tea").await;
    store_memory(&harness, "a", "tea is grown in Assam").await;
    assert_eq!(recall_texts(&local, "tea").await.len(), 2);
    let ForgetSelection::Matched { to_forget, .. } =
        remote.find_to_forget(&me(), "o1").await.unwrap()
    else {
        panic!("o1 exists")
    };
    assert_eq!(to_forget[0].text, "I prefer tea");
    remote.forget(&me(), &to_forget).await.unwrap();
    assert_eq!(recall_texts(&local, "tea").await, ["tea is grown in Assam"]);
}
