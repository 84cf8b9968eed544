//! The writer of the index. One writer at a time, across processes; dropping it discards
//! uncommitted changes.

use std::path::{Path, PathBuf};

use lango_text::{TermBuffer, detect_language};
use tantivy::indexer::IndexWriterOptions;
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};
use tantivy::{Index, IndexWriter, TantivyDocument, Term};

use super::index_directory::{self, IndexFields};
use super::query::IndexSnapshot;
use super::{LexicalEntry, LexicalError};

/// Weights of words in headings and titles, relative to the text. As in BM25F, repetitions count
/// less each time, regardless of the section.
const HEADING_WEIGHT: usize = 2;
const TITLE_WEIGHT: usize = 2;
/// Separates text, heading and title in the field.
const SEPARATOR: char = '\u{1f}';

const THREADS: usize = 2;
/// Memory that a thread uses before it writes a segment.
const MEMORY_PER_THREAD: usize = 40_000_000;

pub struct LexicalWriter {
    writer: IndexWriter,
    fields: IndexFields,
    folder: PathBuf,
    applied_through: u64,
    /// No entry has a larger id.
    max_id: Option<u64>,
}

impl LexicalWriter {
    pub(super) fn try_open(
        index: &Index,
        fields: IndexFields,
        folder: &Path,
    ) -> Result<Option<Self>, LexicalError> {
        let options = IndexWriterOptions::builder()
            .num_worker_threads(THREADS)
            .memory_budget_per_thread(MEMORY_PER_THREAD)
            .build();
        let opened = index.writer_with_options(options);
        let writer = match opened.map_err(|error| LexicalError::from_tantivy(error, folder)) {
            Ok(writer) => writer,
            Err(LexicalError::Busy { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        // Read under the writer lock: no other process changes it from here on.
        let applied_through = index_directory::applied_through(index, folder)?;
        let max_id = IndexSnapshot::open(index)
            .map_err(|error| LexicalError::from_tantivy(error, folder))?
            .max_id();
        Ok(Some(Self {
            writer,
            fields,
            folder: folder.to_path_buf(),
            applied_through,
            max_id,
        }))
    }

    /// Returns the change number of the last commit; later changes have to be applied again.
    pub fn applied_through(&self) -> u64 {
        self.applied_through
    }

    /// Adds an entry and replaces one with the same id.
    pub fn put(&mut self, entry: LexicalEntry) -> Result<(), LexicalError> {
        // Searching for a missing entry would be the most expensive step.
        if self.max_id.is_some_and(|max_id| max_id >= entry.id) {
            self.remove(entry.id);
        }
        self.max_id = self.max_id.max(Some(entry.id));
        let mut document = TantivyDocument::default();
        document.add_u64(self.fields.id, entry.id);
        document.add_text(self.fields.text, join_sections(&entry));
        document.add_text(self.fields.collection, &entry.collection);
        self.writer
            .add_document(document)
            .map(drop)
            .map_err(|error| LexicalError::from_tantivy(error, &self.folder))
    }

    pub fn remove(&mut self, id: u64) {
        self.writer
            .delete_term(Term::from_field_u64(self.fields.id, id));
    }

    /// Makes all changes through the number `applied_through` durable and visible.
    pub fn commit(&mut self, applied_through: u64) -> Result<(), LexicalError> {
        let mut commit = || {
            let mut prepared = self.writer.prepare_commit()?;
            prepared.set_payload(&applied_through.to_string());
            prepared.commit()
        };
        commit().map_err(|error| LexicalError::from_tantivy(error, &self.folder))?;
        self.applied_through = applied_through;
        Ok(())
    }

    /// Waits until small segments are merged, which keeps searches fast. If the writer is dropped
    /// instead, the next one merges them.
    pub fn close(self) -> Result<(), LexicalError> {
        let Self { writer, folder, .. } = self;
        writer
            .wait_merging_threads()
            .map_err(|error| LexicalError::from_tantivy(error, &folder))
    }
}

fn join_sections(entry: &LexicalEntry) -> String {
    let mut joined =
        String::with_capacity(entry.text.len() + entry.heading.len() + entry.title.len() + 2);
    for (at, section) in [&entry.text, &entry.heading, &entry.title]
        .into_iter()
        .enumerate()
    {
        if at > 0 {
            joined.push(SEPARATOR);
        }
        if section.contains(SEPARATOR) {
            joined.push_str(&section.replace(SEPARATOR, " "));
        } else {
            joined.push_str(section);
        }
    }
    joined
}

/// Turns joined sections into terms, in the language of the text.
#[derive(Clone, Default)]
pub(super) struct SectionTokenizer {
    terms: TermBuffer,
    token: Token,
}

impl Tokenizer for SectionTokenizer {
    type TokenStream<'a> = SectionStream<'a>;

    fn token_stream<'a>(&'a mut self, joined: &'a str) -> SectionStream<'a> {
        self.terms.clear();
        // A title alone is too short to detect its language.
        let language = detect_language(joined);
        for (section, weight) in joined
            .split(SEPARATOR)
            .zip([1, HEADING_WEIGHT, TITLE_WEIGHT])
        {
            self.terms.push_text(section, weight, language);
        }
        SectionStream {
            terms: &self.terms,
            token: &mut self.token,
            next: 0,
        }
    }
}

pub(super) struct SectionStream<'a> {
    terms: &'a TermBuffer,
    token: &'a mut Token,
    next: usize,
}

impl TokenStream for SectionStream<'_> {
    fn advance(&mut self) -> bool {
        let Some(term) = self.terms.get(self.next) else {
            return false;
        };
        self.token.text.clear();
        self.token.text.push_str(term);
        self.token.position = self.next;
        self.next += 1;
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}
