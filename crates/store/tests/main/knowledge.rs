use jiff::Timestamp;
use lango_domain::event::{Principal, TurnId};
use lango_domain::inquiries::{Finder, InquiryStore, ExpiryRule, ScanPosition, NewInquiry, InquiryPriority, ScanResult};
use lango_domain::knowledge::{
    Category, EntrySaved, KnowledgeStore, NewKnowledgeEntry, NewLearning, Provenance, OutcomeBatch, FailureCategory,
};
use lango_domain::seams::SessionKey;
use lango_store::{StoreLocation, SqliteStore};

use crate::setup::{id, open, talk};

fn me() -> Principal {
    Principal::local()
}

fn of(session: &str) -> SessionKey {
    SessionKey { session: id(session), principal: me() }
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
        category: Category::Fact,
        content,
        tags: Vec::new(),
        source: source(),
        at: Timestamp::UNIX_EPOCH,
    }
}

fn learning() -> NewLearning {
    let (trigger, fix) = ("it rains".to_owned(), "take an umbrella".to_owned());
    NewLearning { trigger, fix, category: FailureCategory::General, source: source(), at: Timestamp::UNIX_EPOCH }
}

fn found(topics: &[&str], behind: ScanPosition, through: u64) -> ScanResult {
    let inquiry = |topic: &&str| NewInquiry {
        topic: (*topic).to_owned(),
        question: format!("what about {topic}?"),
        why: String::new(),
        priority: InquiryPriority::Medium,
        found_by: Finder::Rule,
        turn: TurnId::new("t"),
    };
    ScanResult {
        behind,
        through: ScanPosition { answers: through, gaps: through },
        by: Finder::Rule,
        at: Timestamp::UNIX_EPOCH,
        resolutions: Vec::new(),
        found: topics.iter().map(inquiry).collect(),
        most_pending: 2,
        lapse: ExpiryRule { offers: 3, before: Timestamp::UNIX_EPOCH },
    }
}

#[tokio::test]
async fn a_backup_brings_back_what_was_known() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    talk(&store, "s", "t", "hello").await;
    store.save_entry(&me(), entry("tea", "oolong")).await.unwrap();
    store.learn(&me(), learning()).await.unwrap();
    store.settle(&of("s"), found(&["sister"], ScanPosition::default(), 3)).await.unwrap();
    let copy = folder.path().join("copy.sqlite");
    store.back_up(&copy).await.unwrap();
    assert_eq!(store.save_entry(&me(), entry("tea", "sencha")).await.unwrap(), EntrySaved::Changed(2));
    let place = store.place().clone();
    drop(store);
    SqliteStore::restore(place.clone(), &copy, &folder.path().join("before.sqlite")).await.unwrap();
    let store = SqliteStore::open(place).unwrap();
    assert_eq!(store.history(&me(), "tea").await.unwrap().len(), 1);
    assert_eq!(store.learnings(&me()).await.unwrap().len(), 1);
    let pending = store.pending(&me()).await.unwrap();
    assert_eq!((pending.len(), &pending[0].session), (1, &id("s")));
    assert_eq!(store.progress(&of("s")).await.unwrap().marks.gaps, 3);
}

#[tokio::test]
async fn a_look_that_was_overtaken_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    talk(&store, "s", "t", "hello").await;
    store.settle(&of("s"), found(&["sister"], ScanPosition::default(), 3)).await.unwrap();
    store.settle(&of("s"), found(&["brother"], ScanPosition::default(), 3)).await.unwrap();
    assert_eq!(store.pending(&me()).await.unwrap().len(), 1);
    let behind = ScanPosition { answers: 3, gaps: 3 };
    store.settle(&of("s"), found(&["sister", "boss", "cat"], behind, 6)).await.unwrap();
    let topics: Vec<String> = store.pending(&me()).await.unwrap().into_iter().map(|one| one.topic).collect();
    assert_eq!(topics, ["sister", "boss"], "no topic twice, and no more than are allowed");
    store.settle(&of("nowhere"), found(&["dog"], ScanPosition::default(), 3)).await.unwrap();
    store.count(&of("nowhere"), OutcomeBatch { behind: 0, through: 9, outcomes: Vec::new() }).await.unwrap();
    assert_eq!(store.counted(&of("nowhere")).await, Ok(0));
}

#[tokio::test]
async fn what_is_forgotten_is_in_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let words = "unforgettable-words-about-tea";
    store.save_entry(&me(), entry("tea", words)).await.unwrap();
    store.save_entry(&me(), entry("tea", "sencha")).await.unwrap();
    assert_eq!(store.forget(&me(), "tea").await, Ok(2));
    let StoreLocation::File(file) = store.place().clone() else { panic!("a file") };
    for entry in std::fs::read_dir(file.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path()) {
        let bytes = if entry.is_file() { std::fs::read(&entry).unwrap() } else { Vec::new() };
        assert!(!bytes.windows(words.len()).any(|window| window == words.as_bytes()), "{}", entry.display());
    }
    assert_eq!(store.forget(&me(), "tea").await, Ok(0));
}
