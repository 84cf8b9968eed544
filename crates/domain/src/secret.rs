//! Secrets: values that are never printed, logged or stored.

use std::borrow::Cow;
use std::fmt;

use lango_text::secret_scan::MIN_SECRET_BYTES;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// The JSON Schema keyword for a value that is accepted but never returned.
const WRITE_ONLY: &str = "writeOnly";

/// Returns true if a schema describes a [`Secret`].
pub fn is_secret(schema: &Value) -> bool {
    schema.get(WRITE_ONLY).is_some_and(|mark| *mark == true)
}

/// The text that events show in place of a secret argument of a call.
pub const HIDDEN_ARGUMENT: &str = "[set, hidden]";

/// Returns the arguments of a call without the values that the schema of its parameters marks as
/// secret, as they are stored and shown (B130). Returns `None` if there is nothing to hide.
pub fn hide_secret_arguments(parameters: &Value, arguments: &Value) -> Option<Value> {
    let properties = parameters.get("properties")?.as_object()?;
    let secrets = properties.iter().filter(|(_, schema)| is_secret(schema));
    let mut hidden = None;
    for (name, _) in secrets {
        if arguments.get(name).is_some_and(|value| !value.is_null()) {
            let copy = hidden.get_or_insert_with(|| arguments.clone());
            copy[name.as_str()] = HIDDEN_ARGUMENT.into();
        }
    }
    hidden
}

/// A key or token. Displays and serializes as `***`.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(SecretString::from(value.into()))
    }

    /// Returns the value itself, for the code that sends it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// Returns true if the value is long enough to be redacted from text.
    pub fn is_redactable(&self) -> bool {
        self.expose().len() >= MIN_SECRET_BYTES
    }

    /// Replaces this value in a text.
    pub fn redact(&self, text: &str) -> String {
        if self.expose().is_empty() {
            text.to_owned()
        } else {
            text.replace(self.expose(), "***")
        }
    }
}

impl From<Secret> for SecretString {
    fn from(secret: Secret) -> Self {
        secret.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("***")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyText).map(Self::new)
    }
}

/// Accepts a text or an unquoted number. The error for other values does not contain the value.
struct AnyText;

impl serde::de::Visitor<'_> for AnyText {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_i64<E>(self, number: i64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_u64<E>(self, number: u64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_f64<E>(self, number: f64) -> Result<String, E> {
        Ok(number.to_string())
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn inline_schema() -> bool {
        true
    }

    /// Returns a string schema that is marked, so that its readers can hide the value.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = String::json_schema(generator);
        schema.insert(WRITE_ONLY.to_owned(), true.into());
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B130
    #[test]
    fn secret_arguments_are_hidden() {
        let parameters = serde_json::json!({
            "properties": { "name": {}, "value": { "writeOnly": true, "type": ["string", "null"] } }
        });
        let hide = |args: Value| hide_secret_arguments(&parameters, &args);
        assert_eq!(
            hide(serde_json::json!({ "name": "A", "value": "x" })),
            Some(serde_json::json!({ "name": "A", "value": HIDDEN_ARGUMENT }))
        );
        // Also a value that has the wrong type.
        let wrong = hide(serde_json::json!({ "value": ["x"] })).unwrap();
        assert_eq!(wrong["value"], HIDDEN_ARGUMENT);
        for args in [
            serde_json::json!({ "name": "A" }),
            serde_json::json!({ "value": null }),
            serde_json::json!("x"),
        ] {
            assert_eq!(hide(args), None);
        }
        assert_eq!(hide_secret_arguments(&Value::Null, &Value::Null), None);
    }

    #[test]
    fn a_secret_is_never_shown() {
        let secret = Secret::new("sk-123");
        assert_eq!(format!("{secret:?}"), "***");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"***\"");
        assert_eq!(secret.redact("key sk-123 is wrong"), "key *** is wrong");
        assert_eq!(Secret::new("").redact("abc"), "abc");
        assert_eq!(
            serde_json::from_str::<Secret>("12345678901").unwrap(),
            Secret::new("12345678901")
        );
        assert!(
            serde_json::from_str::<Secret>("[\"sk-1\"]")
                .is_err_and(|error| !error.to_string().contains("sk-1"))
        );
    }
}
