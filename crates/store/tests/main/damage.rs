//! A row that cannot be read is skipped and reported, and does not hide other rows.

use jiff::Timestamp;
use lango_domain::Label;
use lango_domain::event::{CallId, EventBody, Principal, TurnId, Usage};
use lango_domain::inquiries::InquiryStore;
use lango_domain::knowledge::{KnowledgeCategory, KnowledgeStore, NewKnowledgeEntry, Provenance};
use lango_domain::maintenance::StoreMaintenance as _;
use lango_domain::memory::{
    MemoryKind, MemoryLevel, MemoryNote, MemoryPriority, MemoryQuery, MemorySpeaker, MemoryStore,
    NewMemory,
};
use lango_domain::session::SessionKey;
use lango_domain::session::{HistoryWindow, SessionKeyRef, SessionStore};
use lango_domain::session_catalog::SessionCatalog as _;
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
            new_event("t2", EventBody::turn_done()),
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
        let key = SessionKey {
            session: id(session),
            principal: me(),
        };
        store.store(&key, memory(session)).await.unwrap();
        store.save_entry(&me(), entry(session)).await.unwrap();
    }
}

fn memory(session: &str) -> NewMemory {
    let note = MemoryNote {
        text: format!("I prefer tea, {session}"),
        kind: MemoryKind::Fact,
        priority: MemoryPriority::Low,
        speaker: MemorySpeaker::User,
        label: Label::default(),
        at: Timestamp::UNIX_EPOCH,
    };
    NewMemory {
        note,
        turn: TurnId::new("t1"),
        sources: vec![1],
    }
}

fn entry(session: &str) -> NewKnowledgeEntry {
    let source = Provenance {
        session: Some(id(session)),
        turn: TurnId::new("t1"),
        by: "x".to_owned(),
        label: Label::default(),
    };
    NewKnowledgeEntry {
        key: session.to_owned(),
        category: KnowledgeCategory::Fact,
        content: "tea".to_owned(),
        tags: Vec::new(),
        source,
        at: Timestamp::UNIX_EPOCH,
    }
}

/// Damages the rows of the session `bad`, bypassing SQLite's checks.
fn corrupt_rows(store: &SqliteStore, sql: &str) {
    let connection = rusqlite::Connection::open(store.location().path()).unwrap();
    connection.execute_batch(sql).unwrap();
}

async fn assert_everything_is_listed(store: &SqliteStore, case: &str) {
    let names: Vec<String> = store
        .sessions(&me())
        .await
        .unwrap()
        .into_iter()
        .map(|session| session.id.to_string())
        .collect();
    assert!(
        names.contains(&"good".to_owned()) && names.contains(&"bad".to_owned()),
        "{case}: {names:?}"
    );
    let hits = store.search(&me(), "tea", 9).await.unwrap();
    assert!(hits.iter().any(|hit| hit.session == id("good")), "{case}");
    assert!(
        !store.usage(&me(), None).await.unwrap().is_empty(),
        "{case}"
    );
    let audit = store.audit(&me(), None, 9).await.unwrap();
    assert!(
        audit.iter().any(|entry| entry.session == id("good")),
        "{case}"
    );
    assert_knowledge_is_listed(store, case).await;
    assert_events_are_loaded(store, case).await;
}

async fn assert_knowledge_is_listed(store: &SqliteStore, case: &str) {
    let query = MemoryQuery {
        level: MemoryLevel::Observations,
        session: None,
        limit: 9,
    };
    let memories = MemoryStore::list(store, &me(), query).await.unwrap();
    assert!(
        memories.iter().any(|memory| memory.session == id("good")),
        "{case}"
    );
    assert!(
        store
            .entries(&me())
            .await
            .unwrap()
            .iter()
            .any(|entry| entry.key == "good"),
        "{case}"
    );
    store.inquiries(&me()).await.unwrap();
}

async fn assert_events_are_loaded(store: &SqliteStore, case: &str) {
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
        "{case}"
    );
    let key = SessionKeyRef {
        session: &id("bad"),
        principal: &me(),
    };
    store.load(key, HistoryWindow::Everything).await.unwrap();
    store.grants(key, "fs_read").await.unwrap();
}

const BAD: &str = "(SELECT id FROM sessions WHERE name = 'bad')";

/// Returns the cases: a name, the SQL that damages rows, and the start of the reported row's name.
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
            "an event of a newer version",
            format!(
                "UPDATE events SET body = '{{\"type\":\"dream\",\"text\":\"x\"}}' WHERE session = {BAD}"
            ),
            "event 1 of session `bad`",
        ),
        (
            "invalid UTF-8",
            format!("UPDATE events SET body = CAST(x'ff00fe' AS TEXT) WHERE session = {BAD}"),
            "event 1 of",
        ),
        (
            "an invalid time",
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
async fn damaged_row_does_not_hide_others() {
    for (case, sql, row_name) in cases() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        fill(&store).await;
        assert!(store.find_damaged_rows().await.unwrap().is_empty());
        corrupt_rows(&store, &sql);
        // Reopened, as in a new process.
        let store = open(folder.path());
        assert_everything_is_listed(&store, case).await;
        let reported = store.damaged_rows();
        assert!(
            reported.iter().any(|row| row.name.starts_with(row_name)),
            "{case}: {reported:?}"
        );
        let found = open(folder.path()).find_damaged_rows().await.unwrap();
        assert!(
            found.iter().any(|row| row.name.starts_with(row_name)),
            "{case}: {found:?}"
        );
        store.delete(&me(), &id("bad")).await.unwrap();
        append_turn(&store, "good", "t3", "still writable").await;
    }
}
