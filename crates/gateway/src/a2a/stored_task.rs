//! Conversion of tasks to and from the store, which holds them as JSON of version 1.0.

use axum::http::StatusCode;
use jiff::Timestamp;
use lango_domain::event::{CallId, Principal, SessionId, TurnId};
use lango_domain::tasks::TaskRow;
use lango_remote::a2a::{ErrorKind, Message, ProtocolError, Task, WireFormat};
use tokio_util::sync::CancellationToken;

use super::worker::{AnswerRight, TaskAssignment};
use crate::error::ApiError;

/// A task with the fields that are not part of the protocol.
#[derive(Clone, Debug)]
pub(crate) struct StoredTask {
    pub task: Task,
    pub principal: Principal,
    pub session: SessionId,
    pub turn: Option<TurnId>,
    /// The call that the task's status asks about. Not stored: questions end with their process.
    pub pending_call: Option<CallId>,
    pub created: Timestamp,
}

impl StoredTask {
    pub fn from_row(row: TaskRow) -> Result<Self, ProtocolError> {
        let value = serde_json::from_str(&row.body).ok();
        let Some(task) = value.and_then(|value| Task::from_json(&value, WireFormat::V1).ok())
        else {
            tracing::error!(task = row.id, "cannot parse a stored task");
            return Err(internal_error());
        };
        let TaskRow {
            principal,
            session,
            turn,
            created,
            ..
        } = row;
        Ok(Self {
            task,
            principal,
            session,
            turn,
            pending_call: None,
            created,
        })
    }

    pub fn to_row(&self) -> TaskRow {
        let state = self.task.status.state;
        TaskRow {
            id: self.task.id.to_string(),
            principal: self.principal.clone(),
            session: self.session.clone(),
            turn: self.turn.clone(),
            state: state.as_str(WireFormat::V1).to_owned(),
            is_terminal: state.is_terminal(),
            created: self.created,
            updated: self.task.status.timestamp.unwrap_or(self.created),
            body: self.task.to_json(WireFormat::V1).to_string(),
        }
    }

    /// Returns true if the task already has this message. Compares the parts as well, because some
    /// clients use one id for all messages.
    pub fn has_message(&self, message: &Message) -> bool {
        self.task
            .history
            .iter()
            .any(|known| known.id == message.id && known.parts == message.parts)
    }

    pub fn into_assignment(
        self,
        message: Message,
        answer_right: AnswerRight,
        cancel: CancellationToken,
    ) -> TaskAssignment {
        TaskAssignment {
            principal: self.principal,
            session: self.session,
            turn: self.turn,
            answer_right,
            pending_call: self.pending_call,
            task: self.task,
            message,
            cancel,
        }
    }

    pub fn is_terminal(&self) -> bool {
        self.task.status.state.is_terminal()
    }
}

/// Returns an error without details, which are only in the server's log.
pub(crate) fn internal_error() -> ProtocolError {
    ProtocolError::new(
        ErrorKind::Internal,
        "the store could not be read or written",
    )
}

pub(crate) fn store_error(error: lango_domain::StoreError) -> ProtocolError {
    tracing::error!(%error, "store error");
    internal_error()
}

/// Converts an API error to a protocol error.
pub(crate) fn from_api_error(error: ApiError) -> ProtocolError {
    let kind = match error.status {
        StatusCode::TOO_MANY_REQUESTS => ErrorKind::Busy,
        StatusCode::SERVICE_UNAVAILABLE => ErrorKind::Unavailable,
        status if status.is_client_error() => ErrorKind::InvalidParams,
        _ => ErrorKind::Internal,
    };
    ProtocolError::new(kind, format!("{}; {}", error.message, error.hint))
}
