//! Reading: files become documents, and documents become chunks that can be cited.

mod beir;
mod chunks;
mod code;
mod cutting;
mod decoding;
mod html;
mod kinds;
mod markdown;
mod pdf;
mod pdf_page;
mod plain;
mod walk;

use std::path::Path;

use sha2::{Digest, Sha256};
use thiserror::Error;

pub use beir::{
    BeirDocument, BeirError, BeirJudgment, BeirLines, BeirQuery, read_corpus, read_qrels,
    read_queries,
};
pub use chunks::{Chunk, ChunkSizes, split_into_chunks};
pub use walk::{SkipReason, WalkEntry, walk};

/// Files above this are not read.
pub const MAX_BYTES: u64 = 32 * 1024 * 1024;
/// Headings stand in every chunk below them, so they stay short.
const MAX_HEADING_CHARS: usize = 200;

/// A file that was read: its blocks in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedDocument {
    /// As the file itself names it; not every file does.
    pub title: Option<String>,
    pub kind: DocumentKind,
    pub blocks: Vec<DocumentBlock>,
    /// For what was laid out anew: the first and last line of the file that each line of the blocks came from.
    lines: Vec<(u32, u32)>,
}

impl ParsedDocument {
    fn new(title: Option<String>, kind: DocumentKind, blocks: Vec<DocumentBlock>) -> Self {
        Self {
            title,
            kind,
            blocks,
            lines: Vec::new(),
        }
    }

    /// Where in the file a place of the blocks is.
    fn source_span(&self, place: BlockSpan) -> BlockSpan {
        let line = |number: u32| self.lines.get((number as usize).saturating_sub(1)).copied();
        match place {
            BlockSpan::Lines(first, last) => {
                let (first, last) = (
                    line(first).unwrap_or((first, first)),
                    line(last).unwrap_or((last, last)),
                );
                BlockSpan::Lines(first.0.min(last.0), last.1.max(first.1))
            }
            BlockSpan::Pages(..) => place,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DocumentKind {
    Text,
    Markdown,
    Html,
    Code,
    Pdf,
}

/// A part of a document that belongs together: a paragraph, a list, a function.
#[derive(Clone, Debug, PartialEq)]
pub struct DocumentBlock {
    pub text: String,
    /// The headings above it, outermost first; a heading stands below itself.
    pub heading: Vec<String>,
    pub span: BlockSpan,
    pub shape: Shape,
}

/// Where a cut does the least harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Heading,
    /// Cut at the ends of sentences.
    Prose,
    /// Cut between lines: lists, tables, code.
    Lines,
}

/// Where something stands: first and last, counted from 1. HTML is laid out anew: its blocks count lines of their own,
/// its chunks those of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockSpan {
    Lines(u32, u32),
    Pages(u32, u32),
}

/// Why a file cannot be read, in words for whoever named it.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ParseError {
    #[error("it is a binary file, not a document")]
    Binary,
    #[error("it has {0} bytes; at most {MAX_BYTES} are read")]
    TooLarge(u64),
    #[error("its bytes are not text in an encoding that Lango knows")]
    NotText,
    #[error("the PDF cannot be read: {0}")]
    BrokenPdf(String),
    #[error("the PDF has pages but no text; it may be scanned")]
    ScannedPdf,
    #[error("it has more elements than are read of a page")]
    TooManyElements,
    #[error("there is no text in it")]
    Empty,
}

/// Reads a document from the bytes of a file; the path only tells what it may be.
pub fn parse_document(path: &Path, bytes: Vec<u8>) -> Result<ParsedDocument, ParseError> {
    let length = bytes.len() as u64;
    if length > MAX_BYTES {
        return Err(ParseError::TooLarge(length));
    }
    if kinds::is_pdf(path, &bytes) {
        return pdf::parse(&bytes);
    }
    let text = decoding::decode(&bytes, kinds::declared_encoding(path, &bytes))?;
    drop(bytes);
    let document = match kinds::detect_kind(path, &text) {
        DocumentKind::Markdown => markdown::parse(&text),
        DocumentKind::Html => html::parse(&text)?,
        DocumentKind::Code => code::parse(&text),
        DocumentKind::Text | DocumentKind::Pdf => plain::parse(&text, kinds::detect_shape(path)),
    };
    if document.blocks.is_empty() {
        Err(ParseError::Empty)
    } else {
        Ok(document)
    }
}

/// The same content has the same hash, whatever its file is called: SHA-256 in hexadecimal digits.
pub fn content_hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The headings that are open at some point of a document.
#[derive(Default)]
struct Outline {
    open: Vec<(u8, String)>,
}

impl Outline {
    /// A heading ends those of its own level and below.
    fn enter(&mut self, level: u8, heading: &str) {
        self.open.retain(|(above, _)| *above < level);
        self.open.push((level, short_heading(heading)));
    }

    fn path(&self) -> Vec<String> {
        self.open
            .iter()
            .map(|(_, heading)| heading.clone())
            .collect()
    }
}

/// One line, not too long.
fn short_heading(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_HEADING_CHARS) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}

/// Line numbers of a file that was let in always fit.
fn line_number(index: usize) -> u32 {
    u32::try_from(index + 1).unwrap_or(u32::MAX)
}
