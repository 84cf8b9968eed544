//! Keys: signatures and encryption across versions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lango_domain::event::Principal;
use lango_domain::vault::RecordKind;
use lango_vault::{KeyPurpose, VaultError};

use crate::setup::{VaultHarness, me, name};

#[tokio::test]
async fn rotated_keys_still_verify_and_decrypt() {
    let harness = VaultHarness::new();
    let vault = harness.vault();
    let first = vault.sign(&me(), None, b"data").await.unwrap();
    assert_eq!((first.key.name.as_str(), first.key.version), ("signing", 1));
    let encrypted = vault.encrypt(&me(), None, b"text").await.unwrap();
    assert!(encrypted.starts_with("lango-encrypted-1:encryption:1:"));
    for key in ["signing", "encryption"] {
        assert_eq!(
            vault.rotate_key(&me(), &name(key)).await.unwrap().version,
            2
        );
    }
    let second = vault.sign(&me(), None, b"data").await.unwrap();
    assert_eq!(second.key.version, 2);
    for (made, version) in [(&first, 1), (&second, 2)] {
        let signature = STANDARD.decode(&made.signature).unwrap();
        let signer = vault
            .verify(&me(), &name("signing"), (b"data", &signature))
            .await;
        assert_eq!(signer.unwrap().unwrap().version, version);
        let signer = vault
            .verify(&me(), &name("signing"), (b"datum", &signature))
            .await;
        assert_eq!(signer.unwrap(), None);
    }
    let reopened = harness.vault();
    assert_eq!(
        &**reopened.decrypt(&me(), None, &encrypted).await.unwrap(),
        b"text"
    );
    let newer = reopened
        .encrypt(&me(), Some(&name("encryption")), b"")
        .await
        .unwrap();
    assert!(newer.starts_with("lango-encrypted-1:encryption:2:"));
    assert_eq!(&**reopened.decrypt(&me(), None, &newer).await.unwrap(), b"");
    assert_eq!(
        reopened
            .key_versions(&me(), &name("signing"))
            .await
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test]
async fn keys_are_used_for_their_purpose_by_their_owner() {
    let harness = VaultHarness::new();
    let vault = harness.vault();
    vault
        .create_key(&me(), &name("release"), KeyPurpose::Sign)
        .await
        .unwrap();
    let again = vault
        .create_key(&me(), &name("release"), KeyPurpose::Sign)
        .await;
    let exists = VaultError::Exists {
        kind: RecordKind::Key,
        name: "release".to_owned(),
    };
    assert_eq!(again, Err(exists));
    let encrypted = vault.encrypt(&me(), Some(&name("release")), b"x").await;
    assert!(matches!(encrypted, Err(VaultError::Invalid(_))));
    let missing = vault
        .sign(&me(), Some(&name("releas")), b"x")
        .await
        .unwrap_err();
    assert_eq!(
        missing.to_string(),
        "there is no key `releas`; did you mean `release`?"
    );
    let ann = Principal::new("ann");
    assert!(
        vault
            .sign(&ann, Some(&name("release")), b"x")
            .await
            .is_err()
    );
    assert!(vault.keys(&ann).await.unwrap().is_empty());
    assert!(vault.rotate_key(&ann, &name("release")).await.is_err());
}

#[tokio::test]
async fn changed_texts_do_not_decrypt() {
    let harness = VaultHarness::new();
    let vault = harness.vault();
    let text = vault.encrypt(&me(), None, b"text").await.unwrap();
    vault
        .create_key(&me(), &name("other"), KeyPurpose::Encrypt)
        .await
        .unwrap();
    vault.rotate_key(&me(), &name("encryption")).await.unwrap();
    let cases = [
        String::new(),
        "hello".to_owned(),
        text.replace("encrypted-1", "encrypted-2"),
        text.replace(":encryption:1:", ":encryption:2:"),
        text.replace(":encryption:1:", ":encryption:9:"),
        text.replace(":encryption:1:", ":other:1:"),
        text.replace(":encryption:1:", ":missing:1:"),
        text[..text.len() - 4].to_owned(),
        text[..40].to_owned(),
        format!("{text}AAAA"),
    ];
    for changed in cases {
        assert!(
            vault.decrypt(&me(), None, &changed).await.is_err(),
            "{changed}"
        );
    }
    let other = vault.decrypt(&me(), Some(&name("other")), &text).await;
    assert!(matches!(other, Err(VaultError::Invalid(_))));
    let spaced = format!(" {text}\n");
    assert!(
        vault
            .decrypt(&me(), Some(&name("encryption")), &spaced)
            .await
            .is_ok()
    );
}
