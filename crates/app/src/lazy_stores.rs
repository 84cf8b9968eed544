//! The stores of the process, opened on first use.

use std::sync::{Arc, Mutex, PoisonError};

use lango_domain::{StoreError, Stores};
use lango_store::{SqliteStore, StoreLocation};

use crate::config::LoadedConfig;
use crate::environment::Environment;
use crate::store::store_location;

/// The stores of this process. The first use opens them; later uses share them, so that an in-memory
/// store is one database, too. Cheap to clone.
#[derive(Clone)]
pub struct LazyStores {
    location: StoreLocation,
    opened: Arc<Mutex<Option<Stores>>>,
}

impl LazyStores {
    pub fn new(loaded: &LoadedConfig, environment: &Environment) -> Self {
        Self {
            location: store_location(loaded, environment),
            opened: Arc::default(),
        }
    }

    /// Opens the stores, or returns the open ones. Tries again after an error.
    pub fn open(&self) -> Result<Stores, StoreError> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stores) = &*opened {
            return Ok(stores.clone());
        }
        let stores = SqliteStore::open(self.location.clone())?.stores();
        Ok(opened.insert(stores).clone())
    }
}
