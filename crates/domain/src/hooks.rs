//! Hooks around a turn: context for a request, the digest of a session, advice for failed calls, work after the turn.

use futures::future::BoxFuture;
use serde_json::Value;

use crate::event::{Principal, SessionId};
use crate::flow::{Label, LabeledText};
use crate::session::SessionKey;

/// Finds what helps with a request: memory, retrieved passages, the date. Each has a name and a cap in tokens (B41).
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

/// Tells the earlier part of a session in few words, which then stand in its place. Ships as observational memory; tests
/// script it.
pub trait DigestSource: Send + Sync {
    fn digest(&self, of: SessionKey) -> BoxFuture<'static, Result<Option<Digest>, ContextError>>;
}

/// What stands for the beginning of a session in every request (B40: it only grows at its end, until it is written anew).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// The last event that it tells of; a turn ends with it.
    pub through: u64,
    pub text: String,
    /// That of everything it tells of.
    pub label: Label,
}

/// Is told of every turn that ended, off its path. Ships as the observer of conversations and the search for gaps.
pub trait AfterTurn: Send + Sync {
    fn on_turn_end(&self, of: SessionKey) -> BoxFuture<'static, ()>;
}

/// Knows what helped when a call failed before. Ships as the librarian's learnings; tests script it.
pub trait Advisor: Send + Sync {
    fn advice(&self, about: FailedCall) -> BoxFuture<'static, Option<LabeledText>>;
}

#[derive(Clone, Debug, PartialEq)]
pub struct FailedCall {
    pub session: SessionId,
    pub principal: Principal,
    pub tool: String,
    pub args: Value,
    /// What the model is told.
    pub error: String,
}
