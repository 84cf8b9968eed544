//! `lango index …`: documents that the librarian finds passages in.

pub mod corpus;
mod progress;
mod web_page;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use lango_app::{open_document_index, user_ingest_source};
use lango_domain::documents::{DocumentFilter, DocumentSource, SpanUnit};
use lango_domain::event::Principal;
use lango_domain::session::StoreError;
use lango_domain::suggest::did_you_mean;
use lango_domain::text::{one_line, strip_control_chars};
use lango_knowledge::document_index::{
    DocumentIndex, DocumentIndexError, IngestReport, Passage, SearchScope, is_missing,
    path_from_text,
};
use lango_knowledge::passage_json;
use lango_knowledge::rag_index::{DEFAULT_COLLECTION, ingest_report_json};
use serde_json::json;

use super::{CommandContext, runtime};
use crate::args::{CorpusFormat, GlobalArgs, IndexCommand};
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

/// So much of what was added is listed.
const MAX_ROOTS: usize = 20;

pub fn run(global: &GlobalArgs, command: &IndexCommand) -> Result<CommandOutput, CliError> {
    let setting = CommandContext::load(global)?;
    let store = setting.store.open()?;
    let library =
        open_document_index(&setting.loaded, &setting.environment, store).map_err(index_error)?;
    runtime()?.block_on(async {
        match command {
            IndexCommand::Add {
                what,
                collection,
                format: CorpusFormat::Files,
            } => add(&setting, &library, what, collection).await,
            IndexCommand::Add {
                what,
                collection,
                format: CorpusFormat::Beir,
            } => {
                let mut added = IngestReport::default();
                for directory in what {
                    let directory = setting.environment.working_folder.join(directory);
                    corpus::import_corpus(&library, &directory, collection, &mut added).await?;
                }
                library.sync().await.map_err(index_error)?;
                Ok(print_report(&added))
            }
            IndexCommand::List => list(&library).await,
            IndexCommand::Remove { what, collection } => {
                let folder = &setting.environment.working_folder;
                remove(&library, folder, what, collection.as_deref()).await
            }
            IndexCommand::Refresh => refresh(&setting, &library).await,
            IndexCommand::Search {
                query,
                collection,
                limit,
            } => search(&library, query, collection.clone(), limit.get()).await,
        }
    })
}

fn index_error(error: DocumentIndexError) -> CliError {
    match error {
        DocumentIndexError::Embedding(error) => CliError::usage(error.to_string()),
        other => CliError::store(other.to_string()),
    }
}

fn store_error(error: StoreError) -> CliError {
    CliError::store(error.to_string())
}

fn is_address(what: &str) -> bool {
    let start = what.get(..8).unwrap_or(what).to_ascii_lowercase();
    start.starts_with("http://") || start.starts_with("https://")
}

async fn add(
    setting: &CommandContext,
    library: &DocumentIndex,
    what: &[String],
    collection: &str,
) -> Result<CommandOutput, CliError> {
    let folder = &setting.environment.working_folder;
    // Nothing is done before all of it makes sense.
    for path in what.iter().filter(|what| !is_address(what)) {
        check_path(&folder.join(path)).map_err(|why| CliError::usage(format!("{path}: {why}")))?;
    }
    let mut all = IngestReport::default();
    for one in what {
        if !is_address(one) {
            merge_report(
                &mut all,
                add_path(setting, library, collection, &folder.join(one))
                    .await
                    .map_err(index_error)?,
            );
            continue;
        }
        match web_page::add(library, one, collection).await? {
            Ok(added) => merge_report(&mut all, added),
            Err(why) if what.len() == 1 => return Err(CliError::usage(format!("{one}: {why}"))),
            Err(why) => all.skipped.push((one.clone(), why)),
        }
    }
    library.sync().await.map_err(index_error)?;
    Ok(print_report(&all))
}

fn check_path(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() || metadata.is_dir() => Ok(()),
        Ok(_) => Err("it is neither a file nor a folder".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn merge_report(all: &mut IngestReport, added: IngestReport) {
    all.new += added.new;
    all.changed += added.changed;
    all.unchanged += added.unchanged;
    all.removed += added.removed;
    all.chunks += added.chunks;
    all.skipped.extend(added.skipped);
}

fn print_report(added: &IngestReport) -> CommandOutput {
    let IngestReport {
        new,
        changed,
        unchanged: same,
        removed,
        chunks: pieces,
        skipped,
    } = added;
    let plain = format!(
        "{new} new, {changed} changed, {same} as before, {removed} gone: {pieces} passages.\n"
    );
    let warnings = skipped
        .iter()
        .map(|(path, why)| format!("left out: {}: {}", one_line(path), one_line(why)))
        .collect();
    CommandOutput::new(plain, ingest_report_json(added, usize::MAX)).with_warnings(warnings)
}

async fn list(library: &DocumentIndex) -> Result<CommandOutput, CliError> {
    let collections = library
        .store()
        .collections(&Principal::local())
        .await
        .map_err(store_error)?;
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
        plain.push_str("Nothing is indexed. `lango index add PATH` begins.\n");
    }
    Ok(CommandOutput::new(plain, json!({ "items": collections })))
}

async fn remove(
    library: &DocumentIndex,
    folder: &Path,
    what: &[String],
    collection: Option<&str>,
) -> Result<CommandOutput, CliError> {
    let Some(collection) = collection.or((!what.is_empty()).then_some(DEFAULT_COLLECTION)) else {
        let hint =
            format!("`--collection {DEFAULT_COLLECTION}` alone takes all of that collection out");
        return Err(
            CliError::usage("say what to take out: paths, addresses or a collection")
                .with_hint(hint),
        );
    };
    let store = library.store();
    let (mut which, mut warnings) = (DocumentFilter::All, Vec::new());
    if !what.is_empty() {
        let known = store
            .sources(&Principal::local(), collection)
            .await
            .map_err(store_error)?;
        let mut meant = Vec::new();
        for one in what {
            let before = meant.len();
            let path = canonical_parent(&folder.join(one));
            meant.extend(
                known
                    .iter()
                    .filter(|known| matches_source(known, one, &path))
                    .map(|known| known.source.clone()),
            );
            if meant.len() == before {
                warnings.push(format!(
                    "nothing of {} is in the collection {}",
                    one_line(one),
                    one_line(collection)
                ));
            }
        }
        which = DocumentFilter::Sources(meant);
    }
    let gone = store
        .remove(&Principal::local(), collection, which)
        .await
        .map_err(store_error)?;
    store.delete_unused_vectors().await.map_err(store_error)?;
    library.sync().await.map_err(index_error)?;
    Ok(CommandOutput::new(
        format!("{gone} documents removed.\n"),
        json!({ "removed": gone }),
    )
    .with_warnings(warnings))
}

fn matches_source(known: &DocumentSource, typed: &str, path: &Path) -> bool {
    let is_below = |known: &str| path_from_text(known).starts_with(path);
    let address = if is_address(typed) {
        web_page::normalize_url(typed)
    } else {
        typed.to_owned()
    };
    [typed, &address]
        .iter()
        .any(|one| known.source == *one || known.root == *one)
        || is_below(&known.source)
        || known
            .root
            .strip_prefix(corpus::ROOT_PREFIX)
            .is_some_and(is_below)
}

/// What is gone has no true name any more, but the folder that it was in may have one.
fn canonical_parent(path: &Path) -> PathBuf {
    let mut names = Vec::new();
    for above in path.ancestors() {
        if let Ok(found) = above.canonicalize() {
            return names
                .into_iter()
                .rev()
                .fold(found, |found, name| found.join(name));
        }
        names.extend(above.file_name());
    }
    path.to_path_buf()
}

/// Everything that was added from files, once more: what did not change costs nothing.
async fn refresh(
    setting: &CommandContext,
    library: &DocumentIndex,
) -> Result<CommandOutput, CliError> {
    let store = library.store();
    let mut all = IngestReport::default();
    for collection in store
        .collections(&Principal::local())
        .await
        .map_err(store_error)?
    {
        let known = store
            .sources(&Principal::local(), &collection.name)
            .await
            .map_err(store_error)?;
        for root in collection
            .roots
            .iter()
            .filter(|root| Path::new(root).is_absolute())
        {
            let path = path_from_text(root);
            if !is_missing(&path) {
                match add_path(setting, library, &collection.name, &path).await {
                    Ok(added) => merge_report(&mut all, added),
                    // What cannot be looked at just now stays.
                    Err(error) => all.skipped.push((root.clone(), error.to_string())),
                }
            } else {
                let under = known.iter().filter(|known| known.root == *root);
                let which =
                    DocumentFilter::Sources(under.map(|known| known.source.clone()).collect());
                let gone = store
                    .remove(&Principal::local(), &collection.name, which)
                    .await;
                all.removed += gone.map_err(store_error)?;
            }
        }
    }
    library.sync().await.map_err(index_error)?;
    Ok(print_report(&all))
}

async fn add_path(
    setting: &CommandContext,
    library: &DocumentIndex,
    collection: &str,
    path: &Path,
) -> Result<IngestReport, DocumentIndexError> {
    let broken = |error| DocumentIndexError::Aborted(format!("{}: {error}", path.display()));
    let taking = user_ingest_source(&setting.environment, path).map_err(broken)?;
    library
        .ingest_path(
            &Principal::local(),
            collection,
            &taking,
            &progress::print_progress,
        )
        .await
}

async fn search(
    library: &DocumentIndex,
    query: &str,
    collection: Option<String>,
    limit: usize,
) -> Result<CommandOutput, CliError> {
    if query.trim().is_empty() {
        return Err(CliError::usage("the query is empty: say what to look for"));
    }
    let mut warnings = unknown_collection_warning(library, collection.as_deref()).await?;
    let scope = SearchScope {
        principal: Principal::local(),
        session: None,
        collections: collection.map(|name| vec![name]),
    };
    let (found, trouble) = library
        .search_with_fallback(query, &scope, limit)
        .await
        .map_err(index_error)?;
    warnings.extend(trouble.map(|trouble| format!("found by words alone: {trouble}")));
    let mut plain = String::new();
    for passage in &found {
        let heading = if passage.heading.is_empty() {
            String::new()
        } else {
            format!("  {}", one_line(&passage.heading))
        };
        let score = styled(DIM, format!("{:.2}", passage.score));
        let cited = styled(NAME, citation(passage));
        let _ = writeln!(
            plain,
            "{cited}{heading}  {score}\n{}\n",
            strip_control_chars(passage.text.trim())
        );
    }
    if found.is_empty() {
        plain.push_str("Nothing was found.\n");
    }
    let json = json!({ "items": found.iter().map(passage_json).collect::<Vec<_>>() });
    Ok(CommandOutput::new(plain, json).with_warnings(warnings))
}

fn citation(passage: &Passage) -> String {
    let (source, first, last) = (
        one_line(&passage.source),
        passage.span.first,
        passage.span.last,
    );
    match passage.span.unit {
        SpanUnit::Lines if first == last => format!("{source}:{first}"),
        SpanUnit::Lines => format!("{source}:{first}-{last}"),
        SpanUnit::Pages if first == last => format!("{source}, page {first}"),
        SpanUnit::Pages => format!("{source}, pages {first}-{last}"),
    }
}

/// A name that no collection has finds nothing, which looks as if there were nothing.
async fn unknown_collection_warning(
    library: &DocumentIndex,
    collection: Option<&str>,
) -> Result<Vec<String>, CliError> {
    let Some(name) = collection else {
        return Ok(Vec::new());
    };
    let known = library
        .store()
        .collections(&Principal::local())
        .await
        .map_err(store_error)?;
    if known.iter().any(|known| known.name == name) {
        return Ok(Vec::new());
    }
    let hint = did_you_mean(name, known.iter().map(|known| known.name.as_str()));
    let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    Ok(vec![format!(
        "there is no collection {}{hint}",
        one_line(name)
    )])
}
