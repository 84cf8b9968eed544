//! Opens the vault, with its tools and checks.

use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::Timestamp;
use lango_domain::vault::{SlotKind, VaultStore};
use lango_domain::{StoreError, Tool};
use lango_vault::{
    KeySources, LazyVault, OpenedBy, Vault, VaultError, VaultState, VaultStatus, VaultTools,
};

use crate::capabilities::CapabilityContext;
use crate::config::{ConfigError, LoadedConfig};
use crate::doctor::{CheckStatus, DoctorCheck};
use crate::environment::Environment;
use crate::lazy_stores::LazyStores;
use crate::store::store_file;
use crate::toolset::expand_home;

const KEY_FILE: &str = "vault.key";
/// The name of the systemd credential with the content of the key file.
const CREDENTIAL: &str = "lango-vault-key";

/// Returns the places where this process finds the keys of the vault.
pub(crate) fn key_sources(loaded: &LoadedConfig, environment: &Environment) -> KeySources {
    let configured = loaded.settings.security.vault.key_file.as_deref();
    let key_file = match configured {
        Some(path) => {
            let path = expand_home(environment, Path::new(path));
            Some(loaded.resolve(environment, "security.vault.keyFile", &path))
        }
        None => environment
            .data_folder()
            .map(|folder| folder.join(KEY_FILE)),
    };
    let path = |name: &str| {
        let path = environment.get(name)?;
        Some(environment.working_folder.join(path))
    };
    KeySources {
        key_file,
        credential: path("CREDENTIALS_DIRECTORY").map(|folder| folder.join(CREDENTIAL)),
        passphrase_file: path("LANGO_VAULT_PASSPHRASE_FILE"),
        runtime_folder: path("XDG_RUNTIME_DIR"),
    }
}

/// Opens the vault in a store.
pub(crate) fn open_vault(store: Arc<dyn VaultStore>, sources: KeySources) -> Vault {
    Vault::new(store, sources, Arc::new(Timestamp::now))
}

/// Returns the tools for secrets and cryptography, if the vault is enabled (S86).
pub(crate) fn vault_tools(context: &CapabilityContext<'_>) -> Result<Vec<Tool>, ConfigError> {
    if !context.loaded.settings.security.vault.enabled {
        return Ok(Vec::new());
    }
    let stores = context.stores.clone();
    Ok(lango_vault::tools(&VaultTools {
        vault: LazyVault::new(move || stores.vault().map_err(VaultError::from)),
        prompt: context.toolset.secret_prompt().clone(),
    }))
}

/// Reports the state of the vault, and whether its key is protected.
pub(crate) fn vault_checks<'a>(
    loaded: &'a LoadedConfig,
    environment: &'a Environment,
) -> BoxFuture<'a, Vec<DoctorCheck>> {
    Box::pin(async move {
        // The check of the store reports a store that cannot be opened.
        if !loaded.settings.security.vault.enabled
            || store_file(loaded, environment).is_none_or(|file| !file.exists())
        {
            return Vec::new();
        }
        let vault = LazyStores::new(loaded, environment).vault();
        match vault {
            Ok(secrets) => vec![vault_check(secrets.vault().status().await)],
            Err(_) => Vec::new(),
        }
    })
}

fn vault_check(status: Result<VaultStatus, VaultError>) -> DoctorCheck {
    let check = |status, detail: &str| DoctorCheck::new("vault", status, detail);
    let failed =
        |error: &VaultError| check(CheckStatus::Fail, &error.to_string()).with_hint(error.hint());
    let status = match status {
        Ok(status) => status,
        Err(VaultError::Store(StoreError::ReadOnly { .. })) => {
            return check(CheckStatus::Pass, "the store is read-only");
        }
        Err(error) => return failed(&error),
    };
    let has_passphrase = status
        .slots
        .iter()
        .any(|(kind, _)| *kind == SlotKind::Passphrase);
    match status.state {
        VaultState::Empty => check(CheckStatus::Pass, "the vault is empty"),
        VaultState::Locked => check(CheckStatus::Pass, "the vault is locked"),
        VaultState::Failed(error) => failed(&error),
        VaultState::Open(OpenedBy::KeyFile(file)) => {
            let detail = format!(
                "{} opens the vault: a copy of your data folder contains all secrets",
                file.display()
            );
            let hint = match has_passphrase {
                true => "run `lango vault key-file --remove`, so that only the passphrase opens it",
                false => {
                    "run `lango vault passphrase --only`, or keep the key as a systemd credential"
                }
            };
            check(CheckStatus::Warn, &detail).with_hint(hint)
        }
        VaultState::Open(_) => check(CheckStatus::Pass, "the vault is open"),
    }
}
