//! PDF: the text of each page. Files come broken in every way, so whatever goes wrong inside costs this file alone.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lopdf::{Dictionary, Error, LoadOptions, Object, ObjectId};

use super::pdf_page::{Font, page_text};
use super::{
    BlockSpan, DocumentBlock, DocumentKind, ParseError, ParsedDocument, Shape, line_number, plain,
    short_heading,
};

/// What one stream may unpack to, and all pages together: a small file can hold a lot of nothing.
const MAX_STREAM_BYTES: usize = 32 * 1024 * 1024;
const MAX_UNPACKED_BYTES: usize = 128 * 1024 * 1024;

pub fn parse(bytes: &[u8]) -> Result<ParsedDocument, ParseError> {
    // Nothing is shared with what may have been left half done.
    catch_unwind(AssertUnwindSafe(|| parse_file(bytes)))
        .unwrap_or_else(|_| Err(pdf_error("its parts do not fit together")))
}

fn pdf_error(why: &str) -> ParseError {
    ParseError::BrokenPdf(why.to_owned())
}

fn parse_file(bytes: &[u8]) -> Result<ParsedDocument, ParseError> {
    let options = LoadOptions {
        max_decompressed_size: Some(MAX_STREAM_BYTES),
        ..LoadOptions::default()
    };
    let file =
        lopdf::Document::load_mem_with_options(bytes, options).map_err(|error| match error {
            Error::InvalidPassword | Error::Decryption(_) => {
                pdf_error("it is protected by a password")
            }
            other => pdf_error(&other.to_string()),
        })?;
    if file.is_encrypted() {
        return Err(pdf_error("it is protected by a password"));
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
    /// Pages share their fonts; the place of a font in memory tells it apart from others.
    fonts: HashMap<*const Dictionary, Option<Font<'a>>>,
    bytes_left: usize,
}

impl PdfReader<'_> {
    /// The text of a page; of one that is broken, as much as can be read.
    fn page(&mut self, id: ObjectId) -> Result<String, ParseError> {
        let limit = self.bytes_left.min(MAX_STREAM_BYTES);
        let content = match self.file.get_page_content_with_limit(id, limit) {
            Ok(content) => content,
            Err(Error::Decompress(lopdf::DecompressError::MemoryLimitExceeded { .. })) => {
                return Err(pdf_error("it unpacks to far more than its size"));
            }
            Err(_) => return Ok(String::new()),
        };
        self.bytes_left = self.bytes_left.saturating_sub(content.len());
        let named = self.file.get_page_fonts(id).unwrap_or_default();
        for font in named.values().copied() {
            let read = || Font::from_dictionary(font, self.file, MAX_STREAM_BYTES);
            self.fonts
                .entry(std::ptr::from_ref(font))
                .or_insert_with(read);
        }
        let fonts = named.iter().filter_map(|(name, font)| {
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
