//! What can be asked about tasks, carried out for one caller.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use lango_domain::event::SessionId;
use lango_remote::a2a::{
    A2aCall, ContextId, ErrorKind, Message, Metadata, ProtocolError, SendReply, A2aRequest, Role, SendMessage,
    StreamEvent, Task, TaskId, TaskState, TaskStatus, ReturnMode, WireFormat,
};
use lango_store::{NewTask, TaskCreation, TokenScope, SqliteStoreError};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::board::{Live, Watch};
use super::history::remember;
use super::kept::{Kept, broken, refused, trouble};
use super::looking::{Looked, Standing};
use super::watching::{Until, done, watched};
use super::worker::{Answer, Assignment, Step, Steps};
use crate::gate::Caller;
use crate::gateway::Gateway;
use crate::reading::session_named;
use crate::streams::Opened;

/// Work that is told to end has so long to do so.
const ENDING: Duration = Duration::from_secs(20);

pub(crate) type Events = BoxStream<'static, StreamEvent>;

/// What a request is answered with.
pub(crate) enum Answered {
    Value(Value),
    Stream(Events),
}

/// What became of a message.
enum Sent {
    Message(Message),
    Watch(Watch),
    /// Sent before, and nothing follows.
    Task(Task),
}

#[derive(Clone)]
pub(crate) struct Desk {
    pub gateway: Gateway,
    pub caller: Caller,
}

impl Desk {
    pub async fn carry_out(&self, call: A2aCall, wire: WireFormat) -> Result<Answered, ProtocolError> {
        if call.tenant.is_some() {
            let message = "there are no tenants here; use the address of the card";
            return Err(ProtocolError::new(ErrorKind::InvalidParams, message).about("field", "tenant"));
        }
        let value = match call.request {
            A2aRequest::SendMessage(send) => self.send_and_wait(*send, wire).await?.write(wire),
            A2aRequest::StreamMessage(send) => {
                return self.send_and_watch(*send, wire).await.map(Answered::Stream);
            }
            A2aRequest::GetTask { task, history } => {
                shortened(self.look(&task).await?.kept.task, history).write(wire)
            }
            A2aRequest::ListTasks(list) => self.list(list).await?.write(wire),
            A2aRequest::CancelTask { task } => {
                let desk = self.clone();
                self.undisturbed(async move { desk.cancel(&task).await }).await?.write(wire)
            }
            A2aRequest::SubscribeToTask { task } => return self.subscribe(&task).await.map(Answered::Stream),
            A2aRequest::CreatePushConfig(config) => self.listen(config, wire).await?.write(wire),
            A2aRequest::GetPushConfig { task, config } => self.listener(&task, config).await?.write(wire),
            A2aRequest::ListPushConfigs { task } => self.listeners(&task, wire).await?,
            A2aRequest::DeletePushConfig { task, config } => {
                self.stop_listening(&task, &config).await?;
                if wire == WireFormat::V03Rpc { Value::Null } else { json!({}) }
            }
            // The card needs the address that was asked, and is answered before it comes here.
            A2aRequest::ExtendedCard => return Err(unsupported("the card is asked for at its own address")),
        };
        Ok(Answered::Value(value))
    }

    async fn send_and_wait(&self, send: SendMessage, wire: WireFormat) -> Result<SendReply, ProtocolError> {
        let (waiting, history) = (send.waiting, send.history);
        let task = match self.send(send, wire).await? {
            Sent::Message(message) => return Ok(SendReply::Message(message)),
            Sent::Task(task) => task,
            Sent::Watch(watch) if waiting == ReturnMode::NotAtAll => watch.task,
            Sent::Watch(watch) => done(watch, Until::Rest).await,
        };
        Ok(SendReply::Task(shortened(task, history)))
    }

    async fn send_and_watch(&self, send: SendMessage, wire: WireFormat) -> Result<Events, ProtocolError> {
        let place = self.stream_place()?;
        Ok(match self.send(send, wire).await? {
            Sent::Message(message) => only(StreamEvent::Message(message)),
            Sent::Task(task) => only(StreamEvent::Task(task)),
            Sent::Watch(watch) => watched(&self.gateway, watch, Until::Rest, place),
        })
    }

    async fn send(&self, send: SendMessage, wire: WireFormat) -> Result<Sent, ProtocolError> {
        if send.message.role != Role::User {
            let message = "only messages of the user are taken; the agent speaks for itself";
            return Err(ProtocolError::new(ErrorKind::InvalidParams, message).about("field", "message.role"));
        }
        self.check_modes(&send)?;
        if let Some(config) = &send.push {
            self.check_listener(config)?;
        }
        let desk = self.clone();
        self.undisturbed(async move {
            match send.message.task.clone() {
                Some(task) => desk.go_on(&task, send, wire).await,
                None => match desk.gateway.a2a().worker.reply(&send.message) {
                    Some(reply) => Ok(Sent::Message(reply)),
                    None => desk.begin(send, wire).await,
                },
            }
        })
        .await
    }

    /// Comes to its end though the caller may leave: nothing is half begun.
    async fn undisturbed<T: Send + 'static>(
        &self,
        doing: impl Future<Output = Result<T, ProtocolError>> + Send + 'static,
    ) -> Result<T, ProtocolError> {
        self.gateway.pumps().spawn(doing).await.unwrap_or_else(|_| Err(broken()))
    }

    async fn begin(&self, send: SendMessage, wire: WireFormat) -> Result<Sent, ProtocolError> {
        let session = match &send.message.context {
            Some(context) => session_of(context)?,
            None => self.gateway.new_session(),
        };
        let board = &self.gateway.a2a().board;
        // Live before it is kept, so that nobody finds it kept and takes it for left behind.
        let live = board.open(self.new_task(session, send.message.clone()));
        match self.keep_new(&live.kept(), &send.message).await {
            Ok(TaskCreation::New) => {}
            Ok(TaskCreation::Repeated(row)) => {
                board.remove(&live);
                return self.again(&TaskId::new(row.id)).await;
            }
            Ok(TaskCreation::TooMany) => {
                board.remove(&live);
                let message = "too many of your tasks are open; wait for some to end, or cancel them";
                return Err(ProtocolError::new(ErrorKind::Busy, message));
            }
            Err(error) => {
                board.remove(&live);
                return Err(trouble(error));
            }
        }
        let watch = live.watch();
        if let Err(error) = self.start(&live, send, wire).await {
            board.remove(&live);
            let forgotten = self.gateway.store().delete_task(self.caller.principal(), watch.task.id.as_str());
            forgotten.await.map_err(trouble)?;
            return Err(error);
        }
        Ok(Sent::Watch(watch))
    }

    async fn keep_new(&self, kept: &Kept, message: &Message) -> Result<TaskCreation, SqliteStoreError> {
        let settings = &self.gateway.settings().a2a;
        let since = self.gateway.now().checked_sub(settings.repeat_time());
        let new = NewTask {
            row: kept.row(),
            message: message.id.to_string(),
            repeated_since: since.unwrap_or(jiff::Timestamp::MIN),
            most: settings.tasks.get(),
        };
        self.gateway.store().create_task(new).await
    }

    async fn start(&self, live: &Arc<Live>, send: SendMessage, wire: WireFormat) -> Result<(), ProtocolError> {
        if let Some(config) = send.push {
            self.keep_listener(&live.kept().task.id, config, wire).await?;
        }
        let steps = self.take_up(live, send.message)?;
        self.gateway.pumps().spawn(Arc::clone(live).carry(self.gateway.clone(), steps));
        Ok(())
    }

    fn new_task(&self, session: SessionId, message: Message) -> Kept {
        let now = self.gateway.now();
        let id = TaskId::new(format!("task-{}", self.gateway.new_id()));
        let context = ContextId::new(session.as_str());
        let message = Message { task: Some(id.clone()), context: Some(context.clone()), ..message };
        let mut task = Task {
            id,
            context: Some(context),
            status: TaskStatus { state: TaskState::Submitted, message: None, at: Some(now) },
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: Metadata::new(),
        };
        remember(&mut task, message);
        let principal = self.caller.principal().clone();
        Kept { task, principal, session, turn: None, asked: None, created: now }
    }

    /// A message that came before: its task as it stands, followed from here.
    async fn again(&self, task: &TaskId) -> Result<Sent, ProtocolError> {
        let looked = self.look(task).await?;
        Ok(match looked.standing {
            Standing::Live(live) if !looked.kept.task.status.state.is_interrupted() => {
                Sent::Watch(live.watch())
            }
            _ => Sent::Task(looked.kept.task),
        })
    }

    /// A message for a task that is there already.
    async fn go_on(&self, id: &TaskId, send: SendMessage, wire: WireFormat) -> Result<Sent, ProtocolError> {
        let Looked { kept, standing } = self.look(id).await?;
        if send.message.context.as_ref().is_some_and(|context| Some(context) != kept.task.context.as_ref()) {
            let message = "this task belongs to another context";
            return Err(
                ProtocolError::new(ErrorKind::InvalidParams, message).about("field", "message.contextId")
            );
        }
        if kept.has_heard(&send.message) {
            return self.again(id).await;
        }
        let live = match standing {
            Standing::Over => {
                let message = "the task is over; send the message without a task to go on in its context";
                return Err(unsupported(message).about("taskId", id.as_str()));
            }
            Standing::Elsewhere => return Err(unsupported("another process works on this task")),
            Standing::Live(live) => live,
            Standing::Waits => self.gateway.a2a().board.open(kept.clone()),
        };
        // Whoever watches keeps the task live.
        let _watch = live.watch();
        if let Some(config) = send.push {
            self.keep_listener(id, config, wire).await?;
        }
        let message = Message { task: Some(id.clone()), context: kept.task.context.clone(), ..send.message };
        if !live.is_worked_on() {
            let steps = self.take_up(&live, message.clone())?;
            live.hear(&self.gateway, message, || Ok(Step::state(TaskState::Working))).await?;
            let watch = live.watch();
            self.gateway.pumps().spawn(Arc::clone(&live).carry(self.gateway.clone(), steps));
            return Ok(Sent::Watch(watch));
        }
        self.answer(&live, message).await
    }

    /// A message for a task that is being worked on.
    async fn answer(&self, live: &Arc<Live>, message: Message) -> Result<Sent, ProtocolError> {
        let heard = live.hear(&self.gateway, message.clone(), || {
            let assignment = self.assignment(live.kept(), message, CancellationToken::new());
            self.gateway.a2a().worker.hear(&self.gateway, &assignment)
        });
        heard.await?;
        Ok(Sent::Watch(live.watch()))
    }

    /// Has somebody work on the task; what they do is to be carried.
    fn take_up(&self, live: &Live, message: Message) -> Result<Steps, ProtocolError> {
        let Some(cancel) = live.take_up() else { return Err(unsupported("the task is being worked on")) };
        let assignment = self.assignment(live.kept(), message, cancel);
        let taken = self.gateway.a2a().worker.work(&self.gateway, assignment);
        taken.inspect_err(|_| live.lay_down())
    }

    pub fn assignment(&self, kept: Kept, message: Message, cancel: CancellationToken) -> Assignment {
        let answer = match self.caller.needs(&[TokenScope::Approve]) {
            Ok(()) => Answer::MayAnswer,
            Err(_) => Answer::MayNot,
        };
        let Kept { task, principal, session, turn, asked, .. } = kept;
        Assignment { principal, session, turn, answer, asked, task, message, cancel }
    }

    async fn cancel(&self, id: &TaskId) -> Result<Task, ProtocolError> {
        let Looked { kept, standing } = self.look(id).await?;
        let refuse =
            |why: &str| ProtocolError::new(ErrorKind::TaskNotCancelable, why).about("taskId", id.as_str());
        let live = match standing {
            Standing::Over => return Err(refuse("the task is over")),
            Standing::Elsewhere => return Err(refuse("another process works on this task")),
            Standing::Live(live) => live,
            Standing::Waits => self.gateway.a2a().board.open(kept),
        };
        let watch = live.watch();
        if live.stop() {
            let _ = tokio::time::timeout(ENDING, done(watch, Until::End)).await;
        } else {
            live.step(&self.gateway, Step::state(TaskState::Canceled)).await;
        }
        self.gateway.a2a().board.tidy(&live);
        let task = live.kept().task;
        match task.status.state {
            TaskState::Canceled => Ok(task),
            state if state.is_terminal() => Err(refuse("the task ended before it could be canceled")),
            _ => Ok(task),
        }
    }

    async fn subscribe(&self, id: &TaskId) -> Result<Events, ProtocolError> {
        let place = self.stream_place()?;
        let Looked { kept, standing } = self.look(id).await?;
        let live = match standing {
            Standing::Over => {
                return Err(unsupported("the task is over; get it instead").about("taskId", id.as_str()));
            }
            Standing::Elsewhere => return Ok(only(StreamEvent::Task(kept.task))),
            Standing::Live(live) => live,
            Standing::Waits => self.gateway.a2a().board.open(kept),
        };
        Ok(watched(&self.gateway, live.watch(), Until::RestAgain, place))
    }

    fn stream_place(&self) -> Result<Opened, ProtocolError> {
        self.gateway.open_stream(self.caller.principal()).map_err(refused)
    }
}

fn session_of(context: &ContextId) -> Result<SessionId, ProtocolError> {
    session_named(context.as_str()).map_err(|refusal| {
        ProtocolError::new(ErrorKind::InvalidParams, refusal.message).about("field", "message.contextId")
    })
}

/// With the last messages only.
pub(crate) fn shortened(mut task: Task, history: Option<u32>) -> Task {
    if let Some(most) = history {
        let surplus = task.history.len().saturating_sub(most as usize);
        task.history.drain(..surplus);
    }
    task
}

fn only(event: StreamEvent) -> Events {
    Box::pin(futures::stream::once(std::future::ready(event)))
}

/// What is not there and what is somebody else's look the same (B74).
pub(crate) fn not_found(id: &TaskId) -> ProtocolError {
    let message = "task not found";
    ProtocolError::new(ErrorKind::TaskNotFound, message).about("taskId", id.as_str())
}

pub(crate) fn unsupported(message: &str) -> ProtocolError {
    ProtocolError::new(ErrorKind::UnsupportedOperation, message)
}
