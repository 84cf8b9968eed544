//! Parses source code into top-level items, each with the comments and attributes above it. Uses
//! only indentation and closing brackets, so that it works for every language; a wrong guess only
//! leads to a worse split.

use super::{
    BlockSpan, DocumentBlock, DocumentKind, ParsedDocument, Shape, line_number, short_heading,
};

pub fn parse(text: &str) -> ParsedDocument {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut blocks = Vec::new();
    let mut start = 0;
    for index in 1..=lines.len() {
        if index == lines.len() || is_item_start(&lines, index) {
            blocks.extend(block(&lines, start, index));
            start = index;
        }
    }
    ParsedDocument::new(None, DocumentKind::Code, blocks)
}

/// Returns the line that names an item, as a heading for its later parts.
pub fn signature(item: &str) -> Option<String> {
    let line = item
        .lines()
        .find(|line| !line.trim().is_empty() && !is_leading_comment(line))?;
    let line = short_heading(line.trim_end().trim_end_matches(['{', ':']));
    line.chars().any(char::is_alphanumeric).then_some(line)
}

/// Returns true for a comment, an attribute or a decorator, which usually belongs to the next item.
pub fn is_leading_comment(line: &str) -> bool {
    const STARTS: &[&str] = &[
        "//", "/*", "* ", "*/", "#", "@", "--", ";;", "\"\"\"", "<!--",
    ];
    let line = line.trim();
    line == "*" || line.ends_with("*/") || STARTS.iter().any(|start| line.starts_with(start))
}

/// Returns true for a line that ends an item and belongs to it.
pub fn is_closing_line(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with(['}', ')', ']', '{'])
        || line.starts_with("</")
        || ["end", "end;", "fi", "done", "esac", "else", "else:", "then"].contains(&line.trim_end())
}

pub fn indent(line: &str) -> usize {
    let space = line.chars().take_while(|char| char.is_whitespace());
    space.map(|char| if char == '\t' { 4 } else { 1 }).sum()
}

fn is_item_start(lines: &[&str], index: usize) -> bool {
    let (line, previous) = (lines[index], lines[index - 1]);
    if line.trim().is_empty() || indent(line) > 0 || is_closing_line(line) {
        return false;
    }
    if previous.trim().is_empty() {
        return true;
    }
    let ends_block = previous.starts_with('}') || previous.trim_end() == "end";
    (indent(previous) > 0 || ends_block) && !is_leading_comment(previous)
}

fn block(lines: &[&str], start: usize, end: usize) -> Option<DocumentBlock> {
    let is_not_blank = |index: &usize| !lines[*index].trim().is_empty();
    let first = (start..end).find(is_not_blank)?;
    let last = (start..end).rev().find(is_not_blank)?;
    Some(DocumentBlock {
        text: lines[first..=last].join("\n"),
        heading: Vec::new(),
        span: BlockSpan::Lines(line_number(first), line_number(last)),
        shape: Shape::Lines,
    })
}
