//! The seam to language models: a request in, a stream of fragments out.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::AgentName;
use crate::event::{CallId, Usage};
use crate::reply_limits::Excess;

/// A language model. Ships as the dialects of providers, the offline model and recordings; tests script it.
pub trait Model: Send + Sync {
    /// One reply, as it comes. Dropping the stream cancels the call.
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<Fragment, ModelError>>;

    /// How many tokens a request may have, the reply included.
    fn window(&self) -> usize;
}

/// Everything that a model reads for one reply. The first three are byte-stable for as long as the team stands (B40).
#[derive(Clone, Debug)]
pub struct ModelRequest {
    pub agent: AgentName,
    pub system: Arc<str>,
    pub tools: Arc<[ToolDeclaration]>,
    pub messages: Vec<Message>,
}

/// What a model is told about a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDeclaration {
    pub name: String,
    pub description: String,
    pub parameters: Value,
    /// Ways to ask for it, for the offline model; providers never see them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phrases: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    User(String),
    /// What the model itself said and called before.
    Assistant {
        thoughts: Vec<Thought>,
        text: String,
        calls: Vec<ToolCall>,
    },
    /// The results of the calls right before, in their order.
    Results(Vec<ToolCallResult>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: CallId,
    pub name: String,
    /// An object where the model did it right; whatever it gave where it did not.
    pub arguments: Value,
}

impl ToolCall {
    /// The same tool with the same arguments, whatever their order and the call's id.
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.name == other.name && self.arguments == other.arguments
    }
}

/// What a model thought before it spoke: kept apart from its words, and carried back to whoever made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thought {
    /// Who made it; nobody else can read its seal.
    pub provider: String,
    pub text: String,
    /// What the provider wants back unchanged: a signature, or thinking that it hides.
    pub seal: Option<Value>,
    /// The call that the seal belongs to, where it belongs to one.
    pub call: Option<CallId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCallResult {
    pub id: CallId,
    pub name: String,
    pub ok: bool,
    pub content: String,
}

/// A piece of a reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fragment {
    Text(String),
    Thought(Thought),
    Call(ToolCall),
    /// What the reply has taken so far, all in all: of several the last stands.
    Usage(Usage),
    /// The reply is whole. A stream that ends without it broke off.
    Done,
}

/// Why a model did not reply, sorted by who can do something about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum ModelError {
    #[error("the provider refused the key")]
    Auth,
    #[error("the quota is used up")]
    Quota,
    #[error("the provider is busy")]
    Busy { retry_after: Option<Duration> },
    #[error("there is no such model: {0}")]
    NotFound(String),
    #[error("the request is too long for the model")]
    TooLong,
    #[error("the provider did not accept the request: {0}")]
    Rejected(String),
    /// Nobody was asked: a recording is played, and this is not in it.
    #[error("{0}")]
    NotRecorded(String),
    #[error("the model refused to answer: {0}")]
    Refused(String),
    #[error("the reply could not be understood: {0}")]
    Malformed(String),
    #[error("no connection: {0}")]
    Connection(String),
    /// The model would say the same again: nobody is asked another time.
    #[error("the reply is too long: {0}")]
    TooLarge(Excess),
    #[error("the reply broke off")]
    BrokeOff,
}

impl ModelError {
    /// The same error with its words changed: to take out what must not be shown.
    #[must_use]
    pub fn map_message(self, change: impl FnOnce(&str) -> String) -> Self {
        match self {
            Self::NotFound(words) => Self::NotFound(change(&words)),
            Self::Rejected(words) => Self::Rejected(change(&words)),
            Self::NotRecorded(words) => Self::NotRecorded(change(&words)),
            Self::Refused(words) => Self::Refused(change(&words)),
            Self::Malformed(words) => Self::Malformed(change(&words)),
            Self::Connection(words) => Self::Connection(change(&words)),
            other => other,
        }
    }
}
