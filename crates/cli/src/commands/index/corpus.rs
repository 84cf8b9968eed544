//! Corpora in the BEIR form: taken in, and measured with (`lango eval retrieval`).

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use lango_app::open_document_index;
use lango_domain::documents::{DocumentFilter, NewDocument};
use lango_domain::event::Principal;
use lango_domain::text::one_line;
use lango_knowledge::document_index::{DocumentIndex, IngestReport, SearchScope, chunk_text};
use lango_knowledge::evaluation::{Judgments, MetricsSum, RetrievalMetrics};
use lango_knowledge::parse::{self, BeirDocument, BeirError};
use lango_store::{SqliteStore, StoreLocation};

use super::{index_error, store_error};
use crate::args::GlobalArgs;
use crate::commands::{CommandContext, runtime};
use crate::output::{CliError, CommandOutput};

/// What stands before the folder of a corpus where documents say what they were found under: it is no path, so nobody
/// looks there for files.
pub const ROOT_PREFIX: &str = "beir:";
/// Documents are kept so many at a time.
const BATCH_SIZE: usize = 256;
/// So many passages are looked at to name ten documents.
const CANDIDATES: usize = 30;

/// Takes a corpus in; what it held before and does not hold any more goes.
pub async fn import_corpus(
    library: &DocumentIndex,
    directory: &Path,
    collection: &str,
    added: &mut IngestReport,
) -> Result<(), CliError> {
    let lines =
        parse::read_corpus(directory).map_err(|error| CliError::usage(error.to_string()))?;
    let directory = directory
        .canonicalize()
        .unwrap_or_else(|_| directory.to_path_buf());
    let root = format!("{ROOT_PREFIX}{}", directory.display());
    let known = library
        .store()
        .sources(&Principal::local(), collection)
        .await
        .map_err(store_error)?;
    let mut known: HashMap<String, (String, String)> = known
        .into_iter()
        .map(|known| (known.source, (known.root, known.hash)))
        .collect();
    let mut batch = Vec::new();
    for line in lines {
        let document = match line {
            Ok(record) => to_document(record, collection, &root),
            Err(error @ BeirError::Io { .. }) => return Err(CliError::usage(error.to_string())),
            Err(error) => {
                added
                    .skipped
                    .push((directory.display().to_string(), error.to_string()));
                continue;
            }
        };
        match known.remove(&document.source) {
            Some((_, hash)) if hash == document.hash => {
                added.unchanged += 1;
                continue;
            }
            Some(_) => added.changed += 1,
            None => added.new += 1,
        }
        added.chunks += document.chunks.len();
        batch.push(document);
        if batch.len() == BATCH_SIZE {
            library
                .ingest_documents(&Principal::local(), std::mem::take(&mut batch))
                .await
                .map_err(index_error)?;
        }
    }
    library
        .ingest_documents(&Principal::local(), batch)
        .await
        .map_err(index_error)?;
    let gone = known
        .into_iter()
        .filter(|(_, (under, _))| *under == root)
        .map(|(source, _)| source)
        .collect();
    let removed = library
        .store()
        .remove(
            &Principal::local(),
            collection,
            DocumentFilter::Sources(gone),
        )
        .await;
    added.removed += removed.map_err(store_error)?;
    Ok(())
}

fn to_document(record: BeirDocument, collection: &str, root: &str) -> NewDocument {
    let BeirDocument { id, title, text } = record;
    // Some have a title only.
    let found_by = if text.trim().is_empty() {
        &title
    } else {
        &text
    };
    NewDocument {
        hash: parse::content_hash(format!("{title}\n\n{text}").as_bytes()),
        chunks: chunk_text(&found_by.replace('\0', " ")),
        collection: collection.to_owned(),
        source: id,
        root: root.to_owned(),
        title,
        session: None,
    }
}

/// How well passages are found in a corpus of its own, with nothing else beside it.
pub fn evaluate(global: &GlobalArgs, directory: &Path) -> Result<CommandOutput, CliError> {
    let setting = CommandContext::load(global)?;
    let folder = TempFolder::new()?;
    let (measured, skipped) = runtime()?.block_on(measure(&setting, directory, &folder.0))?;
    let plain = format!(
        "{} queries: recall@5 {:.3}, recall@10 {:.3}, ndcg@10 {:.3}\n",
        measured.queries, measured.recall_5, measured.recall_10, measured.ndcg_10
    );
    let warnings = skipped
        .iter()
        .map(|(_, why)| format!("left out: {}", one_line(why)))
        .collect();
    Ok(
        CommandOutput::new(plain, serde_json::to_value(measured).unwrap_or_default())
            .with_warnings(warnings),
    )
}

/// A new folder that goes with this.
struct TempFolder(PathBuf);

impl TempFolder {
    fn new() -> Result<Self, CliError> {
        let name = format!("lango-eval-{}", std::process::id());
        for number in 0..1_000 {
            let path = std::env::temp_dir().join(format!("{name}-{number}"));
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                // Whatever is there already is not ours.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(CliError::store(format!("{}: {error}", path.display()))),
            }
        }
        Err(CliError::store(
            "there is no place for a folder to measure in",
        ))
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn measure(
    setting: &CommandContext,
    directory: &Path,
    folder: &Path,
) -> Result<(RetrievalMetrics, Vec<(String, String)>), CliError> {
    let bad = |error: &dyn std::fmt::Display| CliError::usage(error.to_string());
    let directory = setting.environment.working_folder.join(directory);
    let mut judged: Judgments = HashMap::new();
    for line in parse::read_qrels(&directory).map_err(|error| bad(&error))? {
        let line = line.map_err(|error| bad(&error))?;
        judged
            .entry(line.query)
            .or_default()
            .insert(line.document, u32::try_from(line.score).unwrap_or(0));
    }
    let queries: Result<Vec<_>, _> = parse::read_queries(&directory)
        .map_err(|error| bad(&error))?
        .collect();
    let queries = queries.map_err(|error| bad(&error))?;
    let store = SqliteStore::open(StoreLocation::File(folder.join("eval.sqlite")))?;
    let mut environment = setting.environment.clone();
    environment
        .variables
        .insert("LANGO_HOME".to_owned(), folder.display().to_string());
    let library = open_document_index(&setting.loaded, &environment, store).map_err(index_error)?;
    let mut added = IngestReport::default();
    import_corpus(&library, &directory, "eval", &mut added).await?;
    library.sync().await.map_err(index_error)?;
    let scope = SearchScope {
        principal: Principal::local(),
        session: None,
        collections: None,
    };
    let mut tally = MetricsSum::default();
    for query in queries {
        let Some(answers) = judged.get(&query.id) else {
            continue;
        };
        let found = library
            .search(&query.text, &scope, CANDIDATES)
            .await
            .map_err(index_error)?;
        let documents: Vec<String> = found.into_iter().map(|passage| passage.source).collect();
        tally.add(&documents, answers);
    }
    if added.new == 0 {
        return Err(CliError::usage(format!(
            "{}: corpus.jsonl holds no document",
            directory.display()
        )));
    }
    let measured = tally.mean();
    if measured.queries == 0 {
        let why = "no query of queries.jsonl has a document that answers it in the qrels";
        return Err(CliError::usage(format!("{}: {why}", directory.display())));
    }
    Ok((measured, added.skipped))
}
