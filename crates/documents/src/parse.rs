//! Parses files into documents and splits documents into chunks.

mod beir;
mod chunker;
mod code;
mod decode;
mod file_type;
mod html;
mod markdown;
mod pdf;
mod pdf_page;
mod plain;
mod split;
mod walk;

use std::path::Path;

use sha2::{Digest, Sha256};
use thiserror::Error;

pub use beir::{
    BeirDocument, BeirError, BeirJudgment, BeirLines, BeirQuery, read_corpus, read_qrels,
    read_queries,
};
pub use chunker::{Chunk, ChunkSizes, split_into_chunks};
pub use walk::{SkipReason, WalkEntry, walk};

/// Larger files are not read.
pub const MAX_BYTES: u64 = 32 * 1024 * 1024;
/// Limited, because every chunk repeats the headings above it.
const MAX_HEADING_CHARS: usize = 200;

/// A parsed file: its blocks in order.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedDocument {
    /// The title in the file, if it has one.
    pub title: Option<String>,
    pub kind: DocumentKind,
    pub blocks: Vec<DocumentBlock>,
    /// For converted documents: the first and last source line of each line of the blocks.
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

    /// Returns the span in the file of a span in the blocks.
    fn source_span(&self, span: BlockSpan) -> BlockSpan {
        let line = |number: u32| self.lines.get((number as usize).saturating_sub(1)).copied();
        match span {
            BlockSpan::Lines(first, last) => {
                let (first, last) = (
                    line(first).unwrap_or((first, first)),
                    line(last).unwrap_or((last, last)),
                );
                BlockSpan::Lines(first.0.min(last.0), last.1.max(first.1))
            }
            BlockSpan::Pages(..) => span,
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

/// A unit of a document, such as a paragraph, a list or a function.
#[derive(Clone, Debug, PartialEq)]
pub struct DocumentBlock {
    pub text: String,
    /// The headings above it, outermost first; for a heading, they include itself.
    pub heading: Vec<String>,
    pub span: BlockSpan,
    pub shape: Shape,
}

/// The preferred positions to split a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Heading,
    /// Split at the ends of sentences.
    Prose,
    /// Split between lines: lists, tables, code.
    Lines,
}

/// The first and last line or page, counted from 1. HTML is converted to markdown: the spans of its
/// blocks count markdown lines, those of its chunks count lines of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockSpan {
    Lines(u32, u32),
    Pages(u32, u32),
}

/// The reason why a file is not a document.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ParseError {
    #[error("binary file")]
    Binary,
    #[error("file too large: {0} bytes; the limit is {MAX_BYTES}")]
    TooLarge(u64),
    #[error("not text in a supported encoding")]
    NotText,
    #[error("cannot read the PDF: {0}")]
    BrokenPdf(String),
    #[error("the PDF contains no text; it may be a scan")]
    ScannedPdf,
    #[error("the HTML has too many elements")]
    TooManyElements,
    #[error("no text found")]
    Empty,
}

/// Returns the text of a PDF, starting with the title, with a marker before each page.
pub fn pdf_text(bytes: Vec<u8>) -> Result<String, ParseError> {
    let document = parse_document(Path::new("page.pdf"), bytes)?;
    let mut text = document
        .title
        .as_ref()
        .map(|title| format!("# {title}\n"))
        .unwrap_or_default();
    let mut last = None;
    for block in &document.blocks {
        if last != Some(block.span) {
            last = Some(block.span);
            let page = if let BlockSpan::Pages(page, _) = block.span {
                page
            } else {
                1
            };
            text.push_str(&format!("\n[page {page}]\n"));
        }
        text.push_str(&format!("\n{}\n", block.text));
    }
    Ok(text)
}

/// Parses the bytes of a file. The path is only used to detect the file type.
pub fn parse_document(path: &Path, bytes: Vec<u8>) -> Result<ParsedDocument, ParseError> {
    let length = bytes.len() as u64;
    if length > MAX_BYTES {
        return Err(ParseError::TooLarge(length));
    }
    if file_type::is_pdf(path, &bytes) {
        return pdf::parse(&bytes);
    }
    let text = decode::decode(&bytes, file_type::declared_encoding(path, &bytes))?;
    drop(bytes);
    let document = match file_type::detect_kind(path, &text) {
        DocumentKind::Markdown => markdown::parse(&text),
        DocumentKind::Html => html::parse(&text)?,
        DocumentKind::Code => code::parse(&text),
        DocumentKind::Text | DocumentKind::Pdf => {
            plain::parse(&text, file_type::detect_shape(path))
        }
    };
    if document.blocks.is_empty() {
        Err(ParseError::Empty)
    } else {
        Ok(document)
    }
}

/// Returns the SHA-256 hash of the content in hexadecimal digits.
pub fn content_hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The headings above the current position of a document.
#[derive(Default)]
struct Outline {
    open: Vec<(u8, String)>,
}

impl Outline {
    /// Adds a heading and removes those of its own and deeper levels.
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

/// Returns the text on one line, truncated to `MAX_HEADING_CHARS`.
fn short_heading(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_HEADING_CHARS) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}

/// Returns the line number of an index. `MAX_BYTES` guarantees that it fits.
fn line_number(index: usize) -> u32 {
    u32::try_from(index + 1).unwrap_or(u32::MAX)
}
