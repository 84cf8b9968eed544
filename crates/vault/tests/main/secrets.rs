//! Secrets, and the vault as their source.

use lango_domain::event::Principal;
use lango_domain::secret::Secret;
use lango_domain::{SecretError, SecretReference, SecretSource as _, SecretUse};
use lango_vault::{BindingChange, MAX_SECRET_BYTES, VaultError, VaultSecrets};

use crate::setup::{VaultHarness, me, name, passphrase, set};

fn usage(tool: &str, hosts: &[&str]) -> SecretUse {
    SecretUse {
        principal: me(),
        tool: tool.to_owned(),
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
    }
}

fn bound(tools: &[&str], hosts: &[&str]) -> BindingChange {
    let list = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    BindingChange::from_lists(&list(tools), &list(hosts))
}

fn reference(secret: &str) -> SecretReference {
    SecretReference::Secret(name(secret))
}

/// B130
#[tokio::test]
async fn a_value_is_resolved_for_its_tools_and_hosts_only() {
    let harness = VaultHarness::new();
    let vault = harness.vault();
    let value = Secret::new("ghp_canary");
    let binding = bound(&["exec_shell"], &["api.github.com"]);
    vault
        .set_secret(&me(), &name("TOKEN"), &value, &binding)
        .await
        .unwrap();
    let secrets = VaultSecrets::new(vault.clone());
    let resolved = secrets
        .resolve(&reference("TOKEN"), &usage("exec_shell", &[]))
        .await;
    assert_eq!(resolved.unwrap(), value);
    for refused in [
        usage("web_fetch", &[]),
        usage("exec_shell", &["evil.example"]),
    ] {
        assert!(
            secrets
                .resolve(&reference("TOKEN"), &refused)
                .await
                .is_err()
        );
    }
    let entry = vault.secret(&me(), &name("TOKEN")).await.unwrap();
    assert!(entry.used.is_some());
    // A new value keeps the binding; a new binding keeps the value.
    set(&vault, "TOKEN", "ghp_second").await;
    let kept = secrets
        .binding(&me(), &name("TOKEN"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (kept.tools, kept.hosts),
        (binding.tools.unwrap(), binding.hosts.unwrap())
    );
    let change = BindingChange {
        tools: Some(Vec::new()),
        hosts: None,
    };
    vault
        .bind_secret(&me(), &name("TOKEN"), &change)
        .await
        .unwrap();
    let usage = usage("web_fetch", &["api.github.com"]);
    let resolved = secrets.resolve(&reference("TOKEN"), &usage).await.unwrap();
    assert_eq!(resolved, Secret::new("ghp_second"));
}

#[tokio::test]
async fn unknown_names_and_wrong_values_are_refused() {
    let harness = VaultHarness::new();
    let vault = harness.vault();
    let secrets = VaultSecrets::new(vault.clone());
    let missing = secrets
        .resolve(&reference("TOKEN"), &usage("t", &[]))
        .await
        .unwrap_err();
    assert!(matches!(
        missing,
        SecretError::Unknown {
            suggestion: None,
            ..
        }
    ));
    set(&vault, "GITHUB_TOKEN", "value-1").await;
    let missing = secrets
        .resolve(&reference("GITHUB_TOKN"), &usage("t", &[]))
        .await;
    assert_eq!(
        missing.unwrap_err().to_string(),
        "there is no secret `GITHUB_TOKN`; did you mean `GITHUB_TOKEN`?"
    );
    assert_eq!(secrets.binding(&me(), &name("NONE")).await, Ok(None));
    for value in ["", &"x".repeat(MAX_SECRET_BYTES + 1)] {
        let value = Secret::new(value);
        let set = vault
            .set_secret(&me(), &name("BIG"), &value, &bound(&[], &[]))
            .await;
        assert!(matches!(set, Err(VaultError::Invalid(_))));
    }
    let value = Secret::new("value-1");
    for change in [bound(&["a tool"], &[]), bound(&[], &["https://x.example"])] {
        let set = vault
            .set_secret(&me(), &name("BOUND"), &value, &change)
            .await;
        assert!(matches!(set, Err(VaultError::Invalid(_))));
    }
    assert_eq!(vault.secrets(&me()).await.unwrap().len(), 1);
    let short = Secret::new("1234");
    let stored = vault
        .set_secret(&me(), &name("PIN"), &short, &bound(&[], &[]))
        .await
        .unwrap();
    assert!(!stored.is_redacted);
}

/// B74
#[tokio::test]
async fn principals_do_not_share_secrets() {
    let harness = VaultHarness::new();
    let vault = harness.vault();
    let ann = Principal::new("ann");
    let value = Secret::new("value-of-ann");
    vault
        .set_secret(&ann, &name("TOKEN"), &value, &bound(&[], &[]))
        .await
        .unwrap();
    let secrets = VaultSecrets::new(vault.clone());
    let other = secrets.resolve(&reference("TOKEN"), &usage("t", &[])).await;
    assert!(matches!(
        other,
        Err(SecretError::Unknown {
            suggestion: None,
            ..
        })
    ));
    assert!(vault.secrets(&me()).await.unwrap().is_empty());
    assert!(vault.remove_secret(&me(), &name("TOKEN")).await.is_err());
    assert!(secrets.redactor(&me()).await.unwrap().is_empty());
    let redactor = secrets.redactor(&ann).await.unwrap();
    assert_eq!(
        redactor.redact("a value-of-ann"),
        "a [secret TOKEN: set, hidden]"
    );
}

/// B130
#[tokio::test]
async fn the_redactor_follows_every_process() {
    let harness = VaultHarness::new();
    let secrets = VaultSecrets::new(harness.vault());
    assert!(secrets.redactor(&me()).await.unwrap().is_empty());
    // Reading does not make a vault.
    assert!(!harness.key_file().exists());
    set(&harness.vault(), "A", "first-value").await;
    let redactor = secrets.redactor(&me()).await.unwrap();
    assert_eq!(redactor.redact("first-value"), "[secret A: set, hidden]");
    // Nothing is read again while nothing changes.
    let again = secrets.redactor(&me()).await.unwrap();
    assert!(std::sync::Arc::ptr_eq(&redactor, &again));
    set(&harness.vault(), "A", "second-value").await;
    let redactor = secrets.redactor(&me()).await.unwrap();
    // An earlier value may still be in a text.
    assert_eq!(
        redactor.redact("first-value second-value"),
        "[secret A: set, hidden] [secret A: set, hidden]"
    );
}

/// B130
#[tokio::test]
async fn a_locked_vault_keeps_hiding_what_it_knew() {
    let harness = VaultHarness::new();
    let vault = harness.vault();
    set(&vault, "A", "first-value").await;
    vault.set_passphrase(&passphrase()).await.unwrap();
    let secrets = VaultSecrets::new(harness.vault());
    assert!(!secrets.redactor(&me()).await.unwrap().is_empty());
    vault.remove_key_file().await.unwrap();
    let locked = VaultSecrets::new(harness.vault());
    assert!(locked.redactor(&me()).await.unwrap().is_empty());
    let resolved = locked.resolve(&reference("A"), &usage("t", &[])).await;
    assert_eq!(resolved, Err(SecretError::Locked));
    assert!(locked.binding(&me(), &name("A")).await.unwrap().is_some());
}

/// B130
#[tokio::test]
async fn decrypted_values_live_in_memory_only() {
    let harness = VaultHarness::new();
    let secrets = VaultSecrets::new(harness.vault());
    let value = Secret::new("decrypted-text");
    let reference = secrets.keep_decrypted(&me(), value.clone()).unwrap();
    let resolved = secrets.resolve(&reference, &usage("exec_shell", &[])).await;
    assert_eq!(resolved.unwrap(), value);
    let redactor = secrets.redactor(&me()).await.unwrap();
    assert!(
        !redactor
            .redact("x decrypted-text")
            .contains("decrypted-text")
    );
    let others = SecretUse {
        principal: Principal::new("ann"),
        ..usage("exec_shell", &[])
    };
    assert!(secrets.resolve(&reference, &others).await.is_err());
    let other_process = VaultSecrets::new(harness.vault());
    let error = other_process
        .resolve(&reference, &usage("t", &[]))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("decrypt it again"));
    for _ in 0..256 {
        secrets.keep_decrypted(&me(), Secret::new("more")).unwrap();
    }
    assert!(secrets.resolve(&reference, &usage("t", &[])).await.is_err());
}
