//! The conformance suite for conversation memory.

mod reading;
mod reflections;

use lango_domain::event::TurnId;
use lango_domain::memory::{
    Memory, MemoryId, MemoryKind, MemoryNote, MemoryOrigin, MemoryPriority, MemorySpeaker,
    MemoryStore, MemoryWrite, NewMemory, NewReflection, NewReflections, ObservationProgress,
    ObservedSpan, ObserverBackoff,
};
use lango_domain::session::SessionKey;
use lango_domain::{Label, Stores};

use super::{append_turn, key, ok, seconds};

/// Runs the whole suite on empty stores.
///
/// # Panics
/// If the store violates the contract of [`MemoryStore`].
pub async fn check(stores: &Stores) {
    spans_follow_each_other(stores).await;
    observations_are_activated(stores).await;
    backoffs_are_saved(stores).await;
    memories_go_with_their_session(stores).await;
    memories_belong_to_their_principal(stores).await;
    reflections::check(stores).await;
    reading::check(stores).await;
}

fn note(text: &str) -> MemoryNote {
    MemoryNote {
        text: text.to_owned(),
        kind: MemoryKind::Preference,
        priority: MemoryPriority::High,
        speaker: MemorySpeaker::User,
        label: Label::private("a file"),
        at: seconds(7),
    }
}

pub(super) fn new_memory(text: &str, sources: &[u64]) -> NewMemory {
    NewMemory {
        note: note(text),
        turn: TurnId::new("t"),
        sources: sources.to_vec(),
    }
}

/// Returns the span of three events after `after`, with one observation per text.
pub(super) fn span(after: u64, texts: &[&str]) -> ObservedSpan {
    let memory = |text: &&str| new_memory(text, &[after + 1]);
    ObservedSpan {
        after,
        last: after + 3,
        tokens: 50,
        origin: MemoryOrigin::Rules,
        observations: texts.iter().map(memory).collect(),
    }
}

/// Returns one reflection that condenses these observations.
pub(super) fn reflections(base: u32, text: &str, observations: &[u64]) -> NewReflections {
    NewReflections {
        base_generation: base,
        origin: MemoryOrigin::Model("fake/model".to_owned()),
        condensed: observations.to_vec(),
        reflections: vec![NewReflection {
            note: note(text),
            condenses: observations.to_vec(),
        }],
    }
}

/// Creates a session with this many turns of three events.
async fn session(stores: &Stores, principal: &str, name: &str, turns: u64) -> SessionKey {
    let key = key(principal, name);
    for turn in 0..turns {
        append_turn(&*stores.sessions, &key, &format!("t{turn}"), "hello").await;
    }
    key
}

async fn save(store: &dyn MemoryStore, key: &SessionKey, span: ObservedSpan) {
    assert_eq!(ok(store.save_span(key, span).await), MemoryWrite::Written);
}

/// Creates a session with one observed turn. Returns the ids of its observations.
pub(super) async fn observed(
    stores: &Stores,
    principal: &str,
    texts: &[&str],
) -> (SessionKey, Vec<u64>) {
    let key = session(stores, principal, "s", 3).await;
    save(&*stores.memory, &key, span(0, texts)).await;
    let memories = ok(stores.memory.uncondensed_memories(&key).await);
    (key, memories.iter().map(number).collect())
}

fn number(memory: &Memory) -> u64 {
    match memory.id {
        MemoryId::Observation(number) | MemoryId::Reflection(number) => number,
    }
}

fn texts(memories: &[Memory]) -> Vec<&str> {
    memories
        .iter()
        .map(|memory| memory.note.text.as_str())
        .collect()
}

async fn spans_follow_each_other(stores: &Stores) {
    let store = &*stores.memory;
    let key = session(stores, "spans", "s", 2).await;
    assert_eq!(
        ok(store.progress(&key).await),
        ObservationProgress::default()
    );
    save(store, &key, span(0, &["one", "two"])).await;
    let again = ok(store.save_span(&key, span(0, &["other"])).await);
    assert_eq!(again, MemoryWrite::Conflict);
    save(store, &key, span(3, &["three"])).await;
    let gap = ok(store.save_span(&key, span(9, &["other"])).await);
    assert_eq!(gap, MemoryWrite::Conflict);
    let memories = ok(store.uncondensed_memories(&key).await);
    assert_eq!(texts(&memories), ["one", "two", "three"], "in order");
    let expected = Memory {
        id: memories[2].id,
        session: key.session.clone(),
        note: note("three"),
        origin: MemoryOrigin::Rules,
        sources: vec![4],
        condenses: Vec::new(),
        generation: 0,
    };
    assert_eq!(memories[2], expected);
    let progress = ok(store.progress(&key).await);
    assert_eq!((progress.observed_through, progress.active_through), (6, 0));
    assert_eq!(progress.pending, [(3, 50), (6, 50)]);
}

async fn observations_are_activated(stores: &Stores) {
    let store = &*stores.memory;
    let (key, _) = observed(stores, "active", &["one"]).await;
    save(store, &key, span(3, &["two"])).await;
    assert_eq!(ok(store.digest_memories(&key).await), []);
    assert_eq!(ok(store.progress(&key).await).tokens, 0);
    ok(store.activate(&key, 3).await);
    let progress = ok(store.progress(&key).await);
    assert_eq!((progress.observed_through, progress.active_through), (6, 3));
    assert_eq!(progress.pending, [(6, 50)]);
    assert!(progress.tokens > 0);
    assert_eq!(texts(&ok(store.digest_memories(&key).await)), ["one"]);
    ok(store.activate(&key, 6).await);
    let digest = ok(store.digest_memories(&key).await);
    assert_eq!(texts(&digest), ["one", "two"]);
    assert_eq!(ok(store.uncondensed_memories(&key).await), digest);
}

async fn backoffs_are_saved(stores: &Stores) {
    let store = &*stores.memory;
    let key = session(stores, "backoff", "s", 1).await;
    for failures in [1, 2] {
        let backoff = ObserverBackoff {
            failures,
            unusable: 1,
            not_before: seconds(i64::from(failures)),
        };
        ok(store.save_backoff(&key, backoff.clone()).await);
        assert_eq!(ok(store.progress(&key).await).backoff, Some(backoff));
    }
    let other = super::key("backoff", "other");
    assert_eq!(ok(store.progress(&other).await).backoff, None);
    assert_eq!(ok(store.stats(&key.principal).await).put_off, 1);
    save(store, &key, span(0, &["one"])).await;
    assert_eq!(ok(store.progress(&key).await).backoff, None);
}

async fn memories_go_with_their_session(stores: &Stores) {
    let store = &*stores.memory;
    let (deleted, _) = observed(stores, "deleted", &["one"]).await;
    let (others, _) = observed(stores, "not deleted", &["one"]).await;
    let kept = session(stores, "deleted", "kept", 1).await;
    ok(store.store(&deleted, new_memory("asked", &[1])).await);
    save(store, &kept, span(0, &["kept"])).await;
    let owner = &deleted.principal;
    ok(stores.catalog.delete(owner, &deleted.session).await);
    let left = ok(store.observations_after(owner, 0, 9).await);
    assert_eq!(texts(&left), ["kept"]);
    assert_eq!(
        ok(store.progress(&deleted).await),
        ObservationProgress::default()
    );
    let left = ok(store.uncondensed_memories(&others).await);
    assert_eq!(texts(&left), ["one"]);
}

/// B74
async fn memories_belong_to_their_principal(stores: &Stores) {
    let store = &*stores.memory;
    let (hers, ids) = observed(stores, "alice", &["hers"]).await;
    ok(store.activate(&hers, 3).await);
    let his = session(stores, "bob", "s", 1).await;
    assert_eq!(
        ok(store.progress(&his).await),
        ObservationProgress::default()
    );
    assert_eq!(ok(store.digest_memories(&his).await), []);
    assert_eq!(ok(store.uncondensed_memories(&his).await), []);
    let bob = &his.principal;
    let id = MemoryId::Observation(ids[0]);
    assert_eq!(ok(store.memory(bob, id).await), None);
    assert_eq!(ok(store.observations_after(bob, 0, 9).await), []);
    assert_eq!(ok(store.stats(bob).await).observations, 0);
    assert_eq!(ok(store.revision(bob).await).newest, 0);
    let stolen = reflections(0, "his", &ids);
    let saved = ok(store.save_reflections(&his, stolen).await);
    assert_eq!(saved, MemoryWrite::Conflict, "these are not his");
    let digest = ok(store.digest_memories(&hers).await);
    assert_eq!(texts(&digest), ["hers"]);
}
