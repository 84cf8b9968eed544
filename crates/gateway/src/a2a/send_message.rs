//! Sending messages: starting new tasks, continuing and answering existing ones.

use std::sync::Arc;

use lango_domain::StoreError;
use lango_domain::access_tokens::TokenScope;
use lango_domain::event::SessionId;
use lango_domain::tasks::{NewTask, TaskCreation};
use lango_remote::a2a::{
    ContextId, ErrorKind, Message, Metadata, ProtocolError, ReturnMode, Role, SendMessage,
    SendReply, StreamEvent, Task, TaskId, TaskState, TaskStatus, WireFormat,
};
use tokio_util::sync::CancellationToken;

use super::history::append_message;
use super::live_tasks::{LiveTask, TaskSubscription};
use super::operations::{
    TaskEventStream, TaskOperations, single_event, truncate_history, unsupported,
};
use super::stored_task::{StoredTask, store_error};
use super::subscription::{StreamUntil, task_stream, wait_until};
use super::task_lookup::{TaskActivity, TaskLookup};
use super::worker::{AnswerRight, TaskAssignment, TaskStep, TaskSteps};
use crate::extract::parse_session_id;

/// The outcome of a sent message.
enum SendOutcome {
    Message(Message),
    Subscription(TaskSubscription),
    /// The message was sent before, and its task is not running.
    Task(Task),
}

impl TaskOperations {
    /// Sends a message and waits until its task is idle, unless the request asks not to wait.
    pub async fn send_and_wait(
        &self,
        send: SendMessage,
        wire: WireFormat,
    ) -> Result<SendReply, ProtocolError> {
        let (return_mode, history) = (send.return_mode, send.history);
        let task = match self.send(send, wire).await? {
            SendOutcome::Message(message) => return Ok(SendReply::Message(message)),
            SendOutcome::Task(task) => task,
            SendOutcome::Subscription(subscription) if return_mode == ReturnMode::Immediately => {
                subscription.task
            }
            SendOutcome::Subscription(subscription) => {
                wait_until(subscription, StreamUntil::Idle).await
            }
        };
        Ok(SendReply::Task(truncate_history(task, history)))
    }

    /// Sends a message and streams the events of its task.
    pub async fn send_streaming(
        &self,
        send: SendMessage,
        wire: WireFormat,
    ) -> Result<TaskEventStream, ProtocolError> {
        let permit = self.acquire_stream()?;
        Ok(match self.send(send, wire).await? {
            SendOutcome::Message(message) => single_event(StreamEvent::Message(message)),
            SendOutcome::Task(task) => single_event(StreamEvent::Task(task)),
            SendOutcome::Subscription(subscription) => {
                task_stream(&self.gateway, subscription, StreamUntil::Idle, permit)
            }
        })
    }

    async fn send(
        &self,
        send: SendMessage,
        wire: WireFormat,
    ) -> Result<SendOutcome, ProtocolError> {
        if send.message.role != Role::User {
            let message = "the role of a message must be user";
            return Err(ProtocolError::new(ErrorKind::InvalidParams, message)
                .with_metadata("field", "message.role"));
        }
        self.check_modes(&send)?;
        if let Some(config) = &send.push {
            self.validate_push_config(config)?;
        }
        let operations = self.clone();
        self.run_to_completion(async move {
            match send.message.task.clone() {
                Some(task) => operations.continue_task(&task, send, wire).await,
                None => match operations.gateway.a2a().worker.reply(&send.message) {
                    Some(reply) => Ok(SendOutcome::Message(reply)),
                    None => operations.create_task(send, wire).await,
                },
            }
        })
        .await
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
        let live_tasks = &self.gateway.a2a().live_tasks;
        // The task must be live before it is stored: a stored task that is not live counts as orphaned.
        let live = live_tasks.get_or_insert(self.new_task(session, send.message.clone()));
        match self.store_new_task(&live.stored(), &send.message).await {
            Ok(TaskCreation::New) => {}
            Ok(TaskCreation::Repeated(row)) => {
                live_tasks.remove(&live);
                return self.resend_outcome(&TaskId::new(row.id)).await;
            }
            Ok(TaskCreation::TooMany) => {
                live_tasks.remove(&live);
                let message = "too many open tasks; wait until some have ended, or cancel them";
                return Err(ProtocolError::new(ErrorKind::Busy, message));
            }
            Err(error) => {
                live_tasks.remove(&live);
                return Err(store_error(error));
            }
        }
        let subscription = live.subscribe();
        if let Err(error) = self.start(&live, send, wire).await {
            live_tasks.remove(&live);
            self.gateway
                .stores()
                .tasks
                .delete_task(self.caller.principal(), subscription.task.id.as_str())
                .await
                .map_err(store_error)?;
            return Err(error);
        }
        Ok(SendOutcome::Subscription(subscription))
    }

    async fn store_new_task(
        &self,
        stored: &StoredTask,
        message: &Message,
    ) -> Result<TaskCreation, StoreError> {
        let settings = &self.gateway.settings().a2a;
        let since = self.gateway.now().checked_sub(settings.repeat_window());
        let new = NewTask {
            row: stored.to_row(),
            message: message.id.to_string(),
            repeated_since: since.unwrap_or(jiff::Timestamp::MIN),
            max_tasks: settings.tasks.get(),
        };
        self.gateway.stores().tasks.create_task(new).await
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
        self.spawn_steps(live, steps);
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

    /// Returns the outcome for a message that was sent before: a subscription to its task if the
    /// task is running, otherwise the task itself.
    async fn resend_outcome(&self, task: &TaskId) -> Result<SendOutcome, ProtocolError> {
        let TaskLookup { stored, activity } = self.lookup(task).await?;
        Ok(match activity {
            TaskActivity::Live(live) if !stored.task.status.state.is_interrupted() => {
                SendOutcome::Subscription(live.subscribe())
            }
            _ => SendOutcome::Task(stored.task),
        })
    }

    /// Sends a message to an existing task.
    async fn continue_task(
        &self,
        id: &TaskId,
        send: SendMessage,
        wire: WireFormat,
    ) -> Result<SendOutcome, ProtocolError> {
        let lookup = self.lookup(id).await?;
        let task_context = lookup.stored.task.context.clone();
        if send.message.context.is_some() && send.message.context != task_context {
            let message = "the task belongs to another context";
            return Err(ProtocolError::new(ErrorKind::InvalidParams, message)
                .with_metadata("field", "message.contextId"));
        }
        if lookup.stored.has_message(&send.message) {
            return self.resend_outcome(id).await;
        }
        let live = self.open_task(lookup)?;
        // A subscription keeps the task live.
        let _subscription = live.subscribe();
        if let Some(config) = send.push {
            self.store_push_config(id, config, wire).await?;
        }
        let message = Message {
            task: Some(id.clone()),
            context: task_context,
            ..send.message
        };
        if live.is_running() {
            self.answer(&live, message).await
        } else {
            self.resume(&live, message).await
        }
    }

    /// Returns the live task for a new message, or an error if the task cannot take one.
    fn open_task(&self, lookup: TaskLookup) -> Result<Arc<LiveTask>, ProtocolError> {
        let TaskLookup { stored, activity } = lookup;
        match activity {
            TaskActivity::Finished => {
                let message = "the task has ended; send the message without a task id to continue its context";
                Err(unsupported(message).with_metadata("taskId", stored.task.id.as_str()))
            }
            TaskActivity::OtherProcess => Err(unsupported("the task runs in another process")),
            TaskActivity::Live(live) => Ok(live),
            TaskActivity::AwaitingInput => Ok(self.gateway.a2a().live_tasks.get_or_insert(stored)),
        }
    }

    /// Starts work on a task that waited for a message.
    async fn resume(
        &self,
        live: &Arc<LiveTask>,
        message: Message,
    ) -> Result<SendOutcome, ProtocolError> {
        let steps = self.start_steps(live, message.clone())?;
        let working = || Ok(TaskStep::from_state(TaskState::Working));
        live.add_message(&self.gateway, message, working).await?;
        let subscription = live.subscribe();
        self.spawn_steps(live, steps);
        Ok(SendOutcome::Subscription(subscription))
    }

    /// Sends a message to a running task.
    async fn answer(
        &self,
        live: &Arc<LiveTask>,
        message: Message,
    ) -> Result<SendOutcome, ProtocolError> {
        let gateway = &self.gateway;
        live.add_message(gateway, message.clone(), || {
            let assignment = self.assignment(live.stored(), message, CancellationToken::new());
            gateway.a2a().worker.on_message(gateway, &assignment)
        })
        .await?;
        Ok(SendOutcome::Subscription(live.subscribe()))
    }

    /// Starts work on a task and returns its steps, which the caller has to run.
    fn start_steps(&self, live: &LiveTask, message: Message) -> Result<TaskSteps, ProtocolError> {
        let Some(cancel) = live.start_work() else {
            return Err(unsupported("the task is already running"));
        };
        let assignment = self.assignment(live.stored(), message, cancel);
        self.gateway
            .a2a()
            .worker
            .work(&self.gateway, assignment)
            .inspect_err(|_| live.finish_work())
    }

    fn spawn_steps(&self, live: &Arc<LiveTask>, steps: TaskSteps) {
        self.gateway
            .turn_tasks()
            .spawn(Arc::clone(live).run_steps(self.gateway.clone(), steps));
    }

    fn assignment(
        &self,
        stored: StoredTask,
        message: Message,
        cancel: CancellationToken,
    ) -> TaskAssignment {
        let answer_right = match self.caller.require_any(&[TokenScope::Approve]) {
            Ok(()) => AnswerRight::Allowed,
            Err(_) => AnswerRight::NotAllowed,
        };
        stored.into_assignment(message, answer_right, cancel)
    }
}

fn session_for_context(context: &ContextId) -> Result<SessionId, ProtocolError> {
    parse_session_id(context.as_str()).map_err(|error| {
        ProtocolError::new(ErrorKind::InvalidParams, error.message)
            .with_metadata("field", "message.contextId")
    })
}
