//! Where everything is kept, opened once in a process and handed down.

use std::sync::{Arc, Mutex, PoisonError};

use lango_store::{SqliteStore, SqliteStoreError, StoreLocation};

use crate::config::LoadedConfig;
use crate::environment::Environment;
use crate::store::store_location;

/// The store of this process. Whoever needs it first opens it; everybody else gets the same one, so that what is kept in
/// memory only is one database, too. Cheap to clone.
#[derive(Clone)]
pub struct LazyStore {
    location: StoreLocation,
    opened: Arc<Mutex<Option<SqliteStore>>>,
}

impl LazyStore {
    /// Nothing is opened before it is asked for.
    pub fn new(loaded: &LoadedConfig, environment: &Environment) -> Self {
        Self {
            location: store_location(loaded, environment),
            opened: Arc::default(),
        }
    }

    /// What could not be opened is tried again.
    pub fn open(&self) -> Result<SqliteStore, SqliteStoreError> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = &*opened {
            return Ok(store.clone());
        }
        let store = SqliteStore::open(self.location.clone())?;
        Ok(opened.insert(store).clone())
    }

    /// The store, if it is open.
    pub fn get_if_open(&self) -> Option<SqliteStore> {
        self.opened
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
