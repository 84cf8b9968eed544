//! The `rag_index` tool: ingests files that the librarian has access to.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lango_domain::event::Principal;
use lango_domain::{Intent, Safety, Tool, ToolError};
use lango_text::sanitize::one_line;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::document_index::{IngestReport, IngestSource};
use crate::rag_tools::LazyDocumentIndex;

/// The collection of documents that are ingested without one.
pub const DEFAULT_COLLECTION: &str = "default";
/// Skipped files that a tool result lists.
const MAX_LISTED_SKIPPED: usize = 10;
const MAX_NAME_LEN: usize = 100;

/// The files that a model may ingest.
pub trait DocumentAccess: Send + Sync {
    /// Returns the canonical path of a file or directory, and the subject for approval rules.
    fn resolve(&self, path: &str) -> Result<(PathBuf, String), ToolError>;
    /// Opens a file. Fails for files outside the allowed directories and for denied files.
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
        // Some models send an empty name instead of omitting it.
        let name = self.collection.as_deref().filter(|name| !name.is_empty());
        parse_collection_name(name.unwrap_or(DEFAULT_COLLECTION)).map_err(ToolError)
    }
}

/// Checks the name of a collection: one short line of visible characters, so that it can be typed.
pub fn parse_collection_name(name: &str) -> Result<String, String> {
    let name = name.trim();
    if name.is_empty() {
        return Err("the name of the collection is empty".to_owned());
    }
    if name.chars().count() > MAX_NAME_LEN || one_line(name) != name {
        return Err(format!(
            "the name of a collection must be one line of at most {MAX_NAME_LEN} visible characters"
        ));
    }
    Ok(name.to_owned())
}

const DESCRIPTION: &str = "Takes a file or a folder of the workspace into the documents that \
    rag_retrieve finds passages in. Only what changed since the last time is read.";

pub(crate) fn rag_index(index: LazyDocumentIndex, access: Arc<dyn DocumentAccess>) -> Tool {
    let intent_access = Arc::clone(&access);
    Tool::new(
        "rag_index",
        DESCRIPTION,
        Safety::Moderate,
        move |context, args: RagIndexArgs| {
            let (index, access) = (index.clone(), Arc::clone(&access));
            async move { ingest(&index, access, &context.principal, &args).await }
        },
    )
    .with_intent(move |_, args: RagIndexArgs| {
        let intent = intent(intent_access.as_ref(), &args);
        async move { intent }
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

async fn ingest(
    index: &LazyDocumentIndex,
    access: Arc<dyn DocumentAccess>,
    principal: &Principal,
    args: &RagIndexArgs,
) -> Result<String, ToolError> {
    let collection = args.collection()?;
    let (root, _) = access.resolve(&args.path)?;
    let source = IngestSource {
        root,
        open: Arc::new(move |path| access.open(path)),
    };
    let to_error = |error| ToolError(format!("cannot index the documents: {error}"));
    let index = index.get().await.map_err(to_error)?;
    let report = index
        .ingest_path(principal, &collection, &source, &|_| {})
        .await
        .map_err(to_error)?;
    let mut result = ingest_report_json(&report, MAX_LISTED_SKIPPED);
    result["collection"] = Value::from(collection);
    Ok(result.to_string())
}

fn intent(access: &dyn DocumentAccess, args: &RagIndexArgs) -> Result<Intent, ToolError> {
    let collection = args.collection()?;
    let (_, subject) = access.resolve(&args.path)?;
    Ok(Intent {
        level: Safety::Moderate,
        shows: format!("index {subject} into the collection {collection}"),
        subject,
        pattern: None,
    })
}

/// Returns the report of an ingestion as commands and tools print it, with at most `max_skipped`
/// skipped files.
pub fn ingest_report_json(report: &IngestReport, max_skipped: usize) -> Value {
    let IngestReport {
        new,
        changed,
        unchanged,
        removed,
        chunks,
        skipped,
    } = report;
    let listed: Vec<Value> = skipped
        .iter()
        .take(max_skipped)
        .map(|(path, reason)| json!({ "path": path, "why": reason }))
        .collect();
    let mut report = json!({
        "new": new,
        "changed": changed,
        "same": unchanged,
        "removed": removed,
        "passages": chunks,
        "skipped": listed,
    });
    if skipped.len() > max_skipped {
        report["skipped_more"] = Value::from(skipped.len() - max_skipped);
    }
    report
}
