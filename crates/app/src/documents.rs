//! Opens the document index, with its tools and those of the web.

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

use crate::capabilities::CapabilityContext;
use crate::config::{ConfigError, LoadedConfig};
use crate::connected_models::jitter;
use crate::environment::Environment;
use crate::toolset::own_folders;

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

/// Returns the document tools, if documents are enabled (S80).
pub(crate) fn document_tools(context: &CapabilityContext<'_>) -> Result<Vec<Tool>, ConfigError> {
    let settings = &context.loaded.settings;
    if settings.embedding.provider == EmbeddingProvider::None {
        return Ok(Vec::new());
    }
    let expands = settings.graph.enabled && settings.rag.graph;
    let graph = context.graph.clone();
    let expander = expands.then(|| Arc::new(GraphExpander(graph)) as Arc<dyn PassageExpander>);
    let (loaded, environment) = (context.loaded.clone(), context.environment.clone());
    let stores = context.stores.clone();
    let documents = LazyDocumentIndex::new(move || {
        let stores = stores
            .open()
            .map_err(|error| DocumentIndexError::Aborted(error.to_string()))?;
        open_document_index(&loaded, &environment, stores).map(Arc::new)
    });
    let access = context.toolset.document_access();
    Ok(lango_documents::tools(&documents, expander, Some(access)))
}

/// Returns the web tools.
pub(crate) fn web_tools(context: &CapabilityContext<'_>) -> Result<Vec<Tool>, ConfigError> {
    let settings = &context.loaded.settings;
    let read_pdf = Arc::new(|bytes| pdf_text(bytes).map_err(|error| error.to_string()));
    lango_web::tools(&settings.search, &settings.net, read_pdf)
        .map_err(|error| ConfigError::new(error.to_string()))
}
