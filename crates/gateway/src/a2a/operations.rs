//! The A2A operations of one caller.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use lango_remote::a2a::{
    A2aCall, A2aRequest, ErrorKind, ProtocolError, StreamEvent, Task, TaskId, TaskState, WireFormat,
};
use serde_json::{Value, json};

use super::live_tasks::LiveTask;
use super::stored_task::{from_api_error, internal_error};
use super::subscription::{StreamUntil, task_stream, wait_until};
use super::task_lookup::{TaskActivity, TaskLookup};
use super::worker::TaskStep;
use crate::auth::Caller;
use crate::gateway::Gateway;
use crate::stream_limit::StreamPermit;

/// Time that cancelled work has to end.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) type TaskEventStream = BoxStream<'static, StreamEvent>;

/// The response to an A2A request.
pub(crate) enum A2aResponse {
    Value(Value),
    Stream(TaskEventStream),
}

/// Executes A2A requests for one caller.
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
            let message = "tenants are not supported; use the URL from the agent card";
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
                let operations = self.clone();
                self.run_to_completion(async move { operations.cancel(&task).await })
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
            // The card needs the request headers, so `http` answers this request itself.
            A2aRequest::ExtendedCard => {
                return Err(unsupported("the agent card is served at its own URL"));
            }
        };
        Ok(A2aResponse::Value(value))
    }

    /// Runs an operation to completion even if the caller disconnects, so that no operation is left
    /// half done.
    pub async fn run_to_completion<T: Send + 'static>(
        &self,
        operation: impl Future<Output = Result<T, ProtocolError>> + Send + 'static,
    ) -> Result<T, ProtocolError> {
        self.gateway
            .turn_tasks()
            .spawn(operation)
            .await
            .unwrap_or_else(|_| Err(internal_error()))
    }

    async fn cancel(&self, id: &TaskId) -> Result<Task, ProtocolError> {
        let not_cancelable = |reason: &str| {
            ProtocolError::new(ErrorKind::TaskNotCancelable, reason)
                .with_metadata("taskId", id.as_str())
        };
        let lookup = self.lookup(id).await?;
        let live = match lookup.activity {
            TaskActivity::Finished => return Err(not_cancelable("the task has already ended")),
            TaskActivity::OtherProcess => {
                return Err(not_cancelable("the task runs in another process"));
            }
            TaskActivity::Live(live) => live,
            TaskActivity::AwaitingInput => {
                self.gateway.a2a().live_tasks.get_or_insert(lookup.stored)
            }
        };
        let subscription = live.subscribe();
        if live.cancel_work() {
            let ended = wait_until(subscription, StreamUntil::Terminal);
            let _ = tokio::time::timeout(CANCEL_TIMEOUT, ended).await;
        } else {
            live.apply_step(&self.gateway, TaskStep::from_state(TaskState::Canceled))
                .await;
        }
        self.gateway.a2a().live_tasks.remove_if_idle(&live);
        let task = live.stored().task;
        match task.status.state {
            TaskState::Canceled => Ok(task),
            state if state.is_terminal() => {
                Err(not_cancelable("the task ended before it could be canceled"))
            }
            _ => Ok(task),
        }
    }

    async fn subscribe(&self, id: &TaskId) -> Result<TaskEventStream, ProtocolError> {
        let permit = self.acquire_stream()?;
        let TaskLookup { stored, activity } = self.lookup(id).await?;
        let live: Arc<LiveTask> = match activity {
            TaskActivity::Finished => {
                let error = unsupported("the task has ended; use GetTask instead");
                return Err(error.with_metadata("taskId", id.as_str()));
            }
            TaskActivity::OtherProcess => return Ok(single_event(StreamEvent::Task(stored.task))),
            TaskActivity::Live(live) => live,
            TaskActivity::AwaitingInput => self.gateway.a2a().live_tasks.get_or_insert(stored),
        };
        let subscription = live.subscribe();
        let until = StreamUntil::NextIdle;
        Ok(task_stream(&self.gateway, subscription, until, permit))
    }

    pub fn acquire_stream(&self) -> Result<StreamPermit, ProtocolError> {
        self.gateway
            .open_stream(self.caller.principal())
            .map_err(from_api_error)
    }
}

/// Keeps only the last `history` messages of a task.
pub(crate) fn truncate_history(mut task: Task, history: Option<u32>) -> Task {
    if let Some(limit) = history {
        let surplus = task.history.len().saturating_sub(limit as usize);
        task.history.drain(..surplus);
    }
    task
}

pub(crate) fn single_event(event: StreamEvent) -> TaskEventStream {
    Box::pin(futures::stream::once(std::future::ready(event)))
}

/// Returns the same error for missing and foreign tasks, so callers cannot probe for them (B74).
pub(crate) fn not_found(id: &TaskId) -> ProtocolError {
    let message = "task not found";
    ProtocolError::new(ErrorKind::TaskNotFound, message).with_metadata("taskId", id.as_str())
}

pub(crate) fn unsupported(message: &str) -> ProtocolError {
    ProtocolError::new(ErrorKind::UnsupportedOperation, message)
}
