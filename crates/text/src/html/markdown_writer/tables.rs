//! Tables of values, written row by row.

use super::{MarkdownWriter, OnClose};
use crate::html::markdown_buffer::BreakKind;
use crate::html::tree::Element;

impl MarkdownWriter<'_> {
    /// Returns true if a table contains rows of values; many tables lay out a page.
    pub(super) fn is_data_table(&self, at: usize, element: &Element) -> bool {
        const LAYOUT_ELEMENTS: [&str; 12] = [
            "table",
            "form",
            "h1",
            "h2",
            "h3",
            "h4",
            "pre",
            "ul",
            "ol",
            "blockquote",
            "article",
            "section",
        ];
        let mut inner = self.document.elements(at + 1, self.document.end(at));
        element.attribute("role") != Some("presentation")
            && !inner.any(|(_, element)| LAYOUT_ELEMENTS.contains(&element.name.as_str()))
    }

    pub(super) fn enter_row(&mut self) -> OnClose {
        // Text between rows ends its own line; the first row follows the break of the table.
        let is_first = !self.buffer.ends_with('|') || self.buffer.is_at_break();
        self.buffer.request_break(1, BreakKind::Line);
        self.write_marker("|");
        self.buffer.mark_line_based();
        OnClose::Row { is_first, cells: 0 }
    }

    pub(super) fn enter_cell(&mut self) -> OnClose {
        let row = self
            .open
            .iter_mut()
            .rev()
            .find_map(|open| match &mut open.on_close {
                OnClose::Row { cells, .. } => Some(cells),
                _ => None,
            });
        if let Some(cells) = row {
            *cells += 1;
        }
        self.buffer.is_space_due = true;
        OnClose::Cell
    }

    pub(super) fn leave_row(&mut self, is_first: bool, cells: usize) {
        self.buffer.is_space_due = false;
        if is_first && cells > 0 {
            self.buffer.request_break(1, BreakKind::Line);
            self.write_marker(&format!("|{}", " --- |".repeat(cells.min(100))));
        }
    }
}
