//! Addresses that a task's news are sent to.

use axum::http::HeaderValue;
use lango_remote::a2a::{
    ErrorKind, ProtocolError, ProtocolVersion, PushConfig, PushConfigId, TaskId, WireFormat,
    push_configs_to_json,
};
use lango_store::PushConfigRow;
use serde_json::{Value, json};

use super::operations::TaskOperations;
use super::stored_task::{internal_error, store_error};

const DEFAULT_CONFIG_ID: &str = "default";
const MAX_URL: usize = 2_000;
const MAX_SECRET: usize = 4_000;

/// An address, and the version that whoever left it speaks.
pub(crate) struct PushTarget {
    pub config: PushConfig,
    pub version: ProtocolVersion,
}

impl PushTarget {
    pub fn from_row(kept: &PushConfigRow) -> Result<Self, ProtocolError> {
        let value: Value = serde_json::from_str(&kept.body).map_err(|_| internal_error())?;
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
        let found = all
            .into_iter()
            .find(|config| id.is_none() || config.id == id);
        found.ok_or_else(|| {
            let message = "this task has no such push notification config";
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
        let gone = self
            .gateway
            .store()
            .delete_push_config(task.as_str(), id.as_str());
        gone.await.map_err(store_error)
    }

    /// Refused at once: what could never be sent to. Where a name leads is looked at when it is sent to.
    pub fn validate_push_config(&self, config: &PushConfig) -> Result<(), ProtocolError> {
        if self.gateway.settings().a2a.push_addresses == 0 {
            let message = "push notifications are not sent from here";
            return Err(ProtocolError::new(ErrorKind::PushNotSupported, message));
        }
        let wrong = |what: &str, message: String| {
            Err(ProtocolError::new(ErrorKind::InvalidParams, message).with_metadata("field", what))
        };
        if config.url.len() > MAX_URL {
            return wrong("url", format!("the address is longer than {MAX_URL} bytes"));
        }
        if let Err(error) = self.gateway.a2a().push_sender.check_url(&config.url) {
            return wrong("url", error.to_string());
        }
        let credentials = config
            .authentication
            .as_ref()
            .and_then(|how| how.credentials.as_ref());
        for (what, secret) in [
            ("token", config.token.as_ref()),
            ("credentials", credentials),
        ] {
            let fits = |text: &str| text.len() <= MAX_SECRET && HeaderValue::from_str(text).is_ok();
            if secret.is_some_and(|secret| !fits(secret.expose())) {
                return wrong(
                    what,
                    format!("`{what}` must be a text that fits into a header"),
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
        // One without a name is always the same one, so that setting it again changes it.
        let id = config
            .id
            .get_or_insert_with(|| PushConfigId::new(DEFAULT_CONFIG_ID))
            .to_string();
        config.task = Some(task.clone());
        let body =
            json!({ "version": wire.version().as_str(), "config": config.to_json(WireFormat::V1) });
        let listener = PushConfigRow {
            id,
            body: body.to_string(),
        };
        let most = self.gateway.settings().a2a.push_addresses;
        let kept = self
            .gateway
            .store()
            .upsert_push_config(task.as_str(), listener, most);
        if kept.await.map_err(store_error)? {
            return Ok(config);
        }
        let message =
            format!("this task has {most} push notification configs, and no more are kept");
        Err(ProtocolError::new(ErrorKind::Busy, message))
    }

    async fn load_push_configs(&self, task: &TaskId) -> Result<Vec<PushConfig>, ProtocolError> {
        self.check_owner(task).await?;
        let kept = self
            .gateway
            .store()
            .push_configs(task.as_str())
            .await
            .map_err(store_error)?;
        kept.iter()
            .map(|kept| PushTarget::from_row(kept).map(|listener| listener.config))
            .collect()
    }
}
