//! Ingests documents: parses new and changed ones and skips the rest.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lango_domain::documents::{
    DocumentFilter, DocumentSource, DocumentSpan, NewChunk, NewDocument, SpanUnit,
};
use lango_domain::event::Principal;

use super::path_text::{is_missing, path_from_text, path_to_text};
use super::{DocumentIndex, DocumentIndexError, run_blocking};
use crate::parse::{self, ChunkSizes, MAX_BYTES, SkipReason, WalkEntry};

/// Documents that are read and stored at a time; an interrupted run loses at most this many.
const BATCH_SIZE: usize = 32;

/// The result of an ingestion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IngestReport {
    pub new: usize,
    pub changed: usize,
    pub unchanged: usize,
    pub removed: usize,
    pub chunks: usize,
    /// Paths that were skipped, each with the reason.
    pub skipped: Vec<(String, String)>,
}

/// Opens the files of a directory.
pub type OpenFile = Arc<dyn Fn(&Path) -> io::Result<File> + Send + Sync>;

/// A file or directory to ingest.
pub struct IngestSource {
    /// The canonical path.
    pub root: PathBuf,
    pub open: OpenFile,
}

/// The progress of an ingestion, in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngestProgress {
    pub done: usize,
    pub total: usize,
}

enum FileReadOutcome {
    Unchanged,
    Document(Box<NewDocument>),
    /// It contains no document, or no longer exists.
    NoDocument(String),
    /// It cannot be read now; the stored document stays.
    Inaccessible(String),
}

impl DocumentIndex {
    /// Ingests everything below a path and removes documents whose files no longer exist.
    pub async fn ingest_path(
        &self,
        principal: &Principal,
        collection: &str,
        source: &IngestSource,
        progress: &(dyn Fn(IngestProgress) + Sync),
    ) -> Result<IngestReport, DocumentIndexError> {
        let FileScan {
            mut files,
            skipped,
            inaccessible,
        } = scan_files(source.root.clone()).await?;
        let known = self.known_documents(principal, collection).await?;
        let mut report = IngestReport {
            skipped,
            ..IngestReport::default()
        };
        let total = files.len();
        let mut without_document = HashSet::new();
        for (at, batch) in files.chunks(BATCH_SIZE).enumerate() {
            let outcomes = self.read_batch(collection, source, batch, &known).await?;
            let mut documents = Vec::new();
            for (path, outcome) in batch.iter().zip(outcomes) {
                if matches!(outcome, FileReadOutcome::NoDocument(_)) {
                    without_document.insert(path.clone());
                }
                documents.extend(report.add_outcome(path, outcome, &known));
            }
            if !documents.is_empty() {
                self.ingest_documents(principal, documents).await?;
            }
            progress(IngestProgress {
                done: (at * BATCH_SIZE + batch.len()).min(total),
                total,
            });
        }
        files.retain(|file| !without_document.contains(file));
        let mut removed = removed_sources(&known, &source.root, &files);
        removed.retain(|text| {
            let path = path_from_text(text);
            !inaccessible.iter().any(|folder| path.starts_with(folder))
        });
        if !removed.is_empty() {
            let filter = DocumentFilter::Sources(removed);
            report.removed = self
                .inner
                .store
                .remove(principal, collection, filter)
                .await?;
        }
        self.sync().await?;
        Ok(report)
    }

    async fn known_documents(
        &self,
        principal: &Principal,
        collection: &str,
    ) -> Result<HashMap<String, KnownDocument>, DocumentIndexError> {
        let sources = self.inner.store.sources(principal, collection).await?;
        let known = sources.into_iter().map(|document: DocumentSource| {
            let DocumentSource {
                source, hash, root, ..
            } = document;
            (source, KnownDocument { hash, root })
        });
        Ok(known.collect())
    }

    /// Ingests documents that are not files, such as web pages and records.
    pub async fn ingest_documents(
        &self,
        principal: &Principal,
        mut documents: Vec<NewDocument>,
    ) -> Result<(), DocumentIndexError> {
        for document in &mut documents {
            for chunk in &mut document.chunks {
                let input = embedding_input(&document.title, &chunk.heading, &chunk.text);
                chunk.hash = parse::content_hash(input.as_bytes());
            }
        }
        self.inner.store.put(principal, documents).await?;
        Ok(())
    }

    async fn read_batch(
        &self,
        collection: &str,
        source: &IngestSource,
        files: &[PathBuf],
        known: &HashMap<String, KnownDocument>,
    ) -> Result<Vec<FileReadOutcome>, DocumentIndexError> {
        let (collection, root, files) = (
            collection.to_owned(),
            path_to_text(&source.root),
            files.to_vec(),
        );
        let open = Arc::clone(&source.open);
        let hashes: Vec<Option<String>> = files
            .iter()
            .map(|file| {
                known
                    .get(&path_to_text(file))
                    .map(|known| known.hash.clone())
            })
            .collect();
        run_blocking(move || {
            let outcomes =
                files
                    .iter()
                    .zip(hashes)
                    .map(|(file, hash)| match read_bytes(&open, file) {
                        Ok(bytes) => parse_file(file, bytes, hash.as_deref(), (&collection, &root)),
                        Err(outcome) => outcome,
                    });
            Ok(outcomes.collect())
        })
        .await
    }
}

impl IngestReport {
    /// Counts the outcome of reading a file and returns the document to store, if there is one.
    fn add_outcome(
        &mut self,
        path: &Path,
        outcome: FileReadOutcome,
        known: &HashMap<String, KnownDocument>,
    ) -> Option<NewDocument> {
        match outcome {
            FileReadOutcome::Unchanged => self.unchanged += 1,
            FileReadOutcome::Inaccessible(reason) | FileReadOutcome::NoDocument(reason) => {
                self.skipped.push((path_to_text(path), reason));
            }
            FileReadOutcome::Document(document) => {
                if known.contains_key(&document.source) {
                    self.changed += 1;
                } else {
                    self.new += 1;
                }
                self.chunks += document.chunks.len();
                return Some(*document);
            }
        }
        None
    }
}

#[derive(Default)]
struct FileScan {
    files: Vec<PathBuf>,
    skipped: Vec<(String, String)>,
    /// Directories that cannot be read; their contents are unknown.
    inaccessible: Vec<PathBuf>,
}

async fn scan_files(root: PathBuf) -> Result<FileScan, DocumentIndexError> {
    run_blocking(move || {
        let mut scan = FileScan::default();
        parse::walk(&root, &mut |entry| match entry {
            WalkEntry::File { path, .. } => scan.files.push(path),
            WalkEntry::Skipped { path, reason } => {
                scan.skipped.push((path_to_text(&path), reason.to_string()));
                if matches!(reason, SkipReason::Inaccessible(_)) {
                    scan.inaccessible.push(path);
                }
            }
        });
        Ok(scan)
    })
    .await
}

/// Returns the contents of a file, or the outcome if it cannot be read.
fn read_bytes(open: &OpenFile, file: &Path) -> Result<Vec<u8>, FileReadOutcome> {
    let mut bytes = Vec::new();
    // A limit on the read itself, in case the file grows meanwhile.
    let result = open(file).and_then(|open| open.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    match result {
        Ok(_) => Ok(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(FileReadOutcome::NoDocument(error.to_string()))
        }
        Err(error) => Err(FileReadOutcome::Inaccessible(error.to_string())),
    }
}

/// Parses a file into a document of `collection` that was found below `root`.
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
        Err(reason) => FileReadOutcome::NoDocument(reason.to_string()),
        Ok(document) => {
            let chunks = chunk_document(&document);
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
                chunks,
            }))
        }
    }
}

/// Splits a text that is not a file into chunks. The text is parsed as markdown.
pub fn chunk_text(text: &str) -> Vec<NewChunk> {
    parse::parse_document(Path::new("text.md"), text.as_bytes().to_vec())
        .map(|document| chunk_document(&document))
        .unwrap_or_default()
}

/// Splits a parsed document into chunks.
pub fn chunk_document(document: &parse::ParsedDocument) -> Vec<NewChunk> {
    parse::split_into_chunks(document, &ChunkSizes::default())
        .into_iter()
        .map(new_chunk)
        .collect()
}

/// Returns the text from which the vector of a chunk is computed.
pub(super) fn embedding_input(title: &str, heading: &str, text: &str) -> String {
    format!("{title}\n{heading}\n{text}")
}

fn new_chunk(chunk: parse::Chunk) -> NewChunk {
    let (unit, first, last) = match chunk.span {
        parse::BlockSpan::Lines(first, last) => (SpanUnit::Lines, first, last),
        parse::BlockSpan::Pages(first, last) => (SpanUnit::Pages, first, last),
    };
    NewChunk {
        text: chunk.text,
        hash: String::new(),
        heading: chunk.heading.join(" › "),
        span: DocumentSpan { unit, first, last },
    }
}

/// Returns the stored sources below `root` that the current run did not find. A source that was
/// ingested by its own path stays as long as it exists, because the user named it explicitly, even
/// if an ignore file excludes it.
fn removed_sources(
    known: &HashMap<String, KnownDocument>,
    root: &Path,
    files: &[PathBuf],
) -> Vec<String> {
    let found: HashSet<String> = files.iter().map(|file| path_to_text(file)).collect();
    let root_text = path_to_text(root);
    let is_removed = |(source, known): &(&String, &KnownDocument)| {
        let path = path_from_text(source);
        path.starts_with(root)
            && !found.contains(*source)
            && (known.root == root_text || is_missing(&path))
    };
    known
        .iter()
        .filter(is_removed)
        .map(|(source, _)| source.clone())
        .collect()
}

/// The stored state of a source.
struct KnownDocument {
    hash: String,
    root: String,
}
