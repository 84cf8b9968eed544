//! The conformance suite for forgetting.

use lango_domain::event::{Principal, SessionId, TurnId};
use lango_domain::forget::{FactBatchChange, Removal};
use lango_domain::graph::{FactBatch, FactLogPosition, FactSource, NewFactBatch};
use lango_domain::memory::{MemoryId, MemoryLevel, MemoryQuery, MemoryWrite, NewMemory};
use lango_domain::session::SessionKey;
use lango_domain::{Label, Stores};

use super::{append_turn, inquiries, key, knowledge, memory, ok};

/// Runs the whole suite on empty stores.
///
/// # Panics
/// If the store violates the contract of [`lango_domain::forget::ForgetStore`].
pub async fn check(stores: &Stores) {
    removals_delete_what_they_name(stores).await;
    reflections_go_with_their_observations(stores).await;
    nothing_is_learned_from_forgotten_events(stores).await;
    only_own_data_is_deleted(stores).await;
    events_are_unobserved_until_a_span_has_them(stores).await;
}

/// Everything that a principal has learned, as text.
#[derive(Debug, PartialEq)]
struct Learned {
    memories: Vec<String>,
    entries: Vec<(String, u32)>,
    learnings: Vec<String>,
    inquiries: Vec<String>,
    batches: Vec<String>,
}

async fn learned(stores: &Stores, principal: &Principal) -> Learned {
    let memories = ok(stores.memory.observations_after(principal, 0, 99).await);
    let learnings = ok(stores.knowledge.learnings(principal).await);
    let inquiries = ok(stores.inquiries.pending(principal).await);
    let mut entries = Vec::new();
    for entry in ok(stores.knowledge.entries(principal).await) {
        let versions = ok(stores.knowledge.history(principal, &entry.key).await);
        entries.extend(versions.into_iter().map(|entry| (entry.key, entry.version)));
    }
    let text = |batch: FactBatch| String::from_utf8_lossy(&batch.body).into_owned();
    let batches = batches(stores, principal).await;
    Learned {
        memories: memories
            .into_iter()
            .map(|memory| memory.note.text)
            .collect(),
        entries,
        learnings: learnings
            .into_iter()
            .map(|learning| learning.trigger)
            .collect(),
        inquiries: inquiries.into_iter().map(|inquiry| inquiry.topic).collect(),
        batches: batches.into_iter().map(text).collect(),
    }
}

async fn batches(stores: &Stores, principal: &Principal) -> Vec<FactBatch> {
    let changes = stores.graph.changes(principal, FactLogPosition::default());
    ok(changes.await).batches
}

/// Learns two of each kind. Returns the session and a removal of one of each, which keeps a part of
/// one more batch.
async fn learn(stores: &Stores, principal: &str) -> (SessionKey, Removal) {
    let (session, observations) = memory::observed(stores, principal, &["one", "two"]).await;
    let owner = session.principal.clone();
    for (key, content) in [("tea", "1"), ("tea", "2"), ("coffee", "1")] {
        let entry = knowledge::entry(key, content);
        ok(stores.knowledge.save_entry(&owner, entry).await);
    }
    let learning = knowledge::learn_new(&*stores.knowledge, principal, "it rains").await;
    knowledge::learn_new(&*stores.knowledge, principal, "it snows").await;
    let inquiries = add_inquiries(stores, &session).await;
    let label = Label::untrusted("a page");
    let batch = |body: &str| NewFactBatch {
        source: FactSource::User,
        label: label.clone(),
        body: body.as_bytes().to_vec(),
    };
    let new = vec![batch("whole"), batch("this and that"), batch("kept")];
    ok(stores.graph.append(&owner, new).await);
    let batches = batches(stores, &owner).await;
    let removal = Removal {
        memories: vec![MemoryId::Observation(observations[0])],
        entries: vec![("tea".to_owned(), 1)],
        learnings: vec![learning],
        inquiries: vec![inquiries],
        batches: vec![
            FactBatchChange {
                number: batches[0].number,
                remaining: None,
            },
            FactBatchChange {
                number: batches[1].number,
                remaining: Some(b"this".to_vec()),
            },
        ],
        events: vec![(session.session.clone(), 1)],
    };
    (session, removal)
}

/// Adds two inquiries and returns the id of the first.
async fn add_inquiries(stores: &Stores, session: &SessionKey) -> u64 {
    let scan = inquiries::scan(0, &["sister", "boss"]);
    ok(stores.inquiries.save_scan(session, scan).await);
    ok(stores.inquiries.pending(&session.principal).await)[0].id
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

async fn removals_delete_what_they_name(stores: &Stores) {
    let (session, removal) = learn(stores, "removal").await;
    let owner = &session.principal;
    let seen = stores.graph.changes(owner, FactLogPosition::default());
    let seen = ok(seen.await).position;
    let expected = Learned {
        memories: words(&["two"]),
        entries: vec![("coffee".to_owned(), 1), ("tea".to_owned(), 2)],
        learnings: words(&["it snows"]),
        inquiries: words(&["boss"]),
        batches: words(&["this", "kept"]),
    };
    for round in ["first", "repeated"] {
        ok(stores.learned.remove(owner, removal.clone()).await);
        assert_eq!(learned(stores, owner).await, expected, "{round}");
    }
    let partial = batches(stores, owner).await.remove(0);
    assert_eq!(partial.label, Label::untrusted("a page"), "B101");
    let changes = ok(stores.graph.changes(owner, seen).await);
    let removed = removal.batches.iter().map(|batch| batch.number);
    assert!(
        removed
            .into_iter()
            .all(|number| changes.removed.contains(&number)),
        "readers of the log notice"
    );
    let nothing = Removal::default();
    ok(stores.learned.remove(owner, nothing).await);
    assert_eq!(learned(stores, owner).await, expected);
}

async fn reflections_go_with_their_observations(stores: &Stores) {
    let store = &*stores.memory;
    let (session, ids) = memory::observed(stores, "derived", &["one", "two"]).await;
    let new = memory::reflections(0, "both", &ids);
    assert_eq!(
        ok(store.save_reflections(&session, new).await),
        MemoryWrite::Written
    );
    let removal = Removal {
        memories: vec![MemoryId::Observation(ids[0])],
        ..Removal::default()
    };
    ok(stores.learned.remove(&session.principal, removal).await);
    let query = MemoryQuery {
        level: MemoryLevel::Reflections,
        session: None,
        limit: 9,
    };
    assert_eq!(ok(store.list(&session.principal, query).await), []);
    let left = ok(store.uncondensed_memories(&session).await);
    assert_eq!(left.len(), 1, "the other observation counts again");
    let outdated = memory::reflections(1, "both again", &ids);
    assert_eq!(
        ok(store.save_reflections(&session, outdated).await),
        MemoryWrite::Conflict,
        "what is forgotten does not come back"
    );
}

async fn nothing_is_learned_from_forgotten_events(stores: &Stores) {
    let session = key("events", "s");
    append_turn(&*stores.sessions, &session, "t", "secret").await;
    let owner = &session.principal;
    let removal = Removal {
        events: vec![(session.session.clone(), 1)],
        ..Removal::default()
    };
    ok(stores.learned.remove(owner, removal).await);
    let asked = |turn: &str| vec![(TurnId::new(turn), 1), (TurnId::new(turn), 2)];
    let forgotten = async |owner: &Principal, turn: &str| {
        ok(stores.memory.forgotten_events(owner, asked(turn)).await)
    };
    assert_eq!(forgotten(owner, "t").await, [1_u64]);
    assert!(forgotten(owner, "another").await.is_empty());
    let others = forgotten(&Principal::new("others"), "t").await;
    assert!(others.is_empty(), "B74");
    let mut span = memory::span(0, &["from event 1"]);
    let allowed: NewMemory = memory::new_memory("from event 2", &[2]);
    span.observations.push(allowed);
    ok(stores.memory.save_span(&session, span).await);
    assert_eq!(
        learned(stores, owner).await.memories,
        words(&["from event 2"])
    );
    let copy = SessionId::new("copy");
    ok(stores.catalog.fork(owner, &session.session, 3, &copy).await);
    let copy = key("events", "copy");
    let span = memory::span(0, &["from the copy"]);
    ok(stores.memory.save_span(&copy, span).await);
    assert_eq!(
        learned(stores, owner).await.memories,
        words(&["from event 2"]),
        "a copy of the event is forgotten too"
    );
}

/// B74
async fn only_own_data_is_deleted(stores: &Stores) {
    let (session, removal) = learn(stores, "alice").await;
    let before = learned(stores, &session.principal).await;
    let bob = Principal::new("bob");
    ok(stores.learned.remove(&bob, removal).await);
    assert_eq!(learned(stores, &session.principal).await, before);
    let events = vec![(TurnId::new("t0"), 1)];
    let forgotten = stores.memory.forgotten_events(&session.principal, events);
    assert!(ok(forgotten.await).is_empty());
}

async fn events_are_unobserved_until_a_span_has_them(stores: &Stores) {
    let owner = Principal::new("unobserved");
    let unobserved = async || ok(stores.learned.unobserved_events(&owner).await);
    assert_eq!(unobserved().await, []);
    let (session, _) = memory::observed(stores, "unobserved", &["one"]).await;
    let other = key("unobserved", "other");
    let others = append_turn(&*stores.sessions, &other, "t", "hello").await;
    let mut found = unobserved().await;
    found.sort_by_key(|event| (event.session != session.session, event.seq));
    let seqs: Vec<u64> = found.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, [4, 5, 6, 7, 8, 9, 1, 2, 3]);
    assert_eq!(found[6..], others);
    let foreign = Principal::new("foreign");
    assert_eq!(
        ok(stores.learned.unobserved_events(&foreign).await),
        [],
        "B74"
    );
}
