//! The events of a session: the log, the stream, the API and the tests share them.

mod ids;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::StoreError;
use crate::agent::AgentName;
use crate::content::{Attachment, Content};
use crate::failure::{FailureCode, NotDoneReason};
use crate::flow::Label;
use crate::model::Thought;
use crate::tool::Safety;

pub use ids::{Branch, CallId, Principal, RemoteThread, SessionId, TurnId};

/// The version of the event format.
pub const EVENT_VERSION: u8 = 1;

/// The source name for untrusted results of logs without labels.
const UNLABELED_RESULT_SOURCE: &str = "an earlier result";

/// The author of an event: the user, or an existing agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Author {
    User,
    Agent(AgentName),
    /// An author of an older log whose name is not a valid agent name.
    Unknown(String),
}

impl From<String> for Author {
    fn from(name: String) -> Self {
        match AgentName::new(name.clone()) {
            _ if name == "user" => Self::User,
            Ok(agent) => Self::Agent(agent),
            Err(_) => Self::Unknown(name),
        }
    }
}

impl From<Author> for String {
    fn from(author: Author) -> Self {
        author.to_string()
    }
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User => f.write_str("user"),
            Self::Agent(name) => write!(f, "{name}"),
            Self::Unknown(name) => f.write_str(name),
        }
    }
}

/// A stored event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub v: u8,
    /// Starts at 1, without gaps. Orders the events of a session, which timestamps do not.
    pub seq: u64,
    pub turn: TurnId,
    pub session: SessionId,
    pub author: Author,
    pub branch: Branch,
    pub at: Timestamp,
    /// The label of its content; see [`Event::label`].
    #[serde(default, skip_serializing_if = "Label::is_plain")]
    pub label: Label,
    #[serde(flatten)]
    pub body: EventBody,
}

impl Event {
    /// Returns the label of the event's content. Events that are older than labels only mark untrusted
    /// results.
    pub fn label(&self) -> Cow<'_, Label> {
        match &self.body {
            EventBody::ToolResult {
                untrusted: true, ..
            } if self.label.is_plain() => Cow::Owned(
                Label::untrusted(UNLABELED_RESULT_SOURCE)
                    .joined(&Label::private(UNLABELED_RESULT_SOURCE)),
            ),
            // The user chose the file, but did not write what is in it.
            EventBody::User(content) if !content.attachments.is_empty() => {
                let mut label = self.label.clone();
                for attachment in &content.attachments {
                    label.join(&Label::attachment(&attachment.name));
                }
                Cow::Owned(label)
            }
            _ => Cow::Borrowed(&self.label),
        }
    }

    /// Returns the images and files of the event.
    pub fn attachments(&self) -> &[Attachment] {
        self.body.attachments()
    }
}

/// An event that is not stored yet. The store assigns its number.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    pub turn: TurnId,
    pub author: Author,
    pub branch: Branch,
    pub at: Timestamp,
    pub label: Label,
    pub body: EventBody,
}

impl NewEvent {
    pub fn into_event(self, session: SessionId, seq: u64) -> Event {
        let Self {
            turn,
            author,
            branch,
            at,
            label,
            body,
        } = self;
        Event {
            v: EVENT_VERSION,
            seq,
            turn,
            session,
            author,
            branch,
            at,
            label,
            body,
        }
    }
}

/// The type and content of an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventBody {
    /// The user's request, which starts a turn. The user typed its text if its label is plain.
    User(Content),
    /// Context for this request, which is part of the request in every later one too (B40).
    Context { source: String, text: String },
    /// A digest that replaces the events through a number in all later requests.
    Digest { through: u64, text: String },
    /// A thought of the model before the calls that follow. Only that model reads it.
    Thought(Thought),
    /// Text of an agent in a reply with calls.
    Note { text: String },
    /// A delegation that was accepted. The specialist works in the branch `into`.
    Transfer {
        id: CallId,
        to: AgentName,
        task: Option<String>,
        report_back: bool,
        into: Branch,
    },
    /// The result of a delegation; each has exactly one.
    TransferResult {
        id: CallId,
        outcome: TransferOutcome,
        detail: String,
        /// For a remote agent: its thread, so that the next task can continue it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        thread: Option<RemoteThread>,
    },
    /// A call, stored before it has an effect.
    ToolCall {
        id: CallId,
        tool: String,
        args: Value,
    },
    /// The result of a call.
    ToolResult {
        id: CallId,
        ok: bool,
        content: String,
        /// Images and files of the result.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        attachments: Vec<Attachment>,
        /// The reason of a failure, for the model and for people.
        error: Option<String>,
        /// The reason of a failure, for programs.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        code: Option<ToolCode>,
        /// True for content of files, commands or pages: data, never instructions.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        untrusted: bool,
        /// For a failure: advice from earlier failures.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        advice: Option<String>,
    },
    /// An approval question about a call, or its decision.
    Approval {
        id: CallId,
        tool: String,
        level: Safety,
        state: ApprovalState,
        /// For a question: the description of the call.
        #[serde(skip_serializing_if = "String::is_empty", default)]
        shows: String,
        /// For a question: the untrusted sources that may have caused the call.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        tainted_by: Vec<String>,
        /// For a decision: the decider.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        by: Option<Decider>,
        /// For an approval that holds for the session: its scope.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        grant: Option<Grant>,
    },
    /// The specialist rejected the task.
    Rejected { reason: String },
    /// A specialist's answer to the orchestrator (`report_back`).
    Report(Content),
    /// The answer to the user.
    Answer(Content),
    /// The usage of one model call.
    Usage(Usage),
    /// The turn has an answer.
    TurnDone {
        /// Set if the answer says that the request was not done.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        reason: Option<NotDoneReason>,
    },
    TurnFailed {
        code: FailureCode,
        message: String,
        hint: String,
    },
}

impl EventBody {
    /// Returns the end of a turn that did what was asked.
    pub const fn turn_done() -> Self {
        Self::TurnDone { reason: None }
    }

    /// Returns true for the last event of a turn.
    pub const fn is_turn_end(&self) -> bool {
        matches!(self, Self::TurnDone { .. } | Self::TurnFailed { .. })
    }

    /// Returns the images and files of the content.
    pub fn attachments(&self) -> &[Attachment] {
        match self {
            Self::User(content) | Self::Answer(content) | Self::Report(content) => {
                &content.attachments
            }
            Self::ToolResult { attachments, .. } => attachments,
            _ => &[],
        }
    }

    pub fn attachments_mut(&mut self) -> &mut [Attachment] {
        match self {
            Self::User(content) | Self::Answer(content) | Self::Report(content) => {
                &mut content.attachments
            }
            Self::ToolResult { attachments, .. } => attachments,
            _ => &mut [],
        }
    }
}

/// The outcome of a delegation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransferOutcome {
    Answered,
    Rejected,
    Failed,
    Cancelled,
}

/// The reason why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToolCode {
    /// The tool returned an error.
    #[serde(rename = "tool.failed")]
    Failed,
    #[serde(rename = "tool.timeout")]
    Timeout,
    #[serde(rename = "tool.panicked")]
    Panicked,
    /// The arguments do not match the schema.
    #[serde(rename = "tool.arguments")]
    Arguments,
    /// The caller does not have the tool.
    #[serde(rename = "tool.unknown")]
    Unknown,
    #[serde(rename = "tool.denied")]
    Denied,
    /// Another call has to come first, or was made instead.
    #[serde(rename = "tool.not_run")]
    NotRun,
    /// The turn ended before the call did.
    #[serde(rename = "tool.interrupted")]
    Interrupted,
}

/// The state of an approval question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    Asked,
    Approved,
    Denied,
    TimedOut,
    NobodyThere,
    /// The turn ended before the question was answered.
    Interrupted,
}

/// The decider about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decider {
    /// The user who was asked.
    User,
    /// `--yes` on the command line.
    Yes,
    /// A rule in `security.approval.rules`.
    Rule,
    /// The policy for the level in `security.approval`.
    Policy,
    /// A grant from earlier in the session.
    Grant,
}

/// An approval for the rest of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// For calls with equal arguments.
    SameCall(Value),
    /// For calls whose subject matches the pattern.
    Pattern(String),
}

/// The tokens of one model call, and their cost if the price is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Empty if the provider reported no usage; then all other fields are unknown too.
    pub model: String,
    pub input: u64,
    pub output: u64,
    /// The part of `input` that the provider had cached.
    pub cached: u64,
    /// The part of `input` that the provider wrote into its cache.
    #[serde(default)]
    pub cache_written: u64,
    /// The part of `output` that was thinking.
    pub reasoning: u64,
    /// `None` if the price is unknown, which is not zero.
    pub cost_usd: Option<f64>,
}

/// An update of a running turn.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// Provisional: a piece of streamed text, not part of the log (B71).
    Delta { author: AgentName, text: String },
    /// Provisional: output of a running call.
    ToolOutputDelta {
        author: AgentName,
        call: CallId,
        text: String,
    },
    /// An event that was stored.
    Event(Arc<Event>),
    /// The store failed, so no more events are published: the turn ends here.
    StoreFailed(StoreError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_flat_json_object() {
        let new_event = NewEvent {
            turn: TurnId::new("t1"),
            author: Author::Agent(AgentName::new("operator").unwrap()),
            branch: Branch::root(&AgentName::new("lango-orchestrator").unwrap()),
            at: Timestamp::UNIX_EPOCH,
            label: Label::default(),
            body: EventBody::ToolCall {
                id: CallId::new("c1"),
                tool: "fs_read".into(),
                args: serde_json::json!({}),
            },
        };
        let event = new_event.into_event(SessionId::new("s"), 3);
        let json = serde_json::to_value(&event).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "v": 1, "seq": 3, "turn": "t1", "session": "s", "author": "operator", "branch": "lango-orchestrator",
                "at": "1970-01-01T00:00:00Z", "type": "tool_call", "id": "c1", "tool": "fs_read", "args": {},
            })
        );
        assert_eq!(serde_json::from_value::<Event>(json).unwrap(), event);
    }

    /// B101: an unlabeled result of an older log is not treated as plain.
    #[test]
    fn untrusted_results_of_older_logs_have_a_label() {
        let event: Event = serde_json::from_value(serde_json::json!({
            "v": 1, "seq": 1, "turn": "t", "session": "s", "author": "operator", "branch": "b", "at": "1970-01-01T00:00:00Z",
            "type": "tool_result", "id": "c", "ok": true, "content": "x", "error": null, "untrusted": true,
        }))
        .unwrap();
        assert!(
            event.label.is_plain() && event.label().is_untrusted() && event.label().is_private()
        );
    }

    #[test]
    fn authors_round_trip() {
        for name in ["user", "operator", "Someone Old"] {
            assert_eq!(Author::from(name.to_owned()).to_string(), name);
        }
    }
}
