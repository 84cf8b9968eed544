//! The smaller seams of a turn: questions to the user, context for a request, agents in other processes.

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::AgentName;
use crate::event::{CallId, Decider, Principal, SessionId, RemoteThread};
use crate::flow::{Label, LabeledText};
use crate::tool::Intent;

/// Asks whoever may decide. Ships for the terminal, HTTP and A2A; tests script it.
pub trait Approver: Send + Sync {
    fn ask(&self, question: ApprovalQuestion) -> BoxFuture<'static, ApprovalDecision>;
}

/// What exactly is about to happen.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalQuestion {
    /// The call that it is about; the approval events carry the same id.
    pub call: CallId,
    pub session: SessionId,
    pub principal: Principal,
    pub agent: AgentName,
    pub tool: String,
    pub args: Value,
    pub intent: Intent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDecision {
    Approved { scope: ApprovalScope, by: Decider },
    Denied,
    TimedOut,
    NobodyThere,
}

/// How far a permission reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    /// This call.
    Once,
    /// The very same call, for the rest of the session.
    SameCall,
    /// Calls that the intent's pattern fits, for the rest of the session.
    Pattern,
}

/// Finds what helps with a request: memory, retrieved passages, the date. Each has a name and a cap in tokens (B41).
pub trait ContextSource: Send + Sync {
    fn name(&self) -> &str;
    fn max_tokens(&self) -> usize;
    fn gather(&self, request: ContextRequest) -> BoxFuture<'static, Result<Option<LabeledText>, ContextError>>;
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

/// A session, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionKey {
    pub session: SessionId,
    pub principal: Principal,
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

/// A specialist in another process. Ships as the A2A client; tests script it.
pub trait RemoteAgent: Send + Sync {
    /// Carries out one task; the texts together are the answer. Dropping the stream cancels the task.
    fn stream(&self, task: RemoteTask) -> BoxStream<'static, Result<RemotePiece, RemoteError>>;
}

/// What comes from a remote agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemotePiece {
    Text(String),
    /// Where it goes on when it is asked again in this session; the last one stands.
    Thread(RemoteThread),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteTask {
    pub session: SessionId,
    pub principal: Principal,
    /// The user's own words.
    pub request: String,
    pub task: Option<String>,
    /// Where it stood when it was asked before in this session.
    pub thread: Option<RemoteThread>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RemoteError(pub String);
