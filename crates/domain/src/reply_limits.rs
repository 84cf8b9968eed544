//! Caps for one reply of a model (B105). They limit the memory for a provider that never stops.
//!
//! Every cap is several times the longest reply of any known model, which is about 400,000 tokens of
//! four bytes each.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{Fragment, ModelError};

const MEGABYTE: usize = 1024 * 1024;

/// The text of a reply.
pub const MAX_TEXT_BYTES: usize = 4 * MEGABYTE;
/// All thoughts and their seals together.
pub const MAX_THOUGHT_BYTES: usize = 4 * MEGABYTE;
/// The ids, names and arguments of all calls together.
pub const MAX_CALL_BYTES: usize = 2 * MEGABYTE;
/// Calls per reply. Providers accept at most 128 tools in a request, and no reply calls all of them.
pub const MAX_CALLS: usize = 128;
/// Blocks of a reply that have started but not ended. Providers send one after the other.
pub const MAX_OPEN_BLOCKS: usize = 128;
/// One server-sent event, which may contain a whole reply and its framing.
pub const MAX_EVENT_BYTES: usize = MAX_TEXT_BYTES + MEGABYTE;
/// A reply that is not streamed.
pub const MAX_BODY_BYTES: usize = 2 * MAX_TEXT_BYTES;
/// Values in one JSON document, and in all arguments and seals. Each takes up to 60 times the memory
/// of its bytes.
pub const MAX_VALUES: usize = 20_000;
/// All bytes received for one reply. Each token may come in its own event, with 300 bytes of framing.
pub const MAX_WIRE_BYTES: usize = 128 * MEGABYTE;
/// Fragments of a reply; each takes more memory than its bytes.
pub const MAX_FRAGMENTS: usize = 500_000;
/// The body of an error response.
pub const MAX_ERROR_BYTES: usize = 64 * 1024;

/// The memory of a thought in addition to its text.
const THOUGHT_OVERHEAD: usize = 256;

/// The cap that a reply exceeded.
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
            Self::Values => write!(f, "more than {MAX_VALUES} JSON values"),
            Self::Wire => write!(f, "more than {} MB in total", megabytes(MAX_WIRE_BYTES)),
            Self::Fragments => write!(f, "more than {MAX_FRAGMENTS} pieces"),
        }
    }
}

/// Counts a reply as it is received. Returns an error for what exceeds a cap.
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

    /// Counts bytes of a thought or its seal.
    pub fn add_thought(&mut self, bytes: usize) -> Result<(), ModelError> {
        count(
            &mut self.thoughts,
            bytes,
            MAX_THOUGHT_BYTES,
            Excess::Thoughts,
        )
    }

    /// Counts the start of a call.
    pub fn add_call(&mut self) -> Result<(), ModelError> {
        count(&mut self.calls, 1, MAX_CALLS, Excess::Calls)
    }

    /// Counts bytes of a call's id, name or arguments.
    pub fn add_call_bytes(&mut self, bytes: usize) -> Result<(), ModelError> {
        count(
            &mut self.call_bytes,
            bytes,
            MAX_CALL_BYTES,
            Excess::CallBytes,
        )
    }

    /// Counts the JSON values of arguments or a seal.
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
            Fragment::Usage(_) | Fragment::NotDone | Fragment::Done => Ok(()),
        }
    }

    /// Returns the bytes of text, thoughts and calls so far.
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

fn count(total: &mut usize, more: usize, max: usize, excess: Excess) -> Result<(), ModelError> {
    *total = total.saturating_add(more);
    if *total > max {
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

    fn first_excess(mut piece: impl FnMut(usize) -> Fragment) -> (usize, Excess) {
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
        assert_eq!(
            first_excess(|_| Fragment::Text(text())),
            (4097, Excess::Text)
        );
        assert_eq!(
            first_excess(|_| call("a".into(), String::new())),
            (129, Excess::Calls)
        );
        assert_eq!(
            first_excess(|_| call("n".repeat(100_000), String::new())).1,
            Excess::CallBytes
        );
        assert_eq!(
            first_excess(|_| call(String::new(), "i".repeat(100_000))).1,
            Excess::CallBytes
        );
        assert_eq!(first_excess(|_| thought(text(), None)).1, Excess::Thoughts);
        assert_eq!(
            first_excess(|_| thought(String::new(), Some(json!(text())))).1,
            Excess::Thoughts
        );
        assert_eq!(
            first_excess(|_| thought(String::new(), None)).1,
            Excess::Thoughts,
            "empty thoughts are not free"
        );
        let many = || json!(vec![json!({ "": 0 }); 2_000]);
        let arguments = || ToolCall {
            id: CallId::new(""),
            name: String::new(),
            arguments: many(),
        };
        assert_eq!(
            first_excess(|_| Fragment::Call(arguments())),
            (5, Excess::Values)
        );
        assert_eq!(
            first_excess(|_| thought(String::new(), Some(many()))),
            (5, Excess::Values)
        );
        assert_eq!(
            first_excess(|_| Fragment::Usage(Usage::default())),
            (MAX_FRAGMENTS + 1, Excess::Fragments)
        );
    }

    #[test]
    fn the_error_names_the_exceeded_cap() {
        let error = ModelError::TooLarge(Excess::Text);
        assert_eq!(
            error.to_string(),
            "the reply is too large: more than 4 MB of text"
        );
        let json = serde_json::to_string(&error).unwrap();
        assert_eq!(
            serde_json::from_str::<ModelError>(&json).unwrap(),
            error,
            "recordings contain it"
        );
    }
}
