//! Parses markdown into its top-level blocks, as in the source, below their headings.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag};

use super::{
    BlockSpan, DocumentBlock, DocumentKind, Outline, ParsedDocument, Shape, line_number, plain,
    short_heading,
};

/// Front matter is short; two rules that are further apart do not delimit it.
const MAX_FRONT_LINES: usize = 200;

pub fn parse(text: &str) -> ParsedDocument {
    let lines: Vec<&str> = text.split('\n').collect();
    let front = front_matter(&lines);
    let skipped = front.as_ref().map_or(0, |front| front.lines);
    let start: usize = lines[..skipped].iter().map(|line| line.len() + 1).sum();
    let mut parser = MarkdownParser {
        lines,
        next: skipped,
        ..MarkdownParser::default()
    };
    for part in parse_parts(text.get(start..).unwrap_or_default()) {
        parser.add(part, skipped);
    }
    parser.fill_until(parser.lines.len());
    let title = front.and_then(|front| front.title).or(parser.title);
    ParsedDocument::new(title, DocumentKind::Markdown, parser.blocks)
}

/// A top-level block, by its source lines.
struct MarkdownPart {
    lines: Range<usize>,
    shape: Shape,
    heading: Option<(u8, String)>,
}

#[derive(Default)]
struct MarkdownParser<'a> {
    lines: Vec<&'a str>,
    /// The first line that is not in a block yet.
    next: usize,
    outline: Outline,
    title: Option<String>,
    blocks: Vec<DocumentBlock>,
}

impl MarkdownParser<'_> {
    fn add(&mut self, part: MarkdownPart, skipped: usize) {
        let end = (part.lines.end + skipped).min(self.lines.len());
        self.fill_until(part.lines.start + skipped);
        if self.next >= end {
            return;
        }
        if let Some((level, heading)) = &part.heading {
            self.outline.enter(*level, heading);
            if *level == 1 && self.title.is_none() && !heading.trim().is_empty() {
                self.title = Some(short_heading(heading));
            }
        }
        self.blocks.push(DocumentBlock {
            text: self.lines[self.next..end].join("\n"),
            heading: self.outline.path(),
            span: BlockSpan::Lines(line_number(self.next), line_number(end - 1)),
            shape: part.shape,
        });
        self.next = end;
    }

    /// Adds the lines up to `line` that belong to no block, such as link definitions.
    fn fill_until(&mut self, line: usize) {
        if self.next < line {
            let between = &self.lines[self.next..line];
            self.blocks.extend(plain::split_paragraphs(
                between,
                self.next,
                &self.outline.path(),
                Shape::Lines,
            ));
            self.next = line;
        }
    }
}

fn parse_parts(text: &str) -> Vec<MarkdownPart> {
    let starts: Vec<usize> = std::iter::once(0)
        .chain(text.match_indices('\n').map(|(index, _)| index + 1))
        .collect();
    let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_TASKLISTS;
    let mut parts: Vec<MarkdownPart> = Vec::new();
    let mut depth = 0_usize;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        if depth == 0 && !matches!(event, Event::End(_)) {
            let (shape, heading) = classify_event(&event);
            parts.push(MarkdownPart {
                lines: line_range(text, &starts, range),
                shape,
                heading,
            });
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Text(text) | Event::Code(text) => {
                if let Some((_, heading)) = parts.last_mut().and_then(|part| part.heading.as_mut())
                {
                    heading.push_str(&text);
                }
            }
            Event::SoftBreak | Event::HardBreak => {
                if let Some((_, heading)) = parts.last_mut().and_then(|part| part.heading.as_mut())
                {
                    heading.push(' ');
                }
            }
            _ => {}
        }
    }
    parts
}

fn classify_event(event: &Event<'_>) -> (Shape, Option<(u8, String)>) {
    match event {
        Event::Start(Tag::Heading { level, .. }) => {
            (Shape::Heading, Some((*level as u8, String::new())))
        }
        Event::Start(Tag::Paragraph) => (Shape::Prose, None),
        _ => (Shape::Lines, None),
    }
}

/// Returns the lines of a byte range, without trailing blank lines.
fn line_range(text: &str, starts: &[usize], range: Range<usize>) -> Range<usize> {
    let line_of = |offset: usize| {
        starts
            .partition_point(|start| *start <= offset)
            .saturating_sub(1)
    };
    let content = text.get(range.clone()).unwrap_or_default().trim_end();
    line_of(range.start)..line_of(range.start + content.len().saturating_sub(1)) + 1
}

struct PageFrontMatter {
    lines: usize,
    title: Option<String>,
}

/// Returns the front matter: the text between two delimiters at the start of the file, if all of
/// it looks like settings.
fn front_matter(lines: &[&str]) -> Option<PageFrontMatter> {
    let (delimiter, separator) = match lines.first()?.trim_end() {
        "---" => ("---", ':'),
        "+++" => ("+++", '='),
        _ => return None,
    };
    let inside = lines.iter().skip(1).take(MAX_FRONT_LINES);
    let length = inside
        .clone()
        .position(|line| line.trim_end() == delimiter)?;
    let inside = &lines[1..=length];
    let is_setting = |line: &&str| {
        line.trim().is_empty()
            || line.starts_with([' ', '\t', '-', '#', ']', '}', '['])
            || line.contains(separator)
    };
    if length == 0
        || !inside.iter().all(is_setting)
        || !inside.iter().any(|line| line.contains(separator))
    {
        return None;
    }
    let title = inside.iter().find_map(|line| {
        let (name, value) = line.split_once(separator)?;
        let value = short_heading(value.trim().trim_matches(['"', '\'']));
        (name.trim() == "title" && !value.is_empty()).then_some(value)
    });
    Some(PageFrontMatter {
        lines: length + 2,
        title,
    })
}
