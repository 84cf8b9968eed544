//! From settings to documents that can be searched, and the web.

use std::sync::Arc;

use lango_domain::Tool;
use lango_knowledge::embedding::{self, Means, Provider};
use lango_knowledge::library::{Library, LibraryError};
use lango_knowledge::web;
use lango_store::SqliteStore;

use crate::config::{ConfigError, Loaded};
use crate::conversation::jitter;
use crate::environment::Environment;
use crate::sessions::open_store;

/// The folder of the index of words and of vectors, beside the store; it can be deleted at any time.
const WORDS: &str = "words";

/// The documents that are kept in this store.
pub fn library(
    loaded: &Loaded,
    environment: &Environment,
    store: SqliteStore,
) -> Result<Library, LibraryError> {
    let folder = environment.data_folder().unwrap_or_else(std::env::temp_dir).join(WORDS);
    let mut settings = loaded.settings.embedding.clone();
    settings.path = settings.path.map(|path| loaded.resolve(environment, "embedding.path", &path));
    let means = Means { jitter: Arc::new(jitter) };
    let embedder = embedding::connect(&settings, means)?;
    Ok(Library::new(Arc::new(store), folder, embedder))
}

/// The tools for documents and the web that the settings enable (S81).
pub fn knowledge_tools(loaded: &Loaded, environment: &Environment) -> Result<Vec<Tool>, ConfigError> {
    let settings = &loaded.settings;
    let mut tools =
        web::tools(&settings.search, &settings.net).map_err(|error| ConfigError::new(error.to_string()))?;
    if settings.embedding.provider != Provider::None {
        let (loaded, environment) = (loaded.clone(), environment.clone());
        tools.extend(lango_knowledge::tools(Arc::new(move || {
            let store = open_store(&loaded, &environment)
                .map_err(|trouble| LibraryError::Broken(trouble.to_string()))?;
            library(&loaded, &environment, store)
        })));
    }
    Ok(tools)
}
