//! HTML: what a reader of the page would read. It goes by the tokens of the page and builds no tree, so that neither
//! deep nesting nor missing tags matter, and each token knows its line.

use std::cell::RefCell;
use std::collections::HashMap;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use html5ever::{LocalName, TokenizerResult};

use super::{Block, Document, Kind, Outline, Place, Shape, short_heading};

/// A page whose main part has so much text is read by that part alone.
const ENOUGH_CHARS: usize = 200;
const MAX_LIST_INDENT: usize = 8;

pub fn read(text: &str) -> Document {
    let page = tokens(text, Boilerplate::LeftOut);
    // Some pages hold all their text where others have their menus.
    let page = if page.blocks.is_empty() { tokens(text, Boilerplate::Kept) } else { page };
    let title = Some(short_heading(&page.title)).filter(|title| !title.is_empty()).or(page.first_heading);
    Document { title, kind: Kind::Html, blocks: main_part(page.blocks) }
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Boilerplate {
    #[default]
    LeftOut,
    Kept,
}

fn tokens(text: &str, boilerplate: Boilerplate) -> Page {
    let sink = Sink(RefCell::new(Page { boilerplate, ..Page::default() }));
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(text));
    while !matches!(tokenizer.feed(&input), TokenizerResult::Done) {}
    tokenizer.end();
    let mut page = tokenizer.sink.0.into_inner();
    page.finish_block();
    page
}

fn main_part(blocks: Vec<(Block, Part)>) -> Vec<Block> {
    let size = |block: &Block| block.text.chars().count();
    let inside: usize =
        blocks.iter().filter(|(_, part)| *part == Part::Main).map(|(block, _)| size(block)).sum();
    let wanted = |part: Part| inside < ENOUGH_CHARS || part == Part::Main;
    blocks.into_iter().filter(|(_, part)| wanted(*part)).map(|(block, _)| block).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Main,
    Around,
}

struct Sink(RefCell<Page>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<()> {
        let mut page = self.0.borrow_mut();
        page.line = u32::try_from(line).unwrap_or(u32::MAX);
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                page.open(&tag);
                return raw_content(&tag.name);
            }
            Token::TagToken(tag) => page.close(&tag.name),
            Token::CharacterTokens(text) => page.characters(&text),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

/// In some elements, tags are text.
fn raw_content(name: &str) -> TokenSinkResult<()> {
    match name {
        "script" => TokenSinkResult::RawData(RawKind::ScriptData),
        "style" | "xmp" | "iframe" | "noembed" | "noframes" => TokenSinkResult::RawData(RawKind::Rawtext),
        "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
        "plaintext" => TokenSinkResult::Plaintext,
        _ => TokenSinkResult::Continue,
    }
}

#[derive(Default)]
struct Page {
    boilerplate: Boilerplate,
    line: u32,
    title: String,
    first_heading: Option<String>,
    blocks: Vec<(Block, Part)>,
    outline: Outline,
    /// The elements around, outermost first, and how often each name is among them.
    elements: Vec<LocalName>,
    counts: HashMap<LocalName, usize>,
    /// The element that is left out, by its depth.
    left_out: Option<usize>,
    heading: Option<u8>,
    text: String,
    /// Where the text of the block began and ended.
    lines: Option<(u32, u32)>,
}

impl Page {
    fn open(&mut self, tag: &Tag) {
        let name = &*tag.name;
        if is_void(name) {
            if self.left_out.is_none() {
                self.void(name);
            }
            return;
        }
        if self.left_out.is_none() {
            if self.leaves_out(tag) {
                if tag.self_closing {
                    return;
                }
                self.left_out = Some(self.elements.len());
            } else {
                self.begin(name);
            }
        }
        *self.counts.entry(tag.name.clone()).or_default() += 1;
        self.elements.push(tag.name.clone());
    }

    /// Ends an element and all that were left open in it.
    fn close(&mut self, name: &LocalName) {
        if self.count(name) == 0 {
            return;
        }
        while let Some(last) = self.elements.pop() {
            let done = last == *name;
            if let Some(count) = self.counts.get_mut(&last) {
                *count -= 1;
            }
            match self.left_out {
                Some(depth) if depth == self.elements.len() => self.left_out = None,
                Some(_) => {}
                None => self.end(&last),
            }
            if done {
                return;
            }
        }
    }

    fn count(&self, name: &str) -> usize {
        self.counts.get(&LocalName::from(name)).copied().unwrap_or(0)
    }

    fn leaves_out(&self, tag: &Tag) -> bool {
        const NEVER_READ: &[&str] = &[
            "script", "style", "noscript", "template", "svg", "math", "iframe", "object", "canvas", "audio",
            "video", "select", "button", "textarea", "noembed", "noframes",
        ];
        const ROLES: &[&str] =
            &["navigation", "banner", "contentinfo", "search", "complementary", "menu", "dialog"];
        let name = &*tag.name;
        if NEVER_READ.contains(&name) {
            return true;
        }
        // A page whose body calls itself hidden shows itself later.
        if self.boilerplate == Boilerplate::Kept || matches!(name, "html" | "body" | "main") {
            return false;
        }
        let attribute = |wanted: &str| tag.attrs.iter().find(|attribute| &*attribute.name.local == wanted);
        matches!(name, "nav" | "footer" | "menu" | "dialog")
            || (name == "aside" && self.part() == Part::Around)
            || attribute("hidden").is_some()
            || attribute("aria-hidden").is_some_and(|attribute| &*attribute.value == "true")
            || attribute("role").is_some_and(|attribute| ROLES.contains(&&*attribute.value))
    }

    fn part(&self) -> Part {
        if self.count("main") + self.count("article") > 0 { Part::Main } else { Part::Around }
    }

    fn void(&mut self, name: &str) {
        match name {
            "br" => self.new_line(),
            "hr" => self.between(),
            _ => {}
        }
    }

    fn begin(&mut self, name: &str) {
        match name {
            "title" => {}
            "li" => {
                self.new_line();
                if self.is_at_mark() {
                    self.text.truncate(self.text.rfind('\n').map_or(0, |newline| newline + 1));
                }
                let depth = self.lists().saturating_sub(1).min(MAX_LIST_INDENT);
                self.text.push_str(&"  ".repeat(depth));
                self.text.push_str("- ");
            }
            "td" | "th" if !self.text.is_empty() && !self.text.ends_with('\n') => self.text.push_str(" | "),
            "tr" | "dt" | "dd" => self.new_line(),
            _ if heading_level(name).is_some() => {
                self.finish_block();
                self.heading = heading_level(name);
            }
            _ if is_block(name) => self.between(),
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        match name {
            "ul" | "ol" | "dl" | "table" | "pre" if !self.is_laid_out() => self.finish_as(Shape::Lines),
            "tr" | "dt" | "dd" | "li" => self.new_line(),
            _ if heading_level(name).is_some() => self.finish_block(),
            _ if is_block(name) => self.between(),
            _ => {}
        }
    }

    fn lists(&self) -> usize {
        self.count("ul") + self.count("ol")
    }

    /// Within a list, a table or a listing, which stay whole.
    fn is_laid_out(&self) -> bool {
        self.lists() + self.count("dl") + self.count("table") + self.count("pre") > 0
    }

    fn between(&mut self) {
        if self.is_laid_out() { self.new_line() } else { self.finish_block() }
    }

    fn new_line(&mut self) {
        if self.is_at_mark() {
            return;
        }
        let length = self.text.trim_end_matches([' ', '\t']).len();
        self.text.truncate(length);
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    /// Right behind the mark of a list item, which stays on the line of its text.
    fn is_at_mark(&self) -> bool {
        self.lists() > 0 && self.text.rsplit('\n').next().is_some_and(|line| line.trim_start() == "- ")
    }

    fn characters(&mut self, text: &str) {
        if self.left_out.is_some() {
            return;
        }
        if self.elements.last().is_some_and(|name| &**name == "title") {
            self.title.push_str(text);
            return;
        }
        if !text.trim().is_empty() {
            let first = self.lines.map_or(self.line, |(first, _)| first);
            self.lines = Some((first, self.line.max(first)));
        }
        if self.count("pre") > 0 {
            self.text.push_str(text);
            return;
        }
        for char in text.chars() {
            if !char.is_whitespace() {
                self.text.push(char);
            } else if !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
                self.text.push(' ');
            }
        }
    }

    fn finish_block(&mut self) {
        let shape = if self.is_laid_out() { Shape::Lines } else { Shape::Prose };
        self.finish_as(shape);
    }

    fn finish_as(&mut self, shape: Shape) {
        let text = std::mem::take(&mut self.text);
        let heading = self.heading.take();
        let text = text.trim_end().trim_start_matches('\n');
        let Some((first, last)) = self.lines.take().filter(|_| !text.trim().is_empty()) else { return };
        let (text, shape) = match heading {
            Some(level) => {
                self.outline.enter(level, text);
                self.first_heading.get_or_insert_with(|| short_heading(text));
                (text.split_whitespace().collect::<Vec<_>>().join(" "), Shape::Heading)
            }
            None => (text.to_owned(), shape),
        };
        let block = Block { text, heading: self.outline.path(), place: Place::Lines(first, last), shape };
        self.blocks.push((block, self.part()));
    }
}

fn heading_level(name: &str) -> Option<u8> {
    match name.as_bytes() {
        [b'h', level @ b'1'..=b'6'] => Some(level - b'0'),
        _ => None,
    }
}

fn is_void(name: &str) -> bool {
    const VOID: &[&str] = &[
        "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
        "track", "wbr",
    ];
    VOID.contains(&name)
}

fn is_block(name: &str) -> bool {
    const BLOCKS: &[&str] = &[
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "caption",
        "center",
        "details",
        "div",
        "dl",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "header",
        "hgroup",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "summary",
        "table",
        "tbody",
        "tfoot",
        "thead",
        "ul",
    ];
    BLOCKS.contains(&name)
}
