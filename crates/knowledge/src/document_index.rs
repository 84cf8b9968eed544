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
use crate::lexical::{LexicalError, LexicalIndex};
use crate::vectors::{VectorError, VectorFile, VectorFileError};

pub use adding::{
    IngestProgress, IngestReport, IngestSource, OpenFile, chunk_document, chunk_text,
};
pub use finding::{Passage, ScoreBreakdown, SearchScope};
pub use naming::{is_missing, path_from_text, path_to_text};

/// Cheap to clone.
#[derive(Clone)]
pub struct DocumentIndex {
    inner: Arc<DocumentIndexInner>,
}

struct DocumentIndexInner {
    store: Arc<dyn DocumentStore>,
    /// Where the index of words and the vectors lie; made anew whenever they are gone.
    folder: PathBuf,
    lexical: Mutex<Option<Arc<LexicalIndex>>>,
    embedder: Option<Arc<dyn Embedder>>,
    /// Vectors, where there is an embedder.
    vector_file: Option<Arc<Mutex<VectorFile>>>,
    /// Held by whoever makes vectors beside the conversation.
    embedding_lock: Arc<Mutex<()>>,
}

#[derive(Debug, thiserror::Error)]
pub enum DocumentIndexError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Lexical(#[from] LexicalError),
    #[error(transparent)]
    Embedding(#[from] EmbedError),
    #[error(transparent)]
    Vectors(#[from] VectorError),
    #[error(transparent)]
    VectorFile(#[from] VectorFileError),
    #[error("{0}")]
    Aborted(String),
}

impl DocumentIndex {
    /// Nothing is opened until it is needed.
    pub fn new(
        store: Arc<dyn DocumentStore>,
        folder: PathBuf,
        embedder: Option<Arc<dyn Embedder>>,
    ) -> Self {
        let kept = embedder
            .as_ref()
            .map(|embedder| VectorFile::new(&folder, &embedder.identity()));
        let kept = kept.map(|kept| Arc::new(Mutex::new(kept)));
        let (lexical, embedding) = (Mutex::default(), Arc::default());
        Self {
            inner: Arc::new(DocumentIndexInner {
                store,
                folder,
                lexical,
                embedder,
                vector_file: kept,
                embedding_lock: embedding,
            }),
        }
    }

    pub fn store(&self) -> &Arc<dyn DocumentStore> {
        &self.inner.store
    }

    async fn lexical(&self) -> Result<Arc<LexicalIndex>, DocumentIndexError> {
        let mut lexical = self.inner.lexical.lock().await;
        if let Some(lexical) = lexical.as_ref() {
            return Ok(Arc::clone(lexical));
        }
        let folder = self.inner.folder.clone();
        let opened = run_blocking(move || Ok(Arc::new(LexicalIndex::open(&folder)?))).await?;
        Ok(Arc::clone(lexical.insert(opened)))
    }

    /// Makes the index of words anew, for whoever found it damaged.
    async fn reset_lexical(&self) -> Result<(), DocumentIndexError> {
        let mut lexical = self.inner.lexical.lock().await;
        *lexical = None;
        let folder = self.inner.folder.clone();
        run_blocking(move || Ok(LexicalIndex::wipe(&folder)?)).await
    }

    /// The same documents, found by their words alone.
    fn without_embedder(&self) -> Self {
        Self::new(
            Arc::clone(&self.inner.store),
            self.inner.folder.clone(),
            None,
        )
    }
}

/// Disk and processor work, away from whoever waits for others.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DocumentIndexError> + Send + 'static,
) -> Result<T, DocumentIndexError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        Err(DocumentIndexError::Aborted(format!(
            "the index broke off: {error}"
        )))
    })
}
