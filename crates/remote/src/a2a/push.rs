//! Push notification configs.

use std::fmt;

use lango_domain::secret::Secret;
use serde_json::{Value, json};

use super::ids::{PushConfigId, TaskId, WireId};
use super::json_fields::{FieldError, JsonFields, JsonObjectWriter};
use super::version::{ProtocolVersion, WireFormat};

#[derive(Clone, Debug, PartialEq)]
pub struct PushConfig {
    /// Absent only in the config of a message that starts a task.
    pub task: Option<TaskId>,
    /// Absent if the server assigns one.
    pub id: Option<PushConfigId>,
    /// Untrusted URL of the receiver.
    pub url: String,
    /// Sent with each notification, so that the receiver can verify the sender.
    pub token: Option<Secret>,
    pub authentication: Option<Authentication>,
}

#[derive(Clone, PartialEq)]
pub struct Authentication {
    /// As in the `Authorization` header: `Bearer`, `Basic`.
    pub scheme: String,
    pub credentials: Option<Secret>,
}

impl fmt::Debug for Authentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authentication")
            .field("scheme", &self.scheme)
            .finish_non_exhaustive()
    }
}

impl PushConfig {
    /// Parses a config: a flat object in 1.0, an object nested next to the task id in 0.3.
    pub fn from_json(value: &Value, wire: WireFormat) -> Result<Self, FieldError> {
        let fields = JsonFields::from_value(value, wire)?;
        let inner = fields.nested("pushNotificationConfig", Self::from_bare_json)?;
        let Some(mut config) = inner else {
            return Self::from_bare_json(value, wire);
        };
        config.task = TaskId::optional(&fields, "taskId")?;
        if let Some((task, id)) = fields.text("name")?.and_then(split_name) {
            config.task = Some(TaskId::new(task));
            config.id = config.id.or(Some(PushConfigId::new(id)));
        }
        Ok(config)
    }

    pub(crate) fn from_bare_json(value: &Value, wire: WireFormat) -> Result<Self, FieldError> {
        let fields = JsonFields::from_value(value, wire)?;
        Ok(Self {
            task: TaskId::optional(&fields, "taskId")?,
            id: PushConfigId::optional(&fields, "id")?,
            url: fields.required("url")?,
            token: fields.non_empty("token")?.map(Secret::new),
            authentication: fields.nested("authentication", Authentication::from_json)?,
        })
    }

    pub fn to_json(&self, wire: WireFormat) -> Value {
        match wire {
            WireFormat::V1 => self.to_bare_json(wire),
            WireFormat::V03Rpc => JsonObjectWriter::default()
                .with_some("taskId", self.task.as_ref())
                .with("pushNotificationConfig", self.to_bare_json(wire))
                .build(),
            WireFormat::V03Rest => {
                let (task, id) = (self.task.as_ref(), self.id.as_ref());
                let name = task
                    .zip(id)
                    .map(|(task, id)| format!("tasks/{task}/pushNotificationConfigs/{id}"));
                JsonObjectWriter::default()
                    .with_some("name", name)
                    .with("pushNotificationConfig", self.to_bare_json(wire))
                    .build()
            }
        }
    }

    pub(crate) fn to_bare_json(&self, wire: WireFormat) -> Value {
        JsonObjectWriter::default()
            .with_some(
                "taskId",
                self.task.as_ref().filter(|_| wire == WireFormat::V1),
            )
            .with_some("id", self.id.as_ref())
            .with("url", self.url.as_str())
            .with_some("token", self.token.as_ref().map(Secret::expose))
            .with_some(
                "authentication",
                self.authentication
                    .as_ref()
                    .map(|authentication| authentication.to_json(wire)),
            )
            .build()
    }
}

/// Returns the parameter names of the task id and the config id in requests about push configs.
pub(crate) fn id_field_names(version: ProtocolVersion) -> (&'static str, &'static str) {
    match version {
        ProtocolVersion::V1_0 => ("taskId", "id"),
        ProtocolVersion::V0_3 => ("id", "pushNotificationConfigId"),
    }
}

/// Returns the list of all configs of a task.
pub fn push_configs_to_json(configs: &[PushConfig], wire: WireFormat) -> Value {
    let items: Vec<Value> = configs.iter().map(|config| config.to_json(wire)).collect();
    match wire {
        WireFormat::V03Rpc => Value::Array(items),
        _ => json!({ "configs": items, "nextPageToken": "" }),
    }
}

impl Authentication {
    fn from_json(value: &Value, wire: WireFormat) -> Result<Self, FieldError> {
        let fields = JsonFields::from_value(value, wire)?;
        let scheme = match fields.non_empty("scheme")? {
            Some(scheme) => scheme,
            None => fields
                .texts("schemes")?
                .into_iter()
                .next()
                .unwrap_or_else(|| "Bearer".to_owned()),
        };
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if scheme.len() > 40 || !scheme.chars().all(is_allowed) {
            return Err(FieldError::at(
                "scheme",
                "must be the name of an authentication scheme, such as Bearer",
            ));
        }
        Ok(Self {
            scheme,
            credentials: fields.non_empty("credentials")?.map(Secret::new),
        })
    }

    fn to_json(&self, wire: WireFormat) -> Value {
        let writer = match wire {
            WireFormat::V1 => JsonObjectWriter::default().with("scheme", self.scheme.as_str()),
            _ => JsonObjectWriter::default().with("schemes", vec![self.scheme.as_str()]),
        };
        writer
            .with_some("credentials", self.credentials.as_ref().map(Secret::expose))
            .build()
    }
}

/// Splits `tasks/{task}/pushNotificationConfigs/{id}` into the two ids.
fn split_name(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("tasks/")?
        .split_once("/pushNotificationConfigs/")
}
