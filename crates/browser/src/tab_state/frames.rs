//! The frames of a tab and their documents.

use std::sync::Arc;

use lango_text::sanitize::truncated_line;
use serde_json::Value;

use super::{Tab, text};
use crate::cdp::CdpSession;

const MAX_TYPE_CHARS: usize = 80;
const MAX_REALM_CHARS: usize = 80;

pub type FrameId = Arc<str>;

/// The id of a document: the protocol's loader. A frame has another one after each navigation.
pub type DocumentId = Arc<str>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub id: FrameId,
    /// The session through which the frame is reached; frames of other sites have their own.
    pub session: CdpSession,
    pub parent: Option<FrameId>,
    pub url: String,
    pub document: DocumentId,
    /// The document whose content is complete.
    pub ready: Option<DocumentId>,
    /// The execution context of Lango's script in the current document.
    pub world: Option<i64>,
    pub is_navigating: bool,
    /// True while a document is requested that has not arrived.
    pub has_request: bool,
    /// True if the last request for a document sent a form.
    sends_form: bool,
    /// The response to the last request for a document. It may be a file, which is no document.
    pub response: Option<DocumentResponse>,
}

/// The head of the response to a request for a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentResponse {
    pub url: String,
    pub status: u16,
    pub media_type: String,
    /// The name of the area that needs a user name and a password.
    pub realm: Option<String>,
    pub is_form_response: bool,
}

impl Frame {
    fn new(id: &str, session: &CdpSession, parent: Option<FrameId>) -> Self {
        Self {
            id: id.into(),
            session: session.clone(),
            parent,
            url: String::new(),
            document: "".into(),
            ready: None,
            world: None,
            is_navigating: false,
            has_request: false,
            sends_form: false,
            response: None,
        }
    }

    pub(super) fn begin_request(&mut self, request: &Value) {
        self.has_request = true;
        self.sends_form = text(request, "method") != "GET";
        self.response = None;
    }

    pub(super) fn receive_response(&mut self, response: &Value) {
        let headers = response["headers"].as_object().into_iter().flatten();
        let mut challenges = headers
            .filter(|(name, _)| name.eq_ignore_ascii_case("www-authenticate"))
            .filter_map(|(_, value)| value.as_str());
        self.response = Some(DocumentResponse {
            url: text(response, "url").to_owned(),
            status: response["status"].as_u64().unwrap_or_default() as u16,
            media_type: truncated_line(text(response, "mimeType"), MAX_TYPE_CHARS),
            realm: challenges.next().map(realm),
            is_form_response: self.sends_form,
        });
    }

    pub fn is_ready(&self) -> bool {
        self.ready.as_ref() == Some(&self.document)
    }
}

/// Returns the realm of a challenge, such as `Basic realm="Staff"`.
fn realm(challenge: &str) -> String {
    let lower = challenge.to_ascii_lowercase();
    let start = lower.find("realm=").map(|at| at + "realm=".len());
    let value = start.and_then(|at| challenge.get(at..)).unwrap_or_default();
    let value = match value.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => value.split(',').next(),
    };
    truncated_line(value.unwrap_or_default().trim(), MAX_REALM_CHARS)
}

impl Tab {
    /// Makes a session responsible for a frame: a new tab, or a frame that moved to another process.
    pub(super) fn adopt_frame(&mut self, id: &str, session: &CdpSession) {
        let frame = self
            .frames
            .entry(id.into())
            .or_insert_with(|| Frame::new(id, session, None));
        frame.session = session.clone();
        frame.world = None;
    }

    pub(super) fn add_child_frame(&mut self, session: &CdpSession, params: &Value) {
        let id = text(params, "frameId");
        let parent = Some(text(params, "parentFrameId").into());
        let frame = Frame::new(id, session, parent);
        self.frames.entry(id.into()).or_insert(frame);
    }

    /// Removes a frame and the frames in it.
    pub(super) fn remove_frame(&mut self, id: &str) {
        self.frames.remove(id);
        let children: Vec<_> = self
            .frames
            .values()
            .filter(|frame| frame.parent.as_deref() == Some(id))
            .map(|frame| frame.id.clone())
            .collect();
        for child in children {
            self.remove_frame(&child);
        }
    }

    pub(super) fn drop_session(&mut self, session: &CdpSession) {
        self.frames.retain(|_, frame| frame.session != *session);
    }

    pub(super) fn navigate_frame(&mut self, session: &CdpSession, info: &Value) {
        let id = text(info, "id");
        let children: Vec<_> = self
            .frames
            .values()
            .filter(|frame| frame.parent.as_deref() == Some(id))
            .map(|frame| frame.id.clone())
            .collect();
        for child in children {
            self.remove_frame(&child);
        }
        if id == &*self.id {
            self.chooser = None;
        }
        let frame = self
            .frames
            .entry(id.into())
            .or_insert_with(|| Frame::new(id, session, None));
        frame.session = session.clone();
        if let Some(parent) = info["parentId"].as_str() {
            frame.parent = Some(parent.into());
        }
        frame.url = text(info, "url").to_owned() + text(info, "urlFragment");
        frame.document = text(info, "loaderId").into();
        frame.world = None;
        frame.is_navigating = false;
        frame.has_request = false;
    }

    pub(super) fn add_frame_tree(&mut self, session: &CdpSession, tree: &Value) {
        let info = &tree["frame"];
        let id = text(info, "id");
        let parent = info["parentId"].as_str().map(Into::into);
        let frame = self
            .frames
            .entry(id.into())
            .or_insert_with(|| Frame::new(id, session, parent));
        // Events may have arrived first; they are newer.
        if frame.document.is_empty() {
            frame.url = text(info, "url").to_owned() + text(info, "urlFragment");
            frame.document = text(info, "loaderId").into();
        }
        for child in tree["childFrames"].as_array().into_iter().flatten() {
            self.add_frame_tree(session, child);
        }
    }

    pub(super) fn stop_navigating(&mut self) {
        for frame in self.frames.values_mut() {
            frame.is_navigating = false;
        }
    }
}
