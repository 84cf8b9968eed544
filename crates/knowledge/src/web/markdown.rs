//! A page as markdown: headings, lists, links, tables, code; everything else as plain text.

use url::Url;

use super::article::{Article, base_of};
use super::html::{Content, Document, Element};
use super::tidied::tidied;
use lango_net::words::without_controls;

/// Nobody reads more of a page than this, in bytes; a single text may go so far beyond it.
const MAX_WRITTEN: usize = 512 * 1024;
const MAX_INDENT: usize = 8;

/// The main part of a page, its title first.
pub fn readable(document: &Document, base: &Url) -> String {
    let article = Article::of(document);
    let title = article.title();
    let text = Writer::new(document, base_of(document, base)).write(&article);
    let is_said = text.lines().next().is_some_and(|line| line.trim_start_matches('#').trim() == title);
    if title.is_empty() || is_said { text } else { format!("# {title}\n\n{text}").trim_end().to_owned() }
}

struct Writer<'a> {
    document: &'a Document,
    base: Url,
    out: String,
    open: Vec<Open>,
    /// Line ends that are due before the next text.
    breaks: usize,
    /// A space is due before the next text on the same line.
    space: bool,
    lists: Vec<List>,
    quotes: usize,
    /// How many tables we are in that are written as rows.
    tables: usize,
    is_code_block: bool,
    /// Nothing follows the mark of an item or heading yet, so what comes stays on its line.
    is_fresh: bool,
}

struct Open {
    end: usize,
    leave: Leave,
}

/// What is to do when an element ends.
enum Leave {
    Nothing,
    Break(usize),
    /// The line of an item or a heading, whatever is on it.
    Line(usize),
    List,
    Quote,
    Link {
        start: usize,
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

struct List {
    /// The next number of a numbered list.
    number: Option<u64>,
}

impl<'a> Writer<'a> {
    fn new(document: &'a Document, base: Url) -> Self {
        Self {
            document,
            base,
            out: String::new(),
            open: Vec::new(),
            breaks: 0,
            space: false,
            lists: Vec::new(),
            quotes: 0,
            tables: 0,
            is_code_block: false,
            is_fresh: false,
        }
    }

    fn write(mut self, article: &Article<'_>) -> String {
        let mut at = article.from;
        while at < article.to && self.out.len() < MAX_WRITTEN {
            self.leave_ended(at);
            let node = &self.document.nodes[at];
            at += 1;
            match &node.content {
                Content::Text(text) => {
                    let text = without_controls(&text[..text.floor_char_boundary(MAX_WRITTEN)]);
                    if self.is_code_block { self.out.push_str(&text) } else { self.text(&text) }
                }
                Content::Element(element) if article.is_clutter(at - 1, element) => at = node.end,
                Content::Element(element) => {
                    let leave = self.enter(at - 1, element);
                    self.open.push(Open { end: node.end, leave });
                }
            }
        }
        self.leave_ended(usize::MAX);
        tidied(&self.out)
    }

    fn leave_ended(&mut self, at: usize) {
        while let Some(open) = self.open.pop_if(|open| open.end <= at) {
            self.leave(open.leave);
        }
    }

    fn enter(&mut self, at: usize, element: &Element) -> Leave {
        if self.is_code_block {
            return Leave::Nothing;
        }
        match element.name.as_str() {
            name @ ("h1" | "h2" | "h3" | "h4" | "h5" | "h6") => {
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.block(2);
                self.mark(&format!("{} ", "#".repeat(level)));
                self.is_fresh = true;
                Leave::Line(2)
            }
            "ul" | "ol" | "menu" => self.enter_list(element),
            "li" => self.enter_item(),
            "blockquote" => {
                self.block(2);
                self.quotes += 1;
                Leave::Quote
            }
            "pre" => self.enter_code_block(at, element),
            "code" | "kbd" | "samp" | "tt" => {
                self.mark("`");
                Leave::Code
            }
            "a" => {
                self.is_fresh |= self.breaks > 0;
                self.begin();
                Leave::Link { start: self.out.len(), target: self.target(element) }
            }
            "img" => self.picture(element),
            "br" => {
                self.block(1);
                Leave::Nothing
            }
            "hr" => {
                self.block(2);
                self.mark("---");
                Leave::Break(2)
            }
            "table" if self.tables == 0 && self.is_data_table(at, element) => {
                self.block(2);
                self.tables += 1;
                Leave::Table
            }
            "tr" if self.tables > 0 => self.enter_row(),
            "td" | "th" if self.tables > 0 => self.enter_cell(),
            "p" | "table" | "dl" | "figure" | "details" | "article" | "section" => self.apart(2),
            "dt" | "dd" | "div" | "tr" | "main" | "header" | "footer" | "figcaption" | "summary"
            | "caption" | "form" | "fieldset" | "address" | "body" | "nav" | "aside" => self.apart(1),
            "td" | "th" => {
                self.space = true;
                Leave::Nothing
            }
            _ => Leave::Nothing,
        }
    }

    fn leave(&mut self, leave: Leave) {
        match leave {
            Leave::Nothing => {}
            Leave::Break(lines) => self.block(lines),
            Leave::Line(lines) => {
                self.is_fresh = false;
                self.block(lines);
            }
            Leave::List => {
                self.lists.pop();
                self.block(if self.lists.is_empty() { 2 } else { 1 });
            }
            Leave::Quote => {
                self.quotes = self.quotes.saturating_sub(1);
                self.block(2);
            }
            Leave::Link { start, target } => self.leave_link(start, target),
            Leave::Code => {
                self.space = false;
                self.out.push('`');
            }
            Leave::CodeBlock { fence } => {
                self.is_code_block = false;
                if !self.out.ends_with('\n') {
                    self.out.push('\n');
                }
                self.out.push_str(&fence);
                self.block(2);
            }
            Leave::Table => {
                self.tables = self.tables.saturating_sub(1);
                self.breaks = 2;
            }
            Leave::Row { is_first, cells } => self.leave_row(is_first, cells),
            Leave::Cell => {
                self.space = false;
                self.out.push_str(" |");
            }
        }
    }

    fn apart(&mut self, lines: usize) -> Leave {
        self.block(lines);
        Leave::Break(lines)
    }

    /// What comes next begins on another line. In a table there are no other lines.
    fn block(&mut self, lines: usize) {
        if self.tables > 0 {
            self.space = true;
        } else if !self.is_fresh {
            self.breaks = self.breaks.max(lines);
        }
    }

    fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if text.starts_with(char::is_whitespace) {
            self.space = true;
        }
        for word in text.split_whitespace() {
            if self.tables > 0 {
                self.mark(&word.replace('|', "\\|"));
            } else {
                self.mark(word);
            }
            self.space = true;
        }
        self.space &= text.ends_with(char::is_whitespace);
    }

    fn mark(&mut self, mark: &str) {
        self.begin();
        self.is_fresh = false;
        self.out.push_str(mark);
    }

    /// Writes the line ends and spaces that are due.
    fn begin(&mut self) {
        if self.breaks > 0 {
            let is_start = self.out.is_empty();
            for left in (0..self.breaks).rev() {
                if !is_start {
                    self.out.push('\n');
                }
                if left == 0 || !is_start {
                    self.out.push_str(&"> ".repeat(self.quotes.min(MAX_INDENT)));
                }
            }
            self.out.push_str(&"  ".repeat(self.lists.len().min(MAX_INDENT)));
        } else if self.space && !self.out.ends_with(char::is_whitespace) && !self.out.is_empty() {
            self.out.push(' ');
        }
        (self.breaks, self.space) = (0, false);
    }

    fn enter_list(&mut self, element: &Element) -> Leave {
        self.block(if self.lists.is_empty() { 2 } else { 1 });
        let start = element.attribute("start").and_then(|start| start.parse().ok()).unwrap_or(1);
        self.lists.push(List { number: (element.name == "ol").then_some(start) });
        Leave::List
    }

    /// The mark of an item hangs to the left of what is in it.
    fn enter_item(&mut self) -> Leave {
        let mark = match self.lists.last_mut() {
            Some(List { number: Some(number) }) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            _ => "- ".to_owned(),
        };
        self.is_fresh = false;
        self.block(1);
        let inner = self.lists.pop();
        self.mark(&mark);
        self.lists.extend(inner);
        self.is_fresh = true;
        Leave::Line(1)
    }

    fn enter_code_block(&mut self, at: usize, element: &Element) -> Leave {
        if self.tables > 0 {
            return Leave::Nothing;
        }
        let text = self.document.text(at);
        let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
        let fence = "`".repeat((longest + 1).clamp(3, 20));
        let inner = self.document.element(at + 1).filter(|inner| inner.name == "code");
        let language = language(element).or_else(|| inner.and_then(language)).unwrap_or_default();
        self.block(2);
        self.mark(&format!("{fence}{language}\n"));
        self.is_code_block = true;
        Leave::CodeBlock { fence }
    }

    fn picture(&mut self, element: &Element) -> Leave {
        if let Some(alt) = element.attribute("alt").filter(|alt| !alt.trim().is_empty()) {
            self.mark("[image: ");
            self.text(&without_controls(alt.trim()));
            self.out.push(']');
        }
        Leave::Nothing
    }

    /// An absolute address, where the link leads to one that is worth knowing.
    fn target(&self, element: &Element) -> Option<String> {
        let href = element.attribute("href")?.trim();
        if href.is_empty() || href.starts_with('#') {
            return None;
        }
        let target = self.base.join(href).ok()?;
        matches!(target.scheme(), "http" | "https" | "mailto").then(|| target.to_string())
    }

    fn leave_link(&mut self, start: usize, target: Option<String>) {
        let Some(target) = target else { return };
        let Some(text) = self.out.get(start..) else { return };
        let words = text.trim_start_matches(['#', ' ']);
        let offset = text.len() - words.len();
        if words.trim().is_empty() {
            return;
        }
        if words.contains('\n') {
            self.out.push_str(&format!(" <{target}>"));
        } else {
            self.out.insert(start + offset, '[');
            self.out.push_str(&format!("]({target})"));
        }
    }

    /// Whether a table holds rows of values; many hold a whole page.
    fn is_data_table(&self, at: usize, element: &Element) -> bool {
        const OF_PAGES: [&str; 12] =
            ["table", "form", "h1", "h2", "h3", "h4", "pre", "ul", "ol", "blockquote", "article", "section"];
        let mut inner = self.document.elements(at + 1, self.document.end(at));
        element.attribute("role") != Some("presentation")
            && !inner.any(|(_, element)| OF_PAGES.contains(&element.name.as_str()))
    }

    fn enter_row(&mut self) -> Leave {
        // What stands between rows has ended its line; the first row follows the table's own break.
        let is_first = !self.out.ends_with('|') || self.breaks > 0;
        self.breaks = self.breaks.max(1);
        self.mark("|");
        Leave::Row { is_first, cells: 0 }
    }

    fn enter_cell(&mut self) -> Leave {
        let row = self.open.iter_mut().rev().find_map(|open| match &mut open.leave {
            Leave::Row { cells, .. } => Some(cells),
            _ => None,
        });
        if let Some(cells) = row {
            *cells += 1;
        }
        self.space = true;
        Leave::Cell
    }

    fn leave_row(&mut self, is_first: bool, cells: usize) {
        self.space = false;
        if is_first && cells > 0 {
            self.breaks = 1;
            self.mark(&format!("|{}", " --- |".repeat(cells.min(100))));
        }
    }
}

/// `language-rust`, `lang-rust`.
fn language(element: &Element) -> Option<&str> {
    let classes = element.attribute("class")?.split_ascii_whitespace();
    let mut names =
        classes.filter_map(|class| class.strip_prefix("language-").or_else(|| class.strip_prefix("lang-")));
    names
        .find(|name| name.len() <= 20 && name.chars().all(|c| c.is_ascii_alphanumeric() || "+#-".contains(c)))
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
