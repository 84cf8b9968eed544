//! Taking documents in: what is new or changed is read, the rest is left as it is.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lango_domain::documents::{NewDocument, NewChunk, DocumentSpan, DocumentSource, SpanUnit, DocumentFilter};
use lango_domain::event::Principal;

use super::naming::{is_nowhere, path_of, shown};
use super::{Library, LibraryError, blocking};
use crate::reading::{self, ChunkSizes, Found, MAX_BYTES, SkipReason};

/// So many documents are read and written at one time; an interrupted run loses no more.
const BATCH: usize = 32;

/// What came of adding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Added {
    pub new: usize,
    pub changed: usize,
    pub same: usize,
    pub removed: usize,
    pub pieces: usize,
    /// What could not be read, and why.
    pub skipped: Vec<(String, String)>,
}

/// How the files of a folder are opened.
pub type OpenFile = Arc<dyn Fn(&Path) -> io::Result<File> + Send + Sync>;

/// A file or folder to take in: its true path, and who opens what is in it.
pub struct Taking {
    pub root: PathBuf,
    pub open: OpenFile,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub done: usize,
    pub all: usize,
}

enum Read {
    Same,
    Document(Box<NewDocument>),
    /// There is no document in it, or not any more.
    NoDocument(String),
    /// It cannot be looked at now; what is known of it stays.
    Closed(String),
}

impl Library {
    /// Takes in everything below a path; what was there before and is gone is taken out.
    pub async fn add(
        &self,
        of: &Principal,
        collection: &str,
        taking: &Taking,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Added, LibraryError> {
        let root = &taking.root;
        let Below { mut files, skipped, closed } = files_below(root.clone()).await?;
        let known = self.shared.store.sources(of, collection).await?;
        let known: HashMap<String, Known> = known
            .into_iter()
            .map(|DocumentSource { source, hash, root, .. }| (source, Known { hash, root }))
            .collect();
        let mut added = Added { skipped, ..Added::default() };
        let all = files.len();
        let mut without_document = HashSet::new();
        for (at, batch) in files.chunks(BATCH).enumerate() {
            let documents = self.read_batch(collection, taking, batch, &known).await?;
            let mut fresh = Vec::new();
            for (path, read) in batch.iter().zip(documents) {
                match read {
                    Read::Same => added.same += 1,
                    Read::Closed(why) => added.skipped.push((shown(path), why)),
                    Read::NoDocument(why) => {
                        without_document.insert(path.clone());
                        added.skipped.push((shown(path), why));
                    }
                    Read::Document(document) => {
                        let is_known = known.contains_key(&document.source);
                        *(if is_known { &mut added.changed } else { &mut added.new }) += 1;
                        added.pieces += document.pieces.len();
                        fresh.push(*document);
                    }
                }
            }
            if !fresh.is_empty() {
                self.put(of, fresh).await?;
            }
            progress(Progress { done: (at * BATCH + batch.len()).min(all), all });
        }
        files.retain(|file| !without_document.contains(file));
        let mut gone = gone(&known, root, &files);
        gone.retain(|source| !closed.iter().any(|closed| path_of(source).starts_with(closed)));
        if !gone.is_empty() {
            added.removed = self.shared.store.remove(of, collection, DocumentFilter::These(gone)).await?;
        }
        self.catch_up().await?;
        Ok(added)
    }

    /// Takes in documents that are no files: pages, records.
    pub async fn put(&self, of: &Principal, mut documents: Vec<NewDocument>) -> Result<(), LibraryError> {
        for document in &mut documents {
            for piece in &mut document.pieces {
                let made_of = made_of(&document.title, &piece.heading, &piece.text);
                piece.hash = reading::content_hash(made_of.as_bytes());
            }
        }
        self.shared.store.put(of, documents).await?;
        Ok(())
    }

    async fn read_batch(
        &self,
        collection: &str,
        taking: &Taking,
        files: &[PathBuf],
        known: &HashMap<String, Known>,
    ) -> Result<Vec<Read>, LibraryError> {
        let (collection, root, files) = (collection.to_owned(), shown(&taking.root), files.to_vec());
        let open = Arc::clone(&taking.open);
        let hashes: Vec<Option<String>> =
            files.iter().map(|file| known.get(&shown(file)).map(|known| known.hash.clone())).collect();
        blocking(move || {
            let each = files.iter().zip(hashes).map(|(file, hash)| match bytes_of(&open, file) {
                Ok(bytes) => read(file, bytes, hash.as_deref(), (&collection, &root)),
                Err(left) => left,
            });
            Ok(each.collect())
        })
        .await
    }
}

#[derive(Default)]
struct Below {
    files: Vec<PathBuf>,
    skipped: Vec<(String, String)>,
    /// What cannot be looked into: nobody knows what is below.
    closed: Vec<PathBuf>,
}

async fn files_below(root: PathBuf) -> Result<Below, LibraryError> {
    blocking(move || {
        let mut below = Below::default();
        reading::walk(&root, &mut |found| match found {
            Found::File { path, .. } => below.files.push(path),
            Found::Skipped { path, why } => {
                below.skipped.push((shown(&path), why.to_string()));
                if matches!(why, SkipReason::Closed(_)) {
                    below.closed.push(path);
                }
            }
        });
        Ok(below)
    })
    .await
}

/// What a file holds; what comes of it, where it cannot be read.
fn bytes_of(open: &OpenFile, file: &Path) -> Result<Vec<u8>, Read> {
    let mut bytes = Vec::new();
    // No more than is let in, should it grow meanwhile.
    let read = open(file).and_then(|open| open.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    match read {
        Ok(_) => Ok(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Read::NoDocument(error.to_string())),
        Err(error) => Err(Read::Closed(error.to_string())),
    }
}

/// The document that these bytes are, for a collection and found below a root.
fn read(file: &Path, bytes: Vec<u8>, known: Option<&str>, (collection, root): (&str, &str)) -> Read {
    let hash = reading::content_hash(&bytes);
    if known == Some(&hash) {
        return Read::Same;
    }
    match reading::read(file, bytes) {
        Err(why) => Read::NoDocument(why.to_string()),
        Ok(document) => {
            let pieces = pieces(&document);
            let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            Read::Document(Box::new(NewDocument {
                collection: collection.to_owned(),
                source: shown(file),
                root: root.to_owned(),
                title: document.title.unwrap_or(name),
                hash,
                session: None,
                pieces,
            }))
        }
    }
}

/// The pieces of a text that is no file; markdown, where it has headings.
pub fn pieces_of(text: &str) -> Vec<NewChunk> {
    let read = reading::read(Path::new("text.md"), text.as_bytes().to_vec());
    read.map(|document| pieces(&document)).unwrap_or_default()
}

/// The pieces of what was read.
pub fn pieces(document: &reading::Document) -> Vec<NewChunk> {
    reading::chunks(document, &ChunkSizes::default()).into_iter().map(piece).collect()
}

/// What the vector of a piece is made of.
pub(super) fn made_of(title: &str, heading: &str, text: &str) -> String {
    format!("{title}\n{heading}\n{text}")
}

fn piece(chunk: reading::Chunk) -> NewChunk {
    let (unit, first, last) = match chunk.place {
        reading::Place::Lines(first, last) => (SpanUnit::Lines, first, last),
        reading::Place::Pages(first, last) => (SpanUnit::Pages, first, last),
    };
    let (heading, place) = (chunk.heading.join(" › "), DocumentSpan { unit, first, last });
    NewChunk { text: chunk.text, hash: String::new(), heading, place }
}

/// What was found below the root before and is not any more. What was added by itself stays as long as it is there: somebody
/// named it, whatever ignore files say.
fn gone(known: &HashMap<String, Known>, root: &Path, files: &[PathBuf]) -> Vec<String> {
    let now: HashSet<String> = files.iter().map(|file| shown(file)).collect();
    let own = shown(root);
    let is_gone = |(source, known): &(&String, &Known)| {
        let path = path_of(source);
        path.starts_with(root) && !now.contains(*source) && (known.root == own || is_nowhere(&path))
    };
    known.iter().filter(is_gone).map(|(source, _)| source.clone()).collect()
}

/// What the store knows of a source.
struct Known {
    hash: String,
    root: String,
}
