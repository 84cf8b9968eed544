//! What comes back from a server: a reply, or a stream of events.

use serde_json::{Value, json};

use super::json_fields::{JsonFields, Malformed, Metadata, JsonObjectWriter, missing};
use super::ids::{ContextId, TaskId, WireId};
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
    pub fn read(value: &Value, wire: WireFormat) -> Result<Self, Malformed> {
        match StreamEvent::read(value, wire)? {
            StreamEvent::Task(task) => Ok(Self::Task(task)),
            StreamEvent::Message(message) => Ok(Self::Message(message)),
            StreamEvent::Status(_) | StreamEvent::Artifact(_) => {
                Err(Malformed::new("must be a task or a message"))
            }
        }
    }

    pub fn write(&self, wire: WireFormat) -> Value {
        match self {
            Self::Task(task) => wrapped("task", task.write(wire), wire),
            Self::Message(message) => wrapped("message", message.write(wire), wire),
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
    pub fn read(value: &Value, wire: WireFormat) -> Result<Self, Malformed> {
        let fields = JsonFields::of(value, wire)?;
        if wire == WireFormat::V03Rpc {
            return Self::read_by_kind(value, &fields);
        }
        const KINDS: [&str; 4] = ["task", "message", "statusUpdate", "artifactUpdate"];
        let given: Vec<&str> = KINDS.into_iter().filter(|kind| fields.has(kind)).collect();
        let event = match given.as_slice() {
            ["task"] => fields.nested("task", Task::read)?.map(Self::Task),
            ["message"] => fields.nested("message", Message::read)?.map(Self::Message),
            ["statusUpdate"] => fields.nested("statusUpdate", StatusUpdate::read)?.map(Self::Status),
            ["artifactUpdate"] => fields.nested("artifactUpdate", ArtifactUpdate::read)?.map(Self::Artifact),
            // Some servers name their old protocol buffers' field.
            [] if wire == WireFormat::V03Rest => fields.nested("msg", Message::read)?.map(Self::Message),
            _ => None,
        };
        event.ok_or_else(|| {
            Malformed::new("must have exactly one of task, message, statusUpdate and artifactUpdate")
        })
    }

    fn read_by_kind(value: &Value, fields: &JsonFields<'_>) -> Result<Self, Malformed> {
        let wire = fields.wire;
        match fields.text("kind")? {
            Some("task") => Task::read(value, wire).map(Self::Task),
            Some("message") => Message::read(value, wire).map(Self::Message),
            Some("status-update") => StatusUpdate::read(value, wire).map(Self::Status),
            Some("artifact-update") => ArtifactUpdate::read(value, wire).map(Self::Artifact),
            Some(_) => Err(Malformed::at("kind", "must be task, message, status-update or artifact-update")),
            // Before 0.2.5 nothing said what it was.
            None if fields.has("messageId") => Message::read(value, wire).map(Self::Message),
            None if fields.has("artifact") => ArtifactUpdate::read(value, wire).map(Self::Artifact),
            None if fields.has("id") => Task::read(value, wire).map(Self::Task),
            None => StatusUpdate::read(value, wire).map(Self::Status),
        }
    }

    pub fn write(&self, wire: WireFormat) -> Value {
        match self {
            Self::Task(task) => wrapped("task", task.write(wire), wire),
            Self::Message(message) => wrapped("message", message.write(wire), wire),
            Self::Status(update) => wrapped("statusUpdate", update.write(wire), wire),
            Self::Artifact(update) => wrapped("artifactUpdate", update.write(wire), wire),
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
fn wrapped(name: &str, value: Value, wire: WireFormat) -> Value {
    if wire == WireFormat::V03Rpc { value } else { json!({ name: value }) }
}

impl StatusUpdate {
    fn read(value: &Value, wire: WireFormat) -> Result<Self, Malformed> {
        let fields = JsonFields::of(value, wire)?;
        Ok(Self {
            task: TaskId::required(&fields, "taskId")?,
            context: ContextId::optional(&fields, "contextId")?,
            status: fields.nested("status", TaskStatus::read)?.ok_or_else(|| missing("status"))?,
            metadata: fields.metadata("metadata")?,
        })
    }

    fn write(&self, wire: WireFormat) -> Value {
        let state = self.status.state;
        let writing = match wire {
            WireFormat::V03Rpc => JsonObjectWriter::default().with("kind", "status-update"),
            _ => JsonObjectWriter::default(),
        };
        let writing = writing
            .with("taskId", &self.task)
            .with_some("contextId", self.context.as_ref())
            .with("status", self.status.write(wire));
        let writing = match wire {
            WireFormat::V1 => writing,
            _ => writing.with("final", state.is_terminal() || state.is_interrupted()),
        };
        writing.with_metadata(&self.metadata).build()
    }
}

impl ArtifactUpdate {
    fn read(value: &Value, wire: WireFormat) -> Result<Self, Malformed> {
        let fields = JsonFields::of(value, wire)?;
        Ok(Self {
            task: TaskId::required(&fields, "taskId")?,
            context: ContextId::optional(&fields, "contextId")?,
            artifact: fields.nested("artifact", Artifact::read)?.ok_or_else(|| missing("artifact"))?,
            append: fields.flag("append")?.unwrap_or(false),
            last_chunk: fields.flag("lastChunk")?.unwrap_or(false),
            metadata: fields.metadata("metadata")?,
        })
    }

    fn write(&self, wire: WireFormat) -> Value {
        let writing = match wire {
            WireFormat::V03Rpc => JsonObjectWriter::default().with("kind", "artifact-update"),
            _ => JsonObjectWriter::default(),
        };
        writing
            .with("taskId", &self.task)
            .with_some("contextId", self.context.as_ref())
            .with("artifact", self.artifact.write(wire))
            .with("append", self.append)
            .with("lastChunk", self.last_chunk)
            .with_metadata(&self.metadata)
            .build()
    }
}
