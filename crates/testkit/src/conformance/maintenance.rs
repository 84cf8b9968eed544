//! The conformance suite for backup and health.

use lango_domain::{StoreError, Stores};

use super::{append_turn, key, ok};

/// Runs the whole suite on empty stores.
///
/// # Panics
/// If the store violates the contract of [`lango_domain::maintenance::StoreMaintenance`].
pub async fn check(stores: &Stores) {
    health_counts_sessions_and_events(stores).await;
    checking_changes_nothing(stores).await;
    an_intact_store_has_no_damaged_rows(stores).await;
    if !stores.maintenance.is_in_memory() {
        backups_are_new_files(stores).await;
    }
}

async fn health_counts_sessions_and_events(stores: &Stores) {
    let empty = ok(stores.maintenance.health().await);
    assert_eq!((empty.sessions, empty.events), (0, 0));
    assert_eq!(empty.problems, Vec::<String>::new());
    for (owner, session) in [("alice", "a"), ("alice", "b"), ("bob", "a")] {
        append_turn(&*stores.sessions, &key(owner, session), "t", "hello").await;
    }
    let health = ok(stores.maintenance.health().await);
    assert_eq!(
        (health.sessions, health.events),
        (3, 9),
        "of every principal"
    );
    assert!(health.bytes > 0 && health.bytes >= empty.bytes);
    assert_eq!(health.problems, Vec::<String>::new());
}

async fn checking_changes_nothing(stores: &Stores) {
    let identity = stores.maintenance.identity().to_owned();
    assert!(!identity.is_empty());
    let before = ok(stores.maintenance.health().await);
    ok(stores.maintenance.check_writable().await);
    assert_eq!(ok(stores.maintenance.health().await), before);
    append_turn(&*stores.sessions, &key("alice", "c"), "t", "hello").await;
    assert_eq!(stores.maintenance.identity(), identity);
}

async fn an_intact_store_has_no_damaged_rows(stores: &Stores) {
    assert_eq!(ok(stores.maintenance.find_damaged_rows().await), []);
    assert_eq!(stores.maintenance.damaged_rows(), []);
}

/// The store can be written while it is copied.
async fn backups_are_new_files(stores: &Stores) {
    let folder = tempfile::tempdir();
    let folder = folder.unwrap_or_else(|error| unreachable!("a temporary folder: {error}"));
    let file = folder.path().join("copy");
    let written = key("alice", "meanwhile");
    let (copied, _) = futures::join!(
        stores.maintenance.back_up(&file),
        append_turn(&*stores.sessions, &written, "t", "hello"),
    );
    ok(copied);
    let content = std::fs::read(&file).unwrap_or_default();
    assert!(!content.is_empty());
    assert_eq!(
        stores.maintenance.back_up(&file).await,
        Err(StoreError::FileExists(file.clone()))
    );
    assert_eq!(
        std::fs::read(&file).unwrap_or_default(),
        content,
        "an existing file is not overwritten"
    );
}
