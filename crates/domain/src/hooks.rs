//! Hooks around a turn: context for a request, the digest of a session, advice for failed calls, work after the turn.

use futures::future::BoxFuture;
use serde_json::Value;

use crate::event::{Principal, SessionId};
use crate::flow::{Label, LabeledText};
use crate::session::SessionKey;

/// Provides context for a request, such as memories, passages or the date. Each source has a name and
/// a cap in tokens (B41).
pub trait ContextSource: Send + Sync {
    fn name(&self) -> &str;
    fn max_tokens(&self) -> usize;
    fn gather(
        &self,
        request: ContextRequest,
    ) -> BoxFuture<'static, Result<Option<LabeledText>, ContextError>>;
}

#[derive(Clone, Debug)]
pub struct ContextRequest {
    pub session: SessionId,
    pub principal: Principal,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ContextError(pub String);

/// Summarizes the earlier part of a session; the digest then replaces it. Implemented by observational
/// memory; scripted in tests.
pub trait DigestSource: Send + Sync {
    fn digest(&self, key: SessionKey) -> BoxFuture<'static, Result<Option<Digest>, ContextError>>;
}

/// The digest that replaces the beginning of a session in every request. It only grows at its end
/// until it is rewritten (B40).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// The last event that it covers; a turn ends with that event.
    pub through: u64,
    pub text: String,
    /// The joined label of everything it covers.
    pub label: Label,
}

/// Runs after every turn that ended, outside the turn. Implemented by the observer of conversations
/// and the search for gaps.
pub trait AfterTurn: Send + Sync {
    fn on_turn_end(&self, key: SessionKey) -> BoxFuture<'static, ()>;
}

/// Provides advice from earlier failures for a failed call. Implemented by the librarian's learnings;
/// scripted in tests.
pub trait Advisor: Send + Sync {
    fn advice(&self, call: FailedCall) -> BoxFuture<'static, Option<LabeledText>>;
}

#[derive(Clone, Debug, PartialEq)]
pub struct FailedCall {
    pub session: SessionId,
    pub principal: Principal,
    pub tool: String,
    pub args: Value,
    /// The error that the model reads.
    pub error: String,
}
