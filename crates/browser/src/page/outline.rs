//! The outline of a page: text and elements with references, within a token cap.

use futures::future::BoxFuture;
use lango_text::token_estimate::estimate;
use serde::Deserialize;
use serde_json::json;

use super::{Page, check};
use crate::error::{BrowserError, Result};
use crate::refs::ElementRef;
use crate::tab_state::FrameId;

/// Most tokens of an outline.
pub const OUTLINE_TOKENS: usize = 1_500;
/// Most characters that a document contributes before the token cap is applied.
const MAX_CHARS: usize = 400_000;
const VIEWPORT_CHARS: usize = 24_000;
const MAX_FRAME_DEPTH: usize = 4;
const MAX_FRAMES: usize = 20;
/// Stands before the text of the whole page if the viewport shows none.
const BLANK_VIEWPORT: &str = "[nothing is in view; the whole page:]";

/// The part of a page that an outline covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutlineRegion {
    Viewport,
    Page,
    /// Every element in the viewport with its place, also those without text.
    Elements,
    Element(ElementRef),
}

/// The outline of a page, before it is cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageOutline {
    pub title: String,
    pub url: String,
    pub lines: Vec<String>,
    /// Controls above and below the viewport.
    pub above: u64,
    pub below: u64,
    /// Pixels above and below the viewport.
    pub pixels_above: u64,
    pub pixels_below: u64,
    /// True if the document is larger than what was read.
    pub is_truncated: bool,
}

#[derive(Deserialize)]
struct DocumentOutline {
    lines: Vec<String>,
    frames: Vec<FramePlace>,
    above: u64,
    below: u64,
    truncated: bool,
    title: String,
    url: String,
    scroll: f64,
    height: f64,
    viewport: f64,
}

#[derive(Deserialize)]
struct FramePlace {
    line: usize,
    r#ref: u64,
}

impl Page {
    pub async fn outline(&self, region: OutlineRegion) -> Result<PageOutline> {
        let frame = match region {
            OutlineRegion::Element(element) => self.frame_of(element)?,
            _ => self.main_frame(),
        };
        let mut outline = self.outline_of(&frame, region).await?;
        let has_more = outline.pixels_below > 0 || outline.pixels_above > 0 || outline.below > 0;
        if region == OutlineRegion::Viewport && outline.lines.is_empty() && has_more {
            let page = self.outline_of(&frame, OutlineRegion::Page).await?;
            if !page.lines.is_empty() {
                outline.lines = vec![BLANK_VIEWPORT.to_owned()];
                outline.lines.extend(page.lines);
                outline.is_truncated = page.is_truncated;
            }
        }
        Ok(outline)
    }

    async fn outline_of(&self, frame: &FrameId, region: OutlineRegion) -> Result<PageOutline> {
        let document = self.document_outline(frame, region).await?;
        let below = document.height - document.viewport - document.scroll;
        let mut outline = PageOutline {
            title: document.title.clone(),
            url: document.url.clone(),
            lines: Vec::new(),
            above: document.above,
            below: document.below,
            pixels_above: document.scroll.max(0.0) as u64,
            pixels_below: below.max(0.0) as u64,
            is_truncated: document.truncated,
        };
        let mut frames_left = MAX_FRAMES;
        outline.lines = self
            .insert_frames(frame.clone(), document, MAX_FRAME_DEPTH, &mut frames_left)
            .await;
        Ok(outline)
    }

    async fn document_outline(
        &self,
        frame: &FrameId,
        region: OutlineRegion,
    ) -> Result<DocumentOutline> {
        let (name, element) = match region {
            OutlineRegion::Viewport => ("viewport", None),
            OutlineRegion::Page => ("page", None),
            OutlineRegion::Elements => ("elements", None),
            OutlineRegion::Element(element) => ("ref", Some(element.0)),
        };
        let cap = if name == "viewport" {
            VIEWPORT_CHARS
        } else {
            MAX_CHARS
        };
        let args = json!({ "region": name, "ref": element, "cap": cap, "next": 0 });
        let function = match region {
            OutlineRegion::Elements => "elements",
            _ => "outline",
        };
        let result = check(self.call(frame, function, args).await?)?;
        if result["missing"] == true {
            let element = element.unwrap_or_default();
            return check(self.call(frame, "stale", json!(element)).await?)
                .and(Err(BrowserError::action("the element is gone")));
        }
        serde_json::from_value(result)
            .map_err(|error| BrowserError::Protocol(format!("unexpected outline: {error}")))
    }

    /// Replaces the line of each frame by its outline.
    fn insert_frames<'a>(
        &'a self,
        frame: FrameId,
        document: DocumentOutline,
        depth: usize,
        frames_left: &'a mut usize,
    ) -> BoxFuture<'a, Vec<String>> {
        Box::pin(async move {
            let mut lines = document.lines;
            if depth == 0 || document.frames.is_empty() {
                return lines;
            }
            let mut inner = Vec::new();
            for child in self.child_frames(&frame) {
                if *frames_left == 0 {
                    break;
                }
                let Ok(owner) = self.owner_ref(&child).await else {
                    continue;
                };
                let Some(place) = document.frames.iter().find(|place| place.r#ref == owner) else {
                    continue;
                };
                *frames_left -= 1;
                let read = self.document_outline(&child.id, OutlineRegion::Viewport);
                if let Ok(outline) = read.await {
                    let child = child.id.clone();
                    let read = self.insert_frames(child, outline, depth - 1, frames_left);
                    inner.push((place.line, read.await));
                }
            }
            inner.sort_by_key(|(line, _)| std::cmp::Reverse(*line));
            for (line, inner) in inner {
                let at = (line + 1).min(lines.len());
                let inner = inner.into_iter().map(|line| format!("  {line}"));
                lines.splice(at..at, inner);
            }
            lines
        })
    }
}

impl PageOutline {
    /// Formats the header and as many lines as the cap allows, from `offset` on.
    pub fn format(&self, offset: usize, limit: usize, tokens: usize) -> String {
        let mut text = self.header();
        let mut used = estimate(&text);
        if self.pixels_above > 0 || self.above > 0 {
            text += &format!("… {} above\n", amount(self.above, self.pixels_above));
        }
        let (mut shown, total) = (offset.min(self.lines.len()), self.lines.len());
        for line in self.lines.iter().skip(offset).take(limit) {
            used += estimate(line) + 1;
            if used > tokens.saturating_sub(40) && shown > offset {
                break;
            }
            text.push_str(line);
            text.push('\n');
            shown += 1;
        }
        if shown < total {
            text += &format!(
                "… {} more lines: browser_observe with offset {shown}\n",
                total - shown
            );
        }
        if self.pixels_below > 0 || self.below > 0 {
            text += &format!(
                "… {} below: scroll down, or browser_observe with region page\n",
                amount(self.below, self.pixels_below)
            );
        }
        if total == 0 {
            text += "[the page shows no text; browser_screenshot shows how it looks]\n";
        }
        if self.is_truncated {
            text += "[the page is larger than what was read]\n";
        }
        text
    }

    pub fn header(&self) -> String {
        format!("page: {}\nurl: {}\n", self.title, self.url)
    }

    /// Formats what differs from an earlier outline of the same document.
    pub fn format_changes(&self, before: &[String], tokens: usize) -> String {
        let mut old: Vec<&String> = before.iter().collect();
        let mut added = Vec::new();
        for line in &self.lines {
            match old.iter().position(|earlier| *earlier == line) {
                Some(at) => _ = old.remove(at),
                None => added.push(format!("+ {line}")),
            }
        }
        let removed: Vec<String> = old.iter().map(|line| format!("- {line}")).collect();
        if added.is_empty() && removed.is_empty() {
            return "nothing visible changed\n".to_owned();
        }
        // What is gone matters less, and often only moved.
        let removed = removed.into_iter().take(12);
        let mut text = String::new();
        let mut used = 0;
        let (mut left_out, mut lines) = (0, Vec::new());
        lines.extend(added);
        lines.extend(removed);
        for line in lines {
            used += estimate(&line) + 1;
            if used > tokens {
                left_out += 1;
                continue;
            }
            text.push_str(&line);
            text.push('\n');
        }
        if left_out > 0 {
            text += &format!("… {left_out} more changed lines: browser_observe shows the page\n");
        }
        text
    }
}

fn amount(controls: u64, pixels: u64) -> String {
    match (controls, pixels) {
        (0, _) => format!("{pixels} px"),
        // A box inside of the page scrolls, not the page.
        (_, 0) => format!("{controls} controls"),
        _ => format!("{pixels} px with {controls} controls"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(lines: &[&str]) -> PageOutline {
        PageOutline {
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
            ..PageOutline::default()
        }
    }

    #[test]
    fn only_changes_are_formatted() {
        let before = outline(&["# A", "[e1 button \"Go\"]", "x", "x"]).lines;
        let after = outline(&["# A", "[e1 button \"Go\"]", "x", "done"]);
        assert_eq!(after.format_changes(&before, 100), "+ done\n- x\n");
        assert_eq!(
            after.format_changes(&after.lines, 100),
            "nothing visible changed\n"
        );
    }

    #[test]
    fn an_outline_is_cut_at_lines_and_says_how_to_continue() {
        let lines: Vec<String> = (0..500)
            .map(|n| format!("line number {n} of many"))
            .collect();
        let outline = PageOutline {
            lines,
            pixels_below: 900,
            below: 3,
            ..PageOutline::default()
        };
        let text = outline.format(0, usize::MAX, 300);
        assert!(estimate(&text) <= 320, "{}", estimate(&text));
        assert!(
            text.contains("more lines: browser_observe with offset"),
            "{text}"
        );
        assert!(text.contains("… 900 px with 3 controls below"), "{text}");
        assert!(
            outline
                .format(490, 5, 300)
                .contains("line number 494 of many\n… 5 more")
        );
        assert!(
            PageOutline::default()
                .format(0, 10, 100)
                .contains("no text")
        );
    }
}
