//! What can be asked about tasks, carried out for one caller.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use lango_domain::event::SessionId;
use lango_remote::a2a::{
    A2aCall, A2aRequest, ContextId, ErrorKind, Message, Metadata, ProtocolError, ReturnMode, Role,
    SendMessage, SendReply, StreamEvent, Task, TaskId, TaskState, TaskStatus, WireFormat,
};
use lango_store::{NewTask, SqliteStoreError, TaskCreation, TokenScope};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::history::append_message;
use super::live_tasks::{LiveTask, TaskSubscription};
use super::stored_task::{StoredTask, from_api_error, internal_error, store_error};
use super::subscription::{StreamUntil, task_stream, wait_until};
use super::task_lookup::{TaskActivity, TaskLookup};
use super::worker::{AnswerRight, TaskAssignment, TaskStep, TaskSteps};
use crate::auth::Caller;
use crate::extract::parse_session_id;
use crate::gateway::Gateway;
use crate::stream_limit::StreamPermit;

/// Work that is told to end has so long to do so.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) type TaskEventStream = BoxStream<'static, StreamEvent>;

/// What a request is answered with.
pub(crate) enum A2aResponse {
    Value(Value),
    Stream(TaskEventStream),
}

/// What became of a message.
enum SendOutcome {
    Message(Message),
    Subscription(TaskSubscription),
    /// Sent before, and nothing follows.
    Task(Task),
}

#[derive(Clone)]
pub(crate) struct TaskOperations {
    pub gateway: Gateway,
    pub caller: Caller,
}

impl TaskOperations {
    pub async fn execute(
        &self,
        call: A2aCall,
        wire: WireFormat,
    ) -> Result<A2aResponse, ProtocolError> {
        if call.tenant.is_some() {
            let message = "there are no tenants here; use the address of the card";
            return Err(ProtocolError::new(ErrorKind::InvalidParams, message)
                .with_metadata("field", "tenant"));
        }
        let value = match call.request {
            A2aRequest::SendMessage(send) => self.send_and_wait(*send, wire).await?.to_json(wire),
            A2aRequest::StreamMessage(send) => {
                return self
                    .send_streaming(*send, wire)
                    .await
                    .map(A2aResponse::Stream);
            }
            A2aRequest::GetTask { task, history } => {
                truncate_history(self.lookup(&task).await?.stored.task, history).to_json(wire)
            }
            A2aRequest::ListTasks(list) => self.list_tasks(list).await?.to_json(wire),
            A2aRequest::CancelTask { task } => {
                let desk = self.clone();
                self.run_to_completion(async move { desk.cancel(&task).await })
                    .await?
                    .to_json(wire)
            }
            A2aRequest::SubscribeToTask { task } => {
                return self.subscribe(&task).await.map(A2aResponse::Stream);
            }
            A2aRequest::CreatePushConfig(config) => {
                self.create_push_config(config, wire).await?.to_json(wire)
            }
            A2aRequest::GetPushConfig { task, config } => {
                self.get_push_config(&task, config).await?.to_json(wire)
            }
            A2aRequest::ListPushConfigs { task } => self.list_push_configs(&task, wire).await?,
            A2aRequest::DeletePushConfig { task, config } => {
                self.delete_push_config(&task, &config).await?;
                if wire == WireFormat::V03Rpc {
                    Value::Null
                } else {
                    json!({})
                }
            }
            // The card needs the address that was asked, and is answered before it comes here.
            A2aRequest::ExtendedCard => {
                return Err(unsupported("the card is asked for at its own address"));
            }
        };
        Ok(A2aResponse::Value(value))
    }

    async fn send_and_wait(
        &self,
        send: SendMessage,
        wire: WireFormat,
    ) -> Result<SendReply, ProtocolError> {
        let (waiting, history) = (send.return_mode, send.history);
        let task = match self.send(send, wire).await? {
            SendOutcome::Message(message) => return Ok(SendReply::Message(message)),
            SendOutcome::Task(task) => task,
            SendOutcome::Subscription(watch) if waiting == ReturnMode::Immediately => watch.task,
            SendOutcome::Subscription(watch) => wait_until(watch, StreamUntil::Idle).await,
        };
        Ok(SendReply::Task(truncate_history(task, history)))
    }

    async fn send_streaming(
        &self,
        send: SendMessage,
        wire: WireFormat,
    ) -> Result<TaskEventStream, ProtocolError> {
        let place = self.acquire_stream()?;
        Ok(match self.send(send, wire).await? {
            SendOutcome::Message(message) => single_event(StreamEvent::Message(message)),
            SendOutcome::Task(task) => single_event(StreamEvent::Task(task)),
            SendOutcome::Subscription(watch) => {
                task_stream(&self.gateway, watch, StreamUntil::Idle, place)
            }
        })
    }

    async fn send(
        &self,
        send: SendMessage,
        wire: WireFormat,
    ) -> Result<SendOutcome, ProtocolError> {
        if send.message.role != Role::User {
            let message = "only messages of the user are taken; the agent speaks for itself";
            return Err(ProtocolError::new(ErrorKind::InvalidParams, message)
                .with_metadata("field", "message.role"));
        }
        self.check_modes(&send)?;
        if let Some(config) = &send.push {
            self.validate_push_config(config)?;
        }
        let desk = self.clone();
        self.run_to_completion(async move {
            match send.message.task.clone() {
                Some(task) => desk.continue_task(&task, send, wire).await,
                None => match desk.gateway.a2a().worker.reply(&send.message) {
                    Some(reply) => Ok(SendOutcome::Message(reply)),
                    None => desk.create_task(send, wire).await,
                },
            }
        })
        .await
    }

    /// Comes to its end though the caller may leave: nothing is half begun.
    async fn run_to_completion<T: Send + 'static>(
        &self,
        doing: impl Future<Output = Result<T, ProtocolError>> + Send + 'static,
    ) -> Result<T, ProtocolError> {
        self.gateway
            .turn_tasks()
            .spawn(doing)
            .await
            .unwrap_or_else(|_| Err(internal_error()))
    }

    async fn create_task(
        &self,
        send: SendMessage,
        wire: WireFormat,
    ) -> Result<SendOutcome, ProtocolError> {
        let session = match &send.message.context {
            Some(context) => session_for_context(context)?,
            None => self.gateway.new_session(),
        };
        let board = &self.gateway.a2a().live_tasks;
        // Live before it is kept, so that nobody finds it kept and takes it for left behind.
        let live = board.get_or_insert(self.new_task(session, send.message.clone()));
        match self.store_new_task(&live.stored(), &send.message).await {
            Ok(TaskCreation::New) => {}
            Ok(TaskCreation::Repeated(row)) => {
                board.remove(&live);
                return self.resend_outcome(&TaskId::new(row.id)).await;
            }
            Ok(TaskCreation::TooMany) => {
                board.remove(&live);
                let message =
                    "too many of your tasks are open; wait for some to end, or cancel them";
                return Err(ProtocolError::new(ErrorKind::Busy, message));
            }
            Err(error) => {
                board.remove(&live);
                return Err(store_error(error));
            }
        }
        let watch = live.subscribe();
        if let Err(error) = self.start(&live, send, wire).await {
            board.remove(&live);
            let forgotten = self
                .gateway
                .store()
                .delete_task(self.caller.principal(), watch.task.id.as_str());
            forgotten.await.map_err(store_error)?;
            return Err(error);
        }
        Ok(SendOutcome::Subscription(watch))
    }

    async fn store_new_task(
        &self,
        kept: &StoredTask,
        message: &Message,
    ) -> Result<TaskCreation, SqliteStoreError> {
        let settings = &self.gateway.settings().a2a;
        let since = self.gateway.now().checked_sub(settings.repeat_window());
        let new = NewTask {
            row: kept.to_row(),
            message: message.id.to_string(),
            repeated_since: since.unwrap_or(jiff::Timestamp::MIN),
            max_tasks: settings.tasks.get(),
        };
        self.gateway.store().create_task(new).await
    }

    async fn start(
        &self,
        live: &Arc<LiveTask>,
        send: SendMessage,
        wire: WireFormat,
    ) -> Result<(), ProtocolError> {
        if let Some(config) = send.push {
            self.store_push_config(&live.stored().task.id, config, wire)
                .await?;
        }
        let steps = self.start_steps(live, send.message)?;
        self.gateway
            .turn_tasks()
            .spawn(Arc::clone(live).run_steps(self.gateway.clone(), steps));
        Ok(())
    }

    fn new_task(&self, session: SessionId, message: Message) -> StoredTask {
        let now = self.gateway.now();
        let id = TaskId::new(format!("task-{}", self.gateway.new_id()));
        let context = ContextId::new(session.as_str());
        let message = Message {
            task: Some(id.clone()),
            context: Some(context.clone()),
            ..message
        };
        let mut task = Task {
            id,
            context: Some(context),
            status: TaskStatus {
                state: TaskState::Submitted,
                message: None,
                timestamp: Some(now),
            },
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: Metadata::new(),
        };
        append_message(&mut task, message);
        let principal = self.caller.principal().clone();
        StoredTask {
            task,
            principal,
            session,
            turn: None,
            pending_call: None,
            created: now,
        }
    }

    /// A message that came before: its task as it stands, followed from here.
    async fn resend_outcome(&self, task: &TaskId) -> Result<SendOutcome, ProtocolError> {
        let looked = self.lookup(task).await?;
        Ok(match looked.activity {
            TaskActivity::Live(live) if !looked.stored.task.status.state.is_interrupted() => {
                SendOutcome::Subscription(live.subscribe())
            }
            _ => SendOutcome::Task(looked.stored.task),
        })
    }

    /// A message for a task that is there already.
    async fn continue_task(
        &self,
        id: &TaskId,
        send: SendMessage,
        wire: WireFormat,
    ) -> Result<SendOutcome, ProtocolError> {
        let TaskLookup {
            stored: kept,
            activity: standing,
        } = self.lookup(id).await?;
        if send
            .message
            .context
            .as_ref()
            .is_some_and(|context| Some(context) != kept.task.context.as_ref())
        {
            let message = "this task belongs to another context";
            return Err(ProtocolError::new(ErrorKind::InvalidParams, message)
                .with_metadata("field", "message.contextId"));
        }
        if kept.has_message(&send.message) {
            return self.resend_outcome(id).await;
        }
        let live = match standing {
            TaskActivity::Finished => {
                let message =
                    "the task is over; send the message without a task to go on in its context";
                return Err(unsupported(message).with_metadata("taskId", id.as_str()));
            }
            TaskActivity::OtherProcess => {
                return Err(unsupported("another process works on this task"));
            }
            TaskActivity::Live(live) => live,
            TaskActivity::AwaitingInput => {
                self.gateway.a2a().live_tasks.get_or_insert(kept.clone())
            }
        };
        // Whoever watches keeps the task live.
        let _watch = live.subscribe();
        if let Some(config) = send.push {
            self.store_push_config(id, config, wire).await?;
        }
        let message = Message {
            task: Some(id.clone()),
            context: kept.task.context.clone(),
            ..send.message
        };
        if !live.is_running() {
            let steps = self.start_steps(&live, message.clone())?;
            live.add_message(&self.gateway, message, || {
                Ok(TaskStep::from_state(TaskState::Working))
            })
            .await?;
            let watch = live.subscribe();
            self.gateway
                .turn_tasks()
                .spawn(Arc::clone(&live).run_steps(self.gateway.clone(), steps));
            return Ok(SendOutcome::Subscription(watch));
        }
        self.answer(&live, message).await
    }

    /// A message for a task that is being worked on.
    async fn answer(
        &self,
        live: &Arc<LiveTask>,
        message: Message,
    ) -> Result<SendOutcome, ProtocolError> {
        let heard = live.add_message(&self.gateway, message.clone(), || {
            let assignment = self.assignment(live.stored(), message, CancellationToken::new());
            self.gateway
                .a2a()
                .worker
                .on_message(&self.gateway, &assignment)
        });
        heard.await?;
        Ok(SendOutcome::Subscription(live.subscribe()))
    }

    /// Has somebody work on the task; what they do is to be carried.
    fn start_steps(&self, live: &LiveTask, message: Message) -> Result<TaskSteps, ProtocolError> {
        let Some(cancel) = live.start_work() else {
            return Err(unsupported("the task is being worked on"));
        };
        let assignment = self.assignment(live.stored(), message, cancel);
        let taken = self.gateway.a2a().worker.work(&self.gateway, assignment);
        taken.inspect_err(|_| live.finish_work())
    }

    pub fn assignment(
        &self,
        kept: StoredTask,
        message: Message,
        cancel: CancellationToken,
    ) -> TaskAssignment {
        let answer = match self.caller.require_any(&[TokenScope::Approve]) {
            Ok(()) => AnswerRight::Allowed,
            Err(_) => AnswerRight::NotAllowed,
        };
        let StoredTask {
            task,
            principal,
            session,
            turn,
            pending_call: asked,
            ..
        } = kept;
        TaskAssignment {
            principal,
            session,
            turn,
            answer_right: answer,
            pending_call: asked,
            task,
            message,
            cancel,
        }
    }

    async fn cancel(&self, id: &TaskId) -> Result<Task, ProtocolError> {
        let TaskLookup {
            stored: kept,
            activity: standing,
        } = self.lookup(id).await?;
        let refuse = |why: &str| {
            ProtocolError::new(ErrorKind::TaskNotCancelable, why)
                .with_metadata("taskId", id.as_str())
        };
        let live = match standing {
            TaskActivity::Finished => return Err(refuse("the task is over")),
            TaskActivity::OtherProcess => return Err(refuse("another process works on this task")),
            TaskActivity::Live(live) => live,
            TaskActivity::AwaitingInput => self.gateway.a2a().live_tasks.get_or_insert(kept),
        };
        let watch = live.subscribe();
        if live.cancel_work() {
            let _ = tokio::time::timeout(CANCEL_TIMEOUT, wait_until(watch, StreamUntil::Terminal))
                .await;
        } else {
            live.apply_step(&self.gateway, TaskStep::from_state(TaskState::Canceled))
                .await;
        }
        self.gateway.a2a().live_tasks.remove_if_idle(&live);
        let task = live.stored().task;
        match task.status.state {
            TaskState::Canceled => Ok(task),
            state if state.is_terminal() => {
                Err(refuse("the task ended before it could be canceled"))
            }
            _ => Ok(task),
        }
    }

    async fn subscribe(&self, id: &TaskId) -> Result<TaskEventStream, ProtocolError> {
        let place = self.acquire_stream()?;
        let TaskLookup {
            stored: kept,
            activity: standing,
        } = self.lookup(id).await?;
        let live = match standing {
            TaskActivity::Finished => {
                return Err(unsupported("the task is over; get it instead")
                    .with_metadata("taskId", id.as_str()));
            }
            TaskActivity::OtherProcess => return Ok(single_event(StreamEvent::Task(kept.task))),
            TaskActivity::Live(live) => live,
            TaskActivity::AwaitingInput => self.gateway.a2a().live_tasks.get_or_insert(kept),
        };
        Ok(task_stream(
            &self.gateway,
            live.subscribe(),
            StreamUntil::NextIdle,
            place,
        ))
    }

    fn acquire_stream(&self) -> Result<StreamPermit, ProtocolError> {
        self.gateway
            .open_stream(self.caller.principal())
            .map_err(from_api_error)
    }
}

fn session_for_context(context: &ContextId) -> Result<SessionId, ProtocolError> {
    parse_session_id(context.as_str()).map_err(|refusal| {
        ProtocolError::new(ErrorKind::InvalidParams, refusal.message)
            .with_metadata("field", "message.contextId")
    })
}

/// With the last messages only.
pub(crate) fn truncate_history(mut task: Task, history: Option<u32>) -> Task {
    if let Some(most) = history {
        let surplus = task.history.len().saturating_sub(most as usize);
        task.history.drain(..surplus);
    }
    task
}

fn single_event(event: StreamEvent) -> TaskEventStream {
    Box::pin(futures::stream::once(std::future::ready(event)))
}

/// What is not there and what is somebody else's look the same (B74).
pub(crate) fn not_found(id: &TaskId) -> ProtocolError {
    let message = "task not found";
    ProtocolError::new(ErrorKind::TaskNotFound, message).with_metadata("taskId", id.as_str())
}

pub(crate) fn unsupported(message: &str) -> ProtocolError {
    ProtocolError::new(ErrorKind::UnsupportedOperation, message)
}
