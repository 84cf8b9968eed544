//! Collects a model's reply from its fragments, and filters the text that is streamed meanwhile.

use lango_domain::Label;
use lango_domain::event::{CallId, Usage};
use lango_domain::markers::REJECT_MARKER;
use lango_domain::model::{Fragment, ModelError, Thought, ToolCall};
use lango_domain::redaction::Redact;
use lango_domain::reply_limits::ReplyMeter;
use lango_domain::secret_reference::SecretRedactor;

/// The limit for leading white space that is held back; more than that is text.
const MAX_HELD_BYTES: usize = 1_024;

/// A whole reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ModelReply {
    pub thoughts: Vec<Thought>,
    pub text: String,
    pub calls: Vec<ToolCall>,
    pub usage: Option<Usage>,
    /// True if the text explains why the request was not done.
    pub is_not_done: bool,
    /// The joined label of everything the model read.
    pub label: Label,
}

impl ModelReply {
    /// Returns the reason if the reply rejects the task.
    pub fn rejection(&self) -> Option<String> {
        self.text
            .trim_start()
            .strip_prefix(REJECT_MARKER)
            .map(|reason| reason.trim().to_owned())
    }
}

impl Redact for ModelReply {
    fn redact(&mut self, redactor: &SecretRedactor) {
        self.thoughts.redact(redactor);
        self.text.redact(redactor);
        self.calls.redact(redactor);
    }
}

/// Collects fragments and returns the text that may be shown.
#[derive(Debug, Default)]
pub(crate) struct ReplyCollector {
    reply: ModelReply,
    /// Enforces the caps for a reply, whatever model it comes from (B105).
    meter: ReplyMeter,
    reject_filter: RejectFilter,
    done: bool,
}

impl ReplyCollector {
    /// Adds a fragment and returns the text that may be shown now.
    pub fn push(&mut self, fragment: Fragment) -> Result<Option<String>, ModelError> {
        self.meter.add_fragment(&fragment)?;
        match fragment {
            Fragment::Text(text) => {
                self.reply.text.push_str(&text);
                return Ok(self.reject_filter.push(&text));
            }
            Fragment::Call(call) => self.reply.calls.push(call),
            Fragment::Thought(thought) => self.reply.thoughts.push(thought),
            Fragment::Usage(usage) => self.reply.usage = Some(usage),
            Fragment::NotDone => self.reply.is_not_done = true,
            Fragment::Done => self.done = true,
        }
        Ok(None)
    }

    /// Returns the usage of the reply, even if the reply is incomplete.
    pub fn usage(&self) -> Option<&Usage> {
        self.reply.usage.as_ref()
    }

    pub fn bytes(&self) -> usize {
        self.meter.bytes()
    }

    /// Returns the reply if it is complete. `fresh_id` provides an id for every call that is unique in
    /// the turn.
    pub fn finish(
        mut self,
        mut fresh_id: impl FnMut(&CallId) -> CallId,
    ) -> Result<ModelReply, ModelError> {
        if !self.done {
            return Err(ModelError::BrokeOff);
        }
        let ModelReply {
            calls, thoughts, ..
        } = &mut self.reply;
        for call in calls {
            let id = fresh_id(&call.id);
            for thought in thoughts
                .iter_mut()
                .filter(|thought| thought.call.as_ref() == Some(&call.id))
            {
                thought.call = Some(id.clone());
            }
            call.id = id;
        }
        Ok(self.reply)
    }
}

/// Holds the first characters back until they can no longer become the [`REJECT_MARKER`], so that a
/// rejection is never shown.
#[derive(Debug, Default)]
enum RejectFilter {
    Open,
    Rejected,
    #[default]
    Undecided,
    Holding(String),
}

impl RejectFilter {
    fn push(&mut self, text: &str) -> Option<String> {
        let held = match self {
            Self::Open => return Some(text.to_owned()).filter(|text| !text.is_empty()),
            Self::Rejected => return None,
            Self::Undecided => text.to_owned(),
            Self::Holding(held) => std::mem::take(held) + text,
        };
        let start = held.trim_start();
        if start.starts_with(REJECT_MARKER) {
            *self = Self::Rejected;
            None
        } else if REJECT_MARKER.starts_with(start) && held.len() <= MAX_HELD_BYTES {
            *self = Self::Holding(held);
            None
        } else {
            *self = Self::Open;
            Some(held)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_domain::reply_limits::Excess;
    use serde_json::json;

    fn shown(pieces: &[&str]) -> String {
        let mut collector = ReplyCollector::default();
        let pieces = pieces
            .iter()
            .map(|piece| Fragment::Text((*piece).to_owned()));
        pieces
            .filter_map(|piece| collector.push(piece).unwrap())
            .collect()
    }

    /// B55
    #[test]
    fn a_rejection_is_never_shown() {
        let text = " \n[REJECT] not mine";
        for at in 0..text.len() {
            let (a, b) = text.split_at(at);
            assert_eq!(shown(&[a, b]), "");
        }
        let letters: Vec<String> = text.chars().map(String::from).collect();
        assert_eq!(
            shown(&letters.iter().map(String::as_str).collect::<Vec<_>>()),
            ""
        );
    }

    #[test]
    fn all_other_text_is_shown() {
        for text in [
            "hello",
            "[REJ no",
            " [x] [REJECT]",
            "a [REJECT] b",
            "[reject] x",
            "[REJECTED",
        ] {
            let letters: Vec<String> = text.chars().map(String::from).collect();
            let shown = shown(&letters.iter().map(String::as_str).collect::<Vec<_>>());
            let expected = if text.trim_start().starts_with(REJECT_MARKER) {
                ""
            } else {
                text
            };
            assert_eq!(shown, expected);
        }
    }

    #[test]
    fn a_reply_without_an_end_is_an_error() {
        let mut collector = ReplyCollector::default();
        collector.push(Fragment::Text("half".into())).unwrap();
        assert_eq!(collector.finish(Clone::clone), Err(ModelError::BrokeOff));
    }

    fn push_until_error(fragment: impl Fn(usize) -> Fragment) -> ModelError {
        let mut collector = ReplyCollector::default();
        (0..)
            .find_map(|number| collector.push(fragment(number)).err())
            .unwrap()
    }

    /// B105
    #[test]
    fn an_endless_reply_is_stopped() {
        let text = push_until_error(|_| Fragment::Text("x".repeat(1024 * 1024)));
        assert_eq!(text, ModelError::TooLarge(Excess::Text));
        let call = |number: usize| ToolCall {
            id: CallId::new(number.to_string()),
            name: "a".into(),
            arguments: json!({}),
        };
        assert_eq!(
            push_until_error(|number| Fragment::Call(call(number))),
            ModelError::TooLarge(Excess::Calls)
        );
        let thought = || Thought {
            provider: "p".into(),
            text: String::new(),
            seal: None,
            call: None,
        };
        assert_eq!(
            push_until_error(|_| Fragment::Thought(thought())),
            ModelError::TooLarge(Excess::Thoughts)
        );
        assert_eq!(
            push_until_error(|_| Fragment::Usage(Usage::default())),
            ModelError::TooLarge(Excess::Fragments)
        );
    }
}
