//! What must not be shown of settings: values of secret ones, and whatever else looks like a key.

use lango_domain::located::{self, Child};
use lango_domain::secret::{self, Secret};
use lango_knowledge::secrecy::Secrecy;
use serde_json::Value;

const HIDDEN: &str = "***";

/// A value with its place in the schema of the settings; without a place where the schema says nothing about it.
#[derive(Clone, Copy)]
pub(super) struct Placed<'a> {
    root: &'a Value,
    schema: Option<&'a Value>,
}

impl<'a> Placed<'a> {
    pub(super) fn at_root(schema: &'a Value) -> Self {
        Self { root: schema, schema: Some(schema) }
    }

    fn key(self, key: &str) -> Self {
        let schema = self.schema.and_then(|schema| match located::child(self.root, schema, key) {
            Child::Known(next) => Some(next),
            Child::Anything | Child::Unknown(_) => None,
        });
        Self { schema, ..self }
    }

    fn element(self) -> Self {
        Self { schema: self.schema.and_then(|schema| schema.get("items")), ..self }
    }

    fn is_secret(self) -> bool {
        self.schema.is_some_and(secret::is_secret)
    }

    /// Whether a secret stands here, or a table of nothing else.
    fn is_for_secrets(self) -> bool {
        let each = self.schema.and_then(|schema| schema.get("additionalProperties"));
        self.is_secret() || each.is_some_and(secret::is_secret)
    }

    /// The same value without what must not be seen.
    pub(super) fn without_secrets(self, value: &Value) -> Value {
        match value {
            Value::Null => Value::Null,
            Value::String(text) if names_a_variable(text) => value.clone(),
            Value::Object(map) if !self.is_secret() => {
                let shown = |(key, value): (&String, &Value)| {
                    (without_secrets(key), self.key(key).without_secrets(value))
                };
                Value::Object(map.iter().map(shown).collect())
            }
            _ if self.is_for_secrets() => Value::from(HIDDEN),
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.element().without_secrets(item)).collect())
            }
            Value::String(text) => Value::from(without_secrets(text)),
            other => other.clone(),
        }
    }

    /// Whether a secret setting has a value of its own in there. Local servers take `x` or `test` as a key.
    pub(super) fn holds_a_secret(self, value: &Value) -> bool {
        match value {
            Value::Object(map) => map.iter().any(|(key, value)| self.key(key).holds_a_secret(value)),
            Value::Array(items) => items.iter().any(|item| self.element().holds_a_secret(item)),
            Value::String(text) => {
                self.is_for_secrets()
                    && !names_a_variable(text)
                    && Secret::new(text.as_str()).is_worth_hiding()
            }
            Value::Number(number) => self.is_secret() && Secret::new(number.to_string()).is_worth_hiding(),
            Value::Null | Value::Bool(_) => false,
        }
    }
}

/// Whether what stands at these keys is secret.
pub(super) fn is_secret(schema: &Value, path: &[String]) -> bool {
    let mut place = Placed::at_root(schema);
    for part in path {
        place = if part.parse::<usize>().is_ok() && place.element().schema.is_some() {
            place.element()
        } else {
            place.key(part)
        };
        if place.is_for_secrets() {
            return true;
        }
    }
    false
}

/// A text as it may be shown: one that seems to hold a secret is not.
pub(super) fn without_secrets(text: &str) -> String {
    if looks_secret(text) { HIDDEN.to_owned() } else { text.to_owned() }
}

/// What a parser says, unless it repeats what seems to be a secret.
pub(super) fn told(message: &str) -> String {
    if looks_secret(message) {
        "what stands here is wrong; it seems to be a secret, so it is not repeated".to_owned()
    } else {
        message.to_owned()
    }
}

fn looks_secret(text: &str) -> bool {
    Secrecy::default().secret_in(text).is_some()
}

/// Whether a text is nothing but the name of a variable: `${NAME}`.
fn names_a_variable(text: &str) -> bool {
    let name = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    name.is_some_and(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}
