//! `lango index …`: the document index.

pub mod corpus;
mod progress;
mod search;
mod web_page;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use lango_app::capability::documents::document_index::{
    DocumentIndex, DocumentIndexError, IngestReport, is_missing, path_from_text,
};
use lango_app::capability::documents::rag_index::{DEFAULT_COLLECTION, ingest_report_json};
use lango_app::{open_document_index, user_ingest_source};
use lango_domain::documents::{DocumentFilter, DocumentSource};
use lango_domain::event::Principal;
use lango_text::sanitize::one_line;
use serde_json::json;

use super::{CommandContext, runtime};
use crate::args::{CorpusFormat, GlobalArgs, IndexCommand};
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

/// The maximum number of roots that are listed per collection.
const MAX_ROOTS: usize = 20;

pub fn run(global: &GlobalArgs, command: &IndexCommand) -> Result<CommandOutput, CliError> {
    let context = CommandContext::load(global)?;
    let stores = context.stores.open()?;
    let index =
        open_document_index(&context.loaded, &context.environment, stores).map_err(index_error)?;
    runtime()?.block_on(async {
        match command {
            IndexCommand::Add {
                targets,
                collection,
                format: CorpusFormat::Files,
            } => add(&context, &index, targets, collection).await,
            IndexCommand::Add {
                targets,
                collection,
                format: CorpusFormat::Beir,
            } => {
                let mut report = IngestReport::default();
                for directory in targets {
                    let directory = context.environment.working_folder.join(directory);
                    corpus::import_corpus(&index, &directory, collection, &mut report).await?;
                }
                index.sync().await.map_err(index_error)?;
                Ok(report_output(&report))
            }
            IndexCommand::List => list(&index).await,
            IndexCommand::Remove {
                targets,
                collection,
            } => {
                let folder = &context.environment.working_folder;
                remove(&index, folder, targets, collection.as_deref()).await
            }
            IndexCommand::Refresh => refresh(&context, &index).await,
            IndexCommand::Search {
                query,
                collection,
                limit,
            } => search::search(&index, query, collection.clone(), limit.get()).await,
        }
    })
}

fn index_error(error: DocumentIndexError) -> CliError {
    match error {
        DocumentIndexError::Embedding(error) => CliError::usage(error.to_string()),
        other => CliError::store(other.to_string()),
    }
}

fn is_url(target: &str) -> bool {
    let start = target.get(..8).unwrap_or(target).to_ascii_lowercase();
    start.starts_with("http://") || start.starts_with("https://")
}

async fn add(
    context: &CommandContext,
    index: &DocumentIndex,
    targets: &[String],
    collection: &str,
) -> Result<CommandOutput, CliError> {
    let folder = &context.environment.working_folder;
    // Check every path before adding anything.
    for path in targets.iter().filter(|target| !is_url(target)) {
        check_path(&folder.join(path))
            .map_err(|reason| CliError::usage(format!("{path}: {reason}")))?;
    }
    let mut total = IngestReport::default();
    for target in targets {
        if !is_url(target) {
            let added = add_path(context, index, collection, &folder.join(target)).await;
            merge_report(&mut total, added.map_err(index_error)?);
            continue;
        }
        match web_page::add(index, target, collection).await? {
            Ok(added) => merge_report(&mut total, added),
            Err(reason) if targets.len() == 1 => {
                return Err(CliError::usage(format!("{target}: {reason}")));
            }
            Err(reason) => total.skipped.push((target.clone(), reason)),
        }
    }
    index.sync().await.map_err(index_error)?;
    Ok(report_output(&total))
}

fn check_path(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() || metadata.is_dir() => Ok(()),
        Ok(_) => Err("not a file or a folder".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn merge_report(total: &mut IngestReport, added: IngestReport) {
    total.new += added.new;
    total.changed += added.changed;
    total.unchanged += added.unchanged;
    total.removed += added.removed;
    total.chunks += added.chunks;
    total.skipped.extend(added.skipped);
}

fn report_output(report: &IngestReport) -> CommandOutput {
    let IngestReport {
        new,
        changed,
        unchanged,
        removed,
        chunks,
        skipped,
    } = report;
    let passages = if *chunks == 1 { "passage" } else { "passages" };
    let plain = format!(
        "{new} new, {changed} changed, {unchanged} unchanged, {removed} removed; {chunks} {passages} added.\n"
    );
    let warnings = skipped
        .iter()
        .map(|(path, reason)| format!("skipped {}: {}", one_line(path), one_line(reason)))
        .collect();
    CommandOutput::new(plain, ingest_report_json(report, usize::MAX)).with_warnings(warnings)
}

async fn list(index: &DocumentIndex) -> Result<CommandOutput, CliError> {
    let collections = index.store().collections(&Principal::local()).await?;
    let mut plain = String::new();
    for collection in &collections {
        let counts = format!(
            "{} documents, {} passages, {} bytes",
            collection.documents, collection.pieces, collection.bytes
        );
        let _ = writeln!(
            plain,
            "{}  {counts}",
            styled(NAME, one_line(&collection.name))
        );
        for root in collection.roots.iter().take(MAX_ROOTS) {
            let _ = writeln!(plain, "  {}", styled(DIM, one_line(root)));
        }
        if let Some(more @ 1..) = collection.roots.len().checked_sub(MAX_ROOTS) {
            let _ = writeln!(plain, "  {}", styled(DIM, format!("and {more} more")));
        }
    }
    if collections.is_empty() {
        plain.push_str("No documents are indexed. Add some with `lango index add PATH`.\n");
    }
    Ok(CommandOutput::new(plain, json!({ "items": collections })))
}

async fn remove(
    index: &DocumentIndex,
    folder: &Path,
    targets: &[String],
    collection: Option<&str>,
) -> Result<CommandOutput, CliError> {
    let default_collection = (!targets.is_empty()).then_some(DEFAULT_COLLECTION);
    let Some(collection) = collection.or(default_collection) else {
        let hint = format!(
            "`lango index remove --collection {DEFAULT_COLLECTION}` removes that whole collection"
        );
        let error = CliError::usage("missing argument: expected paths, URLs or a collection");
        return Err(error.with_hint(hint));
    };
    let store = index.store();
    let (mut filter, mut warnings) = (DocumentFilter::All, Vec::new());
    if !targets.is_empty() {
        let sources = store.sources(&Principal::local(), collection).await?;
        let mut matched = Vec::new();
        for target in targets {
            let before = matched.len();
            let path = canonical_parent(&folder.join(target));
            matched.extend(
                sources
                    .iter()
                    .filter(|source| matches_source(source, target, &path))
                    .map(|source| source.source.clone()),
            );
            if matched.len() == before {
                warnings.push(format!(
                    "no documents of {} are in the collection {}",
                    one_line(target),
                    one_line(collection)
                ));
            }
        }
        filter = DocumentFilter::Sources(matched);
    }
    let removed = store
        .remove(&Principal::local(), collection, filter)
        .await?;
    store.delete_unused_vectors().await?;
    index.sync().await.map_err(index_error)?;
    let plain = format!("{removed} documents removed.\n");
    Ok(CommandOutput::new(plain, json!({ "removed": removed })).with_warnings(warnings))
}

fn matches_source(source: &DocumentSource, target: &str, path: &Path) -> bool {
    let is_below = |source: &str| path_from_text(source).starts_with(path);
    let url = if is_url(target) {
        web_page::normalize_url(target)
    } else {
        target.to_owned()
    };
    [target, &url]
        .iter()
        .any(|name| source.source == *name || source.root == *name)
        || is_below(&source.source)
        || source
            .root
            .strip_prefix(corpus::ROOT_PREFIX)
            .is_some_and(is_below)
}

/// Canonicalizes the nearest ancestor that exists, since `path` itself may have been deleted.
fn canonical_parent(path: &Path) -> PathBuf {
    let mut names = Vec::new();
    for ancestor in path.ancestors() {
        if let Ok(base) = ancestor.canonicalize() {
            return names
                .into_iter()
                .rev()
                .fold(base, |base, name| base.join(name));
        }
        names.extend(ancestor.file_name());
    }
    path.to_path_buf()
}

/// Updates all documents that were added from files. Unchanged files are skipped.
async fn refresh(
    context: &CommandContext,
    index: &DocumentIndex,
) -> Result<CommandOutput, CliError> {
    let store = index.store();
    let mut total = IngestReport::default();
    for collection in store.collections(&Principal::local()).await? {
        let sources = store.sources(&Principal::local(), &collection.name).await?;
        for root in collection
            .roots
            .iter()
            .filter(|root| Path::new(root).is_absolute())
        {
            let path = path_from_text(root);
            if !is_missing(&path) {
                match add_path(context, index, &collection.name, &path).await {
                    Ok(added) => merge_report(&mut total, added),
                    // Documents that cannot be read at the moment stay in the index.
                    Err(error) => total.skipped.push((root.clone(), error.to_string())),
                }
            } else {
                let below_root = sources.iter().filter(|source| source.root == *root);
                let names = below_root.map(|source| source.source.clone()).collect();
                let filter = DocumentFilter::Sources(names);
                let removed = store
                    .remove(&Principal::local(), &collection.name, filter)
                    .await;
                total.removed += removed?;
            }
        }
    }
    index.sync().await.map_err(index_error)?;
    Ok(report_output(&total))
}

async fn add_path(
    context: &CommandContext,
    index: &DocumentIndex,
    collection: &str,
    path: &Path,
) -> Result<IngestReport, DocumentIndexError> {
    let aborted = |error| DocumentIndexError::Aborted(format!("{}: {error}", path.display()));
    let source = user_ingest_source(&context.environment, path).map_err(aborted)?;
    index
        .ingest_path(
            &Principal::local(),
            collection,
            &source,
            &progress::print_progress,
        )
        .await
}
