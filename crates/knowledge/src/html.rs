//! HTML as something to read: one reader for pages of the web and for files. What is left is markdown that knows the
//! lines it came from.

mod article;
mod markdown_buffer;
mod markdown_writer;
mod tree;

use url::Url;

pub use markdown_buffer::{MarkdownBlock, MarkdownLine};
pub use tree::HtmlDocument;

/// How much is read of something that may be as large as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HtmlLimits {
    /// Elements and texts.
    pub nodes: usize,
    /// Bytes of what is left to read; a single text may go so far beyond it.
    pub output_bytes: usize,
}

/// What a reader of the page would read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadablePage {
    /// May be empty.
    pub title: String,
    pub blocks: Vec<MarkdownBlock>,
    /// Whether all of it was within the bounds.
    pub is_whole: bool,
}

impl ReadablePage {
    /// Links are made absolute against `base`; without one they are plain words.
    pub fn from_html(html: &str, base: Option<&Url>, bounds: HtmlLimits) -> Self {
        let document = HtmlDocument::parse(html, bounds.nodes);
        let article = article::Article::from_document(&document);
        let base = base.map(|base| article::base_url(&document, base));
        let (parts, is_written) =
            markdown_writer::MarkdownWriter::new(&document, base, bounds.output_bytes)
                .write(&article);
        Self {
            title: article.title(),
            blocks: parts,
            is_whole: is_written && !document.is_truncated,
        }
    }

    /// All of it, the title first.
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
        let is_said = self.title.is_empty() || first == Some(self.title.as_str());
        if is_said {
            text.to_owned()
        } else {
            format!("# {}\n\n{text}", self.title).trim_end().to_owned()
        }
    }
}

#[cfg(test)]
mod tests;
