//! Splits documents into chunks, the units of search and citation. Small adjacent blocks share a
//! chunk; large blocks are split.

use super::{BlockSpan, DocumentBlock, DocumentKind, ParsedDocument, Shape, code, split};

/// A part of a document, small enough for the context of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    pub text: String,
    /// The headings above it, outermost first. For a part of a long function or class, they end with
    /// its signature.
    pub heading: Vec<String>,
    pub span: BlockSpan,
}

/// The sizes of chunks, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkSizes {
    /// The preferred size.
    pub target_chars: usize,
    /// The maximum size.
    pub max_chars: usize,
}

impl Default for ChunkSizes {
    fn default() -> Self {
        Self {
            target_chars: 1_000,
            max_chars: 2_000,
        }
    }
}

impl ChunkSizes {
    /// Returns valid sizes: the maximum is at least 2, and the target does not exceed it.
    fn clamped(self) -> Self {
        let max_chars = self.max_chars.max(2);
        Self {
            target_chars: self.target_chars.clamp(1, max_chars),
            max_chars,
        }
    }

    fn tiny(self) -> usize {
        self.target_chars / 5
    }
}

pub fn split_into_chunks(document: &ParsedDocument, sizes: &ChunkSizes) -> Vec<Chunk> {
    let mut packer = ChunkPacker {
        sizes: sizes.clamped(),
        open: None,
        done: Vec::new(),
    };
    for block in &document.blocks {
        for part in split_block(block, document.kind, packer.sizes) {
            packer.add(part);
        }
    }
    let mut chunks = packer.finish();
    for chunk in &mut chunks {
        chunk.span = document.source_span(chunk.span);
    }
    chunks
}

/// A block, or a part of a block that is too long.
struct ChunkPart {
    text: String,
    chars: usize,
    heading: Vec<String>,
    span: BlockSpan,
    is_heading: bool,
    /// The separator from the previous part, if both are of one block.
    separator: Option<&'static str>,
}

fn split_block(block: &DocumentBlock, kind: DocumentKind, sizes: ChunkSizes) -> Vec<ChunkPart> {
    let ranges = split::split(&block.text, block.shape, sizes);
    let mut heading = block.heading.clone();
    if kind == DocumentKind::Code && ranges.len() > 1 {
        heading.extend(code::signature(&block.text));
    }
    let mut parts: Vec<ChunkPart> = Vec::new();
    let (mut newlines, mut counted, mut ended) = (0, 0, 0);
    for range in ranges {
        let start = range.start + leading_whitespace(&block.text[range.clone()], block.shape);
        let text = block.text[start..range.end].trim_end();
        if text.is_empty() {
            continue;
        }
        newlines += count_newlines(&block.text[counted..start]);
        let separator = (!parts.is_empty()).then(|| separator_for(&block.text[ended..start]));
        (counted, ended) = (start, start + text.len());
        parts.push(ChunkPart {
            text: text.to_owned(),
            chars: text.chars().count(),
            heading: heading.clone(),
            span: span_within(block.span, newlines, count_newlines(text)),
            is_heading: block.shape == Shape::Heading,
            separator,
        });
    }
    parts
}

/// Returns the length of the leading whitespace to remove. Line-based text keeps its indentation.
fn leading_whitespace(text: &str, shape: Shape) -> usize {
    let blank = text.len() - text.trim_start().len();
    match shape {
        Shape::Lines => text[..blank].rfind('\n').map_or(0, |newline| newline + 1),
        Shape::Heading | Shape::Prose => blank,
    }
}

/// Returns a short separator for the whitespace between two parts of a block.
fn separator_for(between: &str) -> &'static str {
    match count_newlines(between) {
        0 if between.is_empty() => "",
        0 => " ",
        1 => "\n",
        _ => "\n\n",
    }
}

fn count_newlines(text: &str) -> u32 {
    u32::try_from(text.bytes().filter(|byte| *byte == b'\n').count()).unwrap_or(u32::MAX)
}

fn span_within(block: BlockSpan, lines_before: u32, newlines: u32) -> BlockSpan {
    match block {
        BlockSpan::Lines(first, last) => {
            let first = first.saturating_add(lines_before).min(last);
            BlockSpan::Lines(first, first.saturating_add(newlines).min(last))
        }
        BlockSpan::Pages(..) => block,
    }
}

struct ChunkPacker {
    sizes: ChunkSizes,
    open: Option<ChunkPart>,
    done: Vec<Chunk>,
}

impl ChunkPacker {
    fn add(&mut self, part: ChunkPart) {
        let Some(mut open) = self.open.take() else {
            self.open = Some(part);
            return;
        };
        let separator = part
            .separator
            .unwrap_or_else(|| block_separator(open.span, part.span));
        let chars = open.chars + separator.len() + part.chars;
        if !self.can_merge(&open, &part, chars) {
            self.done.push(into_chunk(open));
            self.open = Some(part);
            return;
        }
        open.text.push_str(separator);
        open.text.push_str(&part.text);
        open.chars = chars;
        open.span = merge_spans(open.span, part.span);
        open.heading = part.heading;
        open.is_heading &= part.is_heading;
        self.open = Some(open);
    }

    fn can_merge(&self, open: &ChunkPart, part: &ChunkPart, chars: usize) -> bool {
        if chars > self.sizes.max_chars {
            return false;
        }
        if part.is_heading {
            let is_below =
                part.heading.len() > open.heading.len() && part.heading.starts_with(&open.heading);
            return open.is_heading && is_below;
        }
        if open.heading != part.heading {
            return false;
        }
        let is_tiny = open.chars.min(part.chars) < self.sizes.tiny();
        let is_near = match (open.span, part.span) {
            (BlockSpan::Pages(_, before), BlockSpan::Pages(after, _)) => before == after,
            _ => true,
        };
        open.is_heading || is_tiny || (is_near && chars <= self.sizes.target_chars)
    }

    fn finish(mut self) -> Vec<Chunk> {
        self.done.extend(self.open.take().map(into_chunk));
        self.done
    }
}

/// Returns the separator between two blocks: a blank line, unless they are on adjacent lines.
fn block_separator(before: BlockSpan, after: BlockSpan) -> &'static str {
    match (before, after) {
        (BlockSpan::Lines(_, before), BlockSpan::Lines(after, _))
            if after <= before.saturating_add(1) =>
        {
            "\n"
        }
        _ => "\n\n",
    }
}

fn into_chunk(part: ChunkPart) -> Chunk {
    Chunk {
        text: part.text,
        heading: part.heading,
        span: part.span,
    }
}

fn merge_spans(first: BlockSpan, second: BlockSpan) -> BlockSpan {
    match (first, second) {
        (BlockSpan::Lines(start, one), BlockSpan::Lines(_, other)) => {
            BlockSpan::Lines(start, one.max(other))
        }
        (BlockSpan::Pages(start, one), BlockSpan::Pages(_, other)) => {
            BlockSpan::Pages(start, one.max(other))
        }
        (first, _) => first,
    }
}
