//! Tasks with their status and artifacts.

use jiff::Timestamp;
use serde_json::Value;

use super::event::SendReply;
use super::ids::{ArtifactId, ContextId, TaskId, WireId};
use super::json_fields::{FieldError, JsonFields, JsonObjectWriter, Metadata, missing};
use super::message::{Message, Part};
use super::version::WireFormat;

#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    pub id: TaskId,
    pub context: Option<ContextId>,
    pub status: TaskStatus,
    pub artifacts: Vec<Artifact>,
    pub history: Vec<Message>,
    pub metadata: Metadata,
}

impl Task {
    pub fn from_json(value: &Value, wire: WireFormat) -> Result<Self, FieldError> {
        let fields = JsonFields::from_value(value, wire)?;
        Ok(Self {
            id: TaskId::required(&fields, "id")?,
            context: ContextId::optional(&fields, "contextId")?,
            status: fields
                .nested("status", TaskStatus::from_json)?
                .ok_or_else(|| missing("status"))?,
            artifacts: fields.list("artifacts", Artifact::from_json)?,
            history: fields.list("history", Message::from_json)?,
            metadata: fields.metadata("metadata")?,
        })
    }

    /// Parses the response to a request for a task: a bare task in every version, but some servers
    /// wrap it.
    pub fn from_answer(value: &Value, wire: WireFormat) -> Result<Self, FieldError> {
        match Self::from_json(value, wire) {
            Ok(task) => Ok(task),
            Err(error) => match SendReply::from_json(value, wire) {
                Ok(SendReply::Task(task)) => Ok(task),
                _ => Err(error),
            },
        }
    }

    pub fn to_json(&self, wire: WireFormat) -> Value {
        let writer = match wire {
            WireFormat::V03Rpc => JsonObjectWriter::default().with("kind", "task"),
            _ => JsonObjectWriter::default(),
        };
        writer
            .with("id", &self.id)
            .with_some("contextId", self.context.as_ref())
            .with("status", self.status.to_json(wire))
            .with_list(
                "artifacts",
                self.artifacts
                    .iter()
                    .map(|artifact| artifact.to_json(wire))
                    .collect(),
            )
            .with_list(
                "history",
                self.history
                    .iter()
                    .map(|message| message.to_json(wire))
                    .collect(),
            )
            .with_metadata(&self.metadata)
            .build()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct TaskStatus {
    pub state: TaskState,
    pub message: Option<Message>,
    pub timestamp: Option<Timestamp>,
}

impl TaskStatus {
    pub fn from_json(value: &Value, wire: WireFormat) -> Result<Self, FieldError> {
        let fields = JsonFields::from_value(value, wire)?;
        let state = fields.text("state")?.ok_or_else(|| missing("state"))?;
        Ok(Self {
            state: TaskState::parse(state)
                .ok_or_else(|| FieldError::at("state", "must be a task state"))?,
            message: fields.nested("message", Message::from_json)?,
            // An invalid timestamp is not worth an error.
            timestamp: fields.text("timestamp")?.and_then(|text| text.parse().ok()),
        })
    }

    pub fn to_json(&self, wire: WireFormat) -> Value {
        JsonObjectWriter::default()
            .with("state", self.state.as_str(wire))
            .with_some(
                "message",
                self.message.as_ref().map(|message| message.to_json(wire)),
            )
            .with_some("timestamp", self.timestamp.map(|at| format!("{at:.3}")))
            .build()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskState {
    Submitted,
    Working,
    InputRequired,
    AuthRequired,
    Completed,
    Failed,
    Canceled,
    Rejected,
    /// The remote agent does not know or does not say.
    Unknown,
}

impl TaskState {
    pub const ALL: [Self; 9] = [
        Self::Submitted,
        Self::Working,
        Self::InputRequired,
        Self::AuthRequired,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
        Self::Rejected,
        Self::Unknown,
    ];

    /// Returns true if the task has ended.
    pub fn is_terminal(self) -> bool {
        matches!(
            self,
            Self::Completed | Self::Failed | Self::Canceled | Self::Rejected
        )
    }

    /// Returns true if the task waits for the caller.
    pub fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }

    /// Parses a state in any spelling.
    pub fn parse(text: &str) -> Option<Self> {
        if text == "TASK_STATE_CANCELLED" || text == "cancelled" {
            return Some(Self::Canceled);
        }
        let matches_name = |state: &Self| {
            text == state.as_str(WireFormat::V1) || text == state.as_str(WireFormat::V03Rpc)
        };
        Self::ALL.into_iter().find(matches_name)
    }

    pub fn as_str(self, wire: WireFormat) -> &'static str {
        let (v03, v1) = match self {
            Self::Submitted => ("submitted", "TASK_STATE_SUBMITTED"),
            Self::Working => ("working", "TASK_STATE_WORKING"),
            Self::InputRequired => ("input-required", "TASK_STATE_INPUT_REQUIRED"),
            Self::AuthRequired => ("auth-required", "TASK_STATE_AUTH_REQUIRED"),
            Self::Completed => ("completed", "TASK_STATE_COMPLETED"),
            Self::Failed => ("failed", "TASK_STATE_FAILED"),
            Self::Canceled if wire == WireFormat::V03Rest => ("canceled", "TASK_STATE_CANCELLED"),
            Self::Canceled => ("canceled", "TASK_STATE_CANCELED"),
            Self::Rejected => ("rejected", "TASK_STATE_REJECTED"),
            Self::Unknown => ("unknown", "TASK_STATE_UNSPECIFIED"),
        };
        if wire == WireFormat::V03Rpc { v03 } else { v1 }
    }
}

/// A result of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    pub id: ArtifactId,
    pub name: Option<String>,
    pub description: Option<String>,
    pub parts: Vec<Part>,
    pub extensions: Vec<String>,
    pub metadata: Metadata,
}

impl Artifact {
    pub fn text(id: ArtifactId, text: impl Into<String>) -> Self {
        let (name, description) = (None, None);
        Self {
            id,
            name,
            description,
            parts: vec![Part::text(text)],
            extensions: Vec::new(),
            metadata: Metadata::new(),
        }
    }

    pub fn from_json(value: &Value, wire: WireFormat) -> Result<Self, FieldError> {
        let fields = JsonFields::from_value(value, wire)?;
        Ok(Self {
            id: ArtifactId::required(&fields, "artifactId")?,
            name: fields.non_empty("name")?,
            description: fields.non_empty("description")?,
            parts: fields.list("parts", Part::from_json)?,
            extensions: fields.texts("extensions")?,
            metadata: fields.metadata("metadata")?,
        })
    }

    pub fn to_json(&self, wire: WireFormat) -> Value {
        let parts: Vec<Value> = self.parts.iter().map(|part| part.to_json(wire)).collect();
        JsonObjectWriter::default()
            .with("artifactId", &self.id)
            .with_some("name", self.name.as_deref())
            .with_some("description", self.description.as_deref())
            .with("parts", parts)
            .with_metadata(&self.metadata)
            .with_texts("extensions", &self.extensions)
            .build()
    }
}
