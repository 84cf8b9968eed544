//! Converts HTML to markdown, for web pages and for files. Each line of the markdown records its
//! source lines.

mod article;
mod markdown_buffer;
mod markdown_writer;
mod tree;

use url::Url;

pub use markdown_buffer::{MarkdownBlock, MarkdownLine};
pub use tree::HtmlDocument;

/// Limits for untrusted HTML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HtmlLimits {
    /// Elements and texts.
    pub nodes: usize,
    /// Bytes of markdown; a single text may exceed the rest by as much again.
    pub output_bytes: usize,
}

/// The readable content of an HTML page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadablePage {
    /// May be empty.
    pub title: String,
    pub blocks: Vec<MarkdownBlock>,
    /// False if the limits truncated the page.
    pub is_whole: bool,
}

impl ReadablePage {
    /// Extracts the content of a page. Links are resolved against `base`; without it they become
    /// plain text.
    pub fn from_html(html: &str, base: Option<&Url>, limits: HtmlLimits) -> Self {
        let document = HtmlDocument::parse(html, limits.nodes);
        let article = article::Article::from_document(&document);
        let base = base.map(|base| article::base_url(&document, base));
        let (blocks, is_complete) =
            markdown_writer::MarkdownWriter::new(&document, base, limits.output_bytes)
                .write(&article);
        Self {
            title: article.title(),
            blocks,
            is_whole: is_complete && !document.is_truncated,
        }
    }

    /// Returns the markdown of the page, starting with the title.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        for line in self.blocks.iter().flat_map(MarkdownBlock::separated_lines) {
            text.push_str(line);
            text.push('\n');
        }
        let text = text.trim();
        let first = text
            .lines()
            .next()
            .map(|line| line.trim_start_matches('#').trim());
        let has_title = self.title.is_empty() || first == Some(self.title.as_str());
        if has_title {
            text.to_owned()
        } else {
            format!("# {}\n\n{text}", self.title).trim_end().to_owned()
        }
    }
}

#[cfg(test)]
mod tests;
