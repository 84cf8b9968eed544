//! One task at a colleague: sent, followed as a stream or by asking how it stands, until it is over or waits for the user.

use std::time::Duration;

use lango_domain::event::RemoteThread;
use lango_domain::markers::REJECT_MARKER;
use lango_domain::remote_agent::{RemoteError, RemotePiece, RemoteTask};
use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;
use uuid::Uuid;

use crate::a2a::{
    A2aRequest, ContextId, ErrorKind, Message, MessageId, ReturnMode, Role, SendMessage, SendReply,
    StreamEvent, Task, TaskId, TaskState, TaskStatus, WireFormat,
};
use crate::answer::{RemoteAnswer, parts_text};
use crate::client::{A2aClient, A2aClientError, StreamReply};

const INITIAL_POLL_DELAY: Duration = Duration::from_millis(300);
const MAX_POLL_DELAY: Duration = Duration::from_secs(5);
const POLL_TIMEOUT: Duration = Duration::from_secs(30);
/// So many looks in a row may fail.
const MAX_FAILED_POLLS: usize = 3;
/// Of a task's history, as much is wanted as may hold its last words.
const HISTORY_LENGTH: u32 = 10;

pub(crate) type PieceSender = Sender<Result<RemotePiece, RemoteError>>;

/// How a task ended, where it did not break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RemoteTaskEnd {
    Answered,
    /// The colleague works, but it did not do this.
    Declined(String),
    /// Nobody listens any more.
    Abandoned,
}

/// Where a colleague's side of a session stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct RemoteTaskRef {
    context: Option<ContextId>,
    /// A task that waits for an answer of the user's.
    task: Option<TaskId>,
}

pub(crate) struct RemoteTaskRun<'a> {
    client: A2aClient<'a>,
    pieces: &'a PieceSender,
    answer: RemoteAnswer,
    task_ref: RemoteTaskRef,
    /// The task that is being worked on there.
    running_task: Option<TaskId>,
}

/// Whether more is to come.
#[derive(PartialEq)]
enum TaskFlow {
    Continue,
    Done(RemoteTaskEnd),
}

impl<'a> RemoteTaskRun<'a> {
    pub fn new(peer: A2aClient<'a>, pieces: &'a PieceSender) -> Self {
        Self {
            client: peer,
            pieces,
            answer: RemoteAnswer::default(),
            task_ref: RemoteTaskRef::default(),
            running_task: None,
        }
    }

    /// Nobody waits any more for what is being worked on.
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
        let words = task_text(task);
        let mut done = self.attempt(build_message(&words, &before)).await;
        // The task ended meanwhile, then the conversation goes on without it; or the colleague forgot that, too.
        let mut tried = before.clone();
        for place in [
            RemoteTaskRef {
                context: before.context,
                task: None,
            },
            RemoteTaskRef::default(),
        ] {
            let is_over =
                |trouble: &A2aClientError| is_unknown_task(trouble) && self.answer.is_empty();
            if place == tried || !done.as_ref().is_err_and(is_over) {
                continue;
            }
            self.running_task = None;
            done = self.attempt(build_message(&words, &place)).await;
            tried = place;
        }
        done
    }

    async fn attempt(&mut self, message: Message) -> Result<RemoteTaskEnd, A2aClientError> {
        if !self.client.endpoint.can_stream {
            return self.send_without_stream(message).await;
        }
        let wish = A2aRequest::StreamMessage(Box::new(SendMessage::new(message.clone())));
        let mut events = match self.client.open_stream(wish).await {
            Ok(StreamReply::Stream(events)) => events,
            Ok(StreamReply::Answer(answer)) => return self.on_reply(&answer).await,
            Err(trouble) if trouble.is_unsupported() => {
                return self.send_without_stream(message).await;
            }
            Err(trouble) => return Err(trouble),
        };
        loop {
            let next = match events.next().await {
                Ok(Some(data)) => self.client.parse_event(&data).map(Some),
                Ok(None) => Ok(None),
                Err(trouble) => Err(trouble),
            };
            let event = match next {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(trouble)
                    if trouble.is_unsupported()
                        && self.running_task.is_none()
                        && self.answer.is_empty() =>
                {
                    return self.send_without_stream(message).await;
                }
                Err(trouble) if trouble.is_broken_connection() && self.running_task.is_some() => {
                    break;
                }
                Err(trouble) => return Err(trouble),
            };
            if let TaskFlow::Done(ended) = self.on_event(event).await? {
                return Ok(ended);
            }
        }
        self.poll_until_finished().await
    }

    async fn send_without_stream(
        &mut self,
        message: Message,
    ) -> Result<RemoteTaskEnd, A2aClientError> {
        let wish = SendMessage {
            return_mode: ReturnMode::Immediately,
            ..SendMessage::new(message)
        };
        let answer = self
            .client
            .call(A2aRequest::SendMessage(Box::new(wish)))
            .await?;
        self.on_reply(&answer).await
    }

    async fn on_reply(&mut self, answer: &Value) -> Result<RemoteTaskEnd, A2aClientError> {
        let event = match SendReply::from_json(answer, self.wire())? {
            SendReply::Task(task) => StreamEvent::Task(task),
            SendReply::Message(message) => StreamEvent::Message(message),
        };
        match self.on_event(event).await? {
            TaskFlow::Done(ended) => Ok(ended),
            TaskFlow::Continue => self.poll_until_finished().await,
        }
    }

    /// Asks how the task stands until it is over.
    async fn poll_until_finished(&mut self) -> Result<RemoteTaskEnd, A2aClientError> {
        let task = self
            .running_task
            .clone()
            .ok_or(A2aClientError::StreamEnded)?;
        let (mut pause, mut bad_looks) = (INITIAL_POLL_DELAY, 0);
        loop {
            tokio::time::sleep(pause).await;
            pause = (pause * 3 / 2).min(MAX_POLL_DELAY);
            let look = self.client.call(A2aRequest::GetTask {
                task: task.clone(),
                history: Some(HISTORY_LENGTH),
            });
            let looked = tokio::time::timeout(POLL_TIMEOUT, look).await;
            let looked = looked.unwrap_or(Err(A2aClientError::Timeout(POLL_TIMEOUT)));
            let value = match looked {
                Ok(value) => value,
                Err(trouble) if trouble.is_broken_connection() && bad_looks < MAX_FAILED_POLLS => {
                    bad_looks += 1;
                    continue;
                }
                Err(trouble) => return Err(trouble),
            };
            bad_looks = 0;
            let found = Task::from_answer(&value, self.wire())?;
            if let TaskFlow::Done(ended) = self.on_event(StreamEvent::Task(found)).await? {
                return Ok(ended);
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
                let last_words = task
                    .history
                    .iter()
                    .rev()
                    .find(|message| message.role == Role::Agent);
                let status = TaskStatus {
                    message: task.status.message.or_else(|| last_words.cloned()),
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
        let said = status
            .message
            .as_ref()
            .map(|message| parts_text(&message.parts))
            .unwrap_or_default();
        let why = |otherwise: &str| {
            if said.trim().is_empty() {
                otherwise.to_owned()
            } else {
                said.clone()
            }
        };
        match status.state {
            TaskState::Submitted | TaskState::Working | TaskState::Unknown => {
                return Ok(self.continue_or_stop());
            }
            TaskState::Completed => {
                if self.answer.is_empty() {
                    let text = self.answer.append_paragraph(said);
                    self.send_text(text).await;
                }
            }
            // The question goes to the user, whose next words go to this very task.
            TaskState::InputRequired => {
                let text = self
                    .answer
                    .append_paragraph(why("It needs more from you, but does not say what."));
                self.send_text(text).await;
                let waiting = self.running_task.take();
                self.update_task_ref(None, waiting).await;
            }
            TaskState::AuthRequired => {
                self.abandon().await;
                return Ok(decline(format!(
                    "it asks to sign in elsewhere, which is not done from here: {}",
                    why("-")
                )));
            }
            TaskState::Rejected if self.answer.is_empty() => {
                let text = self
                    .answer
                    .append_paragraph(format!("{REJECT_MARKER} {}", why("it does not do this")));
                self.send_text(text).await;
            }
            TaskState::Rejected => return Ok(self.finish(decline(why("it does not do this")))),
            TaskState::Failed => {
                return Ok(self.finish(decline(format!(
                    "the task failed there: {}",
                    why("it does not say why")
                ))));
            }
            TaskState::Canceled => {
                return Ok(self.finish(decline("the task was cancelled there".to_owned())));
            }
        }
        Ok(self.finish(TaskFlow::Done(RemoteTaskEnd::Answered)))
    }

    fn finish(&mut self, flow: TaskFlow) -> TaskFlow {
        self.running_task = None;
        flow
    }

    /// Goes on as long as there is room, and somebody who listens.
    fn continue_or_stop(&self) -> TaskFlow {
        if self.answer.is_full() {
            TaskFlow::Done(RemoteTaskEnd::Answered)
        } else if self.pieces.is_closed() {
            TaskFlow::Done(RemoteTaskEnd::Abandoned)
        } else {
            TaskFlow::Continue
        }
    }

    /// The first task that is named is ours; whatever is said about others is not.
    fn is_ours(&mut self, task: &TaskId) -> bool {
        self.running_task.get_or_insert_with(|| task.clone()) == task
    }

    /// Tells where the conversation goes on, whenever that changes.
    async fn update_task_ref(&mut self, context: Option<ContextId>, waiting: Option<TaskId>) {
        let place = RemoteTaskRef {
            context: context.or_else(|| self.task_ref.context.clone()),
            task: waiting,
        };
        if place != self.task_ref {
            self.task_ref = place;
            let thread = RemotePiece::Thread(self.task_ref.to_thread());
            // Who does not listen does not need it.
            let _ = self.pieces.send(Ok(thread)).await;
        }
    }

    async fn send_text(&mut self, text: Option<String>) {
        if let Some(text) = text {
            let _ = self.pieces.send(Ok(RemotePiece::Text(text))).await;
        }
    }
}

/// Whether the colleague does not know the task or the conversation, or not any more.
fn is_unknown_task(trouble: &A2aClientError) -> bool {
    use ErrorKind::{InvalidParams, TaskNotFound, UnsupportedOperation};
    let A2aClientError::Protocol(error) = trouble else {
        return false;
    };
    matches!(
        error.kind,
        TaskNotFound | InvalidParams | UnsupportedOperation
    )
}

fn decline(why: String) -> TaskFlow {
    TaskFlow::Done(RemoteTaskEnd::Declined(why))
}

/// What the colleague is told: its task, with the user's own words where it says something else than they do.
fn task_text(task: &RemoteTask) -> String {
    let request = task.request.trim();
    match task
        .task
        .as_deref()
        .map(str::trim)
        .filter(|task| !task.is_empty())
    {
        Some(given) if given.contains(request) || is_addressed(request, given) => given.to_owned(),
        Some(given) => format!("{given}\n\nThe user's own words: {request}"),
        None => request.to_owned(),
    }
}

/// Whether the user's words are the task behind somebody's name: "far: yes", "ask far to sing".
fn is_addressed(request: &str, given: &str) -> bool {
    let Some(before) = request.strip_suffix(given).map(str::trim_end) else {
        return false;
    };
    let is_told = ["ask ", "tell ", "@"]
        .iter()
        .any(|word| before.to_lowercase().starts_with(word));
    is_told || before.ends_with([':', ','])
}

fn build_message(words: &str, place: &RemoteTaskRef) -> Message {
    let mut message = Message::text(
        MessageId::new(Uuid::new_v4().to_string()),
        Role::User,
        words,
    );
    message.context = place.context.clone();
    message.task = place.task.clone();
    message
}

impl RemoteTaskRef {
    fn from_thread(thread: &RemoteThread) -> Self {
        let value: Value = serde_json::from_str(thread.as_str()).unwrap_or_default();
        let context = value
            .get("context")
            .and_then(|id| ContextId::from_json(id, WireFormat::V1).ok());
        let task = value
            .get("task")
            .and_then(|id| TaskId::from_json(id, WireFormat::V1).ok());
        Self { context, task }
    }

    fn to_thread(&self) -> RemoteThread {
        let id = |id: Option<&str>| id.map_or(Value::Null, Value::from);
        let context = id(self.context.as_ref().map(ContextId::as_str));
        RemoteThread::new(
            json!({ "context": context, "task": id(self.task.as_ref().map(TaskId::as_str)) })
                .to_string(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_domain::event::{Principal, SessionId};

    #[test]
    fn where_a_conversation_stands_reads_back() {
        let place = RemoteTaskRef {
            context: Some(ContextId::new("c\"1")),
            task: Some(TaskId::new("t")),
        };
        assert_eq!(RemoteTaskRef::from_thread(&place.to_thread()), place);
        for odd in [
            "",
            "null",
            "[]",
            "{\"context\":7}",
            "{\"context\":\"a\\u001b\"}",
        ] {
            assert_eq!(
                RemoteTaskRef::from_thread(&RemoteThread::new(odd)),
                RemoteTaskRef::default(),
                "{odd}"
            );
        }
    }

    #[test]
    fn the_task_comes_with_the_users_words() {
        let told = |request: &str, task: Option<&str>| {
            task_text(&RemoteTask {
                session: SessionId::new("s"),
                principal: Principal::local(),
                request: request.to_owned(),
                task: task.map(str::to_owned),
                thread: None,
            })
        };
        assert_eq!(told("오늘 비 와?", None), "오늘 비 와?");
        assert_eq!(told("rain?", Some(" ")), "rain?");
        assert_eq!(
            told("rain?", Some("answer: rain? please")),
            "answer: rain? please"
        );
        assert_eq!(
            told("rain?", Some("find out")),
            "find out\n\nThe user's own words: rain?"
        );
        assert_eq!(told("far: yes", Some("yes")), "yes");
        assert_eq!(told("ask far to sing", Some("sing")), "sing");
        assert!(told("weather in Berlin", Some("Berlin")).contains("weather"));
    }
}
