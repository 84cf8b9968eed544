//! What must not be shown of settings: values of secret ones, and whatever else looks like a key.

use lango_domain::secret::{self, Secret};
use lango_domain::spanned::{self, SchemaLookup};
use lango_knowledge::secret_scan::{SecretScanner, has_url_password, mask_secrets};
use serde_json::{Map, Value};

const REDACTED: &str = "***";

/// A value with its place in the schema of the settings; without a place where the schema says nothing about it.
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

    /// Whether a secret stands here, or a table of nothing else.
    fn is_for_secrets(self) -> bool {
        let each = self
            .schema
            .and_then(|schema| schema.get("additionalProperties"));
        self.is_secret() || each.is_some_and(secret::is_secret)
    }

    /// The same value for whoever confirms it: of a secret nothing but the variables that it takes, of what only looks
    /// like one everything else.
    pub(super) fn redact(self, value: &Value) -> Value {
        match value {
            Value::Null => Value::Null,
            Value::Object(map) if !self.is_secret() => {
                let mut shown = Map::new();
                for (key, value) in map {
                    let name = unique_key(&shown, mask_secrets(key).text);
                    shown.insert(name, self.key(key).redact(value));
                }
                Value::Object(shown)
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

    /// Where in there a secret setting has a value of its own, or an address a password. Local servers take `x` or
    /// `test` as a key. An element of a list is written `[0]`.
    pub(super) fn find_secret(self, value: &Value) -> Option<Vec<String>> {
        let below = |part: String, found: Option<Vec<String>>| {
            found.map(|rest| std::iter::once(part).chain(rest).collect())
        };
        match value {
            Value::Object(map) => map
                .iter()
                .find_map(|(key, value)| below(key.clone(), self.key(key).find_secret(value))),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .find_map(|(at, item)| below(format!("[{at}]"), self.element().find_secret(item))),
            Value::String(text) => {
                let is_key = self.is_for_secrets()
                    && !is_variable_reference(text)
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

/// Whether what stands at these keys is secret.
pub(super) fn is_secret(schema: &Value, path: &[String]) -> bool {
    let mut place = SchemaPosition::at_root(schema);
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

/// Two keys may look the same without what is masked; neither may hide the other.
fn unique_key(taken: &Map<String, Value>, name: String) -> String {
    let numbered = (2..).map(|number| format!("{name} ({number})"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    names.find(|name| !taken.contains_key(name)).unwrap_or(name)
}

/// A secret text without anything but the `${NAME}`s in it: who confirms it sees what of the environment it takes.
fn redact_except_variables(text: &str) -> String {
    let (mut shown, mut rest) = (String::new(), text);
    while let Some(start) = rest.find("${") {
        let end = rest[start..]
            .find('}')
            .map_or(rest.len(), |end| start + end + 1);
        shown.push_str(if start > 0 { REDACTED } else { "" });
        shown.push_str(&rest[start..end]);
        rest = &rest[end..];
    }
    if !rest.is_empty() || text.is_empty() {
        shown.push_str(REDACTED);
    }
    shown
}

/// A text as it may be shown: one that seems to hold a secret is not.
pub(super) fn redact_secrets(text: &str) -> String {
    if is_likely_secret(text) {
        REDACTED.to_owned()
    } else {
        text.to_owned()
    }
}

/// What a parser says, unless it repeats what seems to be a secret.
pub(super) fn redact_message(message: &str) -> String {
    if is_likely_secret(message) {
        "what stands here is wrong; it seems to be a secret, so it is not repeated".to_owned()
    } else {
        message.to_owned()
    }
}

fn is_likely_secret(text: &str) -> bool {
    SecretScanner::default().find_secret(text).is_some()
}

/// Whether a text is nothing but the name of a variable: `${NAME}`.
fn is_variable_reference(text: &str) -> bool {
    let name = text
        .strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'));
    name.is_some_and(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}
