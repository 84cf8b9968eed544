//! HTML: the parts that a reader of the page would read, below their headings.

use super::{
    BlockSpan, DocumentBlock, DocumentKind, Outline, ParseError, ParsedDocument, Shape,
    line_number, short_heading,
};
use crate::html::{HtmlLimits, MarkdownBlock, MarkdownLine, ReadablePage};

/// What a file of the greatest size may hold, other than to make trouble.
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
    for part in page.blocks {
        if let Some((level, words)) = &part.heading {
            outline.enter(*level, words);
            first_heading.get_or_insert_with(|| short_heading(words));
        }
        if part.has_blank_before && !lines.is_empty() {
            lines.push(None);
        }
        blocks.push(block(&part, outline.path(), lines.len()));
        lines.extend(part.lines.into_iter().map(|line| line.source));
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

fn block(part: &MarkdownBlock, heading: Vec<String>, above: usize) -> DocumentBlock {
    let lines: Vec<&str> = part
        .lines
        .iter()
        .map(|MarkdownLine { text, .. }| text.as_str())
        .collect();
    let place = BlockSpan::Lines(
        line_number(above),
        line_number(above + lines.len().saturating_sub(1)),
    );
    let shape = match part {
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
        span: place,
        shape,
    }
}

/// Lines of nothing but marks stand where the text before them does.
fn fill_gaps(lines: &[Option<(u32, u32)>]) -> Vec<(u32, u32)> {
    let mut last = lines
        .iter()
        .flatten()
        .next()
        .map_or((1, 1), |(first, _)| (*first, *first));
    lines
        .iter()
        .map(|line| {
            let own = line.unwrap_or((last.1, last.1));
            last = own;
            own
        })
        .collect()
}
