//! The stores of the process, opened on first use.

use std::sync::{Arc, Mutex, PoisonError};

use lango_domain::{StoreError, Stores};
use lango_store::{SqliteStore, StoreLocation};
use lango_vault::{KeySources, VaultSecrets};

use crate::config::LoadedConfig;
use crate::environment::Environment;
use crate::store::store_location;
use crate::vault::{key_sources, open_vault};

/// The stores of this process. The first use opens them; later uses share them, so that an in-memory
/// store is one database, too. Cheap to clone.
#[derive(Clone)]
pub struct LazyStores {
    location: StoreLocation,
    key_sources: KeySources,
    opened: Arc<Mutex<Option<OpenStores>>>,
}

/// Open stores, and the vault in them.
#[derive(Clone)]
struct OpenStores {
    stores: Stores,
    /// Shared by the tools and the engine, because it holds decrypted values in memory.
    vault: Arc<VaultSecrets>,
}

impl LazyStores {
    pub fn new(loaded: &LoadedConfig, environment: &Environment) -> Self {
        Self {
            location: store_location(loaded, environment),
            key_sources: key_sources(loaded, environment),
            opened: Arc::default(),
        }
    }

    /// Opens the stores, or returns the open ones. Tries again after an error.
    pub fn open(&self) -> Result<Stores, StoreError> {
        self.open_all().map(|open| open.stores)
    }

    /// Opens the stores, and returns the secrets of their vault.
    pub fn vault(&self) -> Result<Arc<VaultSecrets>, StoreError> {
        self.open_all().map(|open| open.vault)
    }

    fn open_all(&self) -> Result<OpenStores, StoreError> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = &*opened {
            return Ok(open.clone());
        }
        let stores = SqliteStore::open(self.location.clone())?.stores();
        let vault = open_vault(Arc::clone(&stores.vault), self.key_sources.clone());
        let open = OpenStores {
            stores,
            vault: Arc::new(VaultSecrets::new(vault)),
        };
        Ok(opened.insert(open).clone())
    }
}
