//! Extracts the text of each page of a PDF. Many files are malformed in unforeseen ways, so any
//! failure, even a panic of the parser, affects this file only.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lopdf::{Dictionary, Error, LoadOptions, Object, ObjectId};

use super::pdf_page::{Font, page_text};
use super::{
    BlockSpan, DocumentBlock, DocumentKind, ParseError, ParsedDocument, Shape, line_number, plain,
    short_heading,
};

/// The decompressed size of one stream, as a limit against decompression bombs.
const MAX_STREAM_BYTES: usize = 32 * 1024 * 1024;
/// The decompressed size of all pages together.
const MAX_UNPACKED_BYTES: usize = 128 * 1024 * 1024;

pub fn parse(bytes: &[u8]) -> Result<ParsedDocument, ParseError> {
    // Unwind safe: no state is shared with a failed run.
    catch_unwind(AssertUnwindSafe(|| parse_file(bytes)))
        .unwrap_or_else(|_| Err(pdf_error("its objects are inconsistent")))
}

fn pdf_error(reason: &str) -> ParseError {
    ParseError::BrokenPdf(reason.to_owned())
}

fn parse_file(bytes: &[u8]) -> Result<ParsedDocument, ParseError> {
    let options = LoadOptions {
        max_decompressed_size: Some(MAX_STREAM_BYTES),
        ..LoadOptions::default()
    };
    let file =
        lopdf::Document::load_mem_with_options(bytes, options).map_err(|error| match error {
            Error::InvalidPassword | Error::Decryption(_) => pdf_error("it is password-protected"),
            other => pdf_error(&other.to_string()),
        })?;
    if file.is_encrypted() {
        return Err(pdf_error("it is password-protected"));
    }
    let pages = file.get_pages();
    if pages.is_empty() {
        return Err(pdf_error("it has no pages"));
    }
    let mut reader = PdfReader {
        file: &file,
        fonts: HashMap::new(),
        bytes_left: MAX_UNPACKED_BYTES,
    };
    let mut blocks = Vec::new();
    for (index, id) in pages.into_values().enumerate() {
        blocks.extend(page_blocks(&reader.page(id)?, line_number(index)));
    }
    if blocks.is_empty() {
        return Err(ParseError::ScannedPdf);
    }
    Ok(ParsedDocument::new(title(&file), DocumentKind::Pdf, blocks))
}

struct PdfReader<'a> {
    file: &'a lopdf::Document,
    /// Fonts are shared by pages; the address of its dictionary identifies a font.
    fonts: HashMap<*const Dictionary, Option<Font<'a>>>,
    bytes_left: usize,
}

impl PdfReader<'_> {
    /// Returns the text of a page, or the readable part of a malformed page.
    fn page(&mut self, id: ObjectId) -> Result<String, ParseError> {
        let limit = self.bytes_left.min(MAX_STREAM_BYTES);
        let content = match self.file.get_page_content_with_limit(id, limit) {
            Ok(content) => content,
            Err(Error::Decompress(lopdf::DecompressError::MemoryLimitExceeded { .. })) => {
                return Err(pdf_error("its decompressed content exceeds the limit"));
            }
            Err(_) => return Ok(String::new()),
        };
        self.bytes_left = self.bytes_left.saturating_sub(content.len());
        let page_fonts = self.file.get_page_fonts(id).unwrap_or_default();
        for font in page_fonts.values().copied() {
            let load = || Font::from_dictionary(font, self.file, MAX_STREAM_BYTES);
            self.fonts
                .entry(std::ptr::from_ref(font))
                .or_insert_with(load);
        }
        let fonts = page_fonts.iter().filter_map(|(name, font)| {
            let font = self.fonts.get(&std::ptr::from_ref(*font))?.as_ref()?;
            Some((name.as_slice(), font))
        });
        Ok(page_text(&content, &fonts.collect()))
    }
}

fn page_blocks(text: &str, page: u32) -> Vec<DocumentBlock> {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut blocks = plain::split_paragraphs(&lines, 0, &[], Shape::Prose);
    for block in &mut blocks {
        block.span = BlockSpan::Pages(page, page);
    }
    blocks
}

fn title(file: &lopdf::Document) -> Option<String> {
    let info = match file.trailer.get(b"Info").ok()? {
        Object::Reference(id) => file.get_dictionary(*id).ok()?,
        Object::Dictionary(info) => info,
        _ => return None,
    };
    let title = lopdf::decode_text_string(info.get(b"Title").ok()?).ok()?;
    let title = short_heading(&title.replace('\0', ""));
    (!title.is_empty()).then_some(title)
}
