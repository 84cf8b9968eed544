//! Actions on a page beyond clicks: fields, history, scrolling, dialogs, files.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::input::{Click, Point};
use super::keys::KeyPress;
use super::{Page, check};
use crate::error::{BrowserError, Result};
use crate::refs::ElementRef;

/// Interval at which a page is asked for a text that is waited for.
const POLL: Duration = Duration::from_millis(100);

impl Page {
    /// Replaces the content of a field by typing. A secret is hidden in outlines and screenshots.
    pub async fn fill(&self, element: ElementRef, text: &str, is_secret: bool) -> Result<()> {
        let kind = self.call_on(element, "fieldKind", json!({})).await?;
        if kind["kind"] == "text" {
            self.click(Click::left(element)).await?;
        }
        let args = json!({ "text": text, "secret": is_secret });
        let field = self.call_on(element, "prepareField", args).await?;
        if field["done"] == true {
            return Ok(());
        }
        if text.is_empty() {
            if field["isEmpty"] == true {
                return Ok(());
            }
            return self.press_all(&[KeyPress::parse("Delete")?]).await;
        }
        self.type_text(text).await
    }

    /// Chooses options of a list by their labels or values.
    pub async fn select(&self, element: ElementRef, choices: &[String]) -> Result<()> {
        let args = json!({ "choices": choices });
        self.call_on(element, "select", args).await.map(drop)
    }

    /// Checks or unchecks a control. Returns false if it was so already.
    pub async fn set_checked(&self, element: ElementRef, is_wanted: bool) -> Result<bool> {
        let is_checked = self.call_on(element, "isChecked", json!({})).await?;
        if is_checked["checked"] == is_wanted {
            return Ok(false);
        }
        self.click(Click::left(element)).await?;
        match self.call_on(element, "isChecked", json!({})).await {
            Ok(now) if now["checked"] != is_wanted => Err(BrowserError::action(format!(
                "{element} was clicked, but it is not {}",
                if is_wanted { "checked" } else { "unchecked" }
            ))),
            _ => Ok(true),
        }
    }

    /// Presses keys in an element, or where the focus is.
    pub async fn press_in(&self, element: Option<ElementRef>, keys: &[KeyPress]) -> Result<()> {
        if let Some(element) = element {
            self.call_on(element, "focus", json!({})).await?;
        }
        self.press_all(keys).await
    }

    /// Selects text with the mouse: all of an element, or the only place of a text.
    pub async fn select_text(&self, element: Option<ElementRef>, text: Option<&str>) -> Result<()> {
        let mut args = json!({ "text": text });
        let found = match element {
            Some(element) => self.call_on(element, "textPlaces", args).await?,
            None => {
                args["ref"] = json!(0);
                check(self.call(&self.main_frame(), "textPlaces", args).await?)?
            }
        };
        if found["done"] == true {
            return Ok(());
        }
        let frame = match element {
            Some(element) => self.frame_of(element)?,
            None => self.main_frame(),
        };
        let at = |end: &str, axis: &str| found[end][axis].as_f64().unwrap_or_default();
        let mut points = Vec::new();
        for end in ["from", "to"] {
            let point = Point {
                x: at(end, "x"),
                y: at(end, "y"),
            };
            points.push(self.to_tab_point(&frame, point).await?);
        }
        let box_ref = ElementRef(found["ref"].as_u64().unwrap_or_default());
        self.drag_mouse(box_ref, &points).await?;
        let kept = self.call(&frame, "keepSelection", json!({})).await?;
        check(kept).map(drop)
    }

    /// Scrolls an element into view, or a page or box in a direction.
    pub async fn scroll(&self, element: Option<ElementRef>, direction: Option<&str>) -> Result<()> {
        const DIRECTIONS: [&str; 6] = ["down", "up", "left", "right", "top", "bottom"];
        if let Some(direction) = direction
            && !DIRECTIONS.contains(&direction)
        {
            return Err(BrowserError::action(format!(
                "`{direction}` is not a direction; expected {}",
                DIRECTIONS.join(", ")
            )));
        }
        let args = json!({ "direction": direction });
        let result = match element {
            Some(element) => self.call_on(element, "scroll", args).await?,
            None => {
                let args = json!({ "ref": 0, "direction": direction.unwrap_or("down") });
                check(self.call(&self.main_frame(), "scroll", args).await?)?
            }
        };
        match result["moved"].as_bool() {
            Some(false) => Err(BrowserError::action("nothing scrolled: this is the end")),
            _ => Ok(()),
        }
    }

    /// Goes back or forward in the history of the tab.
    pub async fn go(&self, step: i64) -> Result<()> {
        let history = self.command("Page.getNavigationHistory", json!({})).await?;
        let current = history["currentIndex"].as_i64().unwrap_or_default();
        let entry = usize::try_from(current + step)
            .ok()
            .and_then(|at| history["entries"].get(at));
        let is_page = |url: &str| url.starts_with("http://") || url.starts_with("https://");
        match entry {
            Some(entry) if entry["url"].as_str().is_some_and(is_page) => {
                let params = json!({ "entryId": entry["id"] });
                self.mark_navigating();
                let gone = self.command("Page.navigateToHistoryEntry", params).await;
                gone.map(drop)
            }
            _ => Err(BrowserError::action(if step < 0 {
                "there is no earlier page"
            } else {
                "there is no later page"
            })),
        }
    }

    pub async fn reload(&self) -> Result<()> {
        self.mark_navigating();
        self.browser.tabs.update(|tabs| {
            if let Some(tab) = tabs.tab_mut(&self.tab) {
                tab.has_crashed = false;
            }
        });
        self.command("Page.reload", json!({})).await.map(drop)
    }

    /// Notes that a navigation was ordered, before its first event arrives.
    fn mark_navigating(&self) {
        self.browser.tabs.update(|tabs| {
            let tab = tabs.tab_mut(&self.tab);
            if let Some(frame) = tab.and_then(|tab| tab.frames.get_mut(&self.tab)) {
                frame.is_navigating = true;
            }
        });
    }

    /// Waits until a text is on the page. Without a text, until the page is quiet.
    pub async fn wait_for_text(&self, text: Option<&str>, limit: Duration) -> Result<()> {
        let Some(text) = text else {
            return self.settle(&self.mark(), limit).await;
        };
        let deadline = Instant::now() + limit;
        loop {
            let args = json!({ "text": text });
            let found = self.call(&self.main_frame(), "hasText", args).await?;
            if found["found"] == true {
                return Ok(());
            }
            if Instant::now() + POLL > deadline {
                return Err(BrowserError::action(format!(
                    "\"{text}\" did not appear within {} s",
                    limit.as_secs()
                )));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Answers the open dialog.
    pub async fn answer_dialog(&self, accept: bool, text: Option<&str>) -> Result<()> {
        let (session, dialog) = self.with_tab(|tab| (tab.session.clone(), tab.dialog.clone()))?;
        if dialog.is_none() {
            return Err(BrowserError::action("no dialog is open"));
        }
        let mut params = json!({ "accept": accept });
        if let Some(text) = text {
            params["promptText"] = json!(text);
        }
        let cdp = &self.browser.cdp;
        cdp.call(Some(&session), "Page.handleJavaScriptDialog", params)
            .await?;
        self.browser.tabs.update(|tabs| {
            if let Some(tab) = tabs.tab_mut(&self.tab) {
                tab.dialog = None;
            }
        });
        Ok(())
    }

    /// Gives files to a file field, or to the file chooser that is open.
    pub async fn set_files(
        &self,
        element: Option<ElementRef>,
        files: &[std::path::PathBuf],
    ) -> Result<()> {
        let cdp = &self.browser.cdp;
        let (session, mut params) = match element {
            Some(element) => {
                let frame = self.frame_of(element)?;
                let object = self.object_of(&frame, element).await?;
                (self.frame(&frame)?.session, json!({ "objectId": object }))
            }
            None => {
                let chooser = self.with_tab(|tab| tab.chooser.clone())?;
                let none = || BrowserError::action("no file chooser is open; name a file field");
                let chooser = chooser.ok_or_else(none)?;
                (chooser.session, json!({ "backendNodeId": chooser.node }))
            }
        };
        params["files"] = json!(files);
        cdp.call(Some(&session), "DOM.setFileInputFiles", params)
            .await?;
        self.browser.tabs.update(|tabs| {
            if let Some(tab) = tabs.tab_mut(&self.tab) {
                tab.chooser = None;
            }
        });
        Ok(())
    }

    /// Returns the protocol's handle of a file field.
    async fn object_of(&self, frame: &str, element: ElementRef) -> Result<Value> {
        check(
            self.call(frame, "fileField", json!({ "ref": element.0 }))
                .await?,
        )?;
        let (world, _) = self.world(frame).await?;
        let session = self.frame(frame)?.session;
        let expression = format!(
            "langoPage.element({}).closest('input[type=file]') ?? langoPage.element({0}).control ?? langoPage.element({0}).querySelector('input[type=file]')",
            element.0
        );
        let params = json!({ "expression": expression, "contextId": world });
        let cdp = &self.browser.cdp;
        let found = cdp.call(Some(&session), "Runtime.evaluate", params).await?;
        match found["result"]["objectId"].is_string() {
            true => Ok(found["result"]["objectId"].clone()),
            false => Err(BrowserError::action(format!("{element} is no file field"))),
        }
    }

    /// Runs JavaScript of an agent in the page itself.
    pub async fn evaluate(&self, script: &str) -> Result<String> {
        let params = json!({
            "expression": script, "returnByValue": true, "awaitPromise": true, "userGesture": true,
        });
        let value = super::script_value(self.command("Runtime.evaluate", params).await?)?;
        Ok(match value {
            Value::String(text) => text,
            value => value.to_string(),
        })
    }
}
