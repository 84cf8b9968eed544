//! The seam between what the protocol wants and who does the work.

use futures::future::{BoxFuture, FutureExt, ready};
use futures::stream::BoxStream;
use lango_domain::event::{CallId, Principal, SessionId, TurnId};
use lango_remote::a2a::{Artifact, ErrorKind, Message, ProtocolError, Task, TaskState};
use tokio_util::sync::CancellationToken;

use crate::gateway::Gateway;

/// Does the work of tasks. Ships as turns of the team; the conformance example scripts it.
pub trait Worker: Send + Sync {
    /// What messages may bring, as media types.
    fn input_modes(&self) -> Vec<String>;

    /// What answers consist of, as media types.
    fn output_modes(&self) -> Vec<String>;

    /// An answer that needs no task.
    fn reply(&self, _: &Message) -> Option<Message> {
        None
    }

    /// Begins to work on a task, or goes on with one that waited. The last step leaves the task over or waiting.
    fn work(
        &self,
        gateway: &Gateway,
        assignment: TaskAssignment,
    ) -> Result<TaskSteps, ProtocolError>;

    /// A message for a task that is being worked on, and how the task stands after it.
    fn on_message(&self, _: &Gateway, _: &TaskAssignment) -> Result<TaskStep, ProtocolError> {
        let message = "the task is being worked on; wait until it is done, or cancel it";
        Err(ProtocolError::new(ErrorKind::UnsupportedOperation, message))
    }

    /// What became of a task that nobody here works on though it is not over.
    fn recover<'a>(&'a self, _: &'a Gateway, _: &'a TaskAssignment) -> BoxFuture<'a, TaskRecovery> {
        ready(TaskRecovery::AwaitingInput).boxed()
    }
}

/// Runs until it ends; dropping it leaves the task where it is.
pub type TaskSteps = BoxStream<'static, TaskStep>;

/// A task, and what is to be done about it.
#[derive(Clone, Debug)]
pub struct TaskAssignment {
    pub principal: Principal,
    pub session: SessionId,
    /// The turn that worked on it, where one did.
    pub turn: Option<TurnId>,
    pub answer_right: AnswerRight,
    /// The call that the task asks about, as its status says.
    pub pending_call: Option<CallId>,
    /// As it stood when the message came.
    pub task: Task,
    pub message: Message,
    /// Cancelled when the task is to be.
    pub cancel: CancellationToken,
}

/// Whether the caller may answer questions about calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerRight {
    Allowed,
    NotAllowed,
}

/// Something that happened with a task.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskStep {
    /// The turn that works on it.
    Turn(TurnId),
    Status {
        state: TaskState,
        text: Option<String>,
    },
    /// Waits for whoever allows a call.
    Question { call: CallId, text: String },
    /// A result, or the next part of one.
    Artifact {
        artifact: Artifact,
        /// Whether it follows what came under the same id.
        append: bool,
        last: bool,
    },
}

impl TaskStep {
    pub fn from_state(state: TaskState) -> Self {
        Self::Status { state, text: None }
    }

    pub fn with_message(state: TaskState, words: impl Into<String>) -> Self {
        Self::Status {
            state,
            text: Some(words.into()),
        }
    }
}

/// How a task was found that nobody here works on.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskRecovery {
    /// It waits for a message.
    AwaitingInput,
    /// Another process works on it.
    OtherProcess,
    /// It came to an end while nobody looked.
    Ended(Vec<TaskStep>),
}
