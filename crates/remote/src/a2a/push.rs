//! Where a task's changes are sent to.

use std::fmt;

use lango_domain::secret::Secret;
use serde_json::{Value, json};

use super::ids::{PushConfigId, TaskId, WireId};
use super::json_fields::{FieldError, JsonFields, JsonObjectWriter};
use super::version::WireFormat;

#[derive(Clone, Debug, PartialEq)]
pub struct PushConfig {
    /// Absent only inside a message that begins a task.
    pub task: Option<TaskId>,
    /// Absent where the server is to choose one.
    pub id: Option<PushConfigId>,
    /// An address that a stranger named.
    pub url: String,
    /// Sent along, so that the receiver knows whom it is from.
    pub token: Option<Secret>,
    pub authentication: Option<Authentication>,
}

#[derive(Clone, PartialEq)]
pub struct Authentication {
    /// As in the header `Authorization`: `Bearer`, `Basic`.
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
    /// In 1.0 one flat object; in 0.3 the config stands inside one that names the task.
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
                self.authentication.as_ref().map(|how| how.to_json(wire)),
            )
            .build()
    }
}

/// All configs of a task, as they are listed.
pub fn push_configs_to_json(configs: &[PushConfig], wire: WireFormat) -> Value {
    let written: Vec<Value> = configs.iter().map(|config| config.to_json(wire)).collect();
    match wire {
        WireFormat::V03Rpc => Value::Array(written),
        _ => json!({ "configs": written, "nextPageToken": "" }),
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
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if scheme.len() > 40 || !scheme.chars().all(fits) {
            return Err(FieldError::at(
                "scheme",
                "must be the name of a scheme, such as Bearer",
            ));
        }
        Ok(Self {
            scheme,
            credentials: fields.non_empty("credentials")?.map(Secret::new),
        })
    }

    fn to_json(&self, wire: WireFormat) -> Value {
        let writing = match wire {
            WireFormat::V1 => JsonObjectWriter::default().with("scheme", self.scheme.as_str()),
            _ => JsonObjectWriter::default().with("schemes", vec![self.scheme.as_str()]),
        };
        writing
            .with_some("credentials", self.credentials.as_ref().map(Secret::expose))
            .build()
    }
}

/// `tasks/{task}/pushNotificationConfigs/{id}`.
fn split_name(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("tasks/")?
        .split_once("/pushNotificationConfigs/")
}
