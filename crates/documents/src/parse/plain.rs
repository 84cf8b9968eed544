//! Parses plain text into paragraphs, separated by blank lines.

use super::{BlockSpan, DocumentBlock, DocumentKind, ParsedDocument, Shape, line_number};

pub fn parse(text: &str, shape: Shape) -> ParsedDocument {
    let lines: Vec<&str> = text.split('\n').collect();
    let blocks = split_paragraphs(&lines, 0, &[], shape);
    ParsedDocument::new(None, DocumentKind::Text, blocks)
}

/// Returns the paragraphs of `lines`. The first line is line `offset` of the file, counted from 0.
pub fn split_paragraphs(
    lines: &[&str],
    offset: usize,
    heading: &[String],
    shape: Shape,
) -> Vec<DocumentBlock> {
    let mut blocks = Vec::new();
    let mut start = 0;
    for index in 0..=lines.len() {
        if lines.get(index).is_some_and(|line| !line.trim().is_empty()) {
            continue;
        }
        if start < index {
            blocks.push(DocumentBlock {
                text: lines[start..index].join("\n"),
                heading: heading.to_vec(),
                span: BlockSpan::Lines(
                    line_number(offset + start),
                    line_number(offset + index - 1),
                ),
                shape,
            });
        }
        start = index + 1;
    }
    blocks
}
