//! Parses HTML into blocks of its readable content, below their headings.

use super::{
    BlockSpan, DocumentBlock, DocumentKind, Outline, ParseError, ParsedDocument, Shape,
    line_number, short_heading,
};
use lango_text::html::{HtmlLimits, MarkdownBlock, MarkdownLine, ReadablePage};

/// Limits that a legitimate file of the maximum size stays within.
const FILE_LIMITS: HtmlLimits = HtmlLimits {
    nodes: 2_000_000,
    output_bytes: 2 * super::MAX_BYTES as usize,
};

pub fn parse(text: &str) -> Result<ParsedDocument, ParseError> {
    let page = ReadablePage::from_html(text, None, FILE_LIMITS);
    if !page.is_whole {
        return Err(ParseError::TooManyElements);
    }
    let (mut outline, mut blocks, mut lines) = (Outline::default(), Vec::new(), Vec::new());
    let mut first_heading = None;
    for block in page.blocks {
        if let Some((level, text)) = &block.heading {
            outline.enter(*level, text);
            first_heading.get_or_insert_with(|| short_heading(text));
        }
        if block.has_blank_before && !lines.is_empty() {
            lines.push(None);
        }
        blocks.push(document_block(&block, outline.path(), lines.len()));
        lines.extend(block.lines.into_iter().map(|line| line.source));
    }
    let title = Some(short_heading(&page.title))
        .filter(|title| !title.is_empty())
        .or(first_heading);
    Ok(ParsedDocument {
        title,
        kind: DocumentKind::Html,
        blocks,
        lines: fill_gaps(&lines),
    })
}

fn document_block(
    block: &MarkdownBlock,
    heading: Vec<String>,
    lines_before: usize,
) -> DocumentBlock {
    let lines: Vec<&str> = block
        .lines
        .iter()
        .map(|MarkdownLine { text, .. }| text.as_str())
        .collect();
    let span = BlockSpan::Lines(
        line_number(lines_before),
        line_number(lines_before + lines.len().saturating_sub(1)),
    );
    let shape = match block {
        MarkdownBlock {
            heading: Some(_), ..
        } => Shape::Heading,
        MarkdownBlock {
            is_line_based: true,
            ..
        } => Shape::Lines,
        _ => Shape::Prose,
    };
    DocumentBlock {
        text: lines.join("\n"),
        heading,
        span,
        shape,
    }
}

/// Gives lines without text the source line of the text before them.
fn fill_gaps(lines: &[Option<(u32, u32)>]) -> Vec<(u32, u32)> {
    let mut last = lines
        .iter()
        .flatten()
        .next()
        .map_or((1, 1), |(first, _)| (*first, *first));
    lines
        .iter()
        .map(|line| {
            last = line.unwrap_or((last.1, last.1));
            last
        })
        .collect()
}
