//! A row that cannot be read is skipped and named, and hides no other.

use jiff::Timestamp;
use lango_domain::Label;
use lango_domain::event::{CallId, EventBody, Principal, TurnId, Usage};
use lango_domain::inquiries::InquiryStore;
use lango_domain::knowledge::{KnowledgeCategory, KnowledgeStore, NewKnowledgeEntry, Provenance};
use lango_domain::memory::{
    MemoryKind, MemoryLevel, MemoryNote, MemoryPriority, MemoryQuery, MemorySpeaker, MemoryStore,
    NewMemory,
};
use lango_domain::session::SessionKey;
use lango_domain::session::{HistoryWindow, SessionKeyRef, SessionStore};
use lango_store::SqliteStore;
use lango_testkit::conformance::{new_event, user_request};
use serde_json::json;

use crate::setup::{append_turn, id, open};

fn me() -> Principal {
    Principal::local()
}

async fn fill(store: &SqliteStore) {
    append_turn(store, "good", "t1", "green tea").await;
    append_turn(store, "bad", "t1", "black tea").await;
    let usage = Usage {
        model: "m".into(),
        input: 7,
        ..Usage::default()
    };
    let call = EventBody::ToolCall {
        id: CallId::new("c"),
        tool: "fs_read".into(),
        args: json!({}),
    };
    for session in ["good", "bad"] {
        let drafts = vec![
            new_event("t2", user_request("more")),
            new_event("t2", EventBody::Usage(usage.clone())),
            new_event("t2", call.clone()),
            new_event("t2", EventBody::TurnDone),
        ];
        store
            .append(
                SessionKeyRef {
                    session: &id(session),
                    principal: &me(),
                },
                drafts,
            )
            .await
            .unwrap();
        let of = SessionKey {
            session: id(session),
            principal: me(),
        };
        let (text, at) = (format!("I prefer tea, {session}"), Timestamp::UNIX_EPOCH);
        let note = MemoryNote {
            text,
            kind: MemoryKind::Fact,
            priority: MemoryPriority::Low,
            speaker: MemorySpeaker::User,
            label: Label::default(),
            at,
        };
        let new = NewMemory {
            note,
            turn: TurnId::new("t1"),
            sources: vec![1],
        };
        store.store(&of, new).await.unwrap();
        let source = Provenance {
            session: Some(id(session)),
            turn: TurnId::new("t1"),
            by: "x".to_owned(),
            label: Label::default(),
        };
        let (key, content) = (session.to_owned(), "tea".to_owned());
        let entry = NewKnowledgeEntry {
            key,
            category: KnowledgeCategory::Fact,
            content,
            tags: Vec::new(),
            source,
            at,
        };
        store.save_entry(&me(), entry).await.unwrap();
    }
}

/// Breaks the rows of the session `bad`, past all that keeps SQLite from it.
fn corrupt_rows(store: &SqliteStore, sql: &str) {
    let connection = rusqlite::Connection::open(store.location().path()).unwrap();
    connection.execute_batch(sql).unwrap();
}

async fn assert_everything_is_listed(store: &SqliteStore, what: &str) {
    let names: Vec<String> = store
        .sessions(&me())
        .await
        .unwrap()
        .into_iter()
        .map(|session| session.id.to_string())
        .collect();
    assert!(
        names.contains(&"good".to_owned()) && names.contains(&"bad".to_owned()),
        "{what}: {names:?}"
    );
    let hits = store.search(&me(), "tea", 9).await.unwrap();
    assert!(hits.iter().any(|hit| hit.session == id("good")), "{what}");
    assert!(
        !store.usage(&me(), None).await.unwrap().is_empty(),
        "{what}"
    );
    let audit = store.audit(&me(), None, 9).await.unwrap();
    assert!(
        audit.iter().any(|entry| entry.session == id("good")),
        "{what}"
    );
    let which = MemoryQuery {
        level: MemoryLevel::Observations,
        session: None,
        limit: 9,
    };
    let remembered = MemoryStore::list(store, &me(), which).await.unwrap();
    assert!(
        remembered.iter().any(|memory| memory.session == id("good")),
        "{what}"
    );
    assert!(
        store
            .entries(&me())
            .await
            .unwrap()
            .iter()
            .any(|entry| entry.key == "good"),
        "{what}"
    );
    store.inquiries(&me()).await.unwrap();
    let key = SessionKeyRef {
        session: &id("good"),
        principal: &me(),
    };
    assert_eq!(
        store
            .load(key, HistoryWindow::Everything)
            .await
            .unwrap()
            .len(),
        7,
        "{what}"
    );
    let key = SessionKeyRef {
        session: &id("bad"),
        principal: &me(),
    };
    store.load(key, HistoryWindow::Everything).await.unwrap();
    store.grants(key, "fs_read").await.unwrap();
}

const BAD: &str = "(SELECT id FROM sessions WHERE name = 'bad')";

/// What is done to rows, and what the first of them is called then.
fn cases() -> Vec<(&'static str, String, &'static str)> {
    let not_strict = |table: &str| {
        format!(
            "PRAGMA writable_schema = ON;
            UPDATE sqlite_master SET sql = replace(replace(sql, 'STRICT, WITHOUT', 'WITHOUT'), ') STRICT', ')') WHERE name = '{table}';
            PRAGMA writable_schema = RESET;"
        )
    };
    vec![
        (
            "bad JSON",
            format!("UPDATE events SET body = '{{\"type\":' WHERE session = {BAD}"),
            "event 1 of session `bad`",
        ),
        (
            "an event of a newer Lango",
            format!(
                "UPDATE events SET body = '{{\"type\":\"dream\",\"text\":\"x\"}}' WHERE session = {BAD}"
            ),
            "event 1 of session `bad`",
        ),
        (
            "no text",
            format!("UPDATE events SET body = CAST(x'ff00fe' AS TEXT) WHERE session = {BAD}"),
            "event 1 of",
        ),
        (
            "no time",
            format!("UPDATE events SET at = 'yesterday' WHERE session = {BAD}"),
            "event 1 of session `bad`",
        ),
        (
            "a wrong type",
            format!(
                "{} UPDATE events SET body = x'01', author = 7 WHERE session = {BAD}",
                not_strict("events")
            ),
            "event 1 of session `bad`",
        ),
        (
            "a title",
            "UPDATE sessions SET title = CAST(x'ff' AS TEXT) WHERE name = 'bad'".into(),
            "session `bad`",
        ),
        (
            "a memory",
            "UPDATE observations SET text = CAST(x'c328' AS TEXT) WHERE session = 'bad'".into(),
            "observation o2",
        ),
        (
            "knowledge",
            "UPDATE knowledge SET content = CAST(x'ff' AS TEXT) WHERE key = 'bad'".into(),
            "version 1 of the knowledge `bad`",
        ),
    ]
}

/// B71
#[tokio::test]
async fn one_damaged_row_hides_no_other() {
    for (what, sql, named) in cases() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        fill(&store).await;
        assert!(store.find_damaged_rows().await.unwrap().is_empty());
        corrupt_rows(&store, &sql);
        // As a new process finds it.
        let store = open(folder.path());
        assert_everything_is_listed(&store, what).await;
        let seen = store.damaged_rows();
        assert!(
            seen.iter().any(|row| row.name.starts_with(named)),
            "{what}: {seen:?}"
        );
        let doctor = open(folder.path()).find_damaged_rows().await.unwrap();
        assert!(
            doctor.iter().any(|row| row.name.starts_with(named)),
            "{what}: {doctor:?}"
        );
        store.delete(&me(), &id("bad")).await.unwrap();
        append_turn(&store, "good", "t3", "it goes on").await;
    }
}
