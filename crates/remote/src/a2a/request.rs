//! What can be asked of a server, in both spellings.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::event::SendReply;
use super::ids::{ContextId, PushConfigId, TaskId, WireId};
use super::json_fields::{FieldError, JsonFields, JsonObjectWriter, Metadata, missing};
use super::message::Message;
use super::push::PushConfig;
use super::task::{Task, TaskState};
use super::version::{ProtocolVersion, WireFormat};

/// What is asked, without its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum A2aMethod {
    SendMessage,
    StreamMessage,
    GetTask,
    ListTasks,
    CancelTask,
    SubscribeToTask,
    CreatePushConfig,
    GetPushConfig,
    ListPushConfigs,
    DeletePushConfig,
    ExtendedCard,
}

impl A2aMethod {
    pub const ALL: [Self; 11] = [
        Self::SendMessage,
        Self::StreamMessage,
        Self::GetTask,
        Self::ListTasks,
        Self::CancelTask,
        Self::SubscribeToTask,
        Self::CreatePushConfig,
        Self::GetPushConfig,
        Self::ListPushConfigs,
        Self::DeletePushConfig,
        Self::ExtendedCard,
    ];

    /// A method by its JSON-RPC name; the spelling tells the version.
    pub fn from_rpc_name(name: &str) -> Option<(Self, ProtocolVersion)> {
        let fits = |version| {
            Self::ALL
                .into_iter()
                .find(|method| method.name(version) == Some(name))
        };
        let newer = fits(ProtocolVersion::V1_0).map(|method| (method, ProtocolVersion::V1_0));
        newer.or_else(|| fits(ProtocolVersion::V0_3).map(|method| (method, ProtocolVersion::V0_3)))
    }

    /// Its JSON-RPC name; nothing where the version does not have it.
    pub fn name(self, version: ProtocolVersion) -> Option<&'static str> {
        let (older, newer) = match self {
            Self::SendMessage => (Some("message/send"), "SendMessage"),
            Self::StreamMessage => (Some("message/stream"), "SendStreamingMessage"),
            Self::GetTask => (Some("tasks/get"), "GetTask"),
            Self::ListTasks => (None, "ListTasks"),
            Self::CancelTask => (Some("tasks/cancel"), "CancelTask"),
            Self::SubscribeToTask => (Some("tasks/resubscribe"), "SubscribeToTask"),
            Self::CreatePushConfig => (
                Some("tasks/pushNotificationConfig/set"),
                "CreateTaskPushNotificationConfig",
            ),
            Self::GetPushConfig => (
                Some("tasks/pushNotificationConfig/get"),
                "GetTaskPushNotificationConfig",
            ),
            Self::ListPushConfigs => (
                Some("tasks/pushNotificationConfig/list"),
                "ListTaskPushNotificationConfigs",
            ),
            Self::DeletePushConfig => (
                Some("tasks/pushNotificationConfig/delete"),
                "DeleteTaskPushNotificationConfig",
            ),
            Self::ExtendedCard => (
                Some("agent/getAuthenticatedExtendedCard"),
                "GetExtendedAgentCard",
            ),
        };
        match version {
            ProtocolVersion::V0_3 => older,
            ProtocolVersion::V1_0 => Some(newer),
        }
    }

    /// Whether the answer is a stream.
    pub fn is_streaming(self) -> bool {
        matches!(self, Self::StreamMessage | Self::SubscribeToTask)
    }
}

/// A request, and for whom among several that share an address.
#[derive(Clone, Debug, PartialEq)]
pub struct A2aCall {
    pub tenant: Option<String>,
    pub request: A2aRequest,
}

#[derive(Clone, Debug, PartialEq)]
pub enum A2aRequest {
    SendMessage(Box<SendMessage>),
    StreamMessage(Box<SendMessage>),
    GetTask {
        task: TaskId,
        history: Option<u32>,
    },
    ListTasks(ListTasks),
    CancelTask {
        task: TaskId,
    },
    SubscribeToTask {
        task: TaskId,
    },
    CreatePushConfig(PushConfig),
    /// 0.3 may leave out which one.
    GetPushConfig {
        task: TaskId,
        config: Option<PushConfigId>,
    },
    ListPushConfigs {
        task: TaskId,
    },
    DeletePushConfig {
        task: TaskId,
        config: PushConfigId,
    },
    ExtendedCard,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SendMessage {
    pub message: Message,
    pub return_mode: ReturnMode,
    pub accepted_output_modes: Vec<String>,
    pub history: Option<u32>,
    pub push: Option<PushConfig>,
    pub metadata: Metadata,
}

/// When the answer to a message is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnMode {
    /// When the task is over or waits for something.
    WhenDone,
    /// As soon as there is a task.
    Immediately,
}

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

/// Some tasks of many, newest first.
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

impl A2aCall {
    pub fn from_params(
        method: A2aMethod,
        params: &Value,
        wire: WireFormat,
    ) -> Result<Self, FieldError> {
        let empty = Value::Object(Metadata::new());
        let params = if params.is_null() { &empty } else { params };
        let fields = JsonFields::from_value(params, wire)?;
        let tenant = fields.non_empty("tenant")?;
        Ok(Self {
            tenant,
            request: A2aRequest::from_params(method, params, &fields)?,
        })
    }

    /// The parameters, as JSON-RPC carries them.
    pub fn params(&self, wire: WireFormat) -> Value {
        let mut params = self.request.params(wire);
        if let (Some(tenant), Value::Object(map), WireFormat::V1) =
            (&self.tenant, &mut params, wire)
        {
            map.insert("tenant".to_owned(), Value::from(tenant.as_str()));
        }
        params
    }
}

impl A2aRequest {
    pub fn method(&self) -> A2aMethod {
        match self {
            Self::SendMessage(_) => A2aMethod::SendMessage,
            Self::StreamMessage(_) => A2aMethod::StreamMessage,
            Self::GetTask { .. } => A2aMethod::GetTask,
            Self::ListTasks(_) => A2aMethod::ListTasks,
            Self::CancelTask { .. } => A2aMethod::CancelTask,
            Self::SubscribeToTask { .. } => A2aMethod::SubscribeToTask,
            Self::CreatePushConfig(_) => A2aMethod::CreatePushConfig,
            Self::GetPushConfig { .. } => A2aMethod::GetPushConfig,
            Self::ListPushConfigs { .. } => A2aMethod::ListPushConfigs,
            Self::DeletePushConfig { .. } => A2aMethod::DeletePushConfig,
            Self::ExtendedCard => A2aMethod::ExtendedCard,
        }
    }

    fn from_params(
        method: A2aMethod,
        params: &Value,
        fields: &JsonFields<'_>,
    ) -> Result<Self, FieldError> {
        let wire = fields.wire;
        let task = || TaskId::required(fields, "id");
        // About push configs, 0.3 calls the task `id` and the config `pushNotificationConfigId`.
        let (of, which) = match wire.version() {
            ProtocolVersion::V1_0 => ("taskId", "id"),
            ProtocolVersion::V0_3 => ("id", "pushNotificationConfigId"),
        };
        Ok(match method {
            A2aMethod::SendMessage => {
                Self::SendMessage(Box::new(SendMessage::from_fields(fields)?))
            }
            A2aMethod::StreamMessage => {
                Self::StreamMessage(Box::new(SendMessage::from_fields(fields)?))
            }
            A2aMethod::GetTask => Self::GetTask {
                task: task()?,
                history: fields.count("historyLength")?,
            },
            A2aMethod::ListTasks => Self::ListTasks(ListTasks::from_fields(fields)?),
            A2aMethod::CancelTask => Self::CancelTask { task: task()? },
            A2aMethod::SubscribeToTask => Self::SubscribeToTask { task: task()? },
            A2aMethod::CreatePushConfig => {
                let config = PushConfig::from_json(params, wire)?;
                config.task.as_ref().ok_or_else(|| missing("taskId"))?;
                Self::CreatePushConfig(config)
            }
            A2aMethod::GetPushConfig => {
                let config = PushConfigId::optional(fields, which)?;
                if config.is_none() && wire == WireFormat::V1 {
                    return Err(missing(which));
                }
                Self::GetPushConfig {
                    task: TaskId::required(fields, of)?,
                    config,
                }
            }
            A2aMethod::ListPushConfigs => Self::ListPushConfigs {
                task: TaskId::required(fields, of)?,
            },
            A2aMethod::DeletePushConfig => Self::DeletePushConfig {
                task: TaskId::required(fields, of)?,
                config: PushConfigId::required(fields, which)?,
            },
            A2aMethod::ExtendedCard => Self::ExtendedCard,
        })
    }

    pub(crate) fn params(&self, wire: WireFormat) -> Value {
        let (of, which) = match wire.version() {
            ProtocolVersion::V1_0 => ("taskId", "id"),
            ProtocolVersion::V0_3 => ("id", "pushNotificationConfigId"),
        };
        match self {
            Self::SendMessage(send) | Self::StreamMessage(send) => send.to_json(wire),
            Self::GetTask { task, history } => JsonObjectWriter::default()
                .with("id", task)
                .with_some("historyLength", *history)
                .build(),
            Self::ListTasks(list) => list.to_json(wire),
            Self::CancelTask { task } | Self::SubscribeToTask { task } => {
                JsonObjectWriter::default().with("id", task).build()
            }
            Self::CreatePushConfig(config) => config.to_json(wire),
            Self::GetPushConfig { task, config } => JsonObjectWriter::default()
                .with(of, task)
                .with_some(which, config.as_ref())
                .build(),
            Self::ListPushConfigs { task } => JsonObjectWriter::default().with(of, task).build(),
            Self::DeletePushConfig { task, config } => JsonObjectWriter::default()
                .with(of, task)
                .with(which, config)
                .build(),
            Self::ExtendedCard => JsonObjectWriter::default().build(),
        }
    }
}

impl SendMessage {
    pub fn new(message: Message) -> Self {
        Self {
            message,
            return_mode: ReturnMode::WhenDone,
            accepted_output_modes: Vec::new(),
            history: None,
            push: None,
            metadata: Metadata::new(),
        }
    }

    fn from_fields(fields: &JsonFields<'_>) -> Result<Self, FieldError> {
        let message = fields
            .nested("message", Message::from_json)?
            .ok_or_else(|| missing("message"))?;
        if message.parts.is_empty() {
            return Err(FieldError::at("parts", "must have at least one part").within("message"));
        }
        let read = fields.nested("configuration", |value, wire| {
            Self::new(message.clone()).with_configuration(&JsonFields::from_value(value, wire)?)
        })?;
        let metadata = fields.metadata("metadata")?;
        Ok(Self {
            metadata,
            ..read.unwrap_or_else(|| Self::new(message))
        })
    }

    fn with_configuration(mut self, fields: &JsonFields<'_>) -> Result<Self, FieldError> {
        let (push, waits) = match fields.wire {
            WireFormat::V1 => (
                "taskPushNotificationConfig",
                !fields.flag("returnImmediately")?.unwrap_or(false),
            ),
            WireFormat::V03Rpc => (
                "pushNotificationConfig",
                fields.flag("blocking")?.unwrap_or(true),
            ),
            // Its protocol buffers cannot tell "no" from silence.
            WireFormat::V03Rest => ("pushNotification", fields.flag("blocking")?.unwrap_or(true)),
        };
        self.return_mode = if waits {
            ReturnMode::WhenDone
        } else {
            ReturnMode::Immediately
        };
        self.push = fields.nested(push, PushConfig::from_bare_json)?;
        self.accepted_output_modes = fields.texts("acceptedOutputModes")?;
        self.history = fields.count("historyLength")?;
        Ok(self)
    }

    fn to_json(&self, wire: WireFormat) -> Value {
        let waits = self.return_mode == ReturnMode::WhenDone;
        let (push, writing) = match wire {
            WireFormat::V1 => (
                "taskPushNotificationConfig",
                JsonObjectWriter::default().with("returnImmediately", !waits),
            ),
            WireFormat::V03Rpc => (
                "pushNotificationConfig",
                JsonObjectWriter::default().with("blocking", waits),
            ),
            WireFormat::V03Rest => (
                "pushNotification",
                JsonObjectWriter::default().with("blocking", waits),
            ),
        };
        let configuration = writing
            .with_texts("acceptedOutputModes", &self.accepted_output_modes)
            .with_some("historyLength", self.history)
            .with_some(
                push,
                self.push.as_ref().map(|config| config.to_bare_json(wire)),
            )
            .build();
        JsonObjectWriter::default()
            .with("message", self.message.to_json(wire))
            .with("configuration", configuration)
            .with_metadata(&self.metadata)
            .build()
    }
}

impl ListTasks {
    fn from_fields(fields: &JsonFields<'_>) -> Result<Self, FieldError> {
        let state = fields.non_empty("status")?.map(|text| {
            TaskState::parse(&text)
                .ok_or_else(|| FieldError::at("status", "must be a task's state"))
        });
        let after = fields.non_empty("statusTimestampAfter")?.map(|text| {
            text.parse().map_err(|_| {
                FieldError::at(
                    "statusTimestampAfter",
                    "must be a time, as in 2026-01-31T12:00:00Z",
                )
            })
        });
        let page_size = fields.count("pageSize")?;
        if page_size.is_some_and(|size| !(1..=100).contains(&size)) {
            return Err(FieldError::at("pageSize", "must be from 1 to 100"));
        }
        let flag = match fields.get("includeArtifacts") {
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
            changed_after: after.transpose()?,
            with_artifacts: flag,
        })
    }

    fn to_json(&self, wire: WireFormat) -> Value {
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

/// The answer to a task that was asked about: in every version a bare task, but some servers wrap it.
impl Task {
    pub fn from_answer(value: &Value, wire: WireFormat) -> Result<Self, FieldError> {
        match Task::from_json(value, wire) {
            Ok(task) => Ok(task),
            Err(error) => match SendReply::from_json(value, wire) {
                Ok(SendReply::Task(task)) => Ok(task),
                _ => Err(error),
            },
        }
    }
}
