//! Export and import.

use lango_domain::StoreError;
use lango_domain::secret::Secret;
use lango_domain::vault::{RecordKey, RecordKind};
use lango_vault::{ExistingRecords, KeyPurpose, Vault, VaultError};

use crate::setup::{VaultHarness, me, name, passphrase, set};

async fn value(vault: &Vault, secret: &str) -> String {
    let key = RecordKey {
        kind: RecordKind::Secret,
        principal: me(),
        name: secret.to_owned(),
    };
    let record = vault.get(&key).await.unwrap();
    String::from_utf8(record.value.to_vec()).unwrap()
}

fn names(keys: &[RecordKey]) -> Vec<&str> {
    keys.iter().map(|key| key.name.as_str()).collect()
}

#[tokio::test]
async fn an_export_moves_everything_to_another_machine() {
    let (from, to) = (VaultHarness::new(), VaultHarness::new());
    let source = from.vault();
    set(&source, "A", "canary-a").await;
    source
        .create_key(&me(), &name("k"), KeyPurpose::Encrypt)
        .await
        .unwrap();
    let old = source
        .encrypt(&me(), Some(&name("k")), b"old text")
        .await
        .unwrap();
    source.rotate_key(&me(), &name("k")).await.unwrap();
    let file = from.folder.path().join("vault.export");
    assert_eq!(source.export(&file, &passphrase()).await.unwrap(), 2);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("{\"lango_vault_export\":1,") && !text.contains("canary"));
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let again = source.export(&file, &passphrase()).await;
    assert_eq!(
        again,
        Err(VaultError::Store(StoreError::FileExists(file.clone())))
    );

    let target = to.vault();
    let report = target
        .import(&file, &passphrase(), ExistingRecords::Keep)
        .await
        .unwrap();
    assert_eq!(names(&report.added), ["A", "k"]);
    assert_eq!(value(&to.vault(), "A").await, "canary-a");
    // All versions of a key came along.
    let text = to.vault().decrypt(&me(), None, &old).await.unwrap();
    assert_eq!(&**text, b"old text");
    let report = target
        .import(&file, &passphrase(), ExistingRecords::Replace)
        .await
        .unwrap();
    assert_eq!(names(&report.unchanged), ["A", "k"]);
}

#[tokio::test]
async fn an_import_replaces_only_when_told() {
    let (from, to) = (VaultHarness::new(), VaultHarness::new());
    set(&from.vault(), "A", "imported-a").await;
    set(&from.vault(), "B", "imported-b").await;
    let file = from.folder.path().join("vault.export");
    from.vault().export(&file, &passphrase()).await.unwrap();
    let target = to.vault();
    set(&target, "A", "own-a").await;
    let report = target
        .import(&file, &passphrase(), ExistingRecords::Keep)
        .await
        .unwrap();
    assert_eq!(
        (names(&report.added), names(&report.kept)),
        (vec!["B"], vec!["A"])
    );
    assert_eq!(value(&target, "A").await, "own-a");
    let report = target
        .import(&file, &passphrase(), ExistingRecords::Replace)
        .await
        .unwrap();
    assert_eq!(
        (names(&report.replaced), names(&report.unchanged)),
        (vec!["A"], vec!["B"])
    );
    assert_eq!(value(&target, "A").await, "imported-a");
}

#[tokio::test]
async fn a_wallet_is_never_replaced_and_then_nothing_is() {
    let (from, to) = (VaultHarness::new(), VaultHarness::new());
    let wallet = RecordKey {
        kind: RecordKind::Wallet,
        principal: me(),
        name: "main".to_owned(),
    };
    from.vault()
        .create_record(&wallet, b"key 1", "{}")
        .await
        .unwrap();
    set(&from.vault(), "A", "imported-a").await;
    let file = from.folder.path().join("vault.export");
    from.vault().export(&file, &passphrase()).await.unwrap();
    let target = to.vault();
    target.create_record(&wallet, b"key 2", "{}").await.unwrap();
    let replaced = target
        .import(&file, &passphrase(), ExistingRecords::Replace)
        .await;
    assert!(matches!(replaced, Err(VaultError::InvalidExport(_))));
    assert!(target.secrets(&me()).await.unwrap().is_empty());
    assert_eq!(&**target.get(&wallet).await.unwrap().value, b"key 2");
}

const WRONG: &str = "the passphrase is wrong, or the file was changed";
const INCOMPLETE: &str = "it is not an export of a vault, or not complete";

/// Returns changed forms of an export, each with the reason that is reported.
fn changed_exports(text: &str) -> Vec<(String, &'static str)> {
    let replaced = |from: &str, to: &str| text.replacen(from, to, 1);
    let at = text.find("\"ciphertext\":\"").unwrap() + 20;
    let letter = if &text[at..=at] == "A" { "B" } else { "A" };
    let changed = format!("{}{letter}{}", &text[..at], &text[at + 1..]);
    let huge = replaced("\"memory_kib\":19456", "\"memory_kib\":4000000000");
    vec![
        (changed, WRONG),
        (replaced("\"passes\":2", "\"passes\":3"), WRONG),
        (text[..text.len() / 2].to_owned(), INCOMPLETE),
        (String::new(), INCOMPLETE),
        ("{\"a\":1}".to_owned(), INCOMPLETE),
        (
            replaced("export\":1", "export\":2"),
            "it was written by a newer version of Lango",
        ),
        (huge, "the memory must be from 19 MiB to 1 GiB"),
        (replaced("argon2id", "none"), "its header cannot be read"),
    ]
}

#[tokio::test]
async fn wrong_and_changed_exports_change_nothing() {
    let (from, to) = (VaultHarness::new(), VaultHarness::new());
    set(&from.vault(), "A", "imported-a").await;
    let file = from.folder.path().join("vault.export");
    from.vault().export(&file, &passphrase()).await.unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let target = to.vault();
    let replace = ExistingRecords::Replace;
    let other = Secret::new("wrong horse");
    let error = target.import(&file, &other, replace).await.unwrap_err();
    assert_eq!(error, VaultError::InvalidExport(WRONG.to_owned()));
    for (content, reason) in changed_exports(&text) {
        std::fs::write(&file, content).unwrap();
        let error = target.import(&file, &passphrase(), replace).await;
        let expected = VaultError::InvalidExport(reason.to_owned());
        assert_eq!(error.unwrap_err(), expected);
        assert!(target.secrets(&me()).await.unwrap().is_empty());
    }
    let missing = from.folder.path().join("missing");
    let error = target.import(&missing, &passphrase(), replace).await;
    assert!(matches!(error, Err(VaultError::File { .. })));
    let error = target.export(&missing, &passphrase()).await;
    assert_eq!(error, Err(VaultError::Empty));
    let error = from.vault().export(&missing, &Secret::new("short")).await;
    assert_eq!(error, Err(VaultError::ShortPassphrase(8)));
}
