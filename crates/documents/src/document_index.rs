//! The document index: stores documents and finds passages with lexical and vector search.

mod ingest;
mod path_text;
mod search;
mod sync;

use std::path::PathBuf;
use std::sync::Arc;

use lango_domain::StoreError;
use lango_domain::documents::DocumentStore;
use tokio::sync::Mutex;

use crate::embedding::{EmbedError, Embedder};
use crate::lexical::{LexicalError, LexicalIndex};
use crate::vectors::{VectorError, VectorFile, VectorFileError};

pub use ingest::{
    IngestProgress, IngestReport, IngestSource, OpenFile, chunk_document, chunk_text,
};
pub use path_text::{is_missing, path_from_text, path_to_text};

/// A searchable collection of documents. Cheap to clone.
#[derive(Clone)]
pub struct DocumentIndex {
    inner: Arc<DocumentIndexInner>,
}

struct DocumentIndexInner {
    store: Arc<dyn DocumentStore>,
    /// The directory of the lexical index and the vectors; both are rebuilt if they are missing.
    folder: PathBuf,
    lexical: Mutex<Option<Arc<LexicalIndex>>>,
    embedder: Option<Arc<dyn Embedder>>,
    /// The vectors, if there is an embedder.
    vector_file: Option<Arc<Mutex<VectorFile>>>,
    /// Held by the background task that computes vectors.
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
    /// Creates the index. Opens its files on first use.
    pub fn new(
        store: Arc<dyn DocumentStore>,
        folder: PathBuf,
        embedder: Option<Arc<dyn Embedder>>,
    ) -> Self {
        let vector_file = embedder.as_ref().map(|embedder| {
            let file = VectorFile::new(&folder, &embedder.identity());
            Arc::new(Mutex::new(file))
        });
        Self {
            inner: Arc::new(DocumentIndexInner {
                store,
                folder,
                lexical: Mutex::default(),
                embedder,
                vector_file,
                embedding_lock: Arc::default(),
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

    /// Deletes a corrupt lexical index, so that the next sync rebuilds it.
    async fn reset_lexical(&self) -> Result<(), DocumentIndexError> {
        let mut lexical = self.inner.lexical.lock().await;
        *lexical = None;
        let folder = self.inner.folder.clone();
        run_blocking(move || Ok(LexicalIndex::wipe(&folder)?)).await
    }

    /// Returns an index of the same documents that uses lexical search only.
    fn without_embedder(&self) -> Self {
        Self::new(
            Arc::clone(&self.inner.store),
            self.inner.folder.clone(),
            None,
        )
    }
}

/// Runs disk and CPU work on a blocking thread.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DocumentIndexError> + Send + 'static,
) -> Result<T, DocumentIndexError> {
    let result = tokio::task::spawn_blocking(work).await;
    result.unwrap_or_else(|error| {
        Err(DocumentIndexError::Aborted(format!(
            "a task of the document index failed: {error}"
        )))
    })
}
