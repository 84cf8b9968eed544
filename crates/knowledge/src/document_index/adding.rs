//! Taking documents in: what is new or changed is read, the rest is left as it is.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lango_domain::documents::{
    DocumentFilter, DocumentSource, DocumentSpan, NewChunk, NewDocument, SpanUnit,
};
use lango_domain::event::Principal;

use super::naming::{is_missing, path_from_text, path_to_text};
use super::{DocumentIndex, DocumentIndexError, run_blocking};
use crate::parse::{self, ChunkSizes, MAX_BYTES, SkipReason, WalkEntry};

/// So many documents are read and written at one time; an interrupted run loses no more.
const BATCH_SIZE: usize = 32;

/// What came of adding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IngestReport {
    pub new: usize,
    pub changed: usize,
    pub unchanged: usize,
    pub removed: usize,
    pub chunks: usize,
    /// What could not be read, and why.
    pub skipped: Vec<(String, String)>,
}

/// How the files of a folder are opened.
pub type OpenFile = Arc<dyn Fn(&Path) -> io::Result<File> + Send + Sync>;

/// A file or folder to take in: its true path, and who opens what is in it.
pub struct IngestSource {
    pub root: PathBuf,
    pub open: OpenFile,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngestProgress {
    pub done: usize,
    pub total: usize,
}

enum FileReadOutcome {
    Unchanged,
    Document(Box<NewDocument>),
    /// There is no document in it, or not any more.
    NoDocument(String),
    /// It cannot be looked at now; what is known of it stays.
    Inaccessible(String),
}

impl DocumentIndex {
    /// Takes in everything below a path; what was there before and is gone is taken out.
    pub async fn ingest_path(
        &self,
        of: &Principal,
        collection: &str,
        taking: &IngestSource,
        progress: &(dyn Fn(IngestProgress) + Sync),
    ) -> Result<IngestReport, DocumentIndexError> {
        let root = &taking.root;
        let FileScan {
            mut files,
            skipped,
            inaccessible: closed,
        } = scan_files(root.clone()).await?;
        let known = self.inner.store.sources(of, collection).await?;
        let known: HashMap<String, KnownDocument> = known
            .into_iter()
            .map(
                |DocumentSource {
                     source, hash, root, ..
                 }| (source, KnownDocument { hash, root }),
            )
            .collect();
        let mut added = IngestReport {
            skipped,
            ..IngestReport::default()
        };
        let all = files.len();
        let mut without_document = HashSet::new();
        for (at, batch) in files.chunks(BATCH_SIZE).enumerate() {
            let documents = self.read_batch(collection, taking, batch, &known).await?;
            let mut fresh = Vec::new();
            for (path, read) in batch.iter().zip(documents) {
                match read {
                    FileReadOutcome::Unchanged => added.unchanged += 1,
                    FileReadOutcome::Inaccessible(why) => {
                        added.skipped.push((path_to_text(path), why))
                    }
                    FileReadOutcome::NoDocument(why) => {
                        without_document.insert(path.clone());
                        added.skipped.push((path_to_text(path), why));
                    }
                    FileReadOutcome::Document(document) => {
                        let is_known = known.contains_key(&document.source);
                        *(if is_known {
                            &mut added.changed
                        } else {
                            &mut added.new
                        }) += 1;
                        added.chunks += document.chunks.len();
                        fresh.push(*document);
                    }
                }
            }
            if !fresh.is_empty() {
                self.ingest_documents(of, fresh).await?;
            }
            progress(IngestProgress {
                done: (at * BATCH_SIZE + batch.len()).min(all),
                total: all,
            });
        }
        files.retain(|file| !without_document.contains(file));
        let mut gone = removed_sources(&known, root, &files);
        gone.retain(|source| {
            !closed
                .iter()
                .any(|closed| path_from_text(source).starts_with(closed))
        });
        if !gone.is_empty() {
            added.removed = self
                .inner
                .store
                .remove(of, collection, DocumentFilter::Sources(gone))
                .await?;
        }
        self.sync().await?;
        Ok(added)
    }

    /// Takes in documents that are no files: pages, records.
    pub async fn ingest_documents(
        &self,
        of: &Principal,
        mut documents: Vec<NewDocument>,
    ) -> Result<(), DocumentIndexError> {
        for document in &mut documents {
            for piece in &mut document.chunks {
                let made_of = embedding_input(&document.title, &piece.heading, &piece.text);
                piece.hash = parse::content_hash(made_of.as_bytes());
            }
        }
        self.inner.store.put(of, documents).await?;
        Ok(())
    }

    async fn read_batch(
        &self,
        collection: &str,
        taking: &IngestSource,
        files: &[PathBuf],
        known: &HashMap<String, KnownDocument>,
    ) -> Result<Vec<FileReadOutcome>, DocumentIndexError> {
        let (collection, root, files) = (
            collection.to_owned(),
            path_to_text(&taking.root),
            files.to_vec(),
        );
        let open = Arc::clone(&taking.open);
        let hashes: Vec<Option<String>> = files
            .iter()
            .map(|file| {
                known
                    .get(&path_to_text(file))
                    .map(|known| known.hash.clone())
            })
            .collect();
        run_blocking(move || {
            let each = files
                .iter()
                .zip(hashes)
                .map(|(file, hash)| match read_bytes(&open, file) {
                    Ok(bytes) => parse_file(file, bytes, hash.as_deref(), (&collection, &root)),
                    Err(left) => left,
                });
            Ok(each.collect())
        })
        .await
    }
}

#[derive(Default)]
struct FileScan {
    files: Vec<PathBuf>,
    skipped: Vec<(String, String)>,
    /// What cannot be looked into: nobody knows what is below.
    inaccessible: Vec<PathBuf>,
}

async fn scan_files(root: PathBuf) -> Result<FileScan, DocumentIndexError> {
    run_blocking(move || {
        let mut below = FileScan::default();
        parse::walk(&root, &mut |found| match found {
            WalkEntry::File { path, .. } => below.files.push(path),
            WalkEntry::Skipped { path, reason: why } => {
                below.skipped.push((path_to_text(&path), why.to_string()));
                if matches!(why, SkipReason::Inaccessible(_)) {
                    below.inaccessible.push(path);
                }
            }
        });
        Ok(below)
    })
    .await
}

/// What a file holds; what comes of it, where it cannot be read.
fn read_bytes(open: &OpenFile, file: &Path) -> Result<Vec<u8>, FileReadOutcome> {
    let mut bytes = Vec::new();
    // No more than is let in, should it grow meanwhile.
    let read = open(file).and_then(|open| open.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    match read {
        Ok(_) => Ok(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(FileReadOutcome::NoDocument(error.to_string()))
        }
        Err(error) => Err(FileReadOutcome::Inaccessible(error.to_string())),
    }
}

/// The document that these bytes are, for a collection and found below a root.
fn parse_file(
    file: &Path,
    bytes: Vec<u8>,
    known: Option<&str>,
    (collection, root): (&str, &str),
) -> FileReadOutcome {
    let hash = parse::content_hash(&bytes);
    if known == Some(&hash) {
        return FileReadOutcome::Unchanged;
    }
    match parse::parse_document(file, bytes) {
        Err(why) => FileReadOutcome::NoDocument(why.to_string()),
        Ok(document) => {
            let pieces = chunk_document(&document);
            let name = file
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default();
            FileReadOutcome::Document(Box::new(NewDocument {
                collection: collection.to_owned(),
                source: path_to_text(file),
                root: root.to_owned(),
                title: document.title.unwrap_or(name),
                hash,
                session: None,
                chunks: pieces,
            }))
        }
    }
}

/// The pieces of a text that is no file; markdown, where it has headings.
pub fn chunk_text(text: &str) -> Vec<NewChunk> {
    let read = parse::parse_document(Path::new("text.md"), text.as_bytes().to_vec());
    read.map(|document| chunk_document(&document))
        .unwrap_or_default()
}

/// The pieces of what was read.
pub fn chunk_document(document: &parse::ParsedDocument) -> Vec<NewChunk> {
    parse::split_into_chunks(document, &ChunkSizes::default())
        .into_iter()
        .map(new_chunk)
        .collect()
}

/// What the vector of a piece is made of.
pub(super) fn embedding_input(title: &str, heading: &str, text: &str) -> String {
    format!("{title}\n{heading}\n{text}")
}

fn new_chunk(chunk: parse::Chunk) -> NewChunk {
    let (unit, first, last) = match chunk.span {
        parse::BlockSpan::Lines(first, last) => (SpanUnit::Lines, first, last),
        parse::BlockSpan::Pages(first, last) => (SpanUnit::Pages, first, last),
    };
    let (heading, place) = (
        chunk.heading.join(" › "),
        DocumentSpan { unit, first, last },
    );
    NewChunk {
        text: chunk.text,
        hash: String::new(),
        heading,
        span: place,
    }
}

/// What was found below the root before and is not any more. What was added by itself stays as long as it is there: somebody
/// named it, whatever ignore files say.
fn removed_sources(
    known: &HashMap<String, KnownDocument>,
    root: &Path,
    files: &[PathBuf],
) -> Vec<String> {
    let now: HashSet<String> = files.iter().map(|file| path_to_text(file)).collect();
    let own = path_to_text(root);
    let is_gone = |(source, known): &(&String, &KnownDocument)| {
        let path = path_from_text(source);
        path.starts_with(root) && !now.contains(*source) && (known.root == own || is_missing(&path))
    };
    known
        .iter()
        .filter(is_gone)
        .map(|(source, _)| source.clone())
        .collect()
}

/// What the store knows of a source.
struct KnownDocument {
    hash: String,
    root: String,
}
