//! BEIR corpora: import, and evaluation (`lango eval retrieval`).

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use lango_app::capability::documents::document_index::{DocumentIndex, IngestReport, chunk_text};
use lango_app::capability::documents::evaluation::{Judgments, MetricsSum, RetrievalMetrics};
use lango_app::capability::documents::parse::{self, BeirDocument, BeirError};
use lango_app::open_document_index;
use lango_domain::documents::SearchScope;
use lango_domain::documents::{DocumentFilter, NewDocument};
use lango_domain::event::Principal;
use lango_text::sanitize::one_line;

use super::index_error;
use crate::args::GlobalArgs;
use crate::commands::{CommandContext, runtime};
use crate::output::{CliError, CommandOutput};

/// The prefix of the root of imported documents. It makes the root no path, so that `refresh`
/// ignores it.
pub const ROOT_PREFIX: &str = "beir:";
/// The number of documents that are saved at once.
const BATCH_SIZE: usize = 256;
/// The number of passages to retrieve in order to rank ten documents.
const CANDIDATES: usize = 30;

/// Imports a corpus, and removes documents that it no longer contains.
pub async fn import_corpus(
    index: &DocumentIndex,
    directory: &Path,
    collection: &str,
    report: &mut IngestReport,
) -> Result<(), CliError> {
    let lines =
        parse::read_corpus(directory).map_err(|error| CliError::usage(error.to_string()))?;
    let directory = directory
        .canonicalize()
        .unwrap_or_else(|_| directory.to_path_buf());
    let root = format!("{ROOT_PREFIX}{}", directory.display());
    let sources = index
        .store()
        .sources(&Principal::local(), collection)
        .await?;
    let mut known: HashMap<String, (String, String)> = sources
        .into_iter()
        .map(|source| (source.source, (source.root, source.hash)))
        .collect();
    let mut batch = Vec::new();
    for line in lines {
        let document = match line {
            Ok(record) => to_document(record, collection, &root),
            Err(error @ BeirError::Io { .. }) => return Err(CliError::usage(error.to_string())),
            Err(error) => {
                report
                    .skipped
                    .push((directory.display().to_string(), error.to_string()));
                continue;
            }
        };
        match known.remove(&document.source) {
            Some((_, hash)) if hash == document.hash => {
                report.unchanged += 1;
                continue;
            }
            Some(_) => report.changed += 1,
            None => report.new += 1,
        }
        report.chunks += document.chunks.len();
        batch.push(document);
        if batch.len() == BATCH_SIZE {
            index
                .ingest_documents(&Principal::local(), std::mem::take(&mut batch))
                .await
                .map_err(index_error)?;
        }
    }
    index
        .ingest_documents(&Principal::local(), batch)
        .await
        .map_err(index_error)?;
    let missing = known
        .into_iter()
        .filter(|(_, (other_root, _))| *other_root == root)
        .map(|(source, _)| source)
        .collect();
    report.removed += remove_sources(index, collection, missing).await?;
    Ok(())
}

async fn remove_sources(
    index: &DocumentIndex,
    collection: &str,
    sources: Vec<String>,
) -> Result<usize, CliError> {
    let filter = DocumentFilter::Sources(sources);
    let removed = index
        .store()
        .remove(&Principal::local(), collection, filter)
        .await;
    Ok(removed?)
}

fn to_document(record: BeirDocument, collection: &str, root: &str) -> NewDocument {
    let BeirDocument { id, title, text } = record;
    // Some documents have only a title.
    let searched_text = if text.trim().is_empty() {
        &title
    } else {
        &text
    };
    NewDocument {
        hash: parse::content_hash(format!("{title}\n\n{text}").as_bytes()),
        chunks: chunk_text(&searched_text.replace('\0', " ")),
        collection: collection.to_owned(),
        source: id,
        root: root.to_owned(),
        title,
        session: None,
    }
}

/// Measures retrieval quality on a corpus, in a temporary index of its own.
pub fn evaluate(global: &GlobalArgs, directory: &Path) -> Result<CommandOutput, CliError> {
    let context = CommandContext::load(global)?;
    let folder = TempFolder::new()?;
    let (metrics, skipped) = runtime()?.block_on(measure(&context, directory, &folder.0))?;
    let plain = format!(
        "{} queries: recall@5 {:.3}, recall@10 {:.3}, ndcg@10 {:.3}\n",
        metrics.queries, metrics.recall_5, metrics.recall_10, metrics.ndcg_10
    );
    let warnings = skipped
        .iter()
        .map(|(_, reason)| format!("skipped: {}", one_line(reason)))
        .collect();
    Ok(
        CommandOutput::new(plain, serde_json::to_value(metrics).unwrap_or_default())
            .with_warnings(warnings),
    )
}

/// A temporary folder that is deleted on drop.
struct TempFolder(PathBuf);

impl TempFolder {
    fn new() -> Result<Self, CliError> {
        let name = format!("lango-eval-{}", std::process::id());
        for number in 0..1_000 {
            let path = std::env::temp_dir().join(format!("{name}-{number}"));
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                // Another process owns an existing folder.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(CliError::store(format!("{}: {error}", path.display()))),
            }
        }
        Err(CliError::store(
            "cannot create a temporary folder for the evaluation",
        ))
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn measure(
    context: &CommandContext,
    directory: &Path,
    folder: &Path,
) -> Result<(RetrievalMetrics, Vec<(String, String)>), CliError> {
    let usage_error = |error: &dyn std::fmt::Display| CliError::usage(error.to_string());
    let directory = context.environment.working_folder.join(directory);
    let mut judgments: Judgments = HashMap::new();
    for line in parse::read_qrels(&directory).map_err(|error| usage_error(&error))? {
        let line = line.map_err(|error| usage_error(&error))?;
        judgments
            .entry(line.query)
            .or_default()
            .insert(line.document, u32::try_from(line.score).unwrap_or(0));
    }
    let queries: Result<Vec<_>, _> = parse::read_queries(&directory)
        .map_err(|error| usage_error(&error))?
        .collect();
    let queries = queries.map_err(|error| usage_error(&error))?;
    let stores = lango_app::open_stores_in(&folder.join("eval.sqlite"))?;
    let mut environment = context.environment.clone();
    environment
        .variables
        .insert("LANGO_HOME".to_owned(), folder.display().to_string());
    let index = open_document_index(&context.loaded, &environment, stores).map_err(index_error)?;
    let mut report = IngestReport::default();
    import_corpus(&index, &directory, "eval", &mut report).await?;
    index.sync().await.map_err(index_error)?;
    let scope = SearchScope {
        principal: Principal::local(),
        session: None,
        collections: None,
    };
    let mut sum = MetricsSum::default();
    for query in queries {
        let Some(relevant) = judgments.get(&query.id) else {
            continue;
        };
        let passages = index
            .search(&query.text, &scope, CANDIDATES)
            .await
            .map_err(index_error)?;
        let documents: Vec<String> = passages.into_iter().map(|passage| passage.source).collect();
        sum.add(&documents, relevant);
    }
    if report.new == 0 {
        return Err(CliError::usage(format!(
            "{}: corpus.jsonl contains no documents",
            directory.display()
        )));
    }
    let metrics = sum.mean();
    if metrics.queries == 0 {
        let reason = "no query in queries.jsonl has a relevant document in the qrels";
        return Err(CliError::usage(format!(
            "{}: {reason}",
            directory.display()
        )));
    }
    Ok((metrics, report.skipped))
}
