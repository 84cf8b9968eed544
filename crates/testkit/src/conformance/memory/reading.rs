//! Events of a session, lists of memories, and statistics.

use lango_domain::Stores;
use lango_domain::event::{SessionId, TurnId, Usage};
use lango_domain::memory::{
    MemoryId, MemoryLevel, MemoryOrigin, MemoryQuery, MemoryStats, ObserverBackoff,
};

use super::super::{append_turn, key, new_event, ok, seconds, user_request};
use super::{new_memory, number, observed, reflections, save, session, span, texts};

pub async fn check(stores: &Stores) {
    turns_are_read_whole(stores).await;
    events_are_found_by_number(stores).await;
    explicit_memories_are_stored(stores).await;
    revisions_change(stores).await;
    memories_are_listed(stores).await;
    stats_count(stores).await;
    usage_is_recorded(stores).await;
}

async fn turns_are_read_whole(stores: &Stores) {
    let key = key("turns", "s");
    let mut all = Vec::new();
    for turn in ["1", "2", "3"] {
        all.extend(append_turn(&*stores.sessions, &key, turn, "hello").await);
    }
    let running = vec![new_event("4", user_request("more"))];
    ok(stores.sessions.append(key.as_ref(), running).await);
    for (after, bytes, expected) in [
        (0, usize::MAX, &all[..]),
        (0, 1, &all[..3]),
        (3, 1, &all[3..6]),
        (6, usize::MAX, &all[6..]),
        (9, usize::MAX, &[]),
    ] {
        let turns = ok(stores.memory.turns_after(&key, after, bytes).await);
        assert_eq!(turns, expected, "{bytes} bytes after {after}");
    }
    let missing = super::key("turns", "missing");
    let turns = ok(stores.memory.turns_after(&missing, 0, usize::MAX).await);
    assert_eq!(turns, []);
}

async fn events_are_found_by_number(stores: &Stores) {
    let (key, store) = (key("events", "s"), &*stores.memory);
    let mut all = append_turn(&*stores.sessions, &key, "t1", "first").await;
    all.extend(append_turn(&*stores.sessions, &key, "t2", "second").await);
    let found = ok(store.events(&key, vec![2, 5, 99]).await);
    assert_eq!(found, [all[1].clone(), all[4].clone()]);
    let request = async |turn: &str| ok(store.request(&key, &TurnId::new(turn)).await);
    assert_eq!(request("t2").await, Some((4, "second".to_owned())));
    assert_eq!(request("missing").await, None);
    let others = super::key("others", "s");
    assert_eq!(ok(store.events(&others, vec![2]).await), [], "B74");
    let request = ok(store.request(&others, &TurnId::new("t2")).await);
    assert_eq!(request, None, "B74");
}

async fn explicit_memories_are_stored(stores: &Stores) {
    let store = &*stores.memory;
    let key = session(stores, "explicit", "s", 1).await;
    let id = ok(store.store(&key, new_memory("tea 🙂", &[1, 2])).await);
    let found = ok(store.memory(&key.principal, id).await);
    let found = found.unwrap_or_else(|| unreachable!("the memory {id}"));
    assert_eq!(found.origin, MemoryOrigin::Asked);
    assert_eq!(found.note, super::note("tea 🙂"));
    assert_eq!((found.session, found.sources), (key.session, vec![1, 2]));
    let missing = MemoryId::Observation(number_of(id) + 1_000);
    assert_eq!(ok(store.memory(&key.principal, missing).await), None);
}

fn number_of(id: MemoryId) -> u64 {
    match id {
        MemoryId::Observation(number) | MemoryId::Reflection(number) => number,
    }
}

async fn revisions_change(stores: &Stores) {
    let store = &*stores.memory;
    let key = session(stores, "revision", "s", 1).await;
    let mut seen = vec![ok(store.revision(&key.principal).await)];
    save(store, &key, span(0, &["one"])).await;
    seen.push(ok(store.revision(&key.principal).await));
    ok(store.store(&key, new_memory("two", &[])).await);
    seen.push(ok(store.revision(&key.principal).await));
    ok(stores.catalog.delete(&key.principal, &key.session).await);
    seen.push(ok(store.revision(&key.principal).await));
    for (at, revision) in seen.iter().enumerate() {
        assert!(!seen[..at].contains(revision), "change {at}");
    }
    assert_eq!(Some(&ok(store.revision(&key.principal).await)), seen.last());
}

async fn memories_are_listed(stores: &Stores) {
    let store = &*stores.memory;
    let (a, ids) = observed(stores, "list", &["one", "two"]).await;
    let b = session(stores, "list", "b", 1).await;
    save(store, &b, span(0, &["three"])).await;
    ok(store
        .save_reflections(&a, reflections(0, "both", &ids))
        .await);
    let owner = &a.principal;
    let list = async |level, session: Option<&SessionId>, limit| {
        let query = MemoryQuery {
            level,
            session: session.cloned(),
            limit,
        };
        let found = ok(store.list(owner, query).await);
        texts(&found).join(" ")
    };
    use MemoryLevel::{Observations, Reflections};
    assert_eq!(list(Observations, None, 9).await, "three two one");
    assert_eq!(list(Observations, None, 2).await, "three two");
    assert_eq!(list(Observations, Some(&a.session), 9).await, "two one");
    assert_eq!(list(Reflections, None, 9).await, "both");
    assert_eq!(list(Reflections, Some(&b.session), 9).await, "");
    let all = ok(store.observations_after(owner, 0, 9).await);
    assert_eq!(texts(&all), ["one", "two", "three"]);
    let next = ok(store.observations_after(owner, number(&all[0]), 1).await);
    assert_eq!(next, all[1..2]);
}

async fn stats_count(stores: &Stores) {
    let store = &*stores.memory;
    let (a, ids) = observed(stores, "stats", &["one", "two"]).await;
    let b = session(stores, "stats", "b", 1).await;
    save(store, &b, span(0, &["three"])).await;
    ok(store.store(&a, new_memory("asked", &[1])).await);
    ok(store
        .save_reflections(&a, reflections(0, "both", &ids))
        .await);
    ok(store.activate(&a, 3).await);
    let backoff = ObserverBackoff {
        failures: 1,
        unusable: 0,
        not_before: seconds(1),
    };
    ok(store.save_backoff(&b, backoff).await);
    let expected = MemoryStats {
        observations: 4,
        asked: 1,
        reflections: 1,
        sessions: 2,
        condensed_sessions: 1,
        put_off: 1,
    };
    assert_eq!(ok(store.stats(&a.principal).await), expected);
}

async fn usage_is_recorded(stores: &Stores) {
    let key = key("usage", "s");
    let usage = Usage {
        output: 7,
        ..Usage::default()
    };
    let turn = TurnId::new("t");
    ok(stores.memory.record_usage(&key, turn, usage.clone()).await);
    let rows = ok(stores.catalog.usage(&key.principal, None).await);
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].turn.as_str(), &rows[0].usage), ("t", &usage));
}
