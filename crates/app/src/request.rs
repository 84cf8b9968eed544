//! The user's request, with piped input and attached files.

use lango_documents::parse::pdf_text;
use lango_domain::content::AttachmentKind;
use lango_domain::event::{Principal, SessionId};
use lango_domain::markers::ATTACHMENTS_ONLY_REQUEST;
use lango_domain::{Attachment, Content, Label, LabeledText, ReadableKinds};
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
    /// Images and files.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "recorded")]
    pub attachments: Vec<Attachment>,
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

    /// Adapts the files to a model, and returns what the user should know: the text of a PDF file is added
    /// for a model that reads no PDF files.
    pub fn adapt_to(&mut self, readable: ReadableKinds) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut texts = Vec::new();
        for attachment in &self.attachments {
            if attachment.is_text() || readable.contains(attachment.kind()) {
                continue;
            }
            let name = &attachment.name;
            match extracted_text(attachment) {
                Some(text) => {
                    warnings.push(format!(
                        "{name}: the model reads no PDF files, so its text is sent"
                    ));
                    texts.push(text);
                }
                None => warnings.push(format!(
                    "{name}: the model cannot read it and gets only its name (providers.*.reads)"
                )),
            }
        }
        self.attachments.extend(texts);
        warnings
    }

    /// Builds the turn's request. Piped text alone becomes the request, but keeps its label.
    pub fn into_turn(self, session: SessionId, principal: Principal) -> TurnRequest {
        let (text, piped, label) = match (self.text, self.piped) {
            (text, Some(piped)) if text.is_empty() => (piped, None, data_label(STDIN)),
            (text, None) if text.is_empty() && !self.attachments.is_empty() => {
                (ATTACHMENTS_ONLY_REQUEST.to_owned(), None, Label::default())
            }
            (text, piped) => (text, piped, Label::default()),
        };
        let piped = piped.map(|text| ("stdin".to_owned(), labeled(STDIN, text)));
        TurnRequest {
            label,
            context: piped.into_iter().collect(),
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

/// Returns the text of a PDF file as a text file of its own.
fn extracted_text(attachment: &Attachment) -> Option<Attachment> {
    if attachment.kind() != AttachmentKind::Pdf {
        return None;
    }
    let text = pdf_text(attachment.data.bytes()?.to_vec()).ok()?;
    let name = format!("{}.txt", attachment.name);
    Attachment::new(text.into_bytes(), &name, None).ok()
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
