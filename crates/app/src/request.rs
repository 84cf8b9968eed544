//! The user's request, with piped input.

use lango_domain::event::{Principal, SessionId};
use lango_domain::{Label, LabeledText};
use lango_engine::TurnRequest;
use serde::{Deserialize, Serialize};

const STDIN: &str = "standard input";

/// A request of the user. Typed text is the user's own; piped text is data of unknown origin
/// (B101).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserRequest {
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piped: Option<String>,
}

impl UserRequest {
    pub fn typed(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            piped: None,
        }
    }

    /// Builds the turn's request. Piped text alone becomes the request, but keeps its label.
    pub fn into_turn(self, session: SessionId, principal: Principal) -> TurnRequest {
        let label = Label::untrusted(STDIN).joined(&Label::private(STDIN));
        match self.piped {
            Some(piped) if self.text.is_empty() => TurnRequest {
                label,
                ..TurnRequest::from_user(session, principal, piped)
            },
            Some(text) => {
                let attachments = vec![("stdin".to_owned(), LabeledText { text, label })];
                TurnRequest {
                    attachments,
                    ..TurnRequest::from_user(session, principal, self.text)
                }
            }
            None => TurnRequest::from_user(session, principal, self.text),
        }
    }
}
