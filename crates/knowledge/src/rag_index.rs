//! `rag_index`: the librarian takes in files that it was pointed at, from where it may read and from nowhere else.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lango_domain::text::one_line;
use lango_domain::{Intent, Safety, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::document_index::{IngestReport, IngestSource};
use crate::rag_tools::LazyDocumentIndex;

/// Where documents go when nobody says where.
pub const DEFAULT_COLLECTION: &str = "default";
/// So many files that were left out are told one by one.
const MAX_LISTED_SKIPPED: usize = 10;
const MAX_NAME_LEN: usize = 100;

/// Where documents may be taken from when a model asks for it.
pub trait DocumentAccess: Send + Sync {
    /// The true path of a file or folder, and how rules know it.
    fn resolve(&self, path: &str) -> Result<(PathBuf, String), ToolError>;
    /// Opens a file there, and nothing that lies elsewhere or is denied.
    fn open(&self, path: &Path) -> io::Result<File>;
}

#[derive(Deserialize, JsonSchema)]
struct RagIndexArgs {
    /// A file or a folder of the workspace.
    path: String,
    /// The collection that it goes into; `default` when left out.
    collection: Option<String>,
}

impl RagIndexArgs {
    fn collection(&self) -> Result<String, ToolError> {
        // An empty name is how some models say that they have no wish.
        let name = self.collection.as_deref().filter(|name| !name.is_empty());
        parse_collection_name(name.unwrap_or(DEFAULT_COLLECTION)).map_err(ToolError)
    }
}

/// A name that can be typed again when it is seen in a list.
pub fn parse_collection_name(name: &str) -> Result<String, String> {
    let name = name.trim();
    if name.is_empty() {
        return Err("a collection needs a name".to_owned());
    }
    if name.chars().count() > MAX_NAME_LEN || one_line(name) != name {
        return Err(format!(
            "a name is one line of at most {MAX_NAME_LEN} characters that can be seen"
        ));
    }
    Ok(name.to_owned())
}

pub(crate) fn rag_index(library: LazyDocumentIndex, grounds: Arc<dyn DocumentAccess>) -> Tool {
    let described = "Takes a file or a folder of the workspace into the documents that rag_retrieve finds passages in. Only what \
        changed since the last time is read.";
    let places = Arc::clone(&grounds);
    Tool::new("rag_index", described, Safety::Moderate, move |context, args: RagIndexArgs| {
        let (library, grounds) = (library.clone(), Arc::clone(&grounds));
        async move {
            let collection = args.collection()?;
            let (root, _) = grounds.resolve(&args.path)?;
            let taking = IngestSource { root, open: Arc::new(move |path| grounds.open(path)) };
            let failed = |error| ToolError(format!("the documents cannot be indexed: {error}"));
            let library = library.get().await.map_err(failed)?;
            let added = library.ingest_path(&context.principal, &collection, &taking, &|_| {}).await.map_err(failed)?;
            let mut told = ingest_report_json(&added, MAX_LISTED_SKIPPED);
            told["collection"] = Value::from(collection);
            Ok(told.to_string())
        }
    })
    .with_intent(move |_, args: RagIndexArgs| {
        let place = args.collection().and_then(|collection| {
            let (_, subject) = places.resolve(&args.path)?;
            let shows = format!("index {subject} into the collection {collection}");
            Ok(Intent { level: Safety::Moderate, shows, subject, pattern: None })
        });
        async move { place }
    })
    .with_untrusted_output()
    .with_private_output()
    .with_phrases([
        "index [the] [my] [our] [file] [folder] [directory] [documents] [files] [in] [under] [below] {path:word}",
        "index [the] [my] [our] [file] [folder] [directory] [documents] [files] [in] [under] [below] {path:word} (into|in|as) [the] [collection] {collection:word}",
        "(add|take) [the] [file] [folder] [documents] [files] [in] {path:word} to [the] [my] [our] (index|library|documents)",
        "(reindex|refresh) {path:word}",
    ])
}

/// What came of adding, as every command and tool tells it; so many of the files that were left out by name.
pub fn ingest_report_json(added: &IngestReport, most: usize) -> Value {
    let IngestReport {
        new,
        changed,
        unchanged: same,
        removed,
        chunks: pieces,
        skipped,
    } = added;
    let named: Vec<Value> = skipped
        .iter()
        .take(most)
        .map(|(path, why)| json!({ "path": path, "why": why }))
        .collect();
    let mut report = json!({ "new": new, "changed": changed, "same": same, "removed": removed, "passages": pieces, "skipped": named });
    if skipped.len() > most {
        report["skipped_more"] = Value::from(skipped.len() - most);
    }
    report
}
