//! The conformance suite for the knowledge base.

use lango_domain::event::{Principal, TurnId};
use lango_domain::knowledge::{
    Effect, EntrySaved, FailureCategory, KnowledgeCategory, KnowledgeEntry, KnowledgeStore,
    Learning, LearningOutcome, LearningSaved, NewKnowledgeEntry, NewLearning, OutcomeBatch,
    Provenance,
};
use lango_domain::session::SessionKey;
use lango_domain::{Label, Stores};

use super::{append_turn, key, ok, seconds};

/// Runs the whole suite on empty stores.
///
/// # Panics
/// If the store violates the contract of [`KnowledgeStore`].
pub async fn check(stores: &Stores) {
    let store = &*stores.knowledge;
    entries_have_versions(stores).await;
    entries_are_listed_by_save(store).await;
    a_forgotten_key_is_gone(store).await;
    a_trigger_has_one_learning(store).await;
    outcomes_are_counted_once(stores).await;
    knowledge_belongs_to_its_principal(stores).await;
    knowledge_outlives_its_session(stores).await;
}

fn source(key: &SessionKey) -> Provenance {
    Provenance {
        session: Some(key.session.clone()),
        turn: TurnId::new("t"),
        by: "librarian".to_owned(),
        label: Label::private("a file"),
    }
}

fn no_session() -> Provenance {
    Provenance {
        session: None,
        ..source(&key("", ""))
    }
}

pub(super) fn entry(key: &str, content: &str) -> NewKnowledgeEntry {
    NewKnowledgeEntry {
        key: key.to_owned(),
        category: KnowledgeCategory::Fact,
        content: content.to_owned(),
        tags: vec!["drinks".to_owned()],
        source: no_session(),
        at: seconds(1),
    }
}

pub(super) fn learning(trigger: &str, fix: &str) -> NewLearning {
    NewLearning {
        trigger: trigger.to_owned(),
        fix: fix.to_owned(),
        category: FailureCategory::Timeout,
        source: no_session(),
        at: seconds(1),
    }
}

fn stored(new: NewKnowledgeEntry, version: u32) -> KnowledgeEntry {
    KnowledgeEntry {
        key: new.key,
        version,
        category: new.category,
        content: new.content,
        tags: new.tags,
        source: new.source,
        at: new.at,
    }
}

async fn save(store: &dyn KnowledgeStore, principal: &str, entry: NewKnowledgeEntry) -> EntrySaved {
    ok(store.save_entry(&Principal::new(principal), entry).await)
}

async fn learn(store: &dyn KnowledgeStore, principal: &str, new: NewLearning) -> LearningSaved {
    ok(store.save_learning(&Principal::new(principal), new).await)
}

/// Saves a new learning and returns its id.
pub(super) async fn learn_new(store: &dyn KnowledgeStore, principal: &str, trigger: &str) -> u64 {
    match learn(store, principal, learning(trigger, "wait")).await {
        LearningSaved::New(id) => id,
        other => unreachable!("a new trigger, not {other:?}"),
    }
}

/// Returns the learnings, newest first.
async fn learnings(store: &dyn KnowledgeStore, principal: &str) -> Vec<Learning> {
    ok(store.learnings(&Principal::new(principal)).await)
}

async fn entries_have_versions(stores: &Stores) {
    let store = &*stores.knowledge;
    let session = key("versions", "s");
    append_turn(&*stores.sessions, &session, "t", "hello").await;
    let first = NewKnowledgeEntry {
        source: source(&session),
        ..entry("tea", "oolong 🙂")
    };
    let other_category = NewKnowledgeEntry {
        category: KnowledgeCategory::Preference,
        ..entry("tea", "sencha")
    };
    let other_tags = NewKnowledgeEntry {
        tags: Vec::new(),
        ..other_category.clone()
    };
    for (new, expected) in [
        (first.clone(), EntrySaved::New),
        (first.clone(), EntrySaved::Same(1)),
        (entry("tea", "sencha"), EntrySaved::Changed(2)),
        (other_category.clone(), EntrySaved::Changed(3)),
        (other_tags.clone(), EntrySaved::Changed(4)),
        (other_tags.clone(), EntrySaved::Same(4)),
    ] {
        assert_eq!(save(store, "versions", new).await, expected);
    }
    let owner = &session.principal;
    let history = ok(store.history(owner, "tea").await);
    assert_eq!(
        history,
        [
            stored(other_tags, 4),
            stored(other_category, 3),
            stored(entry("tea", "sencha"), 2),
            stored(first, 1),
        ]
    );
    assert_eq!(ok(store.entries(owner).await), history[..1]);
    assert_eq!(ok(store.history(owner, "missing").await), []);
}

async fn entries_are_listed_by_save(store: &dyn KnowledgeStore) {
    for (key, content) in [("a", "1"), ("b", "1"), ("c", "1"), ("a", "2"), ("b", "1")] {
        save(store, "list", entry(key, content)).await;
    }
    let entries = ok(store.entries(&Principal::new("list")).await);
    let keys: Vec<(&str, u32)> = entries
        .iter()
        .map(|entry| (entry.key.as_str(), entry.version))
        .collect();
    assert_eq!(keys, [("a", 2), ("c", 1), ("b", 1)]);
}

async fn a_forgotten_key_is_gone(store: &dyn KnowledgeStore) {
    let owner = Principal::new("forget");
    for content in ["1", "2", "3"] {
        save(store, "forget", entry("tea", content)).await;
    }
    save(store, "forget", entry("coffee", "1")).await;
    assert_eq!(ok(store.forget(&owner, "tea").await), 3);
    assert_eq!(ok(store.forget(&owner, "tea").await), 0);
    assert_eq!(ok(store.history(&owner, "tea").await), []);
    let left = ok(store.entries(&owner).await);
    assert_eq!(left, [stored(entry("coffee", "1"), 1)]);
    assert_eq!(
        save(store, "forget", entry("tea", "4")).await,
        EntrySaved::New
    );
}

async fn a_trigger_has_one_learning(store: &dyn KnowledgeStore) {
    let id = learn_new(store, "learn", "It rains").await;
    let other = learn_new(store, "learn", "it snows").await;
    let same = learn(store, "learn", learning("It rains", "wait")).await;
    assert_eq!(same, LearningSaved::Same(id));
    let changed = learn(store, "learn", learning("It rains", "take an umbrella")).await;
    assert_eq!(changed, LearningSaved::Changed(id));
    let mut found = learnings(store, "learn").await;
    let ids: Vec<u64> = found.iter().map(|learning| learning.id).collect();
    assert_eq!(ids, [other, id], "newest first");
    let expected = Learning {
        id,
        trigger: "It rains".to_owned(),
        fix: "take an umbrella".to_owned(),
        category: FailureCategory::Timeout,
        helped: 0,
        failed: 0,
        source: no_session(),
        at: seconds(1),
    };
    assert_eq!(found.pop(), Some(expected));
}

fn outcomes(learning: u64, after: u64, through: u64, effects: &[Effect]) -> OutcomeBatch {
    let outcome = |effect: &Effect| LearningOutcome {
        learning,
        effect: *effect,
    };
    OutcomeBatch {
        after,
        through,
        outcomes: effects.iter().map(outcome).collect(),
    }
}

async fn outcomes_are_counted_once(stores: &Stores) {
    let store = &*stores.knowledge;
    let session = key("outcomes", "s");
    append_turn(&*stores.sessions, &session, "t", "hello").await;
    let id = learn_new(store, "outcomes", "it rains").await;
    assert_eq!(ok(store.counted_through(&session).await), 0);
    let counts = async || {
        let found = learnings(store, "outcomes").await;
        (found[0].helped, found[0].failed)
    };
    use Effect::{Failed, Helped};
    for (batch, through, expected) in [
        (outcomes(id, 0, 2, &[Helped, Helped]), 2, (2, 0)),
        (outcomes(id, 0, 3, &[Helped]), 2, (2, 0)),
        (outcomes(id, 2, 3, &[Failed]), 3, (2, 1)),
        (outcomes(id + 1_000, 3, 4, &[Helped]), 4, (2, 1)),
    ] {
        ok(store.record_outcomes(&session, batch).await);
        assert_eq!(ok(store.counted_through(&session).await), through);
        assert_eq!(counts().await, expected);
    }
    let missing = key("outcomes", "missing");
    ok(store
        .record_outcomes(&missing, outcomes(id, 0, 9, &[Helped]))
        .await);
    assert_eq!(ok(store.counted_through(&missing).await), 0);
    assert_eq!(counts().await, (2, 1));
    let again = learn(store, "outcomes", learning("it rains", "wait")).await;
    assert_eq!(again, LearningSaved::Changed(id), "the same fix failed");
    assert_eq!(counts().await, (0, 0));
}

/// B74
async fn knowledge_belongs_to_its_principal(stores: &Stores) {
    let store = &*stores.knowledge;
    let bob = Principal::new("bob");
    save(store, "alice", entry("tea", "oolong")).await;
    let hers = learn_new(store, "alice", "it rains").await;
    assert_eq!(ok(store.entries(&bob).await), []);
    assert_eq!(ok(store.history(&bob, "tea").await), []);
    assert_eq!(ok(store.forget(&bob, "tea").await), 0);
    assert_eq!(learnings(store, "bob").await, []);
    let session = key("bob", "s");
    append_turn(&*stores.sessions, &session, "t", "hello").await;
    let outcome = outcomes(hers, 0, 3, &[Effect::Failed]);
    ok(store.record_outcomes(&session, outcome).await);
    assert_eq!(learnings(store, "alice").await[0].failed, 0);
    assert_eq!(
        save(store, "bob", entry("tea", "oolong")).await,
        EntrySaved::New
    );
    learn_new(store, "bob", "it rains").await;
    let entries = ok(store.entries(&Principal::new("alice")).await);
    assert_eq!(entries, [stored(entry("tea", "oolong"), 1)]);
}

async fn knowledge_outlives_its_session(stores: &Stores) {
    let store = &*stores.knowledge;
    let session = key("outlive", "s");
    append_turn(&*stores.sessions, &session, "t", "hello").await;
    let new = NewKnowledgeEntry {
        source: source(&session),
        ..entry("tea", "oolong")
    };
    save(store, "outlive", new).await;
    let new = NewLearning {
        source: source(&session),
        ..learning("it rains", "wait")
    };
    learn(store, "outlive", new).await;
    ok(stores
        .catalog
        .delete(&session.principal, &session.session)
        .await);
    let entries = ok(store.entries(&session.principal).await);
    assert_eq!(entries, [stored(entry("tea", "oolong"), 1)]);
    assert_eq!(learnings(store, "outlive").await[0].source, no_session());
}
