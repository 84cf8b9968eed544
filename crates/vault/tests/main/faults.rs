//! Changed, damaged, missing and unwritable files. Every fault is a clear error and loses nothing.

use std::os::unix::fs::PermissionsExt as _;

use lango_domain::{SecretReference, SecretSource as _, SecretUse};
use lango_vault::{KeySources, VaultError, VaultSecrets, VaultState};

use crate::setup::{VaultHarness, me, name, passphrase, set};

async fn value(harness: &VaultHarness, secret: &str) -> Result<String, String> {
    let secrets = VaultSecrets::new(harness.vault());
    let usage = SecretUse {
        principal: me(),
        tool: "exec_shell".to_owned(),
        hosts: Vec::new(),
    };
    let resolved = secrets
        .resolve(&SecretReference::Secret(name(secret)), &usage)
        .await;
    resolved
        .map(|value| value.expose().to_owned())
        .map_err(|error| error.to_string())
}

/// B130
#[tokio::test]
async fn nothing_readable_is_on_the_disk() {
    let harness = VaultHarness::new();
    set(&harness.vault(), "TOKEN", "canary-value-7f3a").await;
    for entry in std::fs::read_dir(harness.folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let Ok(bytes) = std::fs::read(&path) else {
            continue;
        };
        let found = bytes.windows(6).any(|window| window == b"canary");
        assert!(!found, "{}", path.display());
    }
}

#[tokio::test]
async fn a_changed_record_is_not_used() {
    for sql in [
        "UPDATE vault_records SET ciphertext = zeroblob(length(ciphertext)) WHERE name = 'A'",
        "UPDATE vault_records SET ciphertext = x'00' WHERE name = 'A'",
        "UPDATE vault_records SET nonce = randomblob(24) WHERE name = 'A'",
        // Another host, another name, another owner, another version, another kind.
        "UPDATE vault_records SET attributes = '{\"tools\":[],\"hosts\":[\"evil.example\"]}' WHERE name = 'A'",
        "UPDATE vault_records SET version = 7 WHERE name = 'A'",
        "UPDATE vault_records AS a SET ciphertext = (SELECT ciphertext FROM vault_records b WHERE b.name = 'B'), \
         nonce = (SELECT nonce FROM vault_records b WHERE b.name = 'B') WHERE name = 'A'",
    ] {
        let harness = VaultHarness::new();
        let vault = harness.vault();
        set(&vault, "A", "value-a").await;
        set(&vault, "B", "value-b").await;
        harness.tamper(sql);
        let error = value(&harness, "A").await.unwrap_err();
        let expected = "the secret `A` was changed outside of the vault, and is not used";
        assert_eq!(error, expected, "{sql}");
        assert_eq!(value(&harness, "B").await.unwrap(), "value-b");
        let file = harness.folder.path().join("export");
        let exported = harness.vault().export(&file, &passphrase()).await;
        assert!(
            matches!(exported, Err(VaultError::Tampered { .. })),
            "{sql}"
        );
        assert!(!file.exists());
        // The value can be set again.
        set(&harness.vault(), "A", "value-c").await;
        assert_eq!(value(&harness, "A").await.unwrap(), "value-c");
    }
}

#[tokio::test]
async fn a_record_cannot_be_given_to_another_principal() {
    let harness = VaultHarness::new();
    set(&harness.vault(), "A", "value-a").await;
    harness.tamper("UPDATE vault_records SET principal = 'ann'");
    let ann = lango_domain::event::Principal::new("ann");
    let vault = harness.vault();
    let moved = vault
        .bind_secret(&ann, &name("A"), &Default::default())
        .await;
    assert!(matches!(moved, Err(VaultError::Tampered { .. })));
}

#[tokio::test]
async fn a_changed_slot_does_not_open() {
    for sql in [
        "UPDATE vault_slots SET wrapped_key = randomblob(48)",
        "UPDATE vault_slots SET wrapped_key = x''",
        "UPDATE vault_slots SET parameters = '{\"a\":1}'",
        "UPDATE vault SET id = 'other'",
    ] {
        let harness = VaultHarness::new();
        set(&harness.vault(), "A", "value-a").await;
        harness.tamper(sql);
        let status = harness.vault().status().await.unwrap();
        let expected = VaultError::KeyFileMismatch(harness.key_file());
        assert_eq!(status.state, VaultState::Failed(expected), "{sql}");
    }
}

#[tokio::test]
async fn a_damaged_key_file_is_refused_and_stays() {
    let harness = VaultHarness::new();
    set(&harness.vault(), "A", "value-a").await;
    let original = std::fs::read(harness.key_file()).unwrap();
    let text = String::from_utf8(original.clone()).unwrap();
    let mut flipped = original.clone();
    flipped[25] ^= 1;
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (Vec::new(), "it is empty"),
        (
            original[..10].to_vec(),
            "it is not a key file of this version of Lango",
        ),
        (original[..40].to_vec(), "it is not complete"),
        (original[..original.len() - 3].to_vec(), "it is damaged"),
        (flipped, "it is damaged"),
        (vec![0xff; 64], "it is damaged"),
        (
            text.replace("key-1", "key-2").into_bytes(),
            "it is not a key file of this version of Lango",
        ),
        ([&original[..], b" more"].concat(), "it is not complete"),
    ];
    for (content, reason) in cases {
        std::fs::write(harness.key_file(), &content).unwrap();
        let vault = harness.vault();
        let error = vault
            .bind_secret(&me(), &name("A"), &Default::default())
            .await
            .unwrap_err();
        let expected = VaultError::KeyFileInvalid {
            file: harness.key_file(),
            reason: match reason {
                "it is empty" => "it is empty",
                "it is not complete" => "it is not complete",
                "it is damaged" => "it is damaged",
                _ => "it is not a key file of this version of Lango",
            },
        };
        assert_eq!(error, expected);
        assert!(error.hint().contains("from a backup"));
        assert_eq!(std::fs::read(harness.key_file()).unwrap(), content);
    }
    std::fs::write(harness.key_file(), &original).unwrap();
    assert_eq!(value(&harness, "A").await.unwrap(), "value-a");
}

#[tokio::test]
async fn a_key_file_that_others_can_read_is_refused() {
    let harness = VaultHarness::new();
    set(&harness.vault(), "A", "value-a").await;
    for mode in [0o640, 0o604, 0o644] {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(harness.key_file(), permissions).unwrap();
        let status = harness.vault().status().await.unwrap();
        let error = VaultError::KeyFileExposed {
            file: harness.key_file(),
            mode,
        };
        assert_eq!(
            error.hint(),
            format!("chmod 600 {}", harness.key_file().display())
        );
        assert_eq!(status.state, VaultState::Failed(error));
    }
    let permissions = std::fs::Permissions::from_mode(0o400);
    std::fs::set_permissions(harness.key_file(), permissions).unwrap();
    assert_eq!(value(&harness, "A").await.unwrap(), "value-a");
}

#[tokio::test]
async fn a_lost_key_file_is_never_replaced_by_a_new_one() {
    let harness = VaultHarness::new();
    set(&harness.vault(), "A", "value-a").await;
    let key = std::fs::read(harness.key_file()).unwrap();
    std::fs::remove_file(harness.key_file()).unwrap();
    let vault = harness.vault();
    let error = vault
        .bind_secret(&me(), &name("A"), &Default::default())
        .await
        .unwrap_err();
    assert_eq!(error, VaultError::KeyFileMissing(harness.key_file()));
    assert!(!harness.key_file().exists());
    // The key of another vault does not open this one.
    let other = VaultHarness::new();
    set(&other.vault(), "A", "value-b").await;
    std::fs::copy(other.key_file(), harness.key_file()).unwrap();
    let status = harness.vault().status().await.unwrap();
    assert_eq!(
        status.state,
        VaultState::Failed(VaultError::KeyFileMismatch(harness.key_file()))
    );
    std::fs::write(harness.key_file(), key).unwrap();
    assert_eq!(value(&harness, "A").await.unwrap(), "value-a");
}

#[tokio::test]
async fn without_a_place_for_the_key_nothing_is_stored() {
    let harness = VaultHarness::new();
    let value = lango_domain::secret::Secret::new("value-a");
    // A file where the folder should be, also for root.
    let blocked = harness.folder.path().join("blocked");
    std::fs::write(&blocked, "").unwrap();
    for key_file in [None, Some(blocked.join("vault.key"))] {
        let sources = KeySources {
            key_file,
            ..KeySources::default()
        };
        let vault = harness.vault_with(sources);
        let stored = vault
            .set_secret(&me(), &name("A"), &value, &Default::default())
            .await;
        assert!(matches!(
            stored,
            Err(VaultError::NoDataFolder | VaultError::File { .. })
        ));
        assert_eq!(vault.status().await.unwrap().state, VaultState::Empty);
    }
    // A key file that is a folder.
    std::fs::create_dir(harness.key_file()).unwrap();
    let stored = harness
        .vault()
        .set_secret(&me(), &name("A"), &value, &Default::default())
        .await;
    assert!(stored.is_err());
    assert_eq!(
        harness.vault().status().await.unwrap().state,
        VaultState::Empty
    );
}
