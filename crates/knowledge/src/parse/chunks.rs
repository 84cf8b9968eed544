//! Chunks: what is found and cited. They follow the blocks of a document; small neighbours share a chunk, large blocks
//! are cut.

use super::{DocumentBlock, ParsedDocument, DocumentKind, BlockSpan, Shape, code, cutting};

/// A part of a document, small enough to be shown to a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    pub text: String,
    /// The headings above it, outermost first. For a part of a long function or class: the line that names it.
    pub heading: Vec<String>,
    pub place: BlockSpan,
}

/// How long chunks are, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkSizes {
    /// What a chunk should have.
    pub aim: usize,
    /// What no chunk exceeds.
    pub most: usize,
}

impl Default for ChunkSizes {
    fn default() -> Self {
        Self { aim: 1_000, most: 2_000 }
    }
}

impl ChunkSizes {
    /// Sizes that can be kept: something fits, and the aim is within the bounds.
    fn kept(self) -> Self {
        let most = self.most.max(2);
        Self { aim: self.aim.clamp(1, most), most }
    }

    fn tiny(self) -> usize {
        self.aim / 5
    }
}

pub fn split_into_chunks(document: &ParsedDocument, sizes: &ChunkSizes) -> Vec<Chunk> {
    let mut packing = ChunkPacker { sizes: sizes.kept(), open: None, done: Vec::new() };
    for block in &document.blocks {
        for piece in pieces(block, document.kind, packing.sizes) {
            packing.add(piece);
        }
    }
    let mut chunks = packing.finish();
    for chunk in &mut chunks {
        chunk.place = document.place_in_file(chunk.place);
    }
    chunks
}

/// A block, or a part of one that is too long.
struct ChunkPart {
    text: String,
    chars: usize,
    heading: Vec<String>,
    place: BlockSpan,
    is_heading: bool,
    /// What stood between it and the piece before, when both are of one block.
    glue: Option<&'static str>,
}

fn pieces(block: &DocumentBlock, kind: DocumentKind, sizes: ChunkSizes) -> Vec<ChunkPart> {
    let ranges = cutting::cut(&block.text, block.shape, sizes);
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
        let place = place_within(block.place, newlines, within);
        let glue = (!pieces.is_empty()).then(|| glue(&block.text[ended..start]));
        (counted, ended) = (start, start + part.len());
        pieces.push(ChunkPart {
            text: part.to_owned(),
            chars: part.chars().count(),
            heading: heading.clone(),
            place,
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

fn place_within(block: BlockSpan, above: u32, within: u32) -> BlockSpan {
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
        let glue = piece.glue.unwrap_or_else(|| space_between(open.place, piece.place));
        let chars = open.chars + glue.len() + piece.chars;
        if !self.belong_together(&open, &piece, chars) {
            self.done.push(chunk(open));
            self.open = Some(piece);
            return;
        }
        open.text.push_str(glue);
        open.text.push_str(&piece.text);
        open.chars = chars;
        open.place = spanning(open.place, piece.place);
        open.heading = piece.heading;
        open.is_heading &= piece.is_heading;
        self.open = Some(open);
    }

    fn belong_together(&self, open: &ChunkPart, piece: &ChunkPart, chars: usize) -> bool {
        if chars > self.sizes.most {
            return false;
        }
        if piece.is_heading {
            let is_below =
                piece.heading.len() > open.heading.len() && piece.heading.starts_with(&open.heading);
            return open.is_heading && is_below;
        }
        if open.heading != piece.heading {
            return false;
        }
        let is_tiny = open.chars.min(piece.chars) < self.sizes.tiny();
        let is_near = match (open.place, piece.place) {
            (BlockSpan::Pages(_, before), BlockSpan::Pages(after, _)) => before == after,
            _ => true,
        };
        open.is_heading || is_tiny || (is_near && chars <= self.sizes.aim)
    }

    fn finish(mut self) -> Vec<Chunk> {
        self.done.extend(self.open.take().map(chunk));
        self.done
    }
}

fn space_between(before: BlockSpan, after: BlockSpan) -> &'static str {
    match (before, after) {
        (BlockSpan::Lines(_, before), BlockSpan::Lines(after, _)) if after <= before.saturating_add(1) => "\n",
        _ => "\n\n",
    }
}

fn chunk(piece: ChunkPart) -> Chunk {
    Chunk { text: piece.text, heading: piece.heading, place: piece.place }
}

fn spanning(first: BlockSpan, second: BlockSpan) -> BlockSpan {
    match (first, second) {
        (BlockSpan::Lines(start, one), BlockSpan::Lines(_, other)) => BlockSpan::Lines(start, one.max(other)),
        (BlockSpan::Pages(start, one), BlockSpan::Pages(_, other)) => BlockSpan::Pages(start, one.max(other)),
        (first, _) => first,
    }
}
