//! Language models: a request in, a stream of fragments out.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::AgentName;
use crate::content::{Attachment, Content, ReadableKinds, string_or_content};
use crate::event::{CallId, Usage};
use crate::reply_limits::Excess;

/// A language model. Implemented by the provider dialects, the offline model and recordings; scripted
/// in tests.
pub trait Model: Send + Sync {
    /// Streams one reply. Dropping the stream cancels the call.
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<Fragment, ModelError>>;

    /// Returns the number of tokens that a request and its reply may have together.
    fn window(&self) -> usize;

    /// Returns the attachments that it reads. For others, requests have a short text.
    fn readable_kinds(&self) -> ReadableKinds {
        ReadableKinds::NONE
    }
}

/// Everything that a model reads for one reply. The first three fields are byte-stable as long as the
/// team exists (B40).
#[derive(Clone, Debug)]
pub struct ModelRequest {
    pub agent: AgentName,
    pub system: Arc<str>,
    pub tools: Arc<[ToolDeclaration]>,
    pub messages: Vec<Message>,
}

/// The declaration of a tool for a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDeclaration {
    pub name: String,
    pub description: String,
    pub parameters: Value,
    /// Example phrases for the offline model; not sent to providers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phrases: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    User(#[serde(with = "string_or_content")] Content),
    /// An earlier reply of the model.
    Assistant {
        thoughts: Vec<Thought>,
        text: String,
        calls: Vec<ToolCall>,
    },
    /// The results of the preceding calls, in the same order.
    Results(Vec<ToolCallResult>),
}

impl Message {
    /// Returns its images and files.
    pub fn attachments(&self) -> Vec<&Attachment> {
        match self {
            Self::User(content) => content.attachments.iter().collect(),
            Self::Assistant { .. } => Vec::new(),
            Self::Results(results) => {
                let contents = results.iter().map(|result| &result.content);
                contents.flat_map(|content| &content.attachments).collect()
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: CallId,
    pub name: String,
    /// An object, unless the model gave something else.
    pub arguments: Value,
}

impl ToolCall {
    /// Returns true if both call the same tool with equal arguments, whatever their order and ids.
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.name == other.name && self.arguments == other.arguments
    }
}

/// A thought of a model before its reply. Stored apart from its text, and sent back only to the
/// provider that made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thought {
    /// The provider that made it; only this provider can read its seal.
    pub provider: String,
    pub text: String,
    /// Data that the provider expects back unchanged: a signature, or hidden thinking.
    pub seal: Option<Value>,
    /// The call that the seal belongs to, if any.
    pub call: Option<CallId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCallResult {
    pub id: CallId,
    pub name: String,
    pub ok: bool,
    #[serde(with = "string_or_content")]
    pub content: Content,
}

/// A piece of a reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fragment {
    Text(String),
    Thought(Thought),
    Call(ToolCall),
    /// The total usage of the reply so far; the last one counts.
    Usage(Usage),
    /// The text of the reply explains why the request was not done.
    NotDone,
    /// The reply is complete. A stream that ends without this broke off.
    Done,
}

/// The reason why a model did not reply, by who can act on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum ModelError {
    #[error("the provider rejected the API key")]
    Auth,
    #[error("the provider's quota is exhausted")]
    Quota,
    #[error("the provider is busy")]
    Busy { retry_after: Option<Duration> },
    #[error("model not found: {0}")]
    NotFound(String),
    #[error("the request is too long for the model")]
    TooLong,
    #[error("the provider rejected the request: {0}")]
    Rejected(String),
    /// A recording is replayed, and it does not contain this request. No model was called.
    #[error("{0}")]
    NotRecorded(String),
    #[error("the model refused to answer: {0}")]
    Refused(String),
    #[error("the reply could not be understood: {0}")]
    Malformed(String),
    #[error("connection failed: {0}")]
    Connection(String),
    /// Not retried: the model would give the same reply again.
    #[error("the reply is too large: {0}")]
    TooLarge(Excess),
    #[error("the reply ended early")]
    BrokeOff,
}

impl ModelError {
    /// Returns the same error with a changed message, for redacting it.
    #[must_use]
    pub fn map_message(self, change: impl FnOnce(&str) -> String) -> Self {
        match self {
            Self::NotFound(message) => Self::NotFound(change(&message)),
            Self::Rejected(message) => Self::Rejected(change(&message)),
            Self::NotRecorded(message) => Self::NotRecorded(change(&message)),
            Self::Refused(message) => Self::Refused(change(&message)),
            Self::Malformed(message) => Self::Malformed(change(&message)),
            Self::Connection(message) => Self::Connection(change(&message)),
            other => other,
        }
    }
}
