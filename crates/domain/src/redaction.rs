//! Redaction of the values that the engine stores, publishes and sends (B130).

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use crate::content::{Attachment, Content};
use crate::event::{Event, EventBody, Grant, NewEvent};
use crate::flow::Label;
use crate::model::{Message, ModelRequest, Thought, ToolCall, ToolDeclaration};
use crate::secret_reference::SecretRedactor;

/// A value from which secrets can be removed.
pub trait Redact {
    fn redact(&mut self, redactor: &SecretRedactor);
}

impl Redact for String {
    fn redact(&mut self, redactor: &SecretRedactor) {
        redactor.redact_in_place(self);
    }
}

impl<T: Redact> Redact for Option<T> {
    fn redact(&mut self, redactor: &SecretRedactor) {
        self.iter_mut().for_each(|value| value.redact(redactor));
    }
}

impl<T: Redact> Redact for [T] {
    fn redact(&mut self, redactor: &SecretRedactor) {
        self.iter_mut().for_each(|value| value.redact(redactor));
    }
}

/// Redacts texts, names of fields, and numbers that spell a value.
impl Redact for Value {
    fn redact(&mut self, redactor: &SecretRedactor) {
        match self {
            Self::Null | Self::Bool(_) => {}
            Self::Number(number) => {
                if let Cow::Owned(redacted) = redactor.redact(&number.to_string()) {
                    *self = Self::String(redacted);
                }
            }
            Self::String(text) => text.redact(redactor),
            Self::Array(items) => items.redact(redactor),
            Self::Object(fields) => {
                fields.values_mut().for_each(|value| value.redact(redactor));
                if fields.keys().any(|name| redactor.finds_in(name)) {
                    let renamed = std::mem::take(fields).into_iter();
                    let redact = |name: String| redactor.redact(&name).into_owned();
                    fields.extend(renamed.map(|(name, value)| (redact(name), value)));
                }
            }
        }
    }
}

impl Redact for Content {
    fn redact(&mut self, redactor: &SecretRedactor) {
        if let Cow::Owned(redacted) = redactor.redact(&self.text) {
            for attachment in &mut self.attachments {
                attachment.at = attachment.at.map(|at| {
                    let at = usize::try_from(at).unwrap_or(usize::MAX);
                    let before = self.text.floor_char_boundary(at.min(self.text.len()));
                    let shifted = redactor.redact(&self.text[..before]).len();
                    redacted.floor_char_boundary(shifted.min(redacted.len())) as u64
                });
            }
            self.text = redacted;
        }
        self.attachments.redact(redactor);
    }
}

/// Redacts the name, and the bytes of a text file. Values in images and other binary files stay.
impl Redact for Attachment {
    fn redact(&mut self, redactor: &SecretRedactor) {
        self.name.redact(redactor);
        let Some(mut text) = self.text() else {
            return;
        };
        if redactor.redact_in_place(&mut text) {
            let (at, media_type) = (self.at, Some(self.media_type.as_str()));
            if let Ok(redacted) = Self::new(text.into_bytes(), &self.name, media_type) {
                *self = Self { at, ..redacted };
            }
        }
    }
}

/// A provider refuses a changed thought with its seal, so the seal is removed as well.
impl Redact for Thought {
    fn redact(&mut self, redactor: &SecretRedactor) {
        if redactor.redact_in_place(&mut self.text) {
            self.seal = None;
        }
    }
}

impl Redact for ToolCall {
    fn redact(&mut self, redactor: &SecretRedactor) {
        self.name.redact(redactor);
        self.arguments.redact(redactor);
    }
}

impl Redact for Label {
    fn redact(&mut self, redactor: &SecretRedactor) {
        self.sources_mut()
            .for_each(|source| source.redact(redactor));
    }
}

impl Redact for Grant {
    fn redact(&mut self, redactor: &SecretRedactor) {
        match self {
            Self::SameCall(arguments) => arguments.redact(redactor),
            Self::Pattern(pattern) => pattern.redact(redactor),
        }
    }
}

impl Redact for NewEvent {
    fn redact(&mut self, redactor: &SecretRedactor) {
        self.label.redact(redactor);
        self.body.redact(redactor);
    }
}

impl Redact for Event {
    fn redact(&mut self, redactor: &SecretRedactor) {
        self.label.redact(redactor);
        self.body.redact(redactor);
    }
}

/// Returns a stored event without the values, or `None` if it contains none.
pub fn redacted_event(event: &Event, redactor: &SecretRedactor) -> Option<Event> {
    let mut redacted = event.clone();
    redacted.redact(redactor);
    (redacted != *event).then_some(redacted)
}

impl Redact for EventBody {
    fn redact(&mut self, redactor: &SecretRedactor) {
        match self {
            Self::User(content) | Self::Report(content) | Self::Answer(content) => {
                content.redact(redactor);
            }
            Self::Context { source, text } => {
                source.redact(redactor);
                text.redact(redactor);
            }
            Self::Digest { text, .. } | Self::Note { text } => text.redact(redactor),
            Self::Thought(thought) => thought.redact(redactor),
            Self::Transfer { task, .. } => task.redact(redactor),
            Self::TransferResult { detail, .. } => detail.redact(redactor),
            Self::ToolCall { args, .. } => args.redact(redactor),
            Self::ToolResult {
                content,
                attachments,
                error,
                advice,
                ..
            } => {
                let mut whole = Content {
                    text: std::mem::take(content),
                    attachments: std::mem::take(attachments),
                };
                whole.redact(redactor);
                (*content, *attachments) = (whole.text, whole.attachments);
                error.redact(redactor);
                advice.redact(redactor);
            }
            Self::Approval {
                shows,
                tainted_by,
                grant,
                ..
            } => {
                shows.redact(redactor);
                tainted_by.redact(redactor);
                grant.redact(redactor);
            }
            Self::Rejected { reason } => reason.redact(redactor),
            Self::TurnFailed { message, hint, .. } => {
                message.redact(redactor);
                hint.redact(redactor);
            }
            Self::Usage(_) | Self::TurnDone { .. } => {}
        }
    }
}

impl Redact for ToolDeclaration {
    fn redact(&mut self, redactor: &SecretRedactor) {
        self.description.redact(redactor);
        self.parameters.redact(redactor);
        self.phrases.redact(redactor);
    }
}

impl Redact for Message {
    fn redact(&mut self, redactor: &SecretRedactor) {
        match self {
            Self::User(content) => content.redact(redactor),
            Self::Assistant {
                thoughts,
                text,
                calls,
            } => {
                thoughts.redact(redactor);
                text.redact(redactor);
                calls.redact(redactor);
            }
            Self::Results(results) => {
                for result in results {
                    result.content.redact(redactor);
                }
            }
        }
    }
}

impl Redact for ModelRequest {
    fn redact(&mut self, redactor: &SecretRedactor) {
        if let Cow::Owned(redacted) = redactor.redact(&self.system) {
            self.system = redacted.into();
        }
        let is_unchanged = |tool: &ToolDeclaration| {
            let mut redacted = tool.clone();
            redacted.redact(redactor);
            redacted == *tool
        };
        if !self.tools.iter().all(is_unchanged) {
            let mut tools = self.tools.to_vec();
            tools.redact(redactor);
            self.tools = Arc::from(tools);
        }
        self.messages.redact(redactor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::AgentName;
    use crate::event::CallId;
    use serde_json::json;

    const VALUE: &str = "canary-7f3a\"9";

    fn redactor() -> SecretRedactor {
        SecretRedactor::new([
            ("A".to_owned(), VALUE.to_owned()),
            ("PIN".to_owned(), "48151623".to_owned()),
        ])
    }

    fn attachment(text: &str) -> Attachment {
        Attachment::new(text.as_bytes().to_vec(), "a.txt", Some("text/plain")).unwrap()
    }

    /// B130
    #[test]
    fn json_is_redacted_in_names_texts_and_numbers() {
        let mut value = json!({ "a": [VALUE, { VALUE: 48_151_623 }], "b": true, "c": 1.5 });
        value.redact(&redactor());
        assert_eq!(
            value,
            json!({
                "a": ["[secret A: set, hidden]", { "[secret A: set, hidden]": "[secret PIN: set, hidden]" }],
                "b": true,
                "c": 1.5
            })
        );
    }

    /// B130
    #[test]
    fn attachments_keep_their_place_and_lose_the_value() {
        let mut content = Content::from(format!("a {VALUE} b"));
        content.attach(attachment(&format!("key={VALUE}\n")));
        content.text.push_str(" end");
        content.redact(&redactor());
        assert_eq!(content.text, "a [secret A: set, hidden] b end");
        assert_eq!(
            content.attachments[0].text().unwrap(),
            "key=[secret A: set, hidden]\n"
        );
        let at = content.attachments[0].at.unwrap() as usize;
        assert_eq!(&content.text[at..], " end");
    }

    /// B130
    #[test]
    fn requests_and_events_are_redacted_whole() {
        let thought = Thought {
            provider: "p".to_owned(),
            text: VALUE.to_owned(),
            seal: Some(json!("sig")),
            call: None,
        };
        let declaration = ToolDeclaration {
            name: "t".to_owned(),
            description: VALUE.to_owned(),
            parameters: json!({ "default": VALUE }),
            phrases: vec![VALUE.to_owned()],
        };
        let call = ToolCall {
            id: CallId::new("c"),
            name: "t".to_owned(),
            arguments: json!({ "x": VALUE }),
        };
        let mut request = ModelRequest {
            agent: AgentName::new("operator").unwrap(),
            system: format!("system {VALUE}").into(),
            tools: Arc::from(vec![declaration]),
            messages: vec![
                Message::User(VALUE.into()),
                Message::Assistant {
                    thoughts: vec![thought.clone()],
                    text: VALUE.to_owned(),
                    calls: vec![call],
                },
            ],
        };
        request.redact(&redactor());
        assert!(!format!("{request:?}").contains("canary"));
        let mut body = EventBody::Approval {
            id: CallId::new("c"),
            tool: "t".to_owned(),
            level: crate::Safety::Safe,
            state: crate::event::ApprovalState::Asked,
            shows: VALUE.to_owned(),
            tainted_by: vec![VALUE.to_owned()],
            by: None,
            grant: Some(Grant::SameCall(json!([VALUE]))),
        };
        body.redact(&redactor());
        assert!(!format!("{body:?}").contains("canary"));
        let mut body = EventBody::Thought(thought);
        body.redact(&redactor());
        assert!(matches!(
            body,
            EventBody::Thought(Thought { seal: None, .. })
        ));
    }
}
