//! Documents that can be searched: kept in a store, found by their words and by what they are about.

mod adding;
mod catching_up;
mod finding;
mod naming;

use std::path::PathBuf;
use std::sync::Arc;

use lango_domain::documents::DocumentStore;
use lango_domain::session::StoreError;
use tokio::sync::Mutex;

use crate::embedding::{EmbedError, Embedder};
use crate::lexical::{Lexical, LexicalError};
use crate::vectors::{KeptError, KeptVectors, VectorError};

pub use adding::{Added, OpenFile, Progress, Taking, pieces, pieces_of};
pub use finding::{Found, Scope, Why};
pub use naming::{is_nowhere, path_of, shown};

/// Cheap to clone.
#[derive(Clone)]
pub struct Library {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<dyn DocumentStore>,
    /// Where the index of words and the vectors lie; made anew whenever they are gone.
    folder: PathBuf,
    lexical: Mutex<Option<Arc<Lexical>>>,
    embedder: Option<Arc<dyn Embedder>>,
    /// Vectors, where there is an embedder.
    kept: Option<Arc<Mutex<KeptVectors>>>,
    /// Held by whoever makes vectors beside the conversation.
    embedding: Arc<Mutex<()>>,
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
    #[error(transparent)]
    Kept(#[from] KeptError),
    #[error("{0}")]
    Broken(String),
}

impl Library {
    /// Nothing is opened until it is needed.
    pub fn new(store: Arc<dyn DocumentStore>, folder: PathBuf, embedder: Option<Arc<dyn Embedder>>) -> Self {
        let kept = embedder.as_ref().map(|embedder| KeptVectors::new(&folder, &embedder.identity()));
        let kept = kept.map(|kept| Arc::new(Mutex::new(kept)));
        let (lexical, embedding) = (Mutex::default(), Arc::default());
        Self { shared: Arc::new(Shared { store, folder, lexical, embedder, kept, embedding }) }
    }

    pub fn store(&self) -> &Arc<dyn DocumentStore> {
        &self.shared.store
    }

    async fn lexical(&self) -> Result<Arc<Lexical>, LibraryError> {
        let mut lexical = self.shared.lexical.lock().await;
        if let Some(lexical) = lexical.as_ref() {
            return Ok(Arc::clone(lexical));
        }
        let folder = self.shared.folder.clone();
        let opened = blocking(move || Ok(Arc::new(Lexical::open(&folder)?))).await?;
        Ok(Arc::clone(lexical.insert(opened)))
    }

    /// Makes the index of words anew, for whoever found it damaged.
    async fn begin_words_anew(&self) -> Result<(), LibraryError> {
        let mut lexical = self.shared.lexical.lock().await;
        *lexical = None;
        let folder = self.shared.folder.clone();
        blocking(move || Ok(Lexical::wipe(&folder)?)).await
    }

    /// The same documents, found by their words alone.
    fn without_embedder(&self) -> Self {
        Self::new(Arc::clone(&self.shared.store), self.shared.folder.clone(), None)
    }
}

/// Disk and processor work, away from whoever waits for others.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LibraryError> + Send + 'static,
) -> Result<T, LibraryError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(LibraryError::Broken(format!("the index broke off: {error}"))))
}
