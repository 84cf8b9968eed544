//! Writes a page as markdown: headings, lists, links, tables and code; everything else as plain
//! text.

mod links;
mod tables;

use url::Url;

use super::article::Article;
use super::markdown_buffer::{BreakKind, BufferPosition, MarkdownBlock, MarkdownBuffer};
use super::tree::{Element, HtmlContent, HtmlDocument};
use crate::sanitize::{strip_control_chars, truncated_line};

const MAX_INDENT: usize = 8;

pub struct MarkdownWriter<'a> {
    document: &'a HtmlDocument,
    base: Option<Url>,
    max_bytes: usize,
    buffer: MarkdownBuffer,
    open: Vec<OpenElement>,
    /// The current source line.
    line: u32,
    lists: Vec<ListState>,
    quotes: usize,
    /// The number of enclosing tables that are written as rows.
    tables: usize,
    is_code_block: bool,
    /// True directly after the marker of an item or heading: the next text stays on its line.
    is_fresh: bool,
}

struct OpenElement {
    end: usize,
    on_close: OnClose,
}

/// The action at the end of an element.
enum OnClose {
    Nothing,
    Break(usize),
    /// Ends the line of an item, even if it is empty.
    Item,
    Heading,
    List,
    Quote,
    Link {
        start: BufferPosition,
        target: Option<String>,
    },
    Code,
    CodeBlock {
        fence: String,
    },
    Table,
    Row {
        is_first: bool,
        cells: usize,
    },
    Cell,
}

struct ListState {
    /// The next number of a numbered list.
    number: Option<u64>,
}

impl<'a> MarkdownWriter<'a> {
    pub fn new(document: &'a HtmlDocument, base: Option<Url>, max_bytes: usize) -> Self {
        Self {
            document,
            base,
            max_bytes,
            buffer: MarkdownBuffer::default(),
            open: Vec::new(),
            line: 1,
            lists: Vec::new(),
            quotes: 0,
            tables: 0,
            is_code_block: false,
            is_fresh: false,
        }
    }

    /// Returns the blocks, and true if none were truncated.
    pub fn write(mut self, article: &Article<'_>) -> (Vec<MarkdownBlock>, bool) {
        let mut at = article.from;
        while at < article.to && self.buffer.bytes_written() < self.max_bytes {
            self.leave_ended(at);
            let node = &self.document.nodes[at];
            self.line = node.line;
            at += 1;
            match &node.content {
                HtmlContent::Text(text) => {
                    let text =
                        strip_control_chars(&text[..text.floor_char_boundary(self.max_bytes)]);
                    if self.is_code_block {
                        self.write_code(&text)
                    } else {
                        self.write_text(&text)
                    }
                }
                HtmlContent::Element(element) if article.is_clutter(at - 1, element) => {
                    at = node.end
                }
                HtmlContent::Element(element) => {
                    let on_close = self.enter(at - 1, element);
                    self.open.push(OpenElement {
                        end: node.end,
                        on_close,
                    });
                }
            }
        }
        self.leave_ended(usize::MAX);
        (self.buffer.finish(), at >= article.to)
    }

    fn leave_ended(&mut self, at: usize) {
        while let Some(open) = self.open.pop_if(|open| open.end <= at) {
            self.leave(open.on_close);
        }
    }

    fn enter(&mut self, at: usize, element: &Element) -> OnClose {
        if self.is_code_block {
            return OnClose::Nothing;
        }
        match element.name.as_str() {
            name @ ("h1" | "h2" | "h3" | "h4" | "h5" | "h6") => {
                self.enter_heading(at, name.as_bytes()[1] - b'0')
            }
            "ul" | "ol" | "menu" => self.enter_list(element),
            "li" => self.enter_item(),
            "blockquote" => {
                self.start_block(2);
                self.quotes += 1;
                OnClose::Quote
            }
            "pre" => self.enter_code_block(at, element),
            "code" | "kbd" | "samp" | "tt" => {
                self.write_marker("`");
                OnClose::Code
            }
            "a" => {
                self.is_fresh |= self.buffer.is_at_break();
                self.begin_text();
                OnClose::Link {
                    start: self.buffer.position(),
                    target: self.link_target(element),
                }
            }
            "img" => self.enter_image(element),
            "br" => {
                self.request_break(1, BreakKind::Line);
                OnClose::Nothing
            }
            "hr" => {
                self.start_block(2);
                self.write_marker("---");
                OnClose::Break(2)
            }
            "table" if self.tables == 0 && self.is_data_table(at, element) => {
                self.start_block(2);
                self.tables += 1;
                OnClose::Table
            }
            "tr" if self.tables > 0 => self.enter_row(),
            "td" | "th" if self.tables > 0 => self.enter_cell(),
            "p" | "table" | "dl" | "figure" | "details" | "article" | "section" => {
                self.enter_block(2)
            }
            "dt" | "dd" | "div" | "tr" | "main" | "header" | "footer" | "figcaption"
            | "summary" | "caption" | "form" | "fieldset" | "address" | "body" | "nav"
            | "aside" => self.enter_block(1),
            "td" | "th" => {
                self.buffer.is_space_due = true;
                OnClose::Nothing
            }
            _ => OnClose::Nothing,
        }
    }

    fn leave(&mut self, on_close: OnClose) {
        match on_close {
            OnClose::Nothing => {}
            OnClose::Break(lines) => self.start_block(lines),
            OnClose::Item => {
                self.is_fresh = false;
                self.start_block(1);
            }
            OnClose::Heading => {
                self.is_fresh = false;
                self.request_break(2, BreakKind::Block);
            }
            OnClose::List => {
                self.lists.pop();
                self.start_block(if self.lists.is_empty() { 2 } else { 1 });
            }
            OnClose::Quote => {
                self.quotes = self.quotes.saturating_sub(1);
                self.start_block(2);
            }
            OnClose::Link { start, target } => self.leave_link(start, target),
            OnClose::Code => {
                self.buffer.is_space_due = false;
                self.buffer.push("`");
            }
            OnClose::CodeBlock { fence } => {
                self.is_code_block = false;
                if !self.buffer.ends_with('\n') {
                    self.buffer.push("\n");
                }
                self.buffer.push(&fence);
                self.start_block(2);
            }
            OnClose::Table => {
                self.tables = self.tables.saturating_sub(1);
                self.is_fresh = false;
                self.start_block(2);
            }
            OnClose::Row { is_first, cells } => self.leave_row(is_first, cells),
            OnClose::Cell => {
                self.buffer.is_space_due = false;
                self.buffer.push(" |");
            }
        }
    }

    fn enter_block(&mut self, lines: usize) -> OnClose {
        self.start_block(lines);
        OnClose::Break(lines)
    }

    /// Starts the next text on a new line; outside of lists and quotes, in a new block.
    fn start_block(&mut self, lines: usize) {
        let is_outermost = self.lists.is_empty() && self.quotes == 0;
        self.request_break(
            lines,
            if is_outermost {
                BreakKind::Block
            } else {
                BreakKind::Line
            },
        );
    }

    /// Requests a line break. Within a table it becomes a space.
    fn request_break(&mut self, lines: usize, kind: BreakKind) {
        if self.tables > 0 {
            self.buffer.is_space_due = true;
        } else if !self.is_fresh {
            self.buffer.request_break(lines, kind);
        }
    }

    fn write_code(&mut self, text: &str) {
        for (line, offset) in text.split_inclusive('\n').zip(0..) {
            self.buffer.record_source(self.line.saturating_add(offset));
            self.buffer.push(line);
        }
    }

    fn write_text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.buffer.is_space_due |= text.starts_with(char::is_whitespace);
        for line in text.split_inclusive('\n') {
            for word in line.split_whitespace() {
                self.begin_text();
                self.buffer.record_source(self.line);
                if self.tables > 0 {
                    self.write_marker(&word.replace('|', "\\|"))
                } else {
                    self.write_marker(word)
                }
                self.buffer.is_space_due = true;
            }
            self.line = self.line.saturating_add(u32::from(line.ends_with('\n')));
        }
        self.buffer.is_space_due &= text.ends_with(char::is_whitespace);
    }

    fn write_marker(&mut self, marker: &str) {
        self.begin_text();
        self.is_fresh = false;
        self.buffer.push(marker);
    }

    fn begin_text(&mut self) {
        self.buffer.flush_breaks(
            self.quotes.min(MAX_INDENT),
            self.lists.len().min(MAX_INDENT),
        );
    }

    fn enter_heading(&mut self, at: usize, level: u8) -> OnClose {
        self.start_block(2);
        self.write_marker(&format!("{} ", "#".repeat(level.into())));
        self.is_fresh = true;
        if self.tables > 0 {
            return OnClose::Item;
        }
        self.buffer
            .start_heading(level, truncated_line(&self.document.text(at), usize::MAX));
        OnClose::Heading
    }

    fn enter_list(&mut self, element: &Element) -> OnClose {
        self.start_block(if self.lists.is_empty() { 2 } else { 1 });
        let start = element
            .attribute("start")
            .and_then(|start| start.parse().ok())
            .unwrap_or(1);
        self.lists.push(ListState {
            number: (element.name == "ol").then_some(start),
        });
        OnClose::List
    }

    /// Writes the marker of an item, one level less indented than its content.
    fn enter_item(&mut self) -> OnClose {
        let marker = match self.lists.last_mut() {
            Some(ListState {
                number: Some(number),
            }) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            _ => "- ".to_owned(),
        };
        self.is_fresh = false;
        self.start_block(1);
        let inner = self.lists.pop();
        self.write_marker(&marker);
        self.lists.extend(inner);
        self.buffer.mark_line_based();
        self.is_fresh = true;
        OnClose::Item
    }

    fn enter_code_block(&mut self, at: usize, element: &Element) -> OnClose {
        if self.tables > 0 {
            return OnClose::Nothing;
        }
        let text = self.document.text(at);
        let longest = text
            .split(|c| c != '`')
            .map(str::len)
            .max()
            .unwrap_or_default();
        let fence = "`".repeat((longest + 1).clamp(3, 20));
        let inner = self
            .document
            .element(at + 1)
            .filter(|inner| inner.name == "code");
        let language = element
            .language()
            .or_else(|| inner.and_then(Element::language))
            .unwrap_or_default();
        self.start_block(2);
        self.write_marker(&format!("{fence}{language}\n"));
        self.buffer.mark_line_based();
        self.is_code_block = true;
        OnClose::CodeBlock { fence }
    }
}
