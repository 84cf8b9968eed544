//! The log of a session: what happened, who did it, in which order. The stream, the API and the tests share it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::AgentName;
use crate::failure::FailureCode;
use crate::flow::Label;
use crate::model::Thought;
use crate::session::StoreError;
use crate::tool::Safety;

/// The version of the event's form.
pub const EVENT_VERSION: u8 = 1;

const UNLABELED_RESULT_SOURCE: &str = "an earlier result";

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id!(
    /// One conversation.
    SessionId
);
text_id!(
    /// One request of the user and everything done for it.
    TurnId
);
text_id!(
    /// Whom a session, and everything in it, belongs to (B74).
    Principal
);
text_id!(
    /// One call of one reply, as the model named it or as the engine did where it had to.
    CallId
);
text_id!(
    /// Where a remote agent's side of a session stands; only whoever speaks with it can read this.
    RemoteThread
);
text_id!(
    /// The line of work that an event belongs to: the root's, or a delegation's below it.
    Branch
);

impl Principal {
    /// Whoever sits at this machine.
    pub fn local() -> Self {
        Self::new("local")
    }
}

impl Branch {
    pub fn root(root: &AgentName) -> Self {
        Self::new(root.as_str())
    }

    /// The branch of the `number`th delegation of a turn.
    pub fn delegation(&self, to: &AgentName, number: usize) -> Self {
        Self(format!("{}/{to}.{number}", self.0))
    }
}

/// Who an event comes from: the user, or an agent that exists.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Author {
    User,
    Agent(AgentName),
    /// An author of an older log whose name is no agent's name any more.
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

/// Something that happened, as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub v: u8,
    /// From 1, without gaps; orders the session's events, as time does not.
    pub seq: u64,
    pub turn: TurnId,
    pub session: SessionId,
    pub author: Author,
    pub branch: Branch,
    pub at: Timestamp,
    /// What it was made from; see [`Event::label`].
    #[serde(default, skip_serializing_if = "Label::is_plain")]
    pub label: Label,
    #[serde(flatten)]
    pub body: EventBody,
}

impl Event {
    /// Where the words of this event come from. Logs that are older than labels tell only which results are untrusted.
    pub fn label(&self) -> Cow<'_, Label> {
        match &self.body {
            EventBody::ToolResult {
                untrusted: true, ..
            } if self.label.is_plain() => Cow::Owned(
                Label::untrusted(UNLABELED_RESULT_SOURCE)
                    .joined(&Label::private(UNLABELED_RESULT_SOURCE)),
            ),
            _ => Cow::Borrowed(&self.label),
        }
    }
}

/// Something that happened and is not kept yet: the store gives it its place.
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

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventBody {
    /// The user's request; a turn begins with it. It is in the user's own words where its label is plain.
    User {
        text: String,
    },
    /// What was recalled or looked up for this request; read with it, and again whenever it is read (B40).
    Context {
        source: String,
        text: String,
    },
    /// What stands for the events up to one from now on, in every request.
    Digest {
        through: u64,
        text: String,
    },
    /// What the model thought before the calls that follow; read by nobody but that model.
    Thought(Thought),
    /// What an agent said beside its calls.
    Note {
        text: String,
    },
    /// A delegation that was accepted; what the specialist does stands in the branch `into`.
    Transfer {
        id: CallId,
        to: AgentName,
        task: Option<String>,
        report_back: bool,
        into: Branch,
    },
    /// How that delegation ended; each has exactly one.
    TransferResult {
        id: CallId,
        outcome: TransferOutcome,
        detail: String,
        /// From a remote agent: where it goes on when it is asked again.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        thread: Option<RemoteThread>,
    },
    /// A call, kept before it has an effect.
    ToolCall {
        id: CallId,
        tool: String,
        args: Value,
    },
    /// What it gave.
    ToolResult {
        id: CallId,
        ok: bool,
        content: String,
        /// Why it did not work, for the model and for people.
        error: Option<String>,
        /// The same for programs.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        code: Option<ToolCode>,
        /// Words of files, commands or pages: data, never instructions.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        untrusted: bool,
        /// With a failure: what helped before.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        advice: Option<String>,
    },
    /// A question to the user about a call, or the answer to it.
    Approval {
        id: CallId,
        tool: String,
        level: Safety,
        state: ApprovalState,
        /// With a question: what will happen.
        #[serde(skip_serializing_if = "String::is_empty", default)]
        shows: String,
        /// With a question: where words of the call come from that nobody here wrote.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        tainted_by: Vec<String>,
        /// With a decision: whose it was.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        by: Option<Decider>,
        /// With a permission that holds longer than once: for what.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        grant: Option<Grant>,
    },
    /// The specialist handed the task back.
    Rejected {
        reason: String,
    },
    /// A specialist's answer to the orchestrator (`report_back`).
    Report {
        text: String,
    },
    /// The answer to the user.
    Answer {
        text: String,
    },
    /// What one call of a model took.
    Usage(Usage),
    TurnDone,
    TurnFailed {
        code: FailureCode,
        message: String,
        hint: String,
    },
}

/// How a delegation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransferOutcome {
    Answered,
    Rejected,
    Failed,
    Cancelled,
}

/// Why a call gave no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToolCode {
    /// The tool said so.
    #[serde(rename = "tool.failed")]
    Failed,
    #[serde(rename = "tool.timeout")]
    Timeout,
    #[serde(rename = "tool.panicked")]
    Panicked,
    /// The arguments do not fit the schema.
    #[serde(rename = "tool.arguments")]
    Arguments,
    /// Whoever called it does not have it.
    #[serde(rename = "tool.unknown")]
    Unknown,
    #[serde(rename = "tool.denied")]
    Denied,
    /// Something else had to come first, or instead.
    #[serde(rename = "tool.not_run")]
    NotRun,
    /// The turn ended before it did.
    #[serde(rename = "tool.interrupted")]
    Interrupted,
}

/// A question, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    Asked,
    Approved,
    Denied,
    TimedOut,
    NobodyThere,
    /// The turn ended before anyone answered.
    Interrupted,
}

/// Who decided about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decider {
    /// Whoever was asked.
    User,
    /// `--yes` on the command line.
    Yes,
    /// A rule in `security.approval.rules`.
    Rule,
    /// What `security.approval` says about the level.
    Policy,
    /// A permission given earlier in the session.
    Grant,
}

/// A permission for the rest of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// For the very same arguments.
    SameCall(Value),
    /// For calls whose subject the pattern fits.
    Pattern(String),
}

/// Tokens of one model call, and what they cost where the price is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Empty when the provider said nothing about the call: then nothing else is known either.
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
    /// Unknown is unknown, not zero.
    pub cost_usd: Option<f64>,
}

/// What a caller of the engine sees.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// Provisional: text as it comes, no part of the log (B71).
    Delta { author: AgentName, text: String },
    /// Provisional as well: what a call prints while it runs.
    ToolOutputDelta {
        author: AgentName,
        call: CallId,
        text: String,
    },
    /// Stored, then shown.
    Event(Arc<Event>),
    /// Nothing more can be stored, so nothing more is shown: the turn ends here.
    StoreFailed(StoreError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_flat_json_object() {
        let draft = NewEvent {
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
        let event = draft.into_event(SessionId::new("s"), 3);
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

    /// B101: what was kept before there were labels is not plain for that.
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
    fn authors_read_back_as_they_were_written() {
        for name in ["user", "operator", "Someone Old"] {
            assert_eq!(Author::from(name.to_owned()).to_string(), name);
        }
    }
}
