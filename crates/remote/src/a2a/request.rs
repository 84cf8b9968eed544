//! Requests to a server.

use serde_json::Value;

use super::ids::{PushConfigId, TaskId, WireId};
use super::json_fields::{FieldError, JsonFields, JsonObjectWriter, Metadata, missing};
use super::list_tasks::ListTasks;
use super::method::A2aMethod;
use super::push::{self, PushConfig};
use super::send_message::SendMessage;
use super::version::WireFormat;

/// A request with its tenant, for servers with several agents at one URL.
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
    /// The config id is optional in 0.3.
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

    /// Returns the parameters of a JSON-RPC request.
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
        let (task_field, config_field) = push::id_field_names(wire.version());
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
                let config = PushConfigId::optional(fields, config_field)?;
                if config.is_none() && wire == WireFormat::V1 {
                    return Err(missing(config_field));
                }
                Self::GetPushConfig {
                    task: TaskId::required(fields, task_field)?,
                    config,
                }
            }
            A2aMethod::ListPushConfigs => Self::ListPushConfigs {
                task: TaskId::required(fields, task_field)?,
            },
            A2aMethod::DeletePushConfig => Self::DeletePushConfig {
                task: TaskId::required(fields, task_field)?,
                config: PushConfigId::required(fields, config_field)?,
            },
            A2aMethod::ExtendedCard => Self::ExtendedCard,
        })
    }

    pub(crate) fn params(&self, wire: WireFormat) -> Value {
        let (task_field, config_field) = push::id_field_names(wire.version());
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
                .with(task_field, task)
                .with_some(config_field, config.as_ref())
                .build(),
            Self::ListPushConfigs { task } => {
                JsonObjectWriter::default().with(task_field, task).build()
            }
            Self::DeletePushConfig { task, config } => JsonObjectWriter::default()
                .with(task_field, task)
                .with(config_field, config)
                .build(),
            Self::ExtendedCard => JsonObjectWriter::default().build(),
        }
    }
}
