//! From settings to what the librarian knows: documents that can be searched, the graph, the web.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use lango_domain::Tool;
use lango_knowledge::document_index::{DocumentIndex, DocumentIndexError, IngestSource};
use lango_knowledge::embedding::{self, EmbedderDeps, EmbeddingProvider};
use lango_knowledge::{GraphExpansion, LazyDocumentIndex, graph, web};
use lango_store::{SqliteStore, StoreLocation};

use crate::assistant::jitter;
use crate::config::{ConfigError, LoadedConfig};
use crate::environment::Environment;
use crate::graph::lazy_graph;
use crate::knowledge_base::knowledge_base_tools;
use crate::lazy_store::LazyStore;
use crate::memory::memory_tools;
use crate::toolset::{Toolset, own_folders};

/// The folder of the index of words and of vectors, beside the store; it can be deleted at any time.
const INDEX_FOLDER: &str = "words";

/// The documents that are kept in this store.
pub fn open_document_index(
    loaded: &LoadedConfig,
    environment: &Environment,
    store: SqliteStore,
) -> Result<DocumentIndex, DocumentIndexError> {
    // What belongs to a store that ends with the process is not left among what is kept.
    let kept = environment
        .data_folder()
        .filter(|_| *store.location() != StoreLocation::Memory);
    // Of each store its own: numbers of changes mean nothing in another one.
    let folder = kept
        .unwrap_or_else(std::env::temp_dir)
        .join(INDEX_FOLDER)
        .join(store.identity());
    let mut settings = loaded.settings.embedding.clone();
    settings.path = settings
        .path
        .map(|path| loaded.resolve(environment, "embedding.path", &path));
    let means = EmbedderDeps {
        jitter: Arc::new(jitter),
    };
    let embedder = embedding::connect(&settings, means)?;
    Ok(DocumentIndex::new(Arc::new(store), folder, embedder))
}

/// A path that somebody typed, to be taken in: everything that they may read, but nothing that Lango keeps for itself.
pub fn user_ingest_source(environment: &Environment, path: &Path) -> io::Result<IngestSource> {
    let root = path.canonicalize()?;
    let own = own_folders(environment);
    let open = move |path: &Path| match own.iter().any(|own| path.starts_with(own)) {
        true => Err(io::Error::new(
            ErrorKind::PermissionDenied,
            "it belongs to Lango itself",
        )),
        false => File::open(path),
    };
    Ok(IngestSource {
        root,
        open: Arc::new(open),
    })
}

/// The tools for documents, the graph, facts, memory and the web that the settings enable (S80, S81, S82, S83).
pub fn knowledge_tools(
    loaded: &LoadedConfig,
    environment: &Environment,
    hands: &Toolset,
    stores: &LazyStore,
) -> Result<Vec<Tool>, ConfigError> {
    let settings = &loaded.settings;
    let mut tools = web::tools(&settings.search, &settings.net)
        .map_err(|error| ConfigError::new(error.to_string()))?;
    let facts = lazy_graph(stores);
    if settings.graph.enabled {
        tools.extend(graph::tools(&facts));
    }
    if settings.embedding.provider != EmbeddingProvider::None {
        let is_followed = settings.graph.enabled && settings.rag.graph;
        let along = if is_followed {
            GraphExpansion::On(facts)
        } else {
            GraphExpansion::Off
        };
        let (loaded, environment, stores) = (loaded.clone(), environment.clone(), stores.clone());
        let documents = LazyDocumentIndex::new(move || {
            let store = stores
                .open()
                .map_err(|trouble| DocumentIndexError::Aborted(trouble.to_string()))?;
            open_document_index(&loaded, &environment, store).map(Arc::new)
        });
        tools.extend(lango_knowledge::tools(
            &documents,
            along,
            Some(hands.document_access()),
        ));
    }
    tools.extend(memory_tools(loaded, environment, stores));
    tools.extend(knowledge_base_tools(loaded, environment, stores));
    Ok(tools)
}
