//! Runs one task at a remote agent: sends it and follows it, as a stream or by polling, until it
//! ends or waits for the user.

use std::time::Duration;

use lango_domain::markers::REJECT_MARKER;
use lango_domain::remote_agent::{RemoteError, RemotePiece, RemoteTask};
use serde_json::Value;
use tokio::sync::mpsc::Sender;
use uuid::Uuid;

use crate::a2a::{
    A2aRequest, ContextId, ErrorKind, Message, MessageId, ReturnMode, Role, SendMessage, SendReply,
    StreamEvent, Task, TaskId, TaskState, TaskStatus, WireFormat,
};
use crate::answer::{RemoteAnswer, parts_text};
use crate::client::{A2aClient, A2aClientError, StreamReply};
use crate::task_ref::RemoteTaskRef;
use crate::task_text::task_text;

const INITIAL_POLL_DELAY: Duration = Duration::from_millis(300);
const MAX_POLL_DELAY: Duration = Duration::from_secs(5);
const POLL_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of consecutive failed polls.
const MAX_FAILED_POLLS: usize = 3;
/// Number of history messages requested with a task, to find the agent's last message.
const HISTORY_LENGTH: u32 = 10;

pub(crate) type PieceSender = Sender<Result<RemotePiece, RemoteError>>;

/// The end of a task that did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RemoteTaskEnd {
    Answered,
    /// The remote agent works, but it did not do the task.
    Declined(String),
    /// The receiver was dropped.
    Abandoned,
}

pub(crate) struct RemoteTaskRun<'a> {
    client: A2aClient<'a>,
    pieces: &'a PieceSender,
    answer: RemoteAnswer,
    task_ref: RemoteTaskRef,
    /// The task that the remote agent works on.
    running_task: Option<TaskId>,
}

/// Control flow after an event.
#[derive(PartialEq)]
enum TaskFlow {
    Continue,
    Done(RemoteTaskEnd),
}

impl<'a> RemoteTaskRun<'a> {
    pub fn new(client: A2aClient<'a>, pieces: &'a PieceSender) -> Self {
        Self {
            client,
            pieces,
            answer: RemoteAnswer::default(),
            task_ref: RemoteTaskRef::default(),
            running_task: None,
        }
    }

    /// Cancels the running task, if any.
    pub async fn abandon(&mut self) {
        if let Some(task) = self.running_task.take() {
            self.client.cancel(task).await;
        }
    }

    pub async fn run(&mut self, task: &RemoteTask) -> Result<RemoteTaskEnd, A2aClientError> {
        let before = task
            .thread
            .as_ref()
            .map(RemoteTaskRef::from_thread)
            .unwrap_or_default();
        let text = task_text(task);
        let mut result = self.attempt(build_message(&text, &before)).await;
        // The task may have ended meanwhile: retry without it, then without the context, too.
        let mut tried = before.clone();
        for task_ref in [
            RemoteTaskRef {
                context: before.context,
                task: None,
            },
            RemoteTaskRef::default(),
        ] {
            let is_unknown =
                |error: &A2aClientError| is_unknown_task(error) && self.answer.is_empty();
            if task_ref == tried || !result.as_ref().is_err_and(is_unknown) {
                continue;
            }
            self.running_task = None;
            result = self.attempt(build_message(&text, &task_ref)).await;
            tried = task_ref;
        }
        result
    }

    async fn attempt(&mut self, message: Message) -> Result<RemoteTaskEnd, A2aClientError> {
        if !self.client.endpoint.can_stream {
            return self.send_without_stream(message).await;
        }
        let request = A2aRequest::StreamMessage(Box::new(SendMessage::new(message.clone())));
        let mut events = match self.client.open_stream(request).await {
            Ok(StreamReply::Stream(events)) => events,
            Ok(StreamReply::Answer(answer)) => return self.on_reply(&answer).await,
            Err(error) if error.is_unsupported() => {
                return self.send_without_stream(message).await;
            }
            Err(error) => return Err(error),
        };
        loop {
            let next = match events.next().await {
                Ok(Some(data)) => self.client.parse_event(&data).map(Some),
                Ok(None) => Ok(None),
                Err(error) => Err(error),
            };
            let event = match next {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(error)
                    if error.is_unsupported()
                        && self.running_task.is_none()
                        && self.answer.is_empty() =>
                {
                    return self.send_without_stream(message).await;
                }
                Err(error) if error.is_broken_connection() && self.running_task.is_some() => {
                    break;
                }
                Err(error) => return Err(error),
            };
            if let TaskFlow::Done(end) = self.on_event(event).await? {
                return Ok(end);
            }
        }
        self.poll_until_finished().await
    }

    async fn send_without_stream(
        &mut self,
        message: Message,
    ) -> Result<RemoteTaskEnd, A2aClientError> {
        let send = SendMessage {
            return_mode: ReturnMode::Immediately,
            ..SendMessage::new(message)
        };
        let answer = self
            .client
            .call(A2aRequest::SendMessage(Box::new(send)))
            .await?;
        self.on_reply(&answer).await
    }

    async fn on_reply(&mut self, answer: &Value) -> Result<RemoteTaskEnd, A2aClientError> {
        let event = match SendReply::from_json(answer, self.wire())? {
            SendReply::Task(task) => StreamEvent::Task(task),
            SendReply::Message(message) => StreamEvent::Message(message),
        };
        match self.on_event(event).await? {
            TaskFlow::Done(end) => Ok(end),
            TaskFlow::Continue => self.poll_until_finished().await,
        }
    }

    /// Polls the task until it ends.
    async fn poll_until_finished(&mut self) -> Result<RemoteTaskEnd, A2aClientError> {
        let task = self
            .running_task
            .clone()
            .ok_or(A2aClientError::StreamEnded)?;
        let (mut delay, mut failed_polls) = (INITIAL_POLL_DELAY, 0);
        loop {
            tokio::time::sleep(delay).await;
            delay = (delay * 3 / 2).min(MAX_POLL_DELAY);
            let poll = self.client.call(A2aRequest::GetTask {
                task: task.clone(),
                history: Some(HISTORY_LENGTH),
            });
            let polled = tokio::time::timeout(POLL_TIMEOUT, poll).await;
            let polled = polled.unwrap_or(Err(A2aClientError::Timeout(POLL_TIMEOUT)));
            let value = match polled {
                Ok(value) => value,
                Err(error) if error.is_broken_connection() && failed_polls < MAX_FAILED_POLLS => {
                    failed_polls += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            failed_polls = 0;
            let current = Task::from_answer(&value, self.wire())?;
            if let TaskFlow::Done(end) = self.on_event(StreamEvent::Task(current)).await? {
                return Ok(end);
            }
        }
    }

    fn wire(&self) -> WireFormat {
        self.client.endpoint.wire()
    }

    async fn on_event(&mut self, event: StreamEvent) -> Result<TaskFlow, A2aClientError> {
        match event {
            StreamEvent::Message(message) => {
                self.update_task_ref(message.context.clone(), None).await;
                let text = self.answer.append_message(&message);
                self.send_text(text).await;
                self.running_task = None;
                Ok(TaskFlow::Done(RemoteTaskEnd::Answered))
            }
            StreamEvent::Task(task) => {
                if !self.is_ours(&task.id) {
                    return Ok(TaskFlow::Continue);
                }
                self.update_task_ref(task.context.clone(), None).await;
                for artifact in &task.artifacts {
                    let text = self.answer.replace(artifact);
                    self.send_text(text).await;
                }
                let last_message = task
                    .history
                    .iter()
                    .rev()
                    .find(|message| message.role == Role::Agent);
                let status = TaskStatus {
                    message: task.status.message.or_else(|| last_message.cloned()),
                    ..task.status
                };
                self.on_status(status).await
            }
            StreamEvent::Artifact(update) => {
                if !self.is_ours(&update.task) {
                    return Ok(TaskFlow::Continue);
                }
                self.update_task_ref(update.context.clone(), None).await;
                let text = match update.append {
                    true => self.answer.append(&update.artifact),
                    false => self.answer.replace(&update.artifact),
                };
                self.send_text(text).await;
                Ok(self.continue_or_stop())
            }
            StreamEvent::Status(update) => {
                if !self.is_ours(&update.task) {
                    return Ok(TaskFlow::Continue);
                }
                self.update_task_ref(update.context.clone(), None).await;
                self.on_status(update.status).await
            }
        }
    }

    async fn on_status(&mut self, status: TaskStatus) -> Result<TaskFlow, A2aClientError> {
        let status_text = status
            .message
            .as_ref()
            .map(|message| parts_text(&message.parts))
            .unwrap_or_default();
        let text_or = |default: &str| {
            if status_text.trim().is_empty() {
                default.to_owned()
            } else {
                status_text.clone()
            }
        };
        match status.state {
            TaskState::Submitted | TaskState::Working | TaskState::Unknown => {
                return Ok(self.continue_or_stop());
            }
            TaskState::Completed => {
                if self.answer.is_empty() {
                    let text = self.answer.append_paragraph(status_text);
                    self.send_text(text).await;
                }
            }
            // The question is shown to the user, and the next message of the user goes to this
            // task.
            TaskState::InputRequired => {
                let text = self
                    .answer
                    .append_paragraph(text_or("It needs more input, but does not say which."));
                self.send_text(text).await;
                let waiting = self.running_task.take();
                self.update_task_ref(None, waiting).await;
            }
            TaskState::AuthRequired => {
                self.abandon().await;
                return Ok(decline(format!(
                    "it requires signing in, which is not supported: {}",
                    text_or("-")
                )));
            }
            TaskState::Rejected if self.answer.is_empty() => {
                let text = self.answer.append_paragraph(format!(
                    "{REJECT_MARKER} {}",
                    text_or("it does not do this")
                ));
                self.send_text(text).await;
            }
            TaskState::Rejected => return Ok(self.finish(decline(text_or("it does not do this")))),
            TaskState::Failed => {
                return Ok(self.finish(decline(format!(
                    "the remote task failed: {}",
                    text_or("no reason given")
                ))));
            }
            TaskState::Canceled => {
                return Ok(self.finish(decline("the remote task was cancelled".to_owned())));
            }
        }
        Ok(self.finish(TaskFlow::Done(RemoteTaskEnd::Answered)))
    }

    fn finish(&mut self, flow: TaskFlow) -> TaskFlow {
        self.running_task = None;
        flow
    }

    /// Continues unless the answer is full or the receiver was dropped.
    fn continue_or_stop(&self) -> TaskFlow {
        if self.answer.is_full() {
            TaskFlow::Done(RemoteTaskEnd::Answered)
        } else if self.pieces.is_closed() {
            TaskFlow::Done(RemoteTaskEnd::Abandoned)
        } else {
            TaskFlow::Continue
        }
    }

    /// Returns true if an event belongs to our task, which is the first one named. Events of other
    /// tasks are ignored.
    fn is_ours(&mut self, task: &TaskId) -> bool {
        self.running_task.get_or_insert_with(|| task.clone()) == task
    }

    /// Reports a changed task reference to the engine.
    async fn update_task_ref(&mut self, context: Option<ContextId>, waiting: Option<TaskId>) {
        let task_ref = RemoteTaskRef {
            context: context.or_else(|| self.task_ref.context.clone()),
            task: waiting,
        };
        if task_ref != self.task_ref {
            self.task_ref = task_ref;
            let thread = RemotePiece::Thread(self.task_ref.to_thread());
            // Fails only if the receiver was dropped.
            let _ = self.pieces.send(Ok(thread)).await;
        }
    }

    async fn send_text(&mut self, text: Option<String>) {
        if let Some(text) = text {
            let _ = self.pieces.send(Ok(RemotePiece::Text(text))).await;
        }
        for file in self.answer.take_files() {
            let _ = self.pieces.send(Ok(RemotePiece::Attachment(file))).await;
        }
    }
}

/// Returns true if the remote agent does not know the task or the context, or no longer does.
fn is_unknown_task(error: &A2aClientError) -> bool {
    use ErrorKind::{InvalidParams, TaskNotFound, UnsupportedOperation};
    let A2aClientError::Protocol(error) = error else {
        return false;
    };
    matches!(
        error.kind,
        TaskNotFound | InvalidParams | UnsupportedOperation
    )
}

fn decline(reason: String) -> TaskFlow {
    TaskFlow::Done(RemoteTaskEnd::Declined(reason))
}

fn build_message(text: &str, task_ref: &RemoteTaskRef) -> Message {
    let id = MessageId::new(Uuid::new_v4().to_string());
    let mut message = Message::text(id, Role::User, text);
    message.context = task_ref.context.clone();
    message.task = task_ref.task.clone();
    message
}
