//! Redacts secrets in settings, and everything that looks like one.

use lango_domain::secret::{self, Secret};
use lango_domain::spanned::{self, SchemaLookup};
use lango_text::secret_scan::{SecretScanner, has_url_password, mask_secrets};
use serde_json::{Map, Value};

use crate::vault_settings::vault_name;

const REDACTED: &str = "***";

/// A position in the schema of the settings. `schema` is none for values that the schema does not
/// describe.
#[derive(Clone, Copy)]
pub(super) struct SchemaPosition<'a> {
    root: &'a Value,
    schema: Option<&'a Value>,
}

impl<'a> SchemaPosition<'a> {
    pub(super) fn at_root(schema: &'a Value) -> Self {
        Self {
            root: schema,
            schema: Some(schema),
        }
    }

    fn key(self, key: &str) -> Self {
        let schema =
            self.schema
                .and_then(|schema| match spanned::lookup_key(self.root, schema, key) {
                    SchemaLookup::Known(next) => Some(next),
                    SchemaLookup::Anything | SchemaLookup::Unknown(_) => None,
                });
        Self { schema, ..self }
    }

    fn element(self) -> Self {
        Self {
            schema: self.schema.and_then(|schema| schema.get("items")),
            ..self
        }
    }

    fn is_secret(self) -> bool {
        self.schema.is_some_and(secret::is_secret)
    }

    /// Returns true if the value is a secret, or a table of secrets.
    fn is_for_secrets(self) -> bool {
        let value_schema = self
            .schema
            .and_then(|schema| schema.get("additionalProperties"));
        self.is_secret() || value_schema.is_some_and(secret::is_secret)
    }

    /// Returns the value without secrets. A secret is replaced except for the variables that it
    /// refers to; in other texts, only the parts that look like a secret are masked.
    pub(super) fn redact(self, value: &Value) -> Value {
        match value {
            Value::Null => Value::Null,
            Value::Object(map) if !self.is_secret() => {
                let mut redacted = Map::new();
                for (key, value) in map {
                    let name = unique_key(&redacted, mask_secrets(key).text);
                    redacted.insert(name, self.key(key).redact(value));
                }
                Value::Object(redacted)
            }
            Value::String(text) if self.is_for_secrets() => {
                Value::from(redact_except_variables(text))
            }
            _ if self.is_for_secrets() => Value::from(REDACTED),
            Value::Array(items) => Value::Array(
                items
                    .iter()
                    .map(|item| self.element().redact(item))
                    .collect(),
            ),
            Value::String(text) => Value::from(mask_secrets(text).text),
            other => other.clone(),
        }
    }

    /// Returns the path of the first literal secret or URL with a password. Short placeholders such
    /// as `x` or `test` for local servers are allowed. A list element is written `[0]`.
    pub(super) fn find_secret(self, value: &Value) -> Option<Vec<String>> {
        let prefixed = |part: String, found: Option<Vec<String>>| {
            found.map(|rest| std::iter::once(part).chain(rest).collect())
        };
        match value {
            Value::Object(map) => map
                .iter()
                .find_map(|(key, value)| prefixed(key.clone(), self.key(key).find_secret(value))),
            Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
                prefixed(format!("[{index}]"), self.element().find_secret(item))
            }),
            Value::String(text) => {
                let is_key = self.is_for_secrets()
                    && !is_variable_reference(text)
                    && !is_vault_reference(text)
                    && Secret::new(text.as_str()).is_redactable();
                (is_key || has_url_password(text)).then(Vec::new)
            }
            Value::Number(number) => {
                (self.is_secret() && Secret::new(number.to_string()).is_redactable()).then(Vec::new)
            }
            Value::Null | Value::Bool(_) => None,
        }
    }
}

/// Returns true if the value at this path is a secret.
pub(super) fn is_secret(schema: &Value, path: &[String]) -> bool {
    let mut position = SchemaPosition::at_root(schema);
    for part in path {
        position = if part.parse::<usize>().is_ok() && position.element().schema.is_some() {
            position.element()
        } else {
            position.key(part)
        };
        if position.is_for_secrets() {
            return true;
        }
    }
    false
}

/// Returns a key that is not taken yet. Two keys may be equal once masked, and neither may hide the
/// other.
fn unique_key(map: &Map<String, Value>, name: String) -> String {
    let numbered = (2..).map(|number| format!("{name} ({number})"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    names.find(|name| !map.contains_key(name)).unwrap_or(name)
}

/// Redacts a secret text except for its `${NAME}` references, so that the user sees which variables
/// it reads. A reference to the vault is no secret either.
fn redact_except_variables(text: &str) -> String {
    if is_vault_reference(text) {
        return text.to_owned();
    }
    let (mut redacted, mut rest) = (String::new(), text);
    while let Some(start) = rest.find("${") {
        let end = rest[start..]
            .find('}')
            .map_or(rest.len(), |end| start + end + 1);
        redacted.push_str(if start > 0 { REDACTED } else { "" });
        redacted.push_str(&rest[start..end]);
        rest = &rest[end..];
    }
    if !rest.is_empty() || text.is_empty() {
        redacted.push_str(REDACTED);
    }
    redacted
}

/// Returns the text, or a placeholder if it seems to contain a secret.
pub(super) fn redact_secrets(text: &str) -> String {
    if is_likely_secret(text) {
        REDACTED.to_owned()
    } else {
        text.to_owned()
    }
}

/// Returns a parser's message, unless it seems to repeat a secret.
pub(super) fn redact_message(message: &str) -> String {
    if is_likely_secret(message) {
        "invalid value; it is not shown because it looks like a secret".to_owned()
    } else {
        message.to_owned()
    }
}

fn is_likely_secret(text: &str) -> bool {
    SecretScanner::default().find_secret(text).is_some()
}

/// Returns true if the text names a secret of the vault: `vault:NAME`.
fn is_vault_reference(text: &str) -> bool {
    matches!(vault_name(text), Some(Ok(_)))
}

/// Returns true if the text is exactly one variable reference: `${NAME}`.
fn is_variable_reference(text: &str) -> bool {
    let name = text
        .strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'));
    name.is_some_and(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}
