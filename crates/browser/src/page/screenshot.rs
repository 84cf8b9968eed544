//! Pictures of a page.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lango_text::secret_redactor::SecretRedactor;
use serde_json::{Value, json};

use super::{Page, check};
use crate::error::{BrowserError, Result};
use crate::refs::ElementRef;
use crate::tab_state::FrameId;

/// Tallest picture of a whole page. Models scale larger pictures down until nothing can be read.
const MAX_HEIGHT: f64 = 8_000.0;

/// The picture to take.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScreenshotOptions {
    pub is_full_page: bool,
    pub element: Option<ElementRef>,
    /// Draw the references next to their elements.
    pub has_refs: bool,
    /// Width of the picture in pixels; smaller than the page means scaled down.
    pub width: Option<u32>,
    pub is_png: bool,
}

impl Page {
    /// Takes a picture. Fields that hold a secret are covered.
    pub async fn screenshot(&self, options: ScreenshotOptions) -> Result<Vec<u8>> {
        let frame = self.main_frame();
        let args = json!({ "refs": options.has_refs, "next": 0 });
        let decorated = check(self.call(&frame, "decorate", args).await?)?;
        let covered = self.call_in_all_frames("coverSecrets").await;
        let taken = match covered {
            Ok(_) => self.capture(options).await,
            Err(error) => Err(error),
        };
        let _ = self.call_in_all_frames("uncoverSecrets").await;
        if decorated["drawn"] == true {
            let _ = self.call(&frame, "undecorate", Value::Null).await;
        }
        taken
    }

    /// Fails if the page shows the value of a secret outside of the fields that a picture covers.
    pub async fn check_shows_no_secret(&self, redactor: &SecretRedactor) -> Result<()> {
        if redactor.is_empty() {
            return Ok(());
        }
        let texts = self.call_in_all_frames("allText").await?;
        let mut texts = texts.iter().filter_map(|answer| answer["text"].as_str());
        match texts.any(|text| redactor.finds_in(text)) {
            true => Err(BrowserError::action(
                "the page shows the value of a secret, so no picture is taken; browser_observe reads the page without it",
            )),
            false => Ok(()),
        }
    }

    /// Calls a function of the script in each frame. Frames that disappear meanwhile are left out.
    async fn call_in_all_frames(&self, name: &str) -> Result<Vec<Value>> {
        let frames: Vec<_> = self.with_tab(|tab| tab.frames.keys().cloned().collect())?;
        let mut answers = Vec::new();
        for frame in frames {
            match self.call(&frame, name, Value::Null).await {
                Ok(answer) => answers.push(answer),
                Err(error) if self.has_frame(&frame) => return Err(error),
                Err(_) => {}
            }
        }
        Ok(answers)
    }

    fn has_frame(&self, frame: &FrameId) -> bool {
        let found = self.with_tab(|tab| tab.frames.contains_key(frame));
        found.unwrap_or_default()
    }

    async fn capture(&self, options: ScreenshotOptions) -> Result<Vec<u8>> {
        let mut params = match options.is_png {
            true => json!({ "format": "png" }),
            false => json!({ "format": "webp", "quality": 80 }),
        };
        let (page_width, page_height) = crate::launch::VIEWPORT;
        let mut area = (0.0, 0.0, f64::from(page_width), f64::from(page_height));
        if let Some(element) = options.element {
            let found = self.call_on(element, "boxOf", json!({})).await?;
            let frame = self.frame_of(element)?;
            if frame != self.main_frame() {
                return Err(BrowserError::action(
                    "a picture of one element works in the main page only",
                ));
            }
            let number = |name: &str| found[name].as_f64().unwrap_or_default();
            area = (
                number("x") + number("scrollX"),
                number("y") + number("scrollY"),
                number("width").max(1.0),
                number("height").clamp(1.0, MAX_HEIGHT),
            );
        } else if options.is_full_page {
            let size = self
                .call(&self.main_frame(), "pageSize", Value::Null)
                .await?;
            let height = size["height"].as_f64().unwrap_or(area.3);
            area.3 = height.clamp(1.0, MAX_HEIGHT);
        }
        let scale = options
            .width
            .map_or(1.0, |width| f64::from(width.max(1)) / area.2);
        let is_part = options.is_full_page || options.element.is_some();
        if is_part || scale < 1.0 {
            if !is_part {
                let box_of = self
                    .call(&self.main_frame(), "scrollPosition", Value::Null)
                    .await?;
                area.0 = box_of["x"].as_f64().unwrap_or_default();
                area.1 = box_of["y"].as_f64().unwrap_or_default();
            }
            params["clip"] = json!({
                "x": area.0, "y": area.1, "width": area.2, "height": area.3, "scale": scale.min(1.0),
            });
            params["captureBeyondViewport"] = json!(is_part);
        }
        let response = self.command("Page.captureScreenshot", params).await?;
        STANDARD
            .decode(response["data"].as_str().unwrap_or_default())
            .map_err(|_| BrowserError::action("the picture cannot be read"))
    }
}
