//! Replies of a server: a single reply, or a stream of events.

use serde_json::{Value, json};

use super::ids::{ContextId, TaskId, WireId};
use super::json_fields::{FieldError, JsonFields, JsonObjectWriter, Metadata, missing};
use super::message::Message;
use super::task::{Artifact, Task, TaskStatus};
use super::version::WireFormat;

/// The reply to a message sent without streaming.
#[derive(Clone, Debug, PartialEq)]
pub enum SendReply {
    Task(Task),
    Message(Message),
}

impl SendReply {
    pub fn from_json(value: &Value, wire: WireFormat) -> Result<Self, FieldError> {
        match StreamEvent::from_json(value, wire)? {
            StreamEvent::Task(task) => Ok(Self::Task(task)),
            StreamEvent::Message(message) => Ok(Self::Message(message)),
            StreamEvent::Status(_) | StreamEvent::Artifact(_) => {
                Err(FieldError::new("must be a task or a message"))
            }
        }
    }

    pub fn to_json(&self, wire: WireFormat) -> Value {
        match self {
            Self::Task(task) => wrap("task", task.to_json(wire), wire),
            Self::Message(message) => wrap("message", message.to_json(wire), wire),
        }
    }
}

/// One event of a stream, and the payload of a push notification.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    Task(Task),
    Message(Message),
    Status(StatusUpdate),
    Artifact(ArtifactUpdate),
}

#[derive(Clone, Debug, PartialEq)]
pub struct StatusUpdate {
    pub task: TaskId,
    pub context: Option<ContextId>,
    pub status: TaskStatus,
    pub metadata: Metadata,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ArtifactUpdate {
    pub task: TaskId,
    pub context: Option<ContextId>,
    pub artifact: Artifact,
    /// True if the parts are appended to the earlier ones of the same artifact.
    pub append: bool,
    pub last_chunk: bool,
    pub metadata: Metadata,
}

impl StreamEvent {
    pub fn from_json(value: &Value, wire: WireFormat) -> Result<Self, FieldError> {
        let fields = JsonFields::from_value(value, wire)?;
        if wire == WireFormat::V03Rpc {
            return Self::from_json_by_kind(value, &fields);
        }
        const KINDS: [&str; 4] = ["task", "message", "statusUpdate", "artifactUpdate"];
        let given: Vec<&str> = KINDS.into_iter().filter(|kind| fields.has(kind)).collect();
        let event = match given.as_slice() {
            ["task"] => fields.nested("task", Task::from_json)?.map(Self::Task),
            ["message"] => fields
                .nested("message", Message::from_json)?
                .map(Self::Message),
            ["statusUpdate"] => fields
                .nested("statusUpdate", StatusUpdate::from_json)?
                .map(Self::Status),
            ["artifactUpdate"] => fields
                .nested("artifactUpdate", ArtifactUpdate::from_json)?
                .map(Self::Artifact),
            // Some servers use the field name of the old protocol buffers.
            [] if wire == WireFormat::V03Rest => {
                fields.nested("msg", Message::from_json)?.map(Self::Message)
            }
            _ => None,
        };
        event.ok_or_else(|| {
            FieldError::new(
                "must have exactly one of task, message, statusUpdate and artifactUpdate",
            )
        })
    }

    fn from_json_by_kind(value: &Value, fields: &JsonFields<'_>) -> Result<Self, FieldError> {
        let wire = fields.wire;
        match fields.text("kind")? {
            Some("task") => Task::from_json(value, wire).map(Self::Task),
            Some("message") => Message::from_json(value, wire).map(Self::Message),
            Some("status-update") => StatusUpdate::from_json(value, wire).map(Self::Status),
            Some("artifact-update") => ArtifactUpdate::from_json(value, wire).map(Self::Artifact),
            Some(_) => Err(FieldError::at(
                "kind",
                "must be task, message, status-update or artifact-update",
            )),
            // Before 0.2.5 there was no `kind`.
            None if fields.has("messageId") => Message::from_json(value, wire).map(Self::Message),
            None if fields.has("artifact") => {
                ArtifactUpdate::from_json(value, wire).map(Self::Artifact)
            }
            None if fields.has("id") => Task::from_json(value, wire).map(Self::Task),
            None => StatusUpdate::from_json(value, wire).map(Self::Status),
        }
    }

    pub fn to_json(&self, wire: WireFormat) -> Value {
        match self {
            Self::Task(task) => wrap("task", task.to_json(wire), wire),
            Self::Message(message) => wrap("message", message.to_json(wire), wire),
            Self::Status(update) => wrap("statusUpdate", update.to_json(wire), wire),
            Self::Artifact(update) => wrap("artifactUpdate", update.to_json(wire), wire),
        }
    }

    /// Returns true if no event follows in a stream: the task has ended or waits for the caller.
    pub fn is_last(&self) -> bool {
        let state = match self {
            Self::Message(_) => return true,
            Self::Artifact(_) => return false,
            Self::Task(task) => task.status.state,
            Self::Status(update) => update.status.state,
        };
        state.is_terminal() || state.is_interrupted()
    }
}

/// Wraps a value in a field named after its type. JSON-RPC of 0.3 sends values bare, because they
/// have a `kind`.
fn wrap(name: &str, value: Value, wire: WireFormat) -> Value {
    if wire == WireFormat::V03Rpc {
        value
    } else {
        json!({ name: value })
    }
}

impl StatusUpdate {
    fn from_json(value: &Value, wire: WireFormat) -> Result<Self, FieldError> {
        let fields = JsonFields::from_value(value, wire)?;
        Ok(Self {
            task: TaskId::required(&fields, "taskId")?,
            context: ContextId::optional(&fields, "contextId")?,
            status: fields
                .nested("status", TaskStatus::from_json)?
                .ok_or_else(|| missing("status"))?,
            metadata: fields.metadata("metadata")?,
        })
    }

    fn to_json(&self, wire: WireFormat) -> Value {
        let state = self.status.state;
        let writer = match wire {
            WireFormat::V03Rpc => JsonObjectWriter::default().with("kind", "status-update"),
            _ => JsonObjectWriter::default(),
        };
        let writer = writer
            .with("taskId", &self.task)
            .with_some("contextId", self.context.as_ref())
            .with("status", self.status.to_json(wire));
        let writer = match wire {
            WireFormat::V1 => writer,
            _ => writer.with("final", state.is_terminal() || state.is_interrupted()),
        };
        writer.with_metadata(&self.metadata).build()
    }
}

impl ArtifactUpdate {
    fn from_json(value: &Value, wire: WireFormat) -> Result<Self, FieldError> {
        let fields = JsonFields::from_value(value, wire)?;
        Ok(Self {
            task: TaskId::required(&fields, "taskId")?,
            context: ContextId::optional(&fields, "contextId")?,
            artifact: fields
                .nested("artifact", Artifact::from_json)?
                .ok_or_else(|| missing("artifact"))?,
            append: fields.flag("append")?.unwrap_or(false),
            last_chunk: fields.flag("lastChunk")?.unwrap_or(false),
            metadata: fields.metadata("metadata")?,
        })
    }

    fn to_json(&self, wire: WireFormat) -> Value {
        let writer = match wire {
            WireFormat::V03Rpc => JsonObjectWriter::default().with("kind", "artifact-update"),
            _ => JsonObjectWriter::default(),
        };
        writer
            .with("taskId", &self.task)
            .with_some("contextId", self.context.as_ref())
            .with("artifact", self.artifact.to_json(wire))
            .with("append", self.append)
            .with("lastChunk", self.last_chunk)
            .with_metadata(&self.metadata)
            .build()
    }
}
