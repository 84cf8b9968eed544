//! Remote agents: specialists in other processes.

use futures::stream::BoxStream;

use crate::content::Attachment;
use crate::event::{Principal, RemoteThread, SessionId};

/// A remote agent. Implemented by the A2A client; scripted in tests.
pub trait RemoteAgent: Send + Sync {
    /// Runs one task; the texts together are the answer. Dropping the stream cancels the task.
    fn stream(&self, task: RemoteTask) -> BoxStream<'static, Result<RemotePiece, RemoteError>>;
}

/// A piece of a remote agent's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemotePiece {
    Text(String),
    /// An image or a file of the answer.
    Attachment(Attachment),
    /// The thread that the next task of this session continues; the last one counts.
    Thread(RemoteThread),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteTask {
    pub session: SessionId,
    pub principal: Principal,
    /// The user's request.
    pub request: String,
    pub task: Option<String>,
    /// The thread of the previous task in this session.
    pub thread: Option<RemoteThread>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RemoteError(pub String);
