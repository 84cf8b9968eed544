//! The interface between the protocol and the work on tasks.

use futures::future::{BoxFuture, FutureExt, ready};
use futures::stream::BoxStream;
use lango_domain::event::{CallId, Principal, SessionId, TurnId};
use lango_remote::a2a::{Artifact, ErrorKind, Message, ProtocolError, Task, TaskState};
use tokio_util::sync::CancellationToken;

use crate::gateway::Gateway;

pub(super) const TASK_RUNNING_MESSAGE: &str =
    "the task is running; wait until it has ended, or cancel it";

/// Works on tasks. [`TeamWorker`](super::TeamWorker) runs them as turns of the team; the conformance
/// example follows a script.
pub trait Worker: Send + Sync {
    /// Returns the supported media types of messages.
    fn input_modes(&self) -> Vec<String>;

    /// Returns the media types of answers.
    fn output_modes(&self) -> Vec<String>;

    /// Returns a reply to a message that needs no task.
    fn reply(&self, _: &Message) -> Option<Message> {
        None
    }

    /// Starts a task, or resumes one that waited for input. After the last step the task is finished
    /// or waits for input.
    fn work(
        &self,
        gateway: &Gateway,
        assignment: TaskAssignment,
    ) -> Result<TaskSteps, ProtocolError>;

    /// Handles a message to a running task and returns the resulting step.
    fn on_message(&self, _: &Gateway, _: &TaskAssignment) -> Result<TaskStep, ProtocolError> {
        Err(ProtocolError::new(
            ErrorKind::UnsupportedOperation,
            TASK_RUNNING_MESSAGE,
        ))
    }

    /// Determines the state of an unfinished task that is not running in this process.
    fn recover<'a>(&'a self, _: &'a Gateway, _: &'a TaskAssignment) -> BoxFuture<'a, TaskRecovery> {
        ready(TaskRecovery::AwaitingInput).boxed()
    }
}

/// The steps of a task. Dropping the stream leaves the task as it is.
pub type TaskSteps = BoxStream<'static, TaskStep>;

/// A task and the message to work on.
#[derive(Clone, Debug)]
pub struct TaskAssignment {
    pub principal: Principal,
    pub session: SessionId,
    /// The turn of the task, if it has started.
    pub turn: Option<TurnId>,
    pub answer_right: AnswerRight,
    /// The call that the task's status asks about.
    pub pending_call: Option<CallId>,
    /// The task at the time of the message.
    pub task: Task,
    pub message: Message,
    /// Cancelled to cancel the task.
    pub cancel: CancellationToken,
}

/// The caller's right to answer approval questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerRight {
    Allowed,
    NotAllowed,
}

/// A change of a task.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskStep {
    /// The turn of the task has started.
    Turn(TurnId),
    Status {
        state: TaskState,
        text: Option<String>,
    },
    /// The task waits for the approval of a call.
    Question { call: CallId, text: String },
    /// A result or a chunk of one.
    Artifact {
        artifact: Artifact,
        /// True if the chunk continues the artifact with the same id.
        append: bool,
        last: bool,
    },
}

impl TaskStep {
    pub fn from_state(state: TaskState) -> Self {
        Self::Status { state, text: None }
    }

    pub fn with_message(state: TaskState, text: impl Into<String>) -> Self {
        Self::Status {
            state,
            text: Some(text.into()),
        }
    }
}

/// The state of a task that is not running in this process.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskRecovery {
    /// The task waits for a message.
    AwaitingInput,
    /// The task runs in another process.
    OtherProcess,
    /// The task has ended; these steps lead to its final state.
    Ended(Vec<TaskStep>),
}
