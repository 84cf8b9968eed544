//! Finds the title and the main content of a page, and the clutter within it.

use url::Url;

use super::tree::{Element, HtmlContent, HtmlDocument};
use crate::sanitize::truncated_line;

const MAX_TITLE_CHARS: usize = 200;

/// The main content of a page.
pub struct Article<'a> {
    document: &'a HtmlDocument,
    pub from: usize,
    pub to: usize,
    /// For each node, the number of visible characters before it.
    visible_chars_before: Vec<usize>,
    /// True if the page marks its main content.
    has_main: bool,
}

impl<'a> Article<'a> {
    pub fn from_document(document: &'a HtmlDocument) -> Self {
        let visible_chars_before = count_visible_before(document);
        let end = document.nodes.len();
        let mut article = Self {
            document,
            from: 0,
            to: end,
            visible_chars_before,
            has_main: false,
        };
        if let Some(main) = article.find_main() {
            (article.from, article.to, article.has_main) = (main, document.end(main), true);
        }
        article
    }

    /// Returns the title of the page; may be empty.
    pub fn title(&self) -> String {
        let document = self.document;
        let all = || document.elements(0, usize::MAX);
        let is_not_empty = |title: &String| !title.is_empty();
        let title_at = |at: usize| truncated_line(&document.text(at), MAX_TITLE_CHARS);
        let first_text = |name: &'static str| {
            all()
                .filter(move |(_, element)| element.name == name)
                .map(|(at, _)| title_at(at))
                .find(is_not_empty)
        };
        let open_graph_title = || {
            let mut metas =
                all().filter(|(_, element)| element.attribute("property") == Some("og:title"));
            metas
                .find_map(|(_, meta)| meta.attribute("content"))
                .map(|title| truncated_line(title, MAX_TITLE_CHARS))
        };
        first_text("title")
            .or_else(open_graph_title)
            .or_else(|| first_text("h1"))
            .unwrap_or_default()
    }

    /// Returns true if an element is not content. An element with much of the text is content,
    /// regardless of its name.
    pub fn is_clutter(&self, at: usize, element: &Element) -> bool {
        if is_hidden(element) {
            return true;
        }
        let is_small = self.visible_chars(at) * 5
            <= (self.visible_chars_before[self.to] - self.visible_chars_before[self.from]) * 2;
        // An aside outside the main content is unrelated; within it, it is a note.
        let is_note = element.name == "aside" && self.has_main;
        is_small && (self.is_page_header(at, element) || (is_boilerplate(element) && !is_note))
    }

    /// Returns the `main` element, or the largest `article` if it has most of the text.
    fn find_main(&self) -> Option<usize> {
        let largest = |is_wanted: fn(&Element) -> bool| {
            let wanted = self
                .document
                .elements(0, usize::MAX)
                .filter(|(_, element)| is_wanted(element));
            wanted
                .map(|(at, _)| at)
                .max_by_key(|at| (self.visible_chars(*at), std::cmp::Reverse(*at)))
        };
        let all = self
            .visible_chars_before
            .last()
            .copied()
            .unwrap_or_default();
        let main =
            largest(|element| element.name == "main" || element.attribute("role") == Some("main"));
        let main = main.filter(|at| self.visible_chars(*at) * 10 > all);
        main.or_else(|| {
            largest(|element| element.name == "article")
                .filter(|at| self.visible_chars(*at) * 2 > all)
        })
    }

    fn visible_chars(&self, at: usize) -> usize {
        self.visible_chars_before[self.document.end(at)] - self.visible_chars_before[at]
    }

    fn is_page_header(&self, at: usize, element: &Element) -> bool {
        let has_heading = || {
            self.document
                .elements(at, self.document.end(at))
                .any(|(_, inner)| inner.name == "h1")
        };
        element.name == "header" && !self.has_main && !has_heading()
    }
}

/// Returns the base URL for the relative links of a page.
pub fn base_url(document: &HtmlDocument, base: &Url) -> Url {
    let mut bases = document
        .elements(0, usize::MAX)
        .filter(|(_, element)| element.name == "base");
    let declared = bases.find_map(|(_, element)| base.join(element.attribute("href")?).ok());
    declared
        .filter(|url| matches!(url.scheme(), "http" | "https"))
        .unwrap_or_else(|| base.clone())
}

fn count_visible_before(document: &HtmlDocument) -> Vec<usize> {
    let mut visible_before = Vec::with_capacity(document.nodes.len() + 1);
    let (mut visible, mut hidden_until) = (0, 0);
    for (at, node) in document.nodes.iter().enumerate() {
        visible_before.push(visible);
        match &node.content {
            _ if at < hidden_until => {}
            HtmlContent::Text(text) => {
                visible += text.chars().filter(|c| !c.is_whitespace()).count()
            }
            HtmlContent::Element(element) if is_hidden(element) => hidden_until = node.end,
            HtmlContent::Element(_) => {}
        }
    }
    visible_before.push(visible);
    visible_before
}

fn is_hidden(element: &Element) -> bool {
    const NAMES: [&str; 20] = [
        "audio", "button", "canvas", "datalist", "dialog", "embed", "frame", "head", "iframe",
        "input", "noscript", "object", "script", "select", "style", "svg", "template", "textarea",
        "title", "video",
    ];
    let is_hidden_by_style = |style: &str| {
        let style: String = style
            .chars()
            .filter(|c| !c.is_whitespace())
            .collect::<String>()
            .to_ascii_lowercase();
        style.contains("display:none") || style.contains("visibility:hidden")
    };
    NAMES.contains(&element.name.as_str())
        || element.attribute("hidden").is_some()
        || element.attribute("aria-hidden") == Some("true")
        || element.attribute("style").is_some_and(is_hidden_by_style)
}

fn is_boilerplate(element: &Element) -> bool {
    const NAMES: [&str; 5] = ["aside", "footer", "form", "menu", "nav"];
    const ROLES: [&str; 8] = [
        "alert",
        "banner",
        "complementary",
        "contentinfo",
        "dialog",
        "menu",
        "navigation",
        "search",
    ];
    const WORDS: [&str; 25] = [
        "ad",
        "ads",
        "advert",
        "advertisement",
        "adsbygoogle",
        "breadcrumb",
        "breadcrumbs",
        "consent",
        "cookie",
        "cookies",
        "menu",
        "modal",
        "nav",
        "navbar",
        "newsletter",
        "popup",
        "promo",
        "promoted",
        "share",
        "sharing",
        "sidebar",
        "social",
        "sponsor",
        "sponsored",
        "subscribe",
    ];
    let has_word = |value: &str| {
        let mut words = value.split(|c: char| !c.is_ascii_alphanumeric());
        words.any(|word| WORDS.contains(&word.to_ascii_lowercase().as_str()))
    };
    NAMES.contains(&element.name.as_str())
        || element
            .attribute("role")
            .is_some_and(|role| ROLES.contains(&role))
        || ["class", "id"]
            .iter()
            .any(|name| element.attribute(name).is_some_and(has_word))
}
