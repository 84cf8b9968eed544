use jiff::Timestamp;
use lango_domain::event::{Principal, TurnId};
use lango_domain::inquiries::{
    ExpiryRule, Finder, InquiryPriority, InquiryStore, NewInquiry, ScanPosition, ScanResult,
};
use lango_domain::knowledge::{
    EntrySaved, FailureCategory, KnowledgeCategory, KnowledgeStore, NewKnowledgeEntry, NewLearning,
    OutcomeBatch, Provenance,
};
use lango_domain::maintenance::StoreMaintenance as _;
use lango_domain::session::SessionKey;
use lango_store::{SqliteStore, StoreLocation};

use crate::setup::{append_turn, id, open};

fn me() -> Principal {
    Principal::local()
}

fn session_key(session: &str) -> SessionKey {
    SessionKey {
        session: id(session),
        principal: me(),
    }
}

fn source() -> Provenance {
    Provenance {
        session: Some(id("s")),
        turn: TurnId::new("t"),
        by: "librarian".to_owned(),
        label: Default::default(),
    }
}

fn entry(key: &str, content: &str) -> NewKnowledgeEntry {
    let (key, content) = (key.to_owned(), content.to_owned());
    NewKnowledgeEntry {
        key,
        category: KnowledgeCategory::Fact,
        content,
        tags: Vec::new(),
        source: source(),
        at: Timestamp::UNIX_EPOCH,
    }
}

fn learning() -> NewLearning {
    let (trigger, fix) = ("it rains".to_owned(), "take an umbrella".to_owned());
    NewLearning {
        trigger,
        fix,
        category: FailureCategory::General,
        source: source(),
        at: Timestamp::UNIX_EPOCH,
    }
}

fn scan_result(topics: &[&str], after: ScanPosition, through: u64) -> ScanResult {
    let inquiry = |topic: &&str| NewInquiry {
        topic: (*topic).to_owned(),
        question: format!("what about {topic}?"),
        reason: String::new(),
        priority: InquiryPriority::Medium,
        found_by: Finder::Rule,
        turn: TurnId::new("t"),
    };
    ScanResult {
        after,
        through: ScanPosition {
            answers: through,
            gaps: through,
        },
        by: Finder::Rule,
        at: Timestamp::UNIX_EPOCH,
        resolutions: Vec::new(),
        new_inquiries: topics.iter().map(inquiry).collect(),
        max_pending: 2,
        expiry: ExpiryRule {
            offers: 3,
            before: Timestamp::UNIX_EPOCH,
        },
    }
}

#[tokio::test]
async fn restores_knowledge_from_a_backup() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    append_turn(&store, "s", "t", "hello").await;
    store
        .save_entry(&me(), entry("tea", "oolong"))
        .await
        .unwrap();
    store.save_learning(&me(), learning()).await.unwrap();
    store
        .save_scan(
            &session_key("s"),
            scan_result(&["sister"], ScanPosition::default(), 3),
        )
        .await
        .unwrap();
    let copy = folder.path().join("copy.sqlite");
    store.back_up(&copy).await.unwrap();
    assert_eq!(
        store
            .save_entry(&me(), entry("tea", "sencha"))
            .await
            .unwrap(),
        EntrySaved::Changed(2)
    );
    let location = store.location().clone();
    drop(store);
    SqliteStore::restore(
        location.clone(),
        &copy,
        &folder.path().join("before.sqlite"),
    )
    .await
    .unwrap();
    let store = SqliteStore::open(location).unwrap();
    assert_eq!(store.history(&me(), "tea").await.unwrap().len(), 1);
    assert_eq!(store.learnings(&me()).await.unwrap().len(), 1);
    let pending = store.pending(&me()).await.unwrap();
    assert_eq!((pending.len(), &pending[0].session), (1, &id("s")));
    assert_eq!(
        store
            .progress(&session_key("s"))
            .await
            .unwrap()
            .position
            .gaps,
        3
    );
}

#[tokio::test]
async fn outdated_scan_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    append_turn(&store, "s", "t", "hello").await;
    store
        .save_scan(
            &session_key("s"),
            scan_result(&["sister"], ScanPosition::default(), 3),
        )
        .await
        .unwrap();
    store
        .save_scan(
            &session_key("s"),
            scan_result(&["brother"], ScanPosition::default(), 3),
        )
        .await
        .unwrap();
    assert_eq!(store.pending(&me()).await.unwrap().len(), 1);
    let after = ScanPosition {
        answers: 3,
        gaps: 3,
    };
    store
        .save_scan(
            &session_key("s"),
            scan_result(&["sister", "boss", "cat"], after, 6),
        )
        .await
        .unwrap();
    let topics: Vec<String> = store
        .pending(&me())
        .await
        .unwrap()
        .into_iter()
        .map(|inquiry| inquiry.topic)
        .collect();
    assert_eq!(
        topics,
        ["sister", "boss"],
        "no duplicate topics, and no more than the limit"
    );
    store
        .save_scan(
            &session_key("nowhere"),
            scan_result(&["dog"], ScanPosition::default(), 3),
        )
        .await
        .unwrap();
    store
        .record_outcomes(
            &session_key("nowhere"),
            OutcomeBatch {
                after: 0,
                through: 9,
                outcomes: Vec::new(),
            },
        )
        .await
        .unwrap();
    assert_eq!(store.counted_through(&session_key("nowhere")).await, Ok(0));
}

#[tokio::test]
async fn forgotten_entry_is_in_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let text = "unforgettable-words-about-tea";
    store.save_entry(&me(), entry("tea", text)).await.unwrap();
    store
        .save_entry(&me(), entry("tea", "sencha"))
        .await
        .unwrap();
    assert_eq!(store.forget(&me(), "tea").await, Ok(2));
    let StoreLocation::File(file) = store.location().clone() else {
        panic!("a file")
    };
    for entry in std::fs::read_dir(file.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        let bytes = if entry.is_file() {
            std::fs::read(&entry).unwrap()
        } else {
            Vec::new()
        };
        assert!(
            !bytes
                .windows(text.len())
                .any(|window| window == text.as_bytes()),
            "{}",
            entry.display()
        );
    }
    assert_eq!(store.forget(&me(), "tea").await, Ok(0));
}
