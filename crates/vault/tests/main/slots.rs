//! Slots: key file, credential and passphrase.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use jiff::SignedDuration;
use lango_domain::secret::Secret;
use lango_domain::vault::SlotKind;
use lango_vault::{KeySources, OpenedBy, VaultError, VaultState};

use crate::setup::{VaultHarness, me, name, passphrase, set};

async fn state(harness: &VaultHarness) -> VaultState {
    harness.vault().status().await.unwrap().state
}

#[tokio::test]
async fn the_first_secret_makes_a_key_file() {
    let harness = VaultHarness::new();
    assert_eq!(state(&harness).await, VaultState::Empty);
    assert!(!harness.key_file().exists());
    set(&harness.vault(), "TOKEN", "value-1").await;
    let mode = std::fs::metadata(harness.key_file()).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let opened = VaultState::Open(OpenedBy::KeyFile(harness.key_file()));
    assert_eq!(state(&harness).await, opened);
    // A process that has opened the vault writes no core dumps.
    assert_eq!(
        rustix::process::dumpable_behavior().unwrap(),
        rustix::process::DumpableBehavior::NotDumpable
    );
    let folder = std::fs::read_dir(harness.folder.path()).unwrap();
    let drafts = folder
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("vault.key."));
    assert_eq!(drafts.count(), 0);
}

#[tokio::test]
async fn processes_that_create_the_vault_together_share_it() {
    let harness = Arc::new(VaultHarness::new());
    let tasks: Vec<_> = (0..16)
        .map(|number| {
            let harness = Arc::clone(&harness);
            tokio::spawn(async move {
                set(&harness.vault(), &format!("S{number}"), "value-1").await;
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let vault = harness.vault();
    let secrets = vault.secrets(&me()).await.unwrap();
    assert_eq!(secrets.len(), 16);
    // Every value opens with the one key that is left.
    let file = harness.folder.path().join("export");
    assert_eq!(vault.export(&file, &passphrase()).await.unwrap(), 16);
}

#[tokio::test]
async fn a_credential_takes_the_place_of_the_key_file() {
    let harness = VaultHarness::new();
    set(&harness.vault(), "TOKEN", "value-1").await;
    let credential = harness.folder.path().join("lango-vault-key");
    std::fs::rename(harness.key_file(), &credential).unwrap();
    // systemd sets the mode of a credential itself.
    std::fs::set_permissions(&credential, std::fs::Permissions::from_mode(0o440)).unwrap();
    let sources = KeySources {
        credential: Some(credential.clone()),
        ..harness.sources()
    };
    let vault = harness.vault_with(sources);
    set(&vault, "OTHER", "value-2").await;
    let status = vault.status().await.unwrap();
    assert_eq!(
        status.state,
        VaultState::Open(OpenedBy::Credential(credential))
    );
    assert!(!harness.key_file().exists());
}

#[tokio::test]
async fn a_passphrase_is_a_slot_of_its_own() {
    let harness = VaultHarness::new();
    let vault = harness.vault();
    set(&vault, "TOKEN", "value-1").await;
    let short = vault.set_passphrase(&Secret::new("short")).await;
    assert_eq!(short, Err(VaultError::ShortPassphrase(8)));
    vault.set_passphrase(&passphrase()).await.unwrap();
    vault.remove_key_file().await.unwrap();
    assert!(!harness.key_file().exists());
    assert_eq!(state(&harness).await, VaultState::Locked);
    // Names can be listed, values cannot be used or changed.
    let locked = harness.vault();
    assert_eq!(locked.secrets(&me()).await.unwrap().len(), 1);
    let sealed = locked
        .bind_secret(&me(), &name("TOKEN"), &Default::default())
        .await;
    assert_eq!(sealed, Err(VaultError::Locked));
    let wrong = locked
        .open_with_passphrase(&Secret::new("wrong horse"))
        .await;
    assert_eq!(wrong, Err(VaultError::WrongPassphrase));
    locked.open_with_passphrase(&passphrase()).await.unwrap();
    set(&locked, "TOKEN", "value-2").await;
    // A new passphrase replaces the slot only.
    let newer = Secret::new("another passphrase");
    locked.set_passphrase(&newer).await.unwrap();
    let reopened = harness.vault();
    let old = reopened.open_with_passphrase(&passphrase()).await;
    assert_eq!(old, Err(VaultError::WrongPassphrase));
    reopened.open_with_passphrase(&newer).await.unwrap();
    let removed = reopened.remove_passphrase().await;
    assert_eq!(removed, Err(VaultError::LastSlot(SlotKind::Passphrase)));
}

#[tokio::test]
async fn the_key_file_stays_while_it_is_the_only_way() {
    let harness = VaultHarness::new();
    let vault = harness.vault();
    assert_eq!(vault.remove_key_file().await, Err(VaultError::Empty));
    set(&vault, "TOKEN", "value-1").await;
    let removed = vault.remove_key_file().await;
    assert_eq!(removed, Err(VaultError::LastSlot(SlotKind::KeyFile)));
    assert!(harness.key_file().exists());
    let removed = vault.remove_passphrase().await;
    assert_eq!(removed, Err(VaultError::NoPassphrase));
}

#[tokio::test]
async fn a_lost_key_file_is_recovered_with_the_passphrase_only() {
    let harness = VaultHarness::new();
    let vault = harness.vault();
    set(&vault, "TOKEN", "value-1").await;
    vault.set_passphrase(&passphrase()).await.unwrap();
    std::fs::remove_file(harness.key_file()).unwrap();
    assert_eq!(state(&harness).await, VaultState::Locked);
    // No new key file is made in its place.
    let locked = harness.vault();
    assert_eq!(locked.add_key_file().await, Err(VaultError::Locked));
    assert!(!harness.key_file().exists());
    locked.open_with_passphrase(&passphrase()).await.unwrap();
    locked.add_key_file().await.unwrap();
    set(&harness.vault(), "TOKEN", "value-2").await;
}

#[tokio::test]
async fn unlocking_lasts_until_its_end_or_a_lock() {
    let harness = VaultHarness::new();
    let vault = harness.vault();
    let empty = vault
        .unlock(&passphrase(), SignedDuration::from_secs(60))
        .await;
    assert_eq!(empty, Err(VaultError::Empty));
    set(&vault, "TOKEN", "value-1").await;
    vault.set_passphrase(&passphrase()).await.unwrap();
    vault.remove_key_file().await.unwrap();
    let minute = SignedDuration::from_secs(60);
    let wrong = vault.unlock(&Secret::new("wrong horse"), minute).await;
    assert_eq!(wrong, Err(VaultError::WrongPassphrase));
    let until = vault.unlock(&passphrase(), minute).await.unwrap();
    let other_process = harness.vault();
    set(&other_process, "TOKEN", "value-2").await;
    let opened = VaultState::Open(OpenedBy::Unlocked(until));
    assert_eq!(state(&harness).await, opened);
    // The other process does not keep the key beyond the lock.
    assert!(vault.lock().await.unwrap());
    assert!(!vault.lock().await.unwrap());
    assert_eq!(
        other_process.status().await.unwrap().state,
        VaultState::Locked
    );
    vault.unlock(&passphrase(), minute).await.unwrap();
    harness.advance(61);
    assert_eq!(
        other_process.status().await.unwrap().state,
        VaultState::Locked
    );
    assert_eq!(
        std::fs::read_dir(harness.runtime.path().join("lango"))
            .unwrap()
            .count(),
        0
    );
}

#[tokio::test]
async fn the_key_of_an_unlocked_vault_stays_in_memory() {
    let harness = VaultHarness::new();
    let on_disk = KeySources {
        runtime_folder: Some(harness.folder.path().to_owned()),
        ..harness.sources()
    };
    let vault = harness.vault_with(on_disk);
    set(&vault, "TOKEN", "value-1").await;
    vault.set_passphrase(&passphrase()).await.unwrap();
    let minute = SignedDuration::from_secs(60);
    // The temporary folder of the test machine may itself be in memory.
    let is_disk = !std::fs::read_to_string("/proc/mounts")
        .unwrap()
        .lines()
        .any(|line| line.starts_with("tmpfs /tmp "));
    if is_disk {
        let refused = vault.unlock(&passphrase(), minute).await;
        assert!(matches!(refused, Err(VaultError::NoRuntimeFolder(_))));
    }
    let folder = harness.runtime.path().join("lango");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let refused = harness.vault().unlock(&passphrase(), minute).await;
    assert!(matches!(refused, Err(VaultError::NoRuntimeFolder(_))));
    let none = KeySources {
        runtime_folder: None,
        ..harness.sources()
    };
    let refused = harness.vault_with(none).unlock(&passphrase(), minute).await;
    assert!(matches!(refused, Err(VaultError::NoRuntimeFolder(_))));
}

#[tokio::test]
async fn a_file_with_the_passphrase_opens_the_vault() {
    let harness = VaultHarness::new();
    let vault = harness.vault();
    set(&vault, "TOKEN", "value-1").await;
    vault.set_passphrase(&passphrase()).await.unwrap();
    vault.remove_key_file().await.unwrap();
    let file = harness.folder.path().join("passphrase");
    let sources = KeySources {
        passphrase_file: Some(file.clone()),
        ..harness.sources()
    };
    for (content, expected) in [
        (None, None),
        (Some("wrong horse\n"), Some(VaultError::WrongPassphrase)),
    ] {
        if let Some(content) = content {
            std::fs::write(&file, content).unwrap();
        }
        let status = harness.vault_with(sources.clone()).status().await.unwrap();
        let VaultState::Failed(error) = status.state else {
            panic!("{:?}", status.state);
        };
        assert!(expected.is_none_or(|expected| error == expected));
    }
    std::fs::write(&file, "correct horse battery\n").unwrap();
    set(&harness.vault_with(sources), "TOKEN", "value-2").await;
}
