//! Documents that can be searched: kept in a store, found by their words and by what they are about.

mod adding;
mod catching_up;
mod finding;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use lango_domain::documents::{DocumentStore, Owner};
use lango_domain::session::StoreError;
use tokio::sync::Mutex;

use crate::embedding::{EmbedError, Embedder};
use crate::lexical::{Lexical, LexicalError};
use crate::vectors::{VectorError, Vectors};

pub use adding::{Added, Progress, pieces, pieces_of};
pub use finding::{Found, Scope, Why};

/// Cheap to clone.
#[derive(Clone)]
pub struct Library {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<dyn DocumentStore>,
    /// Where the index of words lies; made anew whenever it is gone.
    folder: PathBuf,
    lexical: OnceLock<Arc<Lexical>>,
    embedder: Option<Arc<dyn Embedder>>,
    /// What is held in memory of the store, and how far it was read.
    held: Mutex<Held>,
    /// Held by whoever makes vectors beside the conversation.
    embedding: Arc<Mutex<()>>,
}

#[derive(Default)]
struct Held {
    owners: HashMap<u64, Arc<Owner>>,
    /// Every owner there ever was, once.
    known: HashMap<Owner, Arc<Owner>>,
    /// Pieces whose vector is not held yet.
    missing: BTreeSet<u64>,
    /// Up to here every piece is known to have a vector in the store.
    embedded_upto: u64,
    vectors: Option<Vectors>,
    last_piece: u64,
    last_change: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Lexical(#[from] LexicalError),
    #[error(transparent)]
    Embedding(#[from] EmbedError),
    #[error(transparent)]
    Vectors(#[from] VectorError),
    #[error("{0}")]
    Broken(String),
}

impl Library {
    /// Nothing is opened until it is needed.
    pub fn new(store: Arc<dyn DocumentStore>, folder: PathBuf, embedder: Option<Arc<dyn Embedder>>) -> Self {
        let (lexical, held, embedding) = (OnceLock::new(), Mutex::default(), Arc::default());
        Self { shared: Arc::new(Shared { store, folder, lexical, embedder, held, embedding }) }
    }

    pub fn store(&self) -> &Arc<dyn DocumentStore> {
        &self.shared.store
    }

    async fn lexical(&self) -> Result<Arc<Lexical>, LibraryError> {
        if let Some(lexical) = self.shared.lexical.get() {
            return Ok(Arc::clone(lexical));
        }
        let folder = self.shared.folder.clone();
        let opened = blocking(move || Ok(Arc::new(Lexical::open(&folder)?))).await?;
        Ok(Arc::clone(self.shared.lexical.get_or_init(|| opened)))
    }
}

/// Disk and processor work, away from whoever waits for others.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LibraryError> + Send + 'static,
) -> Result<T, LibraryError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(LibraryError::Broken(format!("the index broke off: {error}"))))
}
