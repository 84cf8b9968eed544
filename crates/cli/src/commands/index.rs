//! `lango index …` and `lango eval retrieval`: documents that the librarian finds passages in.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::path::{Path, PathBuf};

use lango_app::{library, open_store};
use lango_domain::documents::{NewDocument, Which};
use lango_domain::event::Principal;
use lango_domain::text::{one_line, visible};
use lango_knowledge::evaluation::{Judgements, Tally};
use lango_knowledge::library::{Added, Library, LibraryError, Progress, Scope, pieces_of};
use lango_knowledge::{item, reading, web};
use lango_store::{Place, SqliteStore};
use serde_json::{Value, json};

use super::{Setting, runtime};
use crate::args::{Corpus, Global, IndexCommand};
use crate::output::{DIM, Failure, NAME, Output, styled};

/// Documents of a corpus are kept so many at a time.
const BATCH: usize = 256;
/// So many passages are looked at to name ten documents.
const CANDIDATES: usize = 30;

pub fn run(global: &Global, command: &IndexCommand) -> Result<Output, Failure> {
    let setting = Setting::read(global)?;
    let store = open_store(&setting.loaded, &setting.environment)?;
    let library = library(&setting.loaded, &setting.environment, store).map_err(failed)?;
    runtime()?.block_on(async {
        match command {
            IndexCommand::Add { what, collection, format: Corpus::Files } => {
                add(&setting, &library, what, collection).await
            }
            IndexCommand::Add { what, collection, format: Corpus::Beir } => {
                let mut added = Added::default();
                for directory in what {
                    take_corpus(&library, Path::new(directory), collection, &mut added).await?;
                }
                library.catch_up().await.map_err(failed)?;
                Ok(told(&added))
            }
            IndexCommand::List => list(&library).await,
            IndexCommand::Remove { what, collection } => remove(&library, what, collection).await,
            IndexCommand::Refresh => refresh(&library).await,
            IndexCommand::Search { query, collection, limit } => {
                search(&library, query, collection.clone(), limit.get()).await
            }
        }
    })
}

fn failed(error: LibraryError) -> Failure {
    match error {
        LibraryError::Embedding(error) => Failure::usage(error.to_string()),
        other => Failure::store(other.to_string()),
    }
}

async fn add(
    setting: &Setting,
    library: &Library,
    what: &[String],
    collection: &str,
) -> Result<Output, Failure> {
    let mut all = Added::default();
    for what in what {
        let added = if what.starts_with("http://") || what.starts_with("https://") {
            add_page(library, what, collection).await?
        } else {
            let path = setting.environment.working_folder.join(what);
            library.add(&Principal::local(), collection, &path, &show_progress).await.map_err(failed)?
        };
        join(&mut all, added);
    }
    library.catch_up().await.map_err(failed)?;
    Ok(told(&all))
}

/// An address that the user typed may be anywhere.
async fn add_page(library: &Library, url: &str, collection: &str) -> Result<Added, Failure> {
    let client = lango_net::Guarded::new(lango_net::Reach::Anywhere, lango_net::Limits::default());
    let page = client.get(url).await.map_err(|error| Failure::usage(error.to_string()))?;
    let text = match page.kind {
        lango_net::Kind::Html => web::readable(&page.text(), &page.url),
        _ => page.text(),
    };
    let pieces = pieces_of(&text);
    let added = Added { new: 1, pieces: pieces.len(), ..Added::default() };
    let title = text.lines().next().unwrap_or(url).trim_start_matches('#').trim().to_owned();
    let document = document(collection, url, title, pieces, &text);
    library.put(&Principal::local(), vec![document]).await.map_err(failed)?;
    Ok(added)
}

fn document(
    collection: &str,
    source: &str,
    title: String,
    pieces: Vec<lango_domain::documents::NewPiece>,
    text: &str,
) -> NewDocument {
    NewDocument {
        collection: collection.to_owned(),
        source: source.to_owned(),
        root: source.to_owned(),
        title,
        hash: reading::content_hash(text.as_bytes()),
        session: None,
        pieces,
    }
}

fn join(all: &mut Added, added: Added) {
    all.new += added.new;
    all.changed += added.changed;
    all.same += added.same;
    all.removed += added.removed;
    all.pieces += added.pieces;
    all.skipped.extend(added.skipped);
}

/// On a terminal only.
fn show_progress(progress: Progress) {
    if std::io::stderr().is_terminal() {
        let Progress { done, all } = progress;
        let end = if done == all { "\n" } else { "" };
        let _ = write!(anstream::stderr(), "\r{done} of {all} files{end}")
            .and_then(|()| std::io::stderr().flush());
    }
}

fn told(added: &Added) -> Output {
    let Added { new, changed, same, removed, pieces, skipped } = added;
    let plain =
        format!("{new} new, {changed} changed, {same} as before, {removed} gone: {pieces} passages.\n");
    let warnings = skipped
        .iter()
        .map(|(path, why)| format!("left out: {}: {}", one_line(path), one_line(why)))
        .collect();
    let left_out: Vec<Value> =
        skipped.iter().map(|(path, why)| json!({ "path": path, "why": why })).collect();
    let json = json!({ "new": new, "changed": changed, "same": same, "removed": removed, "passages": pieces, "skipped": left_out });
    Output::new(plain, json).with_warnings(warnings)
}

async fn list(library: &Library) -> Result<Output, Failure> {
    let collections = library.store().collections(&Principal::local()).await;
    let collections = collections.map_err(|error| Failure::store(error.to_string()))?;
    let mut plain = String::new();
    for collection in &collections {
        let counts = format!(
            "{} documents, {} passages, {} bytes",
            collection.documents, collection.pieces, collection.bytes
        );
        let _ = writeln!(plain, "{}  {counts}", styled(NAME, one_line(&collection.name)));
        for root in collection.roots.iter().take(20) {
            let _ = writeln!(plain, "  {}", styled(DIM, one_line(root)));
        }
    }
    if collections.is_empty() {
        plain.push_str("Nothing is indexed. `lango index add PATH` begins.\n");
    }
    Ok(Output::new(plain, json!({ "items": collections })))
}

async fn remove(library: &Library, what: &[String], collection: &str) -> Result<Output, Failure> {
    let store = library.store();
    let failed_store = |error: lango_domain::session::StoreError| Failure::store(error.to_string());
    let which = if what.is_empty() {
        Which::All
    } else {
        let known = store.sources(&Principal::local(), collection).await.map_err(failed_store)?;
        let roots: Vec<PathBuf> =
            what.iter().map(|path| Path::new(path).canonicalize().unwrap_or_else(|_| path.into())).collect();
        let is_meant = |source: &str| {
            what.iter().any(|what| what == source)
                || roots.iter().any(|root| Path::new(source).starts_with(root))
        };
        Which::These(
            known.into_iter().map(|source| source.source).filter(|source| is_meant(source)).collect(),
        )
    };
    let gone = store.remove(&Principal::local(), collection, which).await.map_err(failed_store)?;
    store.forget_unused_vectors().await.map_err(failed_store)?;
    library.catch_up().await.map_err(failed)?;
    Ok(Output::new(format!("{gone} documents removed.\n"), json!({ "removed": gone })))
}

/// Everything that was added from files, once more: what did not change costs nothing.
async fn refresh(library: &Library) -> Result<Output, Failure> {
    let collections = library.store().collections(&Principal::local()).await;
    let mut all = Added::default();
    for collection in collections.map_err(|error| Failure::store(error.to_string()))? {
        for root in collection.roots.iter().map(Path::new).filter(|root| root.is_absolute()) {
            if root.exists() {
                let added = library.add(&Principal::local(), &collection.name, root, &show_progress).await;
                join(&mut all, added.map_err(failed)?);
            } else {
                let which = Which::These(vec![root.display().to_string()]);
                let gone = library.store().remove(&Principal::local(), &collection.name, which).await;
                all.removed += gone.map_err(|error| Failure::store(error.to_string()))?;
            }
        }
    }
    library.catch_up().await.map_err(failed)?;
    Ok(told(&all))
}

async fn search(
    library: &Library,
    query: &str,
    collection: Option<String>,
    limit: usize,
) -> Result<Output, Failure> {
    let scope = Scope {
        principal: Principal::local(),
        session: None,
        collections: collection.map(|name| vec![name]),
    };
    let found = library.find(query, &scope, limit).await.map_err(failed)?;
    let mut plain = String::new();
    for passage in &found {
        let place = format!("{}:{}-{}", one_line(&passage.source), passage.place.first, passage.place.last);
        let heading = if passage.heading.is_empty() {
            String::new()
        } else {
            format!("  {}", one_line(&passage.heading))
        };
        let score = styled(DIM, format!("{:.2}", passage.score));
        let _ =
            writeln!(plain, "{}{heading}  {score}\n{}\n", styled(NAME, place), visible(passage.text.trim()));
    }
    if found.is_empty() {
        plain.push_str("Nothing was found.\n");
    }
    Ok(Output::new(plain, json!({ "items": found.iter().map(item).collect::<Vec<_>>() })))
}

async fn take_corpus(
    library: &Library,
    directory: &Path,
    collection: &str,
    added: &mut Added,
) -> Result<(), Failure> {
    let bad = |error: &dyn std::fmt::Display| Failure::usage(error.to_string());
    let mut batch = Vec::new();
    for line in reading::beir(directory).map_err(|error| bad(&error))? {
        let record = match line {
            Ok(record) => record,
            Err(error) => {
                added.skipped.push((directory.display().to_string(), error.to_string()));
                continue;
            }
        };
        let text = format!("{}\n\n{}", record.title, record.text);
        let pieces = pieces_of(&record.text);
        added.new += 1;
        added.pieces += pieces.len();
        batch.push(document(collection, &record.id, record.title, pieces, &text));
        if batch.len() == BATCH {
            library.put(&Principal::local(), std::mem::take(&mut batch)).await.map_err(failed)?;
        }
    }
    library.put(&Principal::local(), batch).await.map_err(failed)
}

/// How well passages are found in a corpus of its own, with nothing else beside it.
pub fn evaluate(global: &Global, directory: &Path) -> Result<Output, Failure> {
    let setting = Setting::read(global)?;
    let folder = std::env::temp_dir().join(format!("lango-eval-{}", std::process::id()));
    let measured = runtime()?.block_on(measure(&setting, directory, &folder));
    let _ = std::fs::remove_dir_all(&folder);
    let measured = measured?;
    let plain = format!(
        "{} queries: recall@5 {:.3}, recall@10 {:.3}, ndcg@10 {:.3}\n",
        measured.queries, measured.recall_5, measured.recall_10, measured.ndcg_10
    );
    Ok(Output::new(plain, serde_json::to_value(measured).unwrap_or_default()))
}

async fn measure(
    setting: &Setting,
    directory: &Path,
    folder: &Path,
) -> Result<lango_knowledge::evaluation::Measured, Failure> {
    let bad = |error: &dyn std::fmt::Display| Failure::usage(error.to_string());
    let mut judged: Judgements = HashMap::new();
    for line in reading::qrels(directory).map_err(|error| bad(&error))? {
        let line = line.map_err(|error| bad(&error))?;
        judged.entry(line.query).or_default().insert(line.document, u32::try_from(line.score).unwrap_or(0));
    }
    let store = SqliteStore::open(Place::File(folder.join("eval.sqlite")))?;
    let mut environment = setting.environment.clone();
    environment.variables.insert("LANGO_HOME".to_owned(), folder.display().to_string());
    let library = library(&setting.loaded, &environment, store).map_err(failed)?;
    let mut added = Added::default();
    take_corpus(&library, directory, "eval", &mut added).await?;
    library.catch_up().await.map_err(failed)?;
    let scope = Scope { principal: Principal::local(), session: None, collections: None };
    let mut tally = Tally::default();
    for query in reading::queries(directory).map_err(|error| bad(&error))? {
        let query = query.map_err(|error| bad(&error))?;
        let Some(answers) = judged.get(&query.id) else { continue };
        let found = library.find(&query.text, &scope, CANDIDATES).await.map_err(failed)?;
        let documents: Vec<String> = found.into_iter().map(|passage| passage.source).collect();
        tally.add(&documents, answers);
    }
    Ok(tally.mean())
}
