//! Ids that A2A agents assign. They are opaque, bounded and printable, because they are sent back
//! and shown.

use std::fmt;

use serde_json::Value;

use super::json_fields::{FieldError, JsonFields, missing};
use super::version::WireFormat;

const MAX_ID_BYTES: usize = 512;

macro_rules! wire_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// Creates an id without checks, for ids that Lango generates.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// Parses and checks an id from another agent.
            pub fn from_json(value: &Value, _: WireFormat) -> Result<Self, FieldError> {
                parse_id(value).map(Self)
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl WireId for $name {
            fn from_value(value: &Value, wire: WireFormat) -> Result<Self, FieldError> {
                Self::from_json(value, wire)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&$name> for Value {
            fn from(id: &$name) -> Self {
                Self::from(id.as_str())
            }
        }
    };
}

wire_id!(
    /// The id of a task.
    TaskId
);
wire_id!(
    /// The id that groups the tasks and messages of one conversation.
    ContextId
);
wire_id!(
    /// The id of a message, assigned by its sender.
    MessageId
);
wire_id!(
    /// The id of an artifact of a task.
    ArtifactId
);
wire_id!(
    /// The id of a push notification config.
    PushConfigId
);

/// Parses ids from JSON fields.
pub(crate) trait WireId: Sized {
    fn from_value(value: &Value, wire: WireFormat) -> Result<Self, FieldError>;

    fn required(fields: &JsonFields<'_>, name: &str) -> Result<Self, FieldError> {
        Self::optional(fields, name)?.ok_or_else(|| missing(name))
    }

    /// Returns the id; an empty id counts as absent.
    fn optional(fields: &JsonFields<'_>, name: &str) -> Result<Option<Self>, FieldError> {
        match fields.get(name) {
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            _ => fields.nested(name, Self::from_value),
        }
    }
}

fn parse_id(value: &Value) -> Result<String, FieldError> {
    let text = value
        .as_str()
        .ok_or_else(|| FieldError::new("must be a string"))?;
    if text.trim().is_empty() {
        return Err(FieldError::new("is empty"));
    }
    if text.len() > MAX_ID_BYTES {
        return Err(FieldError::new(format!(
            "is longer than {MAX_ID_BYTES} bytes"
        )));
    }
    if text.chars().any(lango_text::sanitize::is_terminal_control) {
        return Err(FieldError::new("has control characters"));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ids_are_bounded_and_printable() {
        for valid in ["a", "9f0c", "작업-1", "x y"] {
            assert!(
                TaskId::from_json(&json!(valid), WireFormat::V1).is_ok(),
                "{valid}"
            );
        }
        for invalid in [
            json!(""),
            json!("  "),
            json!(7),
            json!("a\u{1b}[2J"),
            json!("a\nb"),
            json!("x".repeat(513)),
            json!(["a"]),
        ] {
            assert!(
                TaskId::from_json(&invalid, WireFormat::V1).is_err(),
                "{invalid}"
            );
        }
    }
}
