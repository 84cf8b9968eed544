//! The store of the process, opened on first use.

use std::sync::{Arc, Mutex, PoisonError};

use lango_store::{SqliteStore, SqliteStoreError, StoreLocation};

use crate::config::LoadedConfig;
use crate::environment::Environment;
use crate::store::store_location;

/// The store of this process. The first use opens it; later uses share it, so that an in-memory
/// store is one database, too. Cheap to clone.
#[derive(Clone)]
pub struct LazyStore {
    location: StoreLocation,
    opened: Arc<Mutex<Option<SqliteStore>>>,
}

impl LazyStore {
    pub fn new(loaded: &LoadedConfig, environment: &Environment) -> Self {
        Self {
            location: store_location(loaded, environment),
            opened: Arc::default(),
        }
    }

    /// Opens the store, or returns the open one. Tries again after an error.
    pub fn open(&self) -> Result<SqliteStore, SqliteStoreError> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = &*opened {
            return Ok(store.clone());
        }
        let store = SqliteStore::open(self.location.clone())?;
        Ok(opened.insert(store).clone())
    }

    /// Returns the store if it is already open.
    pub fn get_if_open(&self) -> Option<SqliteStore> {
        self.opened
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
