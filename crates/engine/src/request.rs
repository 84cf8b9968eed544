//! What a turn is asked to do, with where each part of it comes from.

use lango_domain::event::{Principal, SessionId};
use lango_domain::{Label, LabeledText};

#[derive(Clone, Debug)]
pub struct TurnRequest {
    pub session: SessionId,
    pub principal: Principal,
    pub text: String,
    /// Plain where the user typed the text; that of its source where it came from elsewhere.
    pub label: Label,
    /// Data that comes with the request, with the name that a model reads it under.
    pub attachments: Vec<(String, LabeledText)>,
}

impl TurnRequest {
    /// What a user typed.
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

/// What a turn is to do.
pub(crate) struct NewRequest {
    pub text: String,
    pub label: Label,
    pub attachments: Vec<(String, LabeledText)>,
}
