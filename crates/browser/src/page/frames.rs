//! The place of a frame in its tab.

use serde_json::{Value, json};

use super::{Page, script_value};
use crate::error::{BrowserError, Result};
use crate::tab_state::{Frame, FrameId};

/// A point in the viewport of a frame or of the tab.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
}

impl Page {
    /// Returns the child frames of a frame.
    pub(super) fn child_frames(&self, parent: &str) -> Vec<Frame> {
        let children = self.with_tab(|tab| {
            let frames = tab.frames.values();
            frames
                .filter(|frame| frame.parent.as_deref() == Some(parent))
                .cloned()
                .collect()
        });
        children.unwrap_or_default()
    }

    /// Calls a function of the script in the parent document with the element of a frame.
    pub(super) async fn call_with_owner(
        &self,
        frame: &Frame,
        function: &str,
        args: Value,
    ) -> Result<Value> {
        let parent = frame
            .parent
            .clone()
            .ok_or_else(|| BrowserError::Protocol("the frame has no parent".to_owned()))?;
        let (world, place) = self.world(&parent).await?;
        let session = self.frame(&parent)?.session;
        let cdp = &self.browser.cdp;
        let owner = json!({ "frameId": &*frame.id });
        let owner = cdp.call(Some(&session), "DOM.getFrameOwner", owner).await?;
        let node = json!({ "backendNodeId": owner["backendNodeId"], "executionContextId": world });
        let node = cdp.call(Some(&session), "DOM.resolveNode", node).await?;
        let next = self.lock_refs().next();
        let declaration = format!(
            "function(args, next) {{ const L = globalThis.langoPage; L.next = Math.max(L.next, next);
            return {{ result: (({function})(this, args)), next: L.next }}; }}"
        );
        let params = json!({
            "functionDeclaration": declaration, "objectId": node["object"]["objectId"],
            "arguments": [{ "value": args }, { "value": next }], "returnByValue": true,
        });
        let response = cdp.call(Some(&session), "Runtime.callFunctionOn", params);
        let value = script_value(response.await?)?;
        self.lock_refs()
            .record(value["next"].as_u64().unwrap_or_default(), place);
        Ok(value["result"].clone())
    }

    /// Returns the reference of the element that holds a frame.
    pub(super) async fn owner_ref(&self, frame: &Frame) -> Result<u64> {
        let owner = self
            .call_with_owner(frame, "(el) => langoPage.refOf(el)", Value::Null)
            .await?;
        Ok(owner.as_u64().unwrap_or_default())
    }

    /// Converts a point of a frame to a point of the tab. Fails if another element covers the frame there.
    pub(super) async fn to_tab_point(&self, frame: &FrameId, point: Point) -> Result<Point> {
        let mut at = self.frame(frame)?;
        let mut point = point;
        while at.parent.is_some() {
            let offset = self
                .call_with_owner(&at, "(el) => langoPage.frameOffset(el)", Value::Null)
                .await?;
            point.x += offset["x"].as_f64().unwrap_or_default();
            point.y += offset["y"].as_f64().unwrap_or_default();
            let place = json!({ "x": point.x, "y": point.y });
            let function = "(el, at) => langoPage.frameHit(el, at.x, at.y)";
            let covered = self.call_with_owner(&at, function, place).await?;
            if let Some(reason) = covered.as_str() {
                return Err(BrowserError::action(reason));
            }
            let parent = at.parent.clone().unwrap_or_default();
            at = self.frame(&parent)?;
        }
        Ok(point)
    }
}
