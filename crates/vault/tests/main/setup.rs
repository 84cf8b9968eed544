use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use lango_domain::SecretName;
use lango_domain::event::Principal;
use lango_domain::secret::Secret;
use lango_store::{SqliteStore, StoreLocation};
use lango_vault::{BindingChange, KeySources, PassphraseCost, Vault};
use tempfile::TempDir;

pub const PASSPHRASE: &str = "correct horse battery";

/// A data folder with a store. Each call of [`VaultHarness::vault`] is another process.
pub struct VaultHarness {
    pub folder: TempDir,
    /// In memory, as `$XDG_RUNTIME_DIR` is.
    pub runtime: TempDir,
    pub store: SqliteStore,
    seconds: Arc<AtomicI64>,
}

impl VaultHarness {
    pub fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("lango.sqlite");
        Self {
            store: SqliteStore::open(StoreLocation::File(file)).unwrap(),
            runtime: TempDir::new_in("/dev/shm").unwrap(),
            folder,
            seconds: Arc::default(),
        }
    }

    pub fn key_file(&self) -> PathBuf {
        self.folder.path().join("vault.key")
    }

    pub fn sources(&self) -> KeySources {
        KeySources {
            key_file: Some(self.key_file()),
            runtime_folder: Some(self.runtime.path().to_owned()),
            ..KeySources::default()
        }
    }

    pub fn vault(&self) -> Vault {
        self.vault_with(self.sources())
    }

    pub fn vault_with(&self, sources: KeySources) -> Vault {
        let seconds = Arc::clone(&self.seconds);
        let clock =
            Arc::new(move || Timestamp::from_second(seconds.load(Ordering::Relaxed)).unwrap());
        Vault::with_cost(
            Arc::new(self.store.clone()),
            sources,
            clock,
            PassphraseCost::LEAST,
        )
    }

    pub fn advance(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Runs SQL on the store file, as an attacker with access to it would.
    pub fn tamper(&self, sql: &str) {
        let file = self.folder.path().join("lango.sqlite");
        let connection = rusqlite::Connection::open(file).unwrap();
        assert!(connection.execute(sql, []).unwrap() > 0, "{sql}");
    }
}

pub fn me() -> Principal {
    Principal::local()
}

pub fn name(name: &str) -> SecretName {
    SecretName::new(name).unwrap()
}

pub async fn set(vault: &Vault, secret: &str, value: &str) {
    let value = Secret::new(value);
    vault
        .set_secret(&me(), &name(secret), &value, &BindingChange::default())
        .await
        .unwrap();
}

pub fn passphrase() -> Secret {
    Secret::new(PASSPHRASE)
}
