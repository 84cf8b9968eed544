//! Push notification configs of tasks.

use axum::http::HeaderValue;
use lango_domain::tasks::PushConfigRow;
use lango_remote::a2a::{
    ErrorKind, ProtocolError, ProtocolVersion, PushConfig, PushConfigId, TaskId, WireFormat,
    push_configs_to_json,
};
use serde_json::{Value, json};

use super::operations::TaskOperations;
use super::stored_task::{internal_error, store_error};

const DEFAULT_CONFIG_ID: &str = "default";
const MAX_URL: usize = 2_000;
const MAX_SECRET: usize = 4_000;

/// A push config and the protocol version of the client that created it.
pub(crate) struct PushTarget {
    pub config: PushConfig,
    pub version: ProtocolVersion,
}

impl PushTarget {
    pub fn from_row(row: &PushConfigRow) -> Result<Self, ProtocolError> {
        let value: Value = serde_json::from_str(&row.body).map_err(|_| internal_error())?;
        let version = value
            .get("version")
            .and_then(Value::as_str)
            .and_then(ProtocolVersion::parse);
        let config = value
            .get("config")
            .and_then(|config| PushConfig::from_json(config, WireFormat::V1).ok());
        match (config, version) {
            (Some(config), Some(version)) => Ok(Self { config, version }),
            _ => Err(internal_error()),
        }
    }
}

impl TaskOperations {
    pub async fn create_push_config(
        &self,
        config: PushConfig,
        wire: WireFormat,
    ) -> Result<PushConfig, ProtocolError> {
        let Some(task) = config.task.clone() else {
            return Err(ProtocolError::new(
                ErrorKind::InvalidParams,
                "`taskId` is missing",
            ));
        };
        self.validate_push_config(&config)?;
        self.check_owner(&task).await?;
        self.store_push_config(&task, config, wire).await
    }

    pub async fn get_push_config(
        &self,
        task: &TaskId,
        id: Option<PushConfigId>,
    ) -> Result<PushConfig, ProtocolError> {
        let all = self.load_push_configs(task).await?;
        let config = all
            .into_iter()
            .find(|config| id.is_none() || config.id == id);
        config.ok_or_else(|| {
            let message = "the task has no such push notification config";
            ProtocolError::new(ErrorKind::TaskNotFound, message)
                .with_metadata("taskId", task.as_str())
        })
    }

    pub async fn list_push_configs(
        &self,
        task: &TaskId,
        wire: WireFormat,
    ) -> Result<Value, ProtocolError> {
        Ok(push_configs_to_json(
            &self.load_push_configs(task).await?,
            wire,
        ))
    }

    pub async fn delete_push_config(
        &self,
        task: &TaskId,
        id: &PushConfigId,
    ) -> Result<(), ProtocolError> {
        self.check_owner(task).await?;
        self.gateway
            .stores()
            .tasks
            .delete_push_config(task.as_str(), id.as_str())
            .await
            .map_err(store_error)
    }

    /// Rejects configs that could never be used. Host names are resolved and checked only when a
    /// notification is sent.
    pub fn validate_push_config(&self, config: &PushConfig) -> Result<(), ProtocolError> {
        if self.gateway.settings().a2a.push_addresses == 0 {
            let message = "push notifications are disabled on this server";
            return Err(ProtocolError::new(ErrorKind::PushNotSupported, message));
        }
        let invalid = |field: &str, message: String| {
            Err(ProtocolError::new(ErrorKind::InvalidParams, message).with_metadata("field", field))
        };
        if config.url.len() > MAX_URL {
            return invalid("url", format!("the URL is longer than {MAX_URL} bytes"));
        }
        if let Err(error) = self.gateway.a2a().push_sender.check_url(&config.url) {
            return invalid("url", error.to_string());
        }
        let credentials = config
            .authentication
            .as_ref()
            .and_then(|authentication| authentication.credentials.as_ref());
        for (field, secret) in [
            ("token", config.token.as_ref()),
            ("credentials", credentials),
        ] {
            let is_valid =
                |text: &str| text.len() <= MAX_SECRET && HeaderValue::from_str(text).is_ok();
            if secret.is_some_and(|secret| !is_valid(secret.expose())) {
                return invalid(
                    field,
                    format!("`{field}` must be a valid header value of at most {MAX_SECRET} bytes"),
                );
            }
        }
        Ok(())
    }

    pub async fn store_push_config(
        &self,
        task: &TaskId,
        mut config: PushConfig,
        wire: WireFormat,
    ) -> Result<PushConfig, ProtocolError> {
        // Configs without an id share the default id, so that setting one again replaces it.
        let id = config
            .id
            .get_or_insert_with(|| PushConfigId::new(DEFAULT_CONFIG_ID))
            .to_string();
        config.task = Some(task.clone());
        let body =
            json!({ "version": wire.version().as_str(), "config": config.to_json(WireFormat::V1) });
        let row = PushConfigRow {
            id,
            body: body.to_string(),
        };
        let limit = self.gateway.settings().a2a.push_addresses;
        let is_stored = self
            .gateway
            .stores()
            .tasks
            .upsert_push_config(task.as_str(), row, limit)
            .await
            .map_err(store_error)?;
        if is_stored {
            return Ok(config);
        }
        let message = format!("the task already has {limit} push notification configs");
        Err(ProtocolError::new(ErrorKind::Busy, message))
    }

    async fn load_push_configs(&self, task: &TaskId) -> Result<Vec<PushConfig>, ProtocolError> {
        self.check_owner(task).await?;
        let rows = self
            .gateway
            .stores()
            .tasks
            .push_configs(task.as_str())
            .await
            .map_err(store_error)?;
        rows.iter()
            .map(|row| PushTarget::from_row(row).map(|target| target.config))
            .collect()
    }
}
