//! The conformance suite for stored workflows.

use lango_domain::Stores;
use lango_domain::automation::{AutomationStore, NewSavedWorkflow, SavedWorkflow};
use lango_domain::event::Principal;

use super::{ok, seconds};

/// Runs the whole suite on empty stores.
///
/// # Panics
/// If the store violates the contract of [`WorkflowStore`](lango_domain::automation::WorkflowStore).
pub async fn check(stores: &Stores) {
    let store = &*stores.automation;
    a_change_makes_a_version(store).await;
    old_versions_go(store).await;
    workflows_belong_to_their_principal(store).await;
}

async fn save(
    store: &dyn AutomationStore,
    principal: &str,
    name: &str,
    definition: &str,
) -> SavedWorkflow {
    let new = NewSavedWorkflow {
        principal: Principal::new(principal),
        name: name.to_owned(),
        definition: definition.to_owned(),
        saved: seconds(7),
        max_versions: 3,
    };
    ok(store.save_workflow(new).await)
}

async fn a_change_makes_a_version(store: &dyn AutomationStore) {
    let owner = Principal::new("versions");
    assert_eq!(ok(store.saved_workflow(&owner, "review", None).await), None);
    let first = save(store, "versions", "review", "name: a").await;
    assert_eq!((first.version, first.saved), (1, seconds(7)));
    assert_eq!(save(store, "versions", "review", "name: a").await, first);
    let second = save(store, "versions", "review", "name: b").await;
    assert_eq!(second.version, 2);
    let newest = ok(store.saved_workflow(&owner, "review", None).await);
    assert_eq!(newest.as_ref(), Some(&second));
    let earlier = ok(store.saved_workflow(&owner, "review", Some(1)).await);
    assert_eq!(earlier.as_ref(), Some(&first));
    let digest = save(store, "versions", "digest", "name: c").await;
    assert_eq!(ok(store.saved_workflows(&owner).await), [digest, second]);
}

async fn old_versions_go(store: &dyn AutomationStore) {
    let owner = Principal::new("many");
    for number in 1..=5 {
        save(store, "many", "w", &format!("name: v{number}")).await;
    }
    for (version, is_kept) in [(1, false), (2, false), (3, true), (5, true)] {
        let found = ok(store.saved_workflow(&owner, "w", Some(version)).await);
        assert_eq!(found.is_some(), is_kept, "version {version}");
    }
}

async fn workflows_belong_to_their_principal(store: &dyn AutomationStore) {
    save(store, "ann", "w", "name: a").await;
    let (ann, ben) = (Principal::new("ann"), Principal::new("ben"));
    assert_eq!(ok(store.saved_workflow(&ben, "w", None).await), None);
    assert_eq!(ok(store.saved_workflows(&ben).await), []);
    assert!(!ok(store.delete_workflow(&ben, "w").await));
    assert!(ok(store.delete_workflow(&ann, "w").await));
    assert_eq!(ok(store.saved_workflows(&ann).await), []);
}
