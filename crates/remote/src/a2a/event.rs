//! What comes back from a server: a reply, or a stream of events.

use serde_json::{Value, json};

use super::ids::{ContextId, TaskId, WireId};
use super::json_fields::{FieldError, JsonFields, JsonObjectWriter, Metadata, missing};
use super::message::Message;
use super::task::{Artifact, Task, TaskStatus};
use super::version::WireFormat;

/// The answer to a message that was sent without streaming.
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

/// One event of a stream, and what a push notification carries.
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
    /// Whether the parts follow those that came before under the same id.
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
            // Some servers name their old protocol buffers' field.
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
            // Before 0.2.5 nothing said what it was.
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

    /// Whether nothing follows it in a stream: the task is over, or waits for whoever asked.
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

/// 0.3 as JSON-RPC carries it sends things bare, because they say what they are.
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
        let writing = match wire {
            WireFormat::V03Rpc => JsonObjectWriter::default().with("kind", "status-update"),
            _ => JsonObjectWriter::default(),
        };
        let writing = writing
            .with("taskId", &self.task)
            .with_some("contextId", self.context.as_ref())
            .with("status", self.status.to_json(wire));
        let writing = match wire {
            WireFormat::V1 => writing,
            _ => writing.with("final", state.is_terminal() || state.is_interrupted()),
        };
        writing.with_metadata(&self.metadata).build()
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
        let writing = match wire {
            WireFormat::V03Rpc => JsonObjectWriter::default().with("kind", "artifact-update"),
            _ => JsonObjectWriter::default(),
        };
        writing
            .with("taskId", &self.task)
            .with_some("contextId", self.context.as_ref())
            .with("artifact", self.artifact.to_json(wire))
            .with("append", self.append)
            .with("lastChunk", self.last_chunk)
            .with_metadata(&self.metadata)
            .build()
    }
}
