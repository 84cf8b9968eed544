//! Real input events: the page cannot tell them from those of a person.

use serde_json::{Value, json};

pub use super::frames::Point;
use super::keys::KeyPress;
use super::{Page, check};
use crate::error::{BrowserError, Result};
use crate::refs::ElementRef;

/// Steps of the mouse while it drags.
const DRAG_STEPS: u32 = 8;
/// Attempts to move the mouse to an element that moves.
const MOVE_ATTEMPTS: u32 = 3;
/// Longest text that is typed key by key.
const MAX_TYPED_KEYS: usize = 200;

/// A click on an element.
#[derive(Clone, Copy, Debug)]
pub struct Click {
    pub element: ElementRef,
    /// The position in the element; its center if missing.
    pub offset: Option<Point>,
    pub button: &'static str,
    pub count: u32,
}

impl Click {
    pub fn left(element: ElementRef) -> Self {
        Self {
            element,
            offset: None,
            button: "left",
            count: 1,
        }
    }
}

impl Page {
    /// Returns the point of the tab at which input reaches an element.
    pub async fn point_of(
        &self,
        element: ElementRef,
        offset: Option<Point>,
        accepts_any: bool,
    ) -> Result<Point> {
        let args = json!({
            "x": offset.map(|at| at.x), "y": offset.map(|at| at.y), "anyHit": accepts_any,
        });
        let found = self.call_on(element, "point", args).await?;
        let point = Point {
            x: found["x"].as_f64().unwrap_or_default(),
            y: found["y"].as_f64().unwrap_or_default(),
        };
        self.to_tab_point(&self.frame_of(element)?, point).await
    }

    /// Clicks an element. Nothing else is clicked, even if the page changes at that moment (B140).
    pub async fn click(&self, click: Click) -> Result<()> {
        let point = self.move_to(click.element, click.offset).await?;
        self.call_on(click.element, "arm", json!({})).await?;
        let frame = self.frame_of(click.element)?;
        let mut events = Vec::new();
        for count in 1..=click.count {
            events.push(mouse("mousePressed", point, click.button, count));
            events.push(mouse("mouseReleased", point, click.button, count));
        }
        self.dispatch("Input.dispatchMouseEvent", events).await?;
        match self
            .try_call(&frame, "disarm", &Value::Null, crate::cdp::COMMAND_TIMEOUT)
            .await
        {
            Ok(result) => check(result).map(drop),
            // The click led to another page or a dialog.
            Err(BrowserError::Protocol(_) | BrowserError::DialogOpen(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Moves the mouse to an element. The page may react and move the element; the mouse follows it.
    async fn move_to(&self, element: ElementRef, offset: Option<Point>) -> Result<Point> {
        let mut point = self.point_of(element, offset, false).await?;
        for _ in 0..MOVE_ATTEMPTS {
            let event = mouse("mouseMoved", point, "none", 0);
            self.dispatch("Input.dispatchMouseEvent", vec![event])
                .await?;
            let now = self.point_of(element, offset, false).await?;
            let has_moved = (now.x - point.x).abs() > 1.0 || (now.y - point.y).abs() > 1.0;
            point = now;
            if !has_moved {
                break;
            }
        }
        Ok(point)
    }

    pub async fn hover(&self, element: ElementRef, offset: Option<Point>) -> Result<()> {
        let point = self.point_of(element, offset, false).await?;
        let event = mouse("mouseMoved", point, "none", 0);
        self.dispatch("Input.dispatchMouseEvent", vec![event]).await
    }

    /// Presses the mouse on one element and releases it on another one, or at an offset of it.
    pub async fn drag(
        &self,
        from: (ElementRef, Option<Point>),
        to: (ElementRef, Option<Point>),
    ) -> Result<()> {
        let start = self.point_of(from.0, from.1, false).await?;
        let end = self.point_of(to.0, to.1, true).await?;
        // Bringing the second element into view may have moved the first one.
        let start = match self.point_of(from.0, from.1, false).await {
            Ok(moved) => moved,
            Err(_) => start,
        };
        self.drag_mouse(from.0, &[start, end]).await
    }

    /// Presses the mouse at the first of several points in an element and moves it along the others.
    pub async fn drag_along(&self, element: ElementRef, offsets: &[Point]) -> Result<()> {
        let Some(first) = offsets.first() else {
            return Err(BrowserError::action("a path needs points"));
        };
        let start = self.point_of(element, Some(*first), false).await?;
        let points: Vec<Point> = offsets
            .iter()
            .map(|point| Point {
                x: start.x + point.x - first.x,
                y: start.y + point.y - first.y,
            })
            .collect();
        self.drag_mouse(element, &points).await
    }

    /// Presses the mouse at the first point of the tab, which must be in the element, and releases it at
    /// the last one.
    pub(super) async fn drag_mouse(&self, element: ElementRef, points: &[Point]) -> Result<()> {
        let (Some(start), Some(end)) = (points.first(), points.last()) else {
            return Ok(());
        };
        self.call_on(element, "arm", json!({})).await?;
        let frame = self.frame_of(element)?;
        let mut events = vec![
            mouse("mouseMoved", *start, "none", 0),
            mouse("mousePressed", *start, "left", 1),
        ];
        for pair in points.windows(2) {
            // A path of many points has moves enough.
            let most = if points.len() == 2 { DRAG_STEPS } else { 1 };
            events.extend(drag_moves(pair[0], pair[1], most));
        }
        // One by one: the browser joins moves that wait together, and pages react to each of them.
        for event in events {
            self.dispatch("Input.dispatchMouseEvent", vec![event])
                .await?;
        }
        let pressed = self.try_call(&frame, "disarm", &Value::Null, crate::cdp::COMMAND_TIMEOUT);
        let pressed = pressed.await.and_then(check);
        let released = mouse("mouseReleased", *end, "left", 1);
        self.dispatch("Input.dispatchMouseEvent", vec![released])
            .await?;
        pressed.map(drop)
    }

    pub async fn press_all(&self, keys: &[KeyPress]) -> Result<()> {
        let events = keys.iter().flat_map(KeyPress::events).collect();
        self.dispatch("Input.dispatchKeyEvent", events).await
    }

    /// Types into the focused field. Short plain text is typed key by key, since some fields react to
    /// keys only.
    pub async fn type_text(&self, text: &str) -> Result<()> {
        let is_plain = text.chars().all(|c| c.is_ascii_graphic() || c == ' ');
        if is_plain && text.len() <= MAX_TYPED_KEYS {
            let events = text.chars().flat_map(|c| KeyPress::from_char(c).events());
            return self
                .dispatch("Input.dispatchKeyEvent", events.collect())
                .await;
        }
        self.dispatch("Input.insertText", vec![json!({ "text": text })])
            .await
    }

    /// Sends events in order, without waiting in between, and waits for the last one. A dialog that an
    /// event opens is no error.
    async fn dispatch(&self, method: &str, events: Vec<Value>) -> Result<()> {
        let session = self.with_tab(|tab| tab.session.clone())?;
        let cdp = &self.browser.cdp;
        let mut waiting = Vec::new();
        for event in events {
            waiting.push(cdp.start(Some(&session), method, event)?.1);
        }
        let all = async {
            for response in waiting {
                let limit = crate::cdp::COMMAND_TIMEOUT;
                match tokio::time::timeout(limit, response).await {
                    Ok(response) => response.unwrap_or(Err(BrowserError::Closed))?,
                    Err(_late) => return Err(BrowserError::Unresponsive(limit)),
                };
            }
            Ok(())
        };
        match self.unless_dialog(all).await {
            Err(BrowserError::DialogOpen(_)) => Ok(()),
            // The event may have closed the tab.
            Err(BrowserError::NoPage) => Ok(()),
            result => result,
        }
    }
}

/// Returns the moves of the mouse from one point to another. Pages take several moves for a drag.
fn drag_moves(from: Point, to: Point, steps: u32) -> Vec<Value> {
    let at = |step: u32| {
        let part = f64::from(step) / f64::from(steps);
        let point = Point {
            x: from.x + (to.x - from.x) * part,
            y: from.y + (to.y - from.y) * part,
        };
        let mut event = mouse("mouseMoved", point, "left", 0);
        event["buttons"] = json!(1);
        event
    };
    (1..=steps).map(at).collect()
}

fn mouse(kind: &str, point: Point, button: &str, count: u32) -> Value {
    json!({
        "type": kind, "x": point.x, "y": point.y, "button": button, "clickCount": count,
        "pointerType": "mouse",
    })
}
