//! Links and images.

use crate::sanitize::strip_control_chars;

use super::{MarkdownWriter, OnClose};
use crate::html::markdown_buffer::BufferPosition;
use crate::html::tree::Element;

impl MarkdownWriter<'_> {
    pub(super) fn enter_image(&mut self, element: &Element) -> OnClose {
        if let Some(alt) = element
            .attribute("alt")
            .filter(|alt| !alt.trim().is_empty())
        {
            self.write_marker("[image: ");
            self.write_text(&strip_control_chars(alt.trim()));
            self.buffer.push("]");
        }
        OnClose::Nothing
    }

    /// Returns the absolute URL of a web or mail link.
    pub(super) fn link_target(&self, element: &Element) -> Option<String> {
        let href = element.attribute("href")?.trim();
        if href.is_empty() || href.starts_with('#') {
            return None;
        }
        let target = self.base.as_ref()?.join(href).ok()?;
        matches!(target.scheme(), "http" | "https" | "mailto").then(|| target.to_string())
    }

    pub(super) fn leave_link(&mut self, start: BufferPosition, target: Option<String>) {
        let Some(target) = target else { return };
        let Some(text) = self
            .buffer
            .text_since(start)
            .filter(|text| !text.contains('\n'))
        else {
            self.buffer.push(&format!(" <{target}>"));
            return;
        };
        let label = text.trim_start_matches(['#', ' ']);
        let offset = text.len() - label.len();
        if !label.trim().is_empty() {
            self.buffer.insert(start, offset, '[');
            self.buffer.push(&format!("]({target})"));
        }
    }
}
