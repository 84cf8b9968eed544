//! Parses HTML into a tree in one pass, with limits on everything: pages are untrusted.
//!
//! The tree construction of browsers can be forced into quadratic time and memory. This parser
//! handles misnested tags less precisely and never uses more memory than its input.

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

/// Deeper elements become children of the element at this depth.
const MAX_DEPTH: usize = 200;
/// Longer attribute values are dropped.
const MAX_ATTRIBUTE_BYTES: usize = 2_048;

const ALLOWED_ATTRIBUTES: [&str; 12] = [
    "alt",
    "aria-hidden",
    "class",
    "content",
    "hidden",
    "href",
    "id",
    "name",
    "property",
    "role",
    "start",
    "style",
];

/// A parsed document. Nodes are in document order: the children of a node follow it, up to its
/// `end`.
#[derive(Debug, Default)]
pub struct HtmlDocument {
    pub nodes: Vec<HtmlNode>,
    /// True if the limit of nodes truncated the document.
    pub is_truncated: bool,
}

#[derive(Debug)]
pub struct HtmlNode {
    pub content: HtmlContent,
    /// The index after its last descendant.
    pub end: usize,
    /// The line on which it starts, counted from 1.
    pub line: u32,
}

#[derive(Debug)]
pub enum HtmlContent {
    Text(String),
    Element(Element),
}

#[derive(Debug, Default)]
pub struct Element {
    pub name: String,
    attributes: Vec<(&'static str, String)>,
}

impl Element {
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value.as_str())
    }

    pub fn has_class(&self, class: &str) -> bool {
        self.attribute("class")
            .is_some_and(|classes| classes.split_ascii_whitespace().any(|one| one == class))
    }

    /// Returns the language of a code block from a class such as `language-rust` or `lang-rust`.
    pub fn language(&self) -> Option<&str> {
        let classes = self.attribute("class")?.split_ascii_whitespace();
        let mut names = classes.filter_map(|class| {
            class
                .strip_prefix("language-")
                .or_else(|| class.strip_prefix("lang-"))
        });
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "+#-".contains(c);
        names.find(|name| name.len() <= 20 && name.chars().all(is_plain))
    }
}

impl HtmlDocument {
    /// Parses at most `max_nodes` elements and texts.
    pub fn parse(html: &str, max_nodes: usize) -> Self {
        let mut builder = HtmlTreeBuilder {
            lines: LineCount::new(html),
            max_nodes,
            ..HtmlTreeBuilder::default()
        };
        let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, span: Span<usize>| {
            builder.on_event(event, span)
        });
        emitter.naively_switch_states(true);
        // The tokenizer yields an item only when the limit is reached.
        _ = Tokenizer::new_with_emitter(html, emitter).next();
        builder.finish()
    }

    pub fn element(&self, at: usize) -> Option<&Element> {
        match &self.nodes.get(at)?.content {
            HtmlContent::Element(element) => Some(element),
            HtmlContent::Text(_) => None,
        }
    }

    /// Returns the elements from index `from` up to `to`, each with its index.
    pub fn elements(&self, from: usize, to: usize) -> impl Iterator<Item = (usize, &Element)> {
        (from..to.min(self.nodes.len())).filter_map(|at| Some((at, self.element(at)?)))
    }

    pub fn end(&self, at: usize) -> usize {
        self.nodes.get(at).map_or(self.nodes.len(), |node| node.end)
    }

    /// Returns all text within a node.
    pub fn text(&self, at: usize) -> String {
        let texts = self.nodes.get(at..self.end(at)).unwrap_or_default().iter();
        texts
            .filter_map(|node| {
                if let HtmlContent::Text(text) = &node.content {
                    Some(text.as_str())
                } else {
                    None
                }
            })
            .collect()
    }
}

/// Counts lines. Offsets only increase, so that each byte is counted once.
#[derive(Default)]
struct LineCount<'a> {
    html: &'a [u8],
    counted: usize,
    ends: usize,
}

impl<'a> LineCount<'a> {
    fn new(html: &'a str) -> Self {
        Self {
            html: html.as_bytes(),
            ..Self::default()
        }
    }

    fn line_at(&mut self, offset: usize) -> u32 {
        if let Some(passed) = self.html.get(self.counted..offset) {
            self.ends += passed.iter().filter(|byte| **byte == b'\n').count();
            self.counted = offset;
        }
        u32::try_from(self.ends + 1).unwrap_or(u32::MAX)
    }
}

#[derive(Default)]
struct HtmlTreeBuilder<'a> {
    document: HtmlDocument,
    lines: LineCount<'a>,
    max_nodes: usize,
    line: u32,
    /// Nodes that are still open, the innermost last.
    open: Vec<usize>,
    /// The number of open elements beyond `MAX_DEPTH`.
    excess_depth: usize,
    pending: Element,
    attribute: Option<&'static str>,
}

impl HtmlTreeBuilder<'_> {
    fn on_event(&mut self, event: CallbackEvent<'_>, span: Span<usize>) -> Option<()> {
        if self.document.nodes.len() >= self.max_nodes {
            self.document.is_truncated = true;
            return Some(());
        }
        self.line = self.lines.line_at(span.start);
        match event {
            CallbackEvent::OpenStartTag { name } => {
                let name = String::from_utf8_lossy(&name[..name.len().min(32)]).into_owned();
                self.pending = Element {
                    name,
                    attributes: Vec::new(),
                };
                self.attribute = None;
            }
            CallbackEvent::AttributeName { name } => self.start_attribute(name),
            CallbackEvent::AttributeValue { value } => self.set_attribute_value(value),
            CallbackEvent::CloseStartTag { .. } => self.open_element(),
            CallbackEvent::EndTag { name } => self.close_element(&String::from_utf8_lossy(name)),
            CallbackEvent::String { value } => {
                let text = String::from_utf8_lossy(value).into_owned();
                self.push(HtmlContent::Text(text));
            }
            CallbackEvent::Comment { .. }
            | CallbackEvent::Doctype { .. }
            | CallbackEvent::Error(_) => {}
        }
        None
    }

    fn finish(mut self) -> HtmlDocument {
        self.close_down_to(0);
        self.document
    }

    fn start_attribute(&mut self, name: &[u8]) {
        self.attribute = ALLOWED_ATTRIBUTES
            .into_iter()
            .find(|known| known.as_bytes() == name);
        if let Some(known) = self.attribute {
            if self.pending.attribute(known).is_some() {
                self.attribute = None;
            } else {
                self.pending.attributes.push((known, String::new()));
            }
        }
    }

    fn set_attribute_value(&mut self, value: &[u8]) {
        if value.len() > MAX_ATTRIBUTE_BYTES {
            return;
        }
        if let (Some(_), Some((_, stored))) = (self.attribute, self.pending.attributes.last_mut()) {
            *stored = String::from_utf8_lossy(value).into_owned();
        }
    }

    fn open_element(&mut self) {
        let element = std::mem::take(&mut self.pending);
        self.close_implied(&element.name);
        let is_void = VOID_ELEMENTS.contains(&element.name.as_str());
        let at = self.push(HtmlContent::Element(element));
        match (is_void, self.open.len() < MAX_DEPTH) {
            (true, _) => {}
            (false, true) => self.open.push(at),
            (false, false) => self.excess_depth += 1,
        }
    }

    fn push(&mut self, content: HtmlContent) -> usize {
        let at = self.document.nodes.len();
        self.document.nodes.push(HtmlNode {
            content,
            end: at + 1,
            line: self.line,
        });
        at
    }

    fn close_element(&mut self, name: &str) {
        if VOID_ELEMENTS.contains(&name) {
            return;
        }
        if self.excess_depth > 0 {
            self.excess_depth -= 1;
            return;
        }
        // An end tag within a table only closes elements within that table.
        let barriers: &[&str] = if TABLE_PARTS.contains(&name) || name == "body" {
            &[]
        } else {
            &["table"]
        };
        if let Some(at) = self.find_innermost(&[name], barriers) {
            self.close_down_to(at);
        }
    }

    /// Closes elements that the start of another one closes implicitly, as a list item closes the
    /// previous item.
    fn close_implied(&mut self, name: &str) {
        if self.excess_depth > 0 {
            return;
        }
        let (closed, barriers): (&[&str], &[&str]) = match name {
            "li" => (&["li"], &["ul", "ol", "menu", "table"]),
            "dt" | "dd" => (&["dt", "dd"], &["dl", "table"]),
            "tr" => (&["tr"], &["table"]),
            "td" | "th" => (&["td", "th"], &["tr", "table"]),
            "thead" | "tbody" | "tfoot" => (&["thead", "tbody", "tfoot"], &["table"]),
            "a" => (&["a"], &["table", "td", "th", "li", "div"]),
            "option" => (&["option"], &["select"]),
            name if ENDS_PARAGRAPH.contains(&name) => {
                (&["p"], &["table", "td", "th", "button", "li", "div"])
            }
            _ => return,
        };
        if let Some(at) = self.find_innermost(closed, barriers) {
            self.close_down_to(at);
        }
    }

    /// Returns the index in `open` of the innermost element with one of `names`, unless one of
    /// `barriers` is nested deeper.
    fn find_innermost(&self, names: &[&str], barriers: &[&str]) -> Option<usize> {
        for (at, node) in self.open.iter().enumerate().rev() {
            let name = self
                .document
                .element(*node)
                .map_or("", |element| element.name.as_str());
            if names.contains(&name) {
                return Some(at);
            }
            if barriers.contains(&name) {
                return None;
            }
        }
        None
    }

    fn close_down_to(&mut self, depth: usize) {
        let end = self.document.nodes.len();
        for at in self.open.drain(depth..) {
            self.document.nodes[at].end = end;
        }
    }
}

const VOID_ELEMENTS: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
];

const TABLE_PARTS: [&str; 8] = [
    "table", "thead", "tbody", "tfoot", "tr", "td", "th", "caption",
];

const ENDS_PARAGRAPH: [&str; 28] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "details",
    "div",
    "dl",
    "fieldset",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "ul",
    "menu",
];

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_NODES: usize = 200_000;

    /// Formats elements as `name(…)` and texts unchanged.
    fn outline(html: &str) -> String {
        let document = HtmlDocument::parse(html, MAX_NODES);
        let mut output = String::new();
        let mut ends = Vec::new();
        for (at, node) in document.nodes.iter().enumerate() {
            while ends.last().is_some_and(|end| *end <= at) {
                ends.pop();
                output.push(')');
            }
            match &node.content {
                HtmlContent::Text(text) => output.push_str(text),
                HtmlContent::Element(element) => {
                    output.push_str(&element.name);
                    output.push('(');
                    ends.push(node.end);
                }
            }
        }
        ends.iter().for_each(|_| output.push(')'));
        output
    }

    #[test]
    fn builds_a_tree_from_tags() {
        for (html, expected) in [
            ("<p>a<p>b", "p(a)p(b)"),
            (
                "<ul><li>a<li>b<ul><li>c</ul></ul>d",
                "ul(li(a)li(bul(li(c))))d",
            ),
            (
                "<table><tr><td>a<td>b<tr><td>c</table>",
                "table(tr(td(a)td(b))tr(td(c)))",
            ),
            ("<dl><dt>a<dd>b<dt>c</dl>", "dl(dt(a)dd(b)dt(c))"),
            ("a<br>b</br><img>c", "abr()bimg()c"),
            (
                "<div><table><tr><td></div>a</table></div>b",
                "div(table(tr(td(a))))b",
            ),
            ("<b>a<i>b</b>c</i>", "b(ai(b))c"),
            ("</p>a</nothing>", "a"),
            (
                "<script>if (a<b) {}</script>x &amp; y",
                "script(if (a<b) {})x & y",
            ),
            ("<!-- x --><p>a", "p(a)"),
            ("<title>a<b></title>", "title(a<b>)"),
        ] {
            assert_eq!(outline(html), expected, "{html}");
        }
    }

    #[test]
    fn keeps_only_allowed_attributes() {
        let document =
            HtmlDocument::parse("<a HREF='/x' onclick=y class='a b' href=/z>", MAX_NODES);
        let link = document.element(0).unwrap();
        assert_eq!(
            (link.attribute("href"), link.attribute("onclick")),
            (Some("/x"), None)
        );
        assert!(link.has_class("b") && !link.has_class("a b"));
        let huge = format!("<a href='{}'>x</a>", "y".repeat(1_000_000));
        assert_eq!(
            HtmlDocument::parse(&huge, MAX_NODES)
                .element(0)
                .unwrap()
                .attribute("href"),
            Some("")
        );
    }

    #[test]
    fn records_the_line_of_every_node() {
        let html = "<!-- a\n -->\n<p\n class=x>b &amp;\n c<br>\n<script>\n1</script>\nd &eacute;\n<b>e</b>";
        let document = HtmlDocument::parse(html, MAX_NODES);
        let found: Vec<(u32, String)> = document
            .nodes
            .iter()
            .map(|node| match &node.content {
                HtmlContent::Text(text) => (node.line, text.trim().to_owned()),
                HtmlContent::Element(element) => (node.line, format!("<{}>", element.name)),
            })
            .filter(|(_, text)| !text.is_empty())
            .collect();
        let found: Vec<String> = found
            .into_iter()
            .map(|(line, text)| format!("{line} {text}"))
            .collect();
        assert_eq!(
            found,
            [
                "4 <p>",
                "4 b &\n c",
                "5 <br>",
                "6 <script>",
                "6 1",
                "7 d é",
                "9 <b>",
                "9 e"
            ]
        );
    }

    #[test]
    fn limits_depth_and_number_of_nodes() {
        let deep = format!(
            "{}x{}<p>after",
            "<div>".repeat(100_000),
            "</div>".repeat(100_000)
        );
        let document = HtmlDocument::parse(&deep, MAX_NODES);
        let last = document.elements(0, usize::MAX).last().unwrap();
        assert_eq!(
            (last.1.name.as_str(), document.text(last.0).as_str()),
            ("p", "after")
        );
        assert_eq!(
            document.nodes[0].end, last.0,
            "the outermost element ends before the next one"
        );
        let formatting: String = (0..50_000).map(|id| format!("<b id={id}>")).collect();
        let document = HtmlDocument::parse(
            &format!("{formatting}{}", "<p>x".repeat(200_000)),
            MAX_NODES,
        );
        assert!(document.nodes.len() == MAX_NODES && document.is_truncated);
    }
}
