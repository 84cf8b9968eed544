//! Specialists in other processes.

use futures::stream::BoxStream;

use crate::event::{Principal, RemoteThread, SessionId};

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
