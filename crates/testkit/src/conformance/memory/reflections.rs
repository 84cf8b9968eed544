//! Reflections.

use lango_domain::Stores;
use lango_domain::memory::{Memory, MemoryId, MemoryOrigin, MemoryWrite};

use super::super::ok;
use super::{note, observed, reflections, texts};

pub async fn check(stores: &Stores) {
    reflections_replace_what_they_condense(stores).await;
    outdated_reflections_are_a_conflict(stores).await;
}

async fn reflections_replace_what_they_condense(stores: &Stores) {
    let store = &*stores.memory;
    let (key, ids) = observed(stores, "condense", &["one", "two", "three"]).await;
    ok(store.activate(&key, 3).await);
    let new = reflections(0, "both", &ids[..2]);
    assert_eq!(
        ok(store.save_reflections(&key, new).await),
        MemoryWrite::Written
    );
    assert_eq!(ok(store.progress(&key).await).generation, 1);
    let digest = ok(store.digest_memories(&key).await);
    assert_eq!(texts(&digest), ["both", "three"], "reflections first");
    let MemoryId::Reflection(_) = digest[0].id else {
        unreachable!("a reflection")
    };
    let expected = Memory {
        id: digest[0].id,
        session: key.session.clone(),
        note: note("both"),
        origin: MemoryOrigin::Model("fake/model".to_owned()),
        sources: vec![1],
        condenses: ids[..2].to_vec(),
        generation: 1,
    };
    assert_eq!(digest[0], expected);
    let left = ok(store.uncondensed_memories(&key).await);
    assert_eq!(texts(&left), ["three"]);
    let found = ok(store.memory(&key.principal, digest[0].id).await);
    assert_eq!(found, Some(expected));
    let new = reflections(1, "all", &ids);
    assert_eq!(
        ok(store.save_reflections(&key, new).await),
        MemoryWrite::Written
    );
    let digest = ok(store.digest_memories(&key).await);
    assert_eq!(texts(&digest), ["all"], "the previous one is replaced");
    assert_eq!(digest[0].generation, 2);
    let condensed = ok(store
        .memory(&key.principal, MemoryId::Observation(ids[0]))
        .await);
    assert!(condensed.is_some(), "condensed observations stay");
}

async fn outdated_reflections_are_a_conflict(stores: &Stores) {
    let store = &*stores.memory;
    let (key, ids) = observed(stores, "conflict", &["one"]).await;
    let first = reflections(0, "first", &ids);
    assert_eq!(
        ok(store.save_reflections(&key, first).await),
        MemoryWrite::Written
    );
    for outdated in [0, 2] {
        let second = reflections(outdated, "second", &ids);
        let saved = ok(store.save_reflections(&key, second).await);
        assert_eq!(saved, MemoryWrite::Conflict);
    }
    let digest = ok(store.digest_memories(&key).await);
    assert_eq!(texts(&digest), ["first"]);
    assert_eq!(ok(store.progress(&key).await).generation, 1);
}
