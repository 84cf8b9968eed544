//! The user's request, with piped input and attached files.

use lango_domain::event::{Principal, SessionId};
use lango_domain::markers::ATTACHMENTS_ONLY_REQUEST;
use lango_domain::{Attachment, Content, Label, LabeledText};
use lango_engine::TurnRequest;
use serde::{Deserialize, Serialize};

use crate::recording::RecordedAttachment;

const STDIN: &str = "standard input";

/// A request of the user. Typed text is the user's own; piped text and files are data of unknown
/// origin (B101).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserRequest {
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piped: Option<String>,
    /// Text files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub text_files: Vec<TextFile>,
    /// Images and other files.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "recorded")]
    pub attachments: Vec<Attachment>,
}

/// A text file that comes with a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextFile {
    pub name: String,
    pub text: String,
}

impl UserRequest {
    pub fn typed(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Builds the turn's request. Piped text alone becomes the request, but keeps its label.
    pub fn into_turn(self, session: SessionId, principal: Principal) -> TurnRequest {
        let has_files = !self.attachments.is_empty() || !self.text_files.is_empty();
        let (text, piped, label) = match (self.text, self.piped) {
            (text, Some(piped)) if text.is_empty() => (piped, None, data_label(STDIN)),
            (text, None) if text.is_empty() && has_files => {
                (ATTACHMENTS_ONLY_REQUEST.to_owned(), None, Label::default())
            }
            (text, piped) => (text, piped, Label::default()),
        };
        let piped = piped.map(|text| ("stdin".to_owned(), labeled(STDIN, text)));
        let files = self.text_files.into_iter().map(|file| {
            let source = format!("the attachment {}", file.name);
            (format!("file {}", file.name), labeled(&source, file.text))
        });
        TurnRequest {
            label,
            context: piped.into_iter().chain(files).collect(),
            ..TurnRequest::from_user(
                session,
                principal,
                Content {
                    text,
                    attachments: self.attachments,
                },
            )
        }
    }
}

fn labeled(source: &str, text: String) -> LabeledText {
    LabeledText {
        text,
        label: data_label(source),
    }
}

fn data_label(source: &str) -> Label {
    Label::untrusted(source).joined(&Label::private(source))
}

/// Attachments with their bytes, for recordings.
mod recorded {
    use super::{Attachment, RecordedAttachment};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(
        attachments: &[Attachment],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let recorded = attachments.iter().map(RecordedAttachment::from_attachment);
        recorded.collect::<Vec<_>>().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Attachment>, D::Error> {
        let recorded = Vec::<RecordedAttachment>::deserialize(deserializer)?;
        let attachments = recorded.iter().map(RecordedAttachment::to_attachment);
        let damaged = || serde::de::Error::custom("an attachment is damaged");
        attachments.collect::<Option<_>>().ok_or_else(damaged)
    }
}
