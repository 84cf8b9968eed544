//! The request of a turn, with labels for the origin of each part.

use lango_domain::event::{Principal, SessionId};
use lango_domain::{Label, LabeledText};

#[derive(Clone, Debug)]
pub struct TurnRequest {
    pub session: SessionId,
    pub principal: Principal,
    pub text: String,
    /// Plain if the user typed the text, else the label of its source.
    pub label: Label,
    /// Data that comes with the request, each with the source name that a model reads.
    pub attachments: Vec<(String, LabeledText)>,
}

impl TurnRequest {
    /// Returns a request with text that a user typed.
    pub fn from_user(session: SessionId, principal: Principal, text: impl Into<String>) -> Self {
        let (label, attachments) = (Label::default(), Vec::new());
        Self {
            session,
            principal,
            text: text.into(),
            label,
            attachments,
        }
    }
}

/// The content of a request.
pub(crate) struct NewRequest {
    pub text: String,
    pub label: Label,
    pub attachments: Vec<(String, LabeledText)>,
}
