//! Parameters of the methods that send a message.

use serde_json::Value;

use super::json_fields::{FieldError, JsonFields, JsonObjectWriter, Metadata, missing};
use super::message::Message;
use super::push::PushConfig;
use super::version::WireFormat;

#[derive(Clone, Debug, PartialEq)]
pub struct SendMessage {
    pub message: Message,
    pub return_mode: ReturnMode,
    pub accepted_output_modes: Vec<String>,
    pub history: Option<u32>,
    pub push: Option<PushConfig>,
    pub metadata: Metadata,
}

/// Specifies when the server replies to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnMode {
    /// When the task has ended or waits for input.
    WhenDone,
    /// As soon as the task exists.
    Immediately,
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

    pub(crate) fn from_fields(fields: &JsonFields<'_>) -> Result<Self, FieldError> {
        let message = fields
            .nested("message", Message::from_json)?
            .ok_or_else(|| missing("message"))?;
        if message.parts.is_empty() {
            return Err(FieldError::at("parts", "must have at least one part").within("message"));
        }
        let configured = fields.nested("configuration", |value, wire| {
            Self::new(message.clone()).with_configuration(&JsonFields::from_value(value, wire)?)
        })?;
        let metadata = fields.metadata("metadata")?;
        Ok(Self {
            metadata,
            ..configured.unwrap_or_else(|| Self::new(message))
        })
    }

    fn with_configuration(mut self, fields: &JsonFields<'_>) -> Result<Self, FieldError> {
        let (push_field, is_blocking) = match fields.wire {
            WireFormat::V1 => (
                "taskPushNotificationConfig",
                !fields.flag("returnImmediately")?.unwrap_or(false),
            ),
            WireFormat::V03Rpc => (
                "pushNotificationConfig",
                fields.flag("blocking")?.unwrap_or(true),
            ),
            // Protocol buffers cannot distinguish false from absent.
            WireFormat::V03Rest => ("pushNotification", fields.flag("blocking")?.unwrap_or(true)),
        };
        self.return_mode = if is_blocking {
            ReturnMode::WhenDone
        } else {
            ReturnMode::Immediately
        };
        self.push = fields.nested(push_field, PushConfig::from_bare_json)?;
        self.accepted_output_modes = fields.texts("acceptedOutputModes")?;
        self.history = fields.count("historyLength")?;
        Ok(self)
    }

    pub(crate) fn to_json(&self, wire: WireFormat) -> Value {
        let is_blocking = self.return_mode == ReturnMode::WhenDone;
        let (push_field, writer) = match wire {
            WireFormat::V1 => (
                "taskPushNotificationConfig",
                JsonObjectWriter::default().with("returnImmediately", !is_blocking),
            ),
            WireFormat::V03Rpc => (
                "pushNotificationConfig",
                JsonObjectWriter::default().with("blocking", is_blocking),
            ),
            WireFormat::V03Rest => (
                "pushNotification",
                JsonObjectWriter::default().with("blocking", is_blocking),
            ),
        };
        let configuration = writer
            .with_texts("acceptedOutputModes", &self.accepted_output_modes)
            .with_some("historyLength", self.history)
            .with_some(
                push_field,
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
