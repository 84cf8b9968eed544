//! The request of a turn, with labels for the origin of each part.

use lango_domain::event::{Principal, SessionId, TurnId};
use lango_domain::redaction::Redact;
use lango_domain::secret_reference::SecretRedactor;
use lango_domain::{Content, Label, LabeledText};

#[derive(Clone, Debug)]
pub struct TurnRequest {
    pub session: SessionId,
    pub principal: Principal,
    pub content: Content,
    /// Plain if the user typed the text, else the label of its source. Attachments have labels of
    /// their own.
    pub label: Label,
    /// Text that comes with the request, each with the source name that a model reads.
    pub context: Vec<(String, LabeledText)>,
    /// The id of the turn, for a caller that has to find it again; a new one if not set.
    pub turn: Option<TurnId>,
}

impl TurnRequest {
    /// Returns a request that a user wrote.
    pub fn from_user(
        session: SessionId,
        principal: Principal,
        content: impl Into<Content>,
    ) -> Self {
        let (label, context) = (Label::default(), Vec::new());
        Self {
            session,
            principal,
            content: content.into(),
            label,
            context,
            turn: None,
        }
    }
}

/// The content of a request.
pub(crate) struct NewRequest {
    pub content: Content,
    pub label: Label,
    pub context: Vec<(String, LabeledText)>,
    pub turn: Option<TurnId>,
}

impl Redact for NewRequest {
    fn redact(&mut self, redactor: &SecretRedactor) {
        self.content.redact(redactor);
        self.label.redact(redactor);
        for (source, context) in &mut self.context {
            source.redact(redactor);
            context.text.redact(redactor);
            context.label.redact(redactor);
        }
    }
}
