//! The conformance suite for [`VaultStore`].

use lango_domain::Stores;
use lango_domain::event::Principal;
use lango_domain::vault::{
    KeySlot, OtherVersions, RecordChange, RecordKey, RecordKind, RecordWrite, SealedRecord,
    SlotKind, StoredVault, VaultId, VaultStore,
};

use super::{ok, seconds};

/// Runs the whole suite on empty stores.
///
/// # Panics
/// If the store violates the contract of [`VaultStore`].
pub async fn check(stores: &Stores) {
    let store = &*stores.vault;
    the_first_vault_stays(store).await;
    the_last_slot_stays(store).await;
    versions_are_kept_or_deleted(store).await;
    an_outdated_change_changes_nothing(store).await;
    records_belong_to_their_principal(store).await;
    equal_revisions_mean_equal_records(store).await;
}

fn slot(kind: SlotKind, byte: u8) -> KeySlot {
    KeySlot {
        kind,
        parameters: "{}".to_owned(),
        nonce: vec![byte; 24],
        wrapped_key: vec![byte; 48],
        created: seconds(1),
    }
}

fn vault(id: &str, byte: u8) -> StoredVault {
    StoredVault {
        id: VaultId(id.to_owned()),
        created: seconds(1),
        slots: vec![slot(SlotKind::KeyFile, byte)],
    }
}

fn key(principal: &str, name: &str) -> RecordKey {
    RecordKey {
        kind: RecordKind::Secret,
        principal: Principal::new(principal),
        name: name.to_owned(),
    }
}

fn record(key: &RecordKey, version: u64) -> SealedRecord {
    SealedRecord {
        key: key.clone(),
        version,
        attributes: format!("{{\"version\":{version}}}"),
        nonce: vec![7; 24],
        ciphertext: vec![version as u8; 20],
        created: seconds(5),
        used: None,
    }
}

fn change(expected_version: u64, others: OtherVersions, record: SealedRecord) -> RecordChange {
    RecordChange {
        expected_version,
        others,
        records: vec![record],
    }
}

async fn put(store: &dyn VaultStore, key: &RecordKey, version: u64, others: OtherVersions) {
    let change = change(version - 1, others, record(key, version));
    assert_eq!(
        ok(store.change_records(vec![change]).await),
        RecordWrite::Written
    );
}

async fn the_first_vault_stays(store: &dyn VaultStore) {
    assert_eq!(ok(store.vault().await), None);
    let first = vault("first", 1);
    assert_eq!(ok(store.create_vault(first.clone()).await), first);
    assert_eq!(ok(store.create_vault(vault("second", 2)).await), first);
    assert_eq!(ok(store.vault().await), Some(first));
}

async fn the_last_slot_stays(store: &dyn VaultStore) {
    assert!(!ok(store.remove_slot(SlotKind::Passphrase).await));
    assert!(!ok(store.remove_slot(SlotKind::KeyFile).await));
    let (passphrase, newer) = (slot(SlotKind::Passphrase, 3), slot(SlotKind::Passphrase, 4));
    ok(store.put_slot(passphrase).await);
    ok(store.put_slot(newer.clone()).await);
    let slots = ok(store.vault().await)
        .unwrap_or_else(|| vault("", 0))
        .slots;
    assert_eq!(slots, [slot(SlotKind::KeyFile, 1), newer.clone()]);
    assert!(ok(store.remove_slot(SlotKind::KeyFile).await));
    assert!(!ok(store.remove_slot(SlotKind::Passphrase).await));
    let slots = ok(store.vault().await)
        .unwrap_or_else(|| vault("", 0))
        .slots;
    assert_eq!(slots, [newer]);
}

async fn versions_are_kept_or_deleted(store: &dyn VaultStore) {
    let kept = key("versions", "kept");
    put(store, &kept, 1, OtherVersions::Keep).await;
    put(store, &kept, 2, OtherVersions::Keep).await;
    let versions = ok(store.record_versions(&kept).await);
    assert_eq!(versions, [record(&kept, 2), record(&kept, 1)]);
    let replaced = key("versions", "replaced");
    put(store, &replaced, 1, OtherVersions::Delete).await;
    put(store, &replaced, 2, OtherVersions::Delete).await;
    let versions = ok(store.record_versions(&replaced).await);
    assert_eq!(versions, [record(&replaced, 2)]);
    let owner = Principal::new("versions");
    let newest = ok(store.records(&owner, RecordKind::Secret).await);
    assert_eq!(newest, [record(&kept, 2), record(&replaced, 2)]);
    assert_eq!(ok(store.records(&owner, RecordKind::Key).await), []);
    assert_eq!(ok(store.all_records().await).len(), 3);
    ok(store.mark_used(&replaced, seconds(9)).await);
    let used = ok(store.record_versions(&replaced).await);
    assert_eq!(used[0].used, Some(seconds(9)));
}

async fn an_outdated_change_changes_nothing(store: &dyn VaultStore) {
    let (known, other) = (key("races", "known"), key("races", "other"));
    put(store, &known, 1, OtherVersions::Keep).await;
    let changes = vec![
        change(0, OtherVersions::Delete, record(&other, 1)),
        change(0, OtherVersions::Delete, record(&known, 1)),
    ];
    let result = ok(store.change_records(changes).await);
    assert_eq!(result, RecordWrite::Outdated);
    assert_eq!(ok(store.record_versions(&other).await), []);
    assert_eq!(ok(store.record_versions(&known).await), [record(&known, 1)]);
}

async fn records_belong_to_their_principal(store: &dyn VaultStore) {
    let (of_ann, of_ben) = (key("ann", "token"), key("ben", "token"));
    put(store, &of_ann, 1, OtherVersions::Delete).await;
    assert_eq!(ok(store.record_versions(&of_ben).await), []);
    assert!(!ok(store.delete_record(&of_ben).await));
    let listed = ok(store.records(&of_ben.principal, RecordKind::Secret).await);
    assert_eq!(listed, []);
    assert!(ok(store.delete_record(&of_ann).await));
    assert_eq!(ok(store.record_versions(&of_ann).await), []);
}

async fn equal_revisions_mean_equal_records(store: &dyn VaultStore) {
    let (first, second) = (key("revisions", "a"), key("revisions", "b"));
    let mut seen = Vec::new();
    for step in 0..6 {
        match step {
            0 => {}
            1 => put(store, &first, 1, OtherVersions::Delete).await,
            2 => put(store, &first, 2, OtherVersions::Delete).await,
            3 => put(store, &second, 1, OtherVersions::Delete).await,
            4 => assert!(ok(store.delete_record(&first).await)),
            _ => put(store, &first, 1, OtherVersions::Delete).await,
        }
        let kind = RecordKind::Secret;
        let revision = ok(store.records_revision(&first.principal, kind).await);
        assert!(!seen.contains(&revision), "step {step}");
        seen.push(revision);
    }
}
