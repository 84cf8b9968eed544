//! Parameters and result of the method that lists tasks.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::ids::{ContextId, WireId};
use super::json_fields::{FieldError, JsonFields, JsonObjectWriter};
use super::task::{Task, TaskState};
use super::version::WireFormat;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListTasks {
    pub context: Option<ContextId>,
    pub state: Option<TaskState>,
    pub page_size: Option<u32>,
    pub page_token: Option<String>,
    pub history: Option<u32>,
    pub changed_after: Option<Timestamp>,
    pub with_artifacts: bool,
}

/// A page of tasks, newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskPage {
    pub tasks: Vec<Task>,
    /// Empty on the last page.
    pub next_page_token: String,
    pub page_size: u32,
    pub total_size: u32,
}

impl TaskPage {
    pub fn to_json(&self, wire: WireFormat) -> Value {
        let tasks: Vec<Value> = self.tasks.iter().map(|task| task.to_json(wire)).collect();
        json!({
            "tasks": tasks,
            "nextPageToken": self.next_page_token,
            "pageSize": self.page_size,
            "totalSize": self.total_size,
        })
    }
}

impl ListTasks {
    pub(crate) fn from_fields(fields: &JsonFields<'_>) -> Result<Self, FieldError> {
        let state = fields.non_empty("status")?.map(|text| {
            TaskState::parse(&text).ok_or_else(|| FieldError::at("status", "must be a task state"))
        });
        let changed_after = fields.non_empty("statusTimestampAfter")?.map(|text| {
            text.parse().map_err(|_| {
                FieldError::at(
                    "statusTimestampAfter",
                    "must be a timestamp, such as 2026-01-31T12:00:00Z",
                )
            })
        });
        let page_size = fields.count("pageSize")?;
        if page_size.is_some_and(|size| !(1..=100).contains(&size)) {
            return Err(FieldError::at("pageSize", "must be from 1 to 100"));
        }
        let with_artifacts = match fields.get("includeArtifacts") {
            Some(Value::String(text)) => text == "true",
            _ => fields.flag("includeArtifacts")?.unwrap_or(false),
        };
        Ok(Self {
            context: ContextId::optional(fields, "contextId")?,
            state: state
                .transpose()?
                .filter(|state| *state != TaskState::Unknown),
            page_size,
            page_token: fields.non_empty("pageToken")?,
            history: fields.count("historyLength")?,
            changed_after: changed_after.transpose()?,
            with_artifacts,
        })
    }

    pub(crate) fn to_json(&self, wire: WireFormat) -> Value {
        JsonObjectWriter::default()
            .with_some("contextId", self.context.as_ref())
            .with_some("status", self.state.map(|state| state.as_str(wire)))
            .with_some("pageSize", self.page_size)
            .with_some("pageToken", self.page_token.as_deref())
            .with_some("historyLength", self.history)
            .with_some(
                "statusTimestampAfter",
                self.changed_after.map(|at| format!("{at:.3}")),
            )
            .with_some("includeArtifacts", self.with_artifacts.then_some(true))
            .build()
    }
}
