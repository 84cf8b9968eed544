//! What one reply of a model may hold while it comes (B105). A provider that never stops costs no more memory than this.
//!
//! Every cap is several times what the longest reply of any known model takes: about 400,000 tokens of four bytes each.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{Fragment, ModelError};

const MEGABYTE: usize = 1024 * 1024;

/// The words of a reply.
pub const MAX_TEXT_BYTES: usize = 4 * MEGABYTE;
/// Thoughts and their seals together.
pub const MAX_THOUGHT_BYTES: usize = 4 * MEGABYTE;
/// Ids, names and arguments of all calls together.
pub const MAX_CALL_BYTES: usize = 2 * MEGABYTE;
/// Providers stop at 128 tools in a request; nobody calls each of them at once.
pub const MAX_CALLS: usize = 128;
/// Blocks of a reply that have begun and not ended. Providers send one after the other.
pub const MAX_OPEN_BLOCKS: usize = 128;
/// One server-sent event: a whole reply may come in one, with its frame around it.
pub const MAX_EVENT_BYTES: usize = MAX_TEXT_BYTES + MEGABYTE;
/// A reply that does not stream.
pub const MAX_BODY_BYTES: usize = 2 * MAX_TEXT_BYTES;
/// Values in one JSON document, and in all arguments and seals. Each takes up to 60 times the memory of its bytes.
pub const MAX_VALUES: usize = 20_000;
/// Everything that comes over the wire for one reply. Each token may come in an event of its own, with 300 bytes of frame.
pub const MAX_WIRE_BYTES: usize = 128 * MEGABYTE;
/// Pieces of a reply: whoever keeps or shows them holds more than their bytes.
pub const MAX_FRAGMENTS: usize = 500_000;
/// What an error instead of a reply may say.
pub const MAX_ERROR_BYTES: usize = 64 * 1024;

/// What a thought takes beside its words.
const THOUGHT_OVERHEAD: usize = 256;

/// What was too much of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Excess {
    Text,
    Thoughts,
    CallBytes,
    Calls,
    OpenBlocks,
    Event,
    Whole,
    Values,
    Wire,
    Fragments,
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = |bytes: usize| bytes / MEGABYTE;
        match self {
            Self::Text => write!(f, "more than {} MB of text", megabytes(MAX_TEXT_BYTES)),
            Self::Thoughts => write!(
                f,
                "more than {} MB of thoughts",
                megabytes(MAX_THOUGHT_BYTES)
            ),
            Self::CallBytes => write!(f, "more than {} MB of calls", megabytes(MAX_CALL_BYTES)),
            Self::Calls => write!(f, "more than {MAX_CALLS} calls"),
            Self::OpenBlocks => write!(f, "more than {MAX_OPEN_BLOCKS} blocks at once"),
            Self::Event => write!(
                f,
                "more than {} MB in one event",
                megabytes(MAX_EVENT_BYTES)
            ),
            Self::Whole => write!(f, "more than {} MB in one piece", megabytes(MAX_BODY_BYTES)),
            Self::Values => write!(f, "more than {MAX_VALUES} values of JSON"),
            Self::Wire => write!(
                f,
                "more than {} MB without an end",
                megabytes(MAX_WIRE_BYTES)
            ),
            Self::Fragments => write!(f, "more than {MAX_FRAGMENTS} pieces"),
        }
    }
}

/// Counts a reply as it comes, and refuses what is over a cap.
#[derive(Clone, Debug, Default)]
pub struct ReplyMeter {
    text: usize,
    thoughts: usize,
    call_bytes: usize,
    calls: usize,
    values: usize,
    fragments: usize,
}

impl ReplyMeter {
    pub fn add_text(&mut self, bytes: usize) -> Result<(), ModelError> {
        count(&mut self.text, bytes, MAX_TEXT_BYTES, Excess::Text)
    }

    /// Words of thoughts, or of their seals.
    pub fn add_thought(&mut self, bytes: usize) -> Result<(), ModelError> {
        count(
            &mut self.thoughts,
            bytes,
            MAX_THOUGHT_BYTES,
            Excess::Thoughts,
        )
    }

    /// A call that begins.
    pub fn add_call(&mut self) -> Result<(), ModelError> {
        count(&mut self.calls, 1, MAX_CALLS, Excess::Calls)
    }

    /// More of a call's id, name or arguments.
    pub fn add_call_bytes(&mut self, bytes: usize) -> Result<(), ModelError> {
        count(
            &mut self.call_bytes,
            bytes,
            MAX_CALL_BYTES,
            Excess::CallBytes,
        )
    }

    /// Values of arguments or of a seal.
    pub fn add_values(&mut self, values: usize) -> Result<(), ModelError> {
        count(&mut self.values, values, MAX_VALUES, Excess::Values)
    }

    pub fn add_fragment(&mut self, fragment: &Fragment) -> Result<(), ModelError> {
        count(&mut self.fragments, 1, MAX_FRAGMENTS, Excess::Fragments)?;
        match fragment {
            Fragment::Text(text) => self.add_text(text.len()),
            Fragment::Thought(thought) => {
                self.add_thought(thought.text.len() + THOUGHT_OVERHEAD)?;
                let Some(seal) = &thought.seal else {
                    return Ok(());
                };
                self.add_values(count_values(seal))?;
                self.add_thought(seal.to_string().len())
            }
            Fragment::Call(call) => {
                self.add_call()?;
                self.add_values(count_values(&call.arguments))?;
                let arguments = call.arguments.to_string().len();
                self.add_call_bytes(call.id.as_str().len() + call.name.len() + arguments)
            }
            Fragment::Usage(_) | Fragment::Done => Ok(()),
        }
    }

    /// Everything that was said, thought and called so far.
    pub fn bytes(&self) -> usize {
        self.text + self.thoughts + self.call_bytes
    }
}

fn count_values(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count_values).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(count_values).sum::<usize>(),
        _ => 1,
    }
}

fn count(sum: &mut usize, more: usize, most: usize, excess: Excess) -> Result<(), ModelError> {
    *sum = sum.saturating_add(more);
    if *sum > most {
        Err(ModelError::TooLarge(excess))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{CallId, Usage};
    use crate::model::{Thought, ToolCall};
    use serde_json::json;

    fn refused(mut piece: impl FnMut(usize) -> Fragment) -> (usize, Excess) {
        let mut meter = ReplyMeter::default();
        for number in 1.. {
            if let Err(ModelError::TooLarge(excess)) = meter.add_fragment(&piece(number)) {
                return (number, excess);
            }
        }
        unreachable!()
    }

    /// B105
    #[test]
    fn every_kind_of_fragment_has_its_cap() {
        let text = || "x".repeat(1024);
        let call = |name: String, id: String| {
            Fragment::Call(ToolCall {
                id: CallId::new(id),
                name,
                arguments: json!({}),
            })
        };
        let thought = |text: String, seal| {
            Fragment::Thought(Thought {
                provider: "p".into(),
                text,
                seal,
                call: None,
            })
        };
        assert_eq!(refused(|_| Fragment::Text(text())), (4097, Excess::Text));
        assert_eq!(
            refused(|_| call("a".into(), String::new())),
            (129, Excess::Calls)
        );
        assert_eq!(
            refused(|_| call("n".repeat(100_000), String::new())).1,
            Excess::CallBytes
        );
        assert_eq!(
            refused(|_| call(String::new(), "i".repeat(100_000))).1,
            Excess::CallBytes
        );
        assert_eq!(refused(|_| thought(text(), None)).1, Excess::Thoughts);
        assert_eq!(
            refused(|_| thought(String::new(), Some(json!(text())))).1,
            Excess::Thoughts
        );
        assert_eq!(
            refused(|_| thought(String::new(), None)).1,
            Excess::Thoughts,
            "empty ones are not free"
        );
        let many = || json!(vec![json!({ "": 0 }); 2_000]);
        let arguments = || ToolCall {
            id: CallId::new(""),
            name: String::new(),
            arguments: many(),
        };
        assert_eq!(
            refused(|_| Fragment::Call(arguments())),
            (5, Excess::Values)
        );
        assert_eq!(
            refused(|_| thought(String::new(), Some(many()))),
            (5, Excess::Values)
        );
        assert_eq!(
            refused(|_| Fragment::Usage(Usage::default())),
            (MAX_FRAGMENTS + 1, Excess::Fragments)
        );
    }

    #[test]
    fn what_was_too_much_is_named() {
        let error = ModelError::TooLarge(Excess::Text);
        assert_eq!(
            error.to_string(),
            "the reply is too long: more than 4 MB of text"
        );
        let written = serde_json::to_string(&error).unwrap();
        assert_eq!(
            serde_json::from_str::<ModelError>(&written).unwrap(),
            error,
            "recordings hold it"
        );
    }
}
