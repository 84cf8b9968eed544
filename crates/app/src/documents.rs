//! Opens the document index, and assembles the knowledge tools.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use lango_documents::LazyDocumentIndex;
use lango_documents::document_index::{DocumentIndex, DocumentIndexError, IngestSource};
use lango_documents::embedding::{self, EmbedderDeps, EmbeddingProvider};
use lango_documents::parse::pdf_text;
use lango_domain::Stores;
use lango_domain::Tool;
use lango_domain::documents::PassageExpander;
use lango_graph::GraphExpander;

use crate::assistant::jitter;
use crate::config::{ConfigError, LoadedConfig};
use crate::environment::Environment;
use crate::graph::lazy_graph;
use crate::knowledge_base::knowledge_base_tools;
use crate::lazy_stores::LazyStores;
use crate::memory::memory_tools;
use crate::toolset::{Toolset, own_folders};

/// The folder of the lexical index and the vectors, next to the store. It can be deleted at any
/// time.
const INDEX_FOLDER: &str = "words";

/// Opens the document index of this store.
pub fn open_document_index(
    loaded: &LoadedConfig,
    environment: &Environment,
    stores: Stores,
) -> Result<DocumentIndex, DocumentIndexError> {
    // The index of an in-memory store does not belong in the data folder.
    let data_folder = environment
        .data_folder()
        .filter(|_| !stores.maintenance.is_in_memory());
    // Each store has its own folder, since change numbers are only valid within one store.
    let folder = data_folder
        .unwrap_or_else(std::env::temp_dir)
        .join(INDEX_FOLDER)
        .join(stores.maintenance.identity());
    let mut settings = loaded.settings.embedding.clone();
    settings.path = settings
        .path
        .map(|path| loaded.resolve(environment, "embedding.path", &path));
    let deps = EmbedderDeps {
        jitter: Arc::new(jitter),
    };
    let embedder = embedding::connect(&settings, deps)?;
    Ok(DocumentIndex::new(stores.documents, folder, embedder))
}

/// Returns the ingest source for a path that the user typed. Lango's own folders are excluded.
pub fn user_ingest_source(environment: &Environment, path: &Path) -> io::Result<IngestSource> {
    let root = path.canonicalize()?;
    let own = own_folders(environment);
    let open = move |path: &Path| match own.iter().any(|own| path.starts_with(own)) {
        true => Err(io::Error::new(
            ErrorKind::PermissionDenied,
            "the file is in Lango's own folder",
        )),
        false => File::open(path),
    };
    Ok(IngestSource {
        root,
        open: Arc::new(open),
    })
}

/// Returns the enabled tools for documents, the graph, the knowledge base, memory and the web (S80,
/// S81, S82, S83).
pub fn knowledge_tools(
    loaded: &LoadedConfig,
    environment: &Environment,
    toolset: &Toolset,
    stores: &LazyStores,
) -> Result<Vec<Tool>, ConfigError> {
    let settings = &loaded.settings;
    let read_pdf = Arc::new(|bytes| pdf_text(bytes).map_err(|error| error.to_string()));
    let mut tools = lango_web::tools(&settings.search, &settings.net, read_pdf)
        .map_err(|error| ConfigError::new(error.to_string()))?;
    let graph = lazy_graph(stores);
    if settings.graph.enabled {
        tools.extend(lango_graph::tools(&graph));
    }
    if settings.embedding.provider != EmbeddingProvider::None {
        let expands = settings.graph.enabled && settings.rag.graph;
        let expander = expands.then(|| Arc::new(GraphExpander(graph)) as Arc<dyn PassageExpander>);
        let (loaded, environment, stores) = (loaded.clone(), environment.clone(), stores.clone());
        let documents = LazyDocumentIndex::new(move || {
            let stores = stores
                .open()
                .map_err(|error| DocumentIndexError::Aborted(error.to_string()))?;
            open_document_index(&loaded, &environment, stores).map(Arc::new)
        });
        tools.extend(lango_documents::tools(
            &documents,
            expander,
            Some(toolset.document_access()),
        ));
    }
    tools.extend(memory_tools(loaded, environment, stores));
    tools.extend(knowledge_base_tools(loaded, environment, stores));
    Ok(tools)
}
