//! Deletion of sessions.

use jiff::Timestamp;
use lango_domain::event::{Principal, SessionId};
use lango_domain::session::{HistoryWindow, SessionKey};
use lango_domain::{StoreError, Stores};

use super::super::{append_at, append_turn, key, ok, seconds, whole_turn};
use super::names;

pub async fn check(stores: &Stores) {
    deleted_sessions_are_gone(stores).await;
    running_turns_block_deletion(stores).await;
    prune_deletes_old_sessions(stores).await;
}

async fn delete(stores: &Stores, key: &SessionKey) -> Result<(), StoreError> {
    stores.catalog.delete(&key.principal, &key.session).await
}

async fn deleted_sessions_are_gone(stores: &Stores) {
    let (deleted, kept, others) = (key("delete", "a"), key("delete", "b"), key("deleter", "a"));
    for key in [&deleted, &kept, &others] {
        append_turn(&*stores.sessions, key, "t", "unforgettable").await;
    }
    ok(delete(stores, &deleted).await);
    let missing = || StoreError::SessionNotFound("a".to_owned());
    assert_eq!(delete(stores, &deleted).await, Err(missing()));
    assert_eq!(names(&*stores.catalog, "delete").await, ["b"]);
    assert_eq!(names(&*stores.catalog, "deleter").await, ["a"]);
    let owner = &deleted.principal;
    let found = stores.catalog.session(owner, &deleted.session).await;
    assert_eq!(found, Err(missing()));
    let loaded = stores
        .sessions
        .load(deleted.as_ref(), HistoryWindow::Everything);
    assert_eq!(ok(loaded.await), []);
    let hits = ok(stores.catalog.search(owner, "unforgettable", 9).await);
    assert!(hits.iter().all(|hit| hit.session == kept.session));
    let again = append_turn(&*stores.sessions, &deleted, "t", "new").await;
    assert_eq!(again[0].seq, 1, "the name can be used again");
    ok(delete(stores, &others).await);
    let principals = ok(stores.catalog.principals().await);
    assert!(principals.contains(owner) && !principals.contains(&others.principal));
}

/// B60
async fn running_turns_block_deletion(stores: &Stores) {
    let (running, idle) = (key("lock", "running"), key("lock", "idle"));
    for key in [&running, &idle] {
        append_turn(&*stores.sessions, key, "t", "hello").await;
        assert!(!stores.catalog.is_turn_running(key.as_ref()).await);
    }
    let lock = ok(stores.sessions.lock(running.as_ref()).await);
    assert!(stores.catalog.is_turn_running(running.as_ref()).await);
    assert!(!stores.catalog.is_turn_running(idle.as_ref()).await);
    assert_eq!(
        delete(stores, &running).await,
        Err(StoreError::TurnRunning("running".to_owned()))
    );
    let pruned = ok(stores
        .catalog
        .prune(&running.principal, Timestamp::MAX)
        .await);
    assert_eq!(pruned, std::slice::from_ref(&idle.session));
    assert_eq!(names(&*stores.catalog, "lock").await, ["running"]);
    drop(lock);
    assert!(!stores.catalog.is_turn_running(running.as_ref()).await);
    ok(delete(stores, &running).await);
}

async fn prune_deletes_old_sessions(stores: &Stores) {
    for (owner, session, second) in [
        ("prune", "oldest", 10),
        ("prune", "used again", 11),
        ("prune", "old", 19),
        ("prune", "at the limit", 20),
        ("prune", "used again", 30),
        ("pruner", "oldest", 10),
    ] {
        let turn = whole_turn(&second.to_string(), "hello");
        append_at(
            &*stores.sessions,
            &key(owner, session),
            seconds(second),
            turn,
        )
        .await;
    }
    let owner = Principal::new("prune");
    let mut pruned = ok(stores.catalog.prune(&owner, seconds(20)).await);
    pruned.sort_unstable();
    assert_eq!(pruned, ["old", "oldest"].map(SessionId::new));
    assert_eq!(
        names(&*stores.catalog, "prune").await,
        ["used again", "at the limit"]
    );
    assert_eq!(names(&*stores.catalog, "pruner").await, ["oldest"], "B74");
    assert_eq!(ok(stores.catalog.prune(&owner, seconds(20)).await), []);
}
