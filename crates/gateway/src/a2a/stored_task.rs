//! Tasks between memory and the store, where they are JSON of 1.0.

use axum::http::StatusCode;
use jiff::Timestamp;
use lango_domain::event::{CallId, Principal, SessionId, TurnId};
use lango_remote::a2a::{ErrorKind, Message, ProtocolError, Task, WireFormat};
use lango_store::TaskRow;

use crate::error::ApiError;

/// A task, and what the protocol does not say about it.
#[derive(Clone, Debug)]
pub(crate) struct StoredTask {
    pub task: Task,
    pub principal: Principal,
    pub session: SessionId,
    pub turn: Option<TurnId>,
    /// The call that its status asks about. No question outlives its process.
    pub pending_call: Option<CallId>,
    pub created: Timestamp,
}

impl StoredTask {
    pub fn from_row(row: TaskRow) -> Result<Self, ProtocolError> {
        let value = serde_json::from_str(&row.body).ok();
        let Some(task) = value.and_then(|value| Task::from_json(&value, WireFormat::V1).ok())
        else {
            tracing::error!(task = row.id, "a kept task cannot be read");
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

    /// Whether this very message was heard before. Some clients give one id to all that they send; other words are another message.
    pub fn has_message(&self, message: &Message) -> bool {
        self.task
            .history
            .iter()
            .any(|heard| heard.id == message.id && heard.parts == message.parts)
    }

    pub fn is_terminal(&self) -> bool {
        self.task.status.state.is_terminal()
    }
}

/// What happened inside is in the log of whoever runs the server.
pub(crate) fn internal_error() -> ProtocolError {
    ProtocolError::new(
        ErrorKind::Internal,
        "what is kept could not be read or written",
    )
}

pub(crate) fn store_error(trouble: lango_store::SqliteStoreError) -> ProtocolError {
    tracing::error!(%trouble, "the store has trouble with a task");
    internal_error()
}

/// What the server refuses, in words of the protocol.
pub(crate) fn from_api_error(refusal: ApiError) -> ProtocolError {
    let kind = match refusal.status {
        StatusCode::TOO_MANY_REQUESTS => ErrorKind::Busy,
        StatusCode::SERVICE_UNAVAILABLE => ErrorKind::Unavailable,
        status if status.is_client_error() => ErrorKind::InvalidParams,
        _ => ErrorKind::Internal,
    };
    ProtocolError::new(kind, format!("{}; {}", refusal.message, refusal.hint))
}
