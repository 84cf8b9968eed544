//! Chunks: what is found and cited. They follow the blocks of a document; small neighbours share a chunk, large blocks
//! are cut.

use super::{BlockSpan, DocumentBlock, DocumentKind, ParsedDocument, Shape, code, cutting};

/// A part of a document, small enough to be shown to a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    pub text: String,
    /// The headings above it, outermost first. For a part of a long function or class: the line that names it.
    pub heading: Vec<String>,
    pub span: BlockSpan,
}

/// How long chunks are, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkSizes {
    /// What a chunk should have.
    pub target_chars: usize,
    /// What no chunk exceeds.
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
    /// Sizes that can be kept: something fits, and the aim is within the bounds.
    fn clamped(self) -> Self {
        let most = self.max_chars.max(2);
        Self {
            target_chars: self.target_chars.clamp(1, most),
            max_chars: most,
        }
    }

    fn tiny(self) -> usize {
        self.target_chars / 5
    }
}

pub fn split_into_chunks(document: &ParsedDocument, sizes: &ChunkSizes) -> Vec<Chunk> {
    let mut packing = ChunkPacker {
        sizes: sizes.clamped(),
        open: None,
        done: Vec::new(),
    };
    for block in &document.blocks {
        for piece in split_block(block, document.kind, packing.sizes) {
            packing.add(piece);
        }
    }
    let mut chunks = packing.finish();
    for chunk in &mut chunks {
        chunk.span = document.source_span(chunk.span);
    }
    chunks
}

/// A block, or a part of one that is too long.
struct ChunkPart {
    text: String,
    chars: usize,
    heading: Vec<String>,
    span: BlockSpan,
    is_heading: bool,
    /// What stood between it and the piece before, when both are of one block.
    glue: Option<&'static str>,
}

fn split_block(block: &DocumentBlock, kind: DocumentKind, sizes: ChunkSizes) -> Vec<ChunkPart> {
    let ranges = cutting::split(&block.text, block.shape, sizes);
    let mut heading = block.heading.clone();
    if kind == DocumentKind::Code && ranges.len() > 1 {
        heading.extend(code::signature(&block.text));
    }
    let mut pieces: Vec<ChunkPart> = Vec::new();
    let (mut newlines, mut counted, mut ended) = (0, 0, 0);
    for range in ranges {
        let start = range.start + margin(&block.text[range.clone()], block.shape);
        let part = block.text[start..range.end].trim_end();
        if part.is_empty() {
            continue;
        }
        newlines += count_newlines(&block.text[counted..start]);
        let within = count_newlines(part);
        let place = span_within(block.span, newlines, within);
        let glue = (!pieces.is_empty()).then(|| glue(&block.text[ended..start]));
        (counted, ended) = (start, start + part.len());
        pieces.push(ChunkPart {
            text: part.to_owned(),
            chars: part.chars().count(),
            heading: heading.clone(),
            span: place,
            is_heading: block.shape == Shape::Heading,
            glue,
        });
    }
    pieces
}

/// How much white space goes at the start; what is laid out in lines keeps its indentation.
fn margin(text: &str, shape: Shape) -> usize {
    let blank = text.len() - text.trim_start().len();
    match shape {
        Shape::Lines => text[..blank].rfind('\n').map_or(0, |newline| newline + 1),
        Shape::Heading | Shape::Prose => blank,
    }
}

fn glue(between: &str) -> &'static str {
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

fn span_within(block: BlockSpan, above: u32, within: u32) -> BlockSpan {
    match block {
        BlockSpan::Lines(first, last) => {
            let first = first.saturating_add(above).min(last);
            BlockSpan::Lines(first, first.saturating_add(within).min(last))
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
    fn add(&mut self, piece: ChunkPart) {
        let Some(mut open) = self.open.take() else {
            self.open = Some(piece);
            return;
        };
        let glue = piece
            .glue
            .unwrap_or_else(|| separator(open.span, piece.span));
        let chars = open.chars + glue.len() + piece.chars;
        if !self.can_merge(&open, &piece, chars) {
            self.done.push(into_chunk(open));
            self.open = Some(piece);
            return;
        }
        open.text.push_str(glue);
        open.text.push_str(&piece.text);
        open.chars = chars;
        open.span = merge_spans(open.span, piece.span);
        open.heading = piece.heading;
        open.is_heading &= piece.is_heading;
        self.open = Some(open);
    }

    fn can_merge(&self, open: &ChunkPart, piece: &ChunkPart, chars: usize) -> bool {
        if chars > self.sizes.max_chars {
            return false;
        }
        if piece.is_heading {
            let is_below = piece.heading.len() > open.heading.len()
                && piece.heading.starts_with(&open.heading);
            return open.is_heading && is_below;
        }
        if open.heading != piece.heading {
            return false;
        }
        let is_tiny = open.chars.min(piece.chars) < self.sizes.tiny();
        let is_near = match (open.span, piece.span) {
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

fn separator(before: BlockSpan, after: BlockSpan) -> &'static str {
    match (before, after) {
        (BlockSpan::Lines(_, before), BlockSpan::Lines(after, _))
            if after <= before.saturating_add(1) =>
        {
            "\n"
        }
        _ => "\n\n",
    }
}

fn into_chunk(piece: ChunkPart) -> Chunk {
    Chunk {
        text: piece.text,
        heading: piece.heading,
        span: piece.span,
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
