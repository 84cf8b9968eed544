//! Settings from environment variables (`LANGO_AGENT__MULTI_AGENT=false`) and from
//! `--set key=value`.

use lango_domain::spanned::{self, SchemaLookup, SpannedEntry, SpannedKind, SpannedValue};
use serde_json::Value;

use super::redaction::{self, SchemaPosition};
use super::{ConfigError, ConfigLayer, ConfigSource};
use crate::environment::Environment;

const PREFIX: &str = "LANGO_";
/// The separator between the parts of a key. A variable without it is not a setting.
const SEPARATOR: &str = "__";

pub(super) fn from_environment(schema: &Value, environment: &Environment) -> Vec<ConfigLayer> {
    let settings = environment
        .variables
        .iter()
        .filter(|(name, _)| name.starts_with(PREFIX) && name.contains(SEPARATOR));
    settings
        .map(|(name, value)| {
            let key = variable_key(schema, name);
            let node = nest(&key, to_node(&parse_value(schema, &key, value)));
            ConfigLayer {
                source: ConfigSource::Variable(name.clone()),
                node,
            }
        })
        .collect()
}

pub(super) fn from_assignment(
    schema: &Value,
    assignment: &str,
) -> Result<ConfigLayer, ConfigError> {
    let malformed = || {
        let redacted = redaction::redact_secrets(assignment);
        ConfigError::new(format!("--set {redacted}: expected key=value"))
            .with_hint("for example --set agent.multiAgent=false")
    };
    let (key, value) = assignment.split_once('=').ok_or_else(malformed)?;
    let key = key_parts(key.trim());
    if key.iter().any(String::is_empty) {
        return Err(malformed());
    }
    let node = nest(&key, to_node(&parse_value(schema, &key, value)));
    if let Some(path) = SchemaPosition::at_root(schema).find_secret(&node.to_value()) {
        return Err(secret_argument_error(schema, &path));
    }
    Ok(ConfigLayer {
        source: ConfigSource::Set(key.join(".")),
        node,
    })
}

fn secret_argument_error(schema: &Value, key: &[String]) -> ConfigError {
    let name = PREFIX.to_owned()
        + &key
            .iter()
            .map(|part| upper_case(part))
            .collect::<Vec<_>>()
            .join(SEPARATOR);
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    // Suggest the variable only if it maps back to this key.
    let variable = (is_name && variable_key(schema, &name) == key)
        .then(|| format!("set the variable {name}, or "));
    let message = format!(
        "--set {}: secrets are not accepted on the command line, which every user of this machine can read",
        redaction::redact_secrets(&key.join("."))
    );
    ConfigError::new(message).with_hint(format!(
        "{}write it to your configuration file, where `${{NAME}}` expands to the variable NAME",
        variable.unwrap_or_default()
    ))
}

/// `multiAgent` → `MULTI_AGENT`.
fn upper_case(part: &str) -> String {
    let mut text = String::new();
    for c in part.chars() {
        if c.is_uppercase() {
            text.push('_');
        }
        text.extend(c.to_uppercase());
    }
    text
}

/// Splits a dotted key. A quoted part may contain dots: `prices."gpt-4.1".input`.
fn key_parts(key: &str) -> Vec<String> {
    let (mut parts, mut is_quoted) = (vec![String::new()], false);
    for c in key.chars() {
        match (c, parts.last_mut()) {
            ('"', _) => is_quoted = !is_quoted,
            ('.', _) if !is_quoted => parts.push(String::new()),
            (_, Some(part)) => part.push(c),
            (_, None) => {}
        }
    }
    parts
}

/// Maps `LANGO_AGENT__MULTI_AGENT` to `agent.multiAgent` by the schema. Unknown parts become
/// camelCase, so that the error can suggest a known key.
fn variable_key(schema: &Value, name: &str) -> Vec<String> {
    let mut current = Some(schema);
    let mut key = Vec::new();
    for part in name[PREFIX.len()..].split(SEPARATOR) {
        let shapes = current
            .map(|current| spanned::object_schemas(schema, current))
            .unwrap_or_default();
        let mut known = shapes
            .iter()
            .flat_map(|shape| spanned::property_names(shape));
        let spelled =
            known.find(|property| property.to_lowercase() == part.to_lowercase().replace('_', ""));
        let has_names = shapes.iter().any(|shape| shape.get("properties").is_some());
        let part = spelled.unwrap_or_else(|| {
            if has_names {
                camel_case(part)
            } else {
                part.to_lowercase()
            }
        });
        current = current.and_then(
            |current| match spanned::lookup_key(schema, current, &part) {
                SchemaLookup::Known(next) => Some(next),
                SchemaLookup::Anything | SchemaLookup::Unknown(_) => None,
            },
        );
        key.push(part);
    }
    key
}

fn camel_case(part: &str) -> String {
    let mut words = part
        .split('_')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase);
    let mut text = words.next().unwrap_or_default();
    for word in words {
        let mut letters = word.chars();
        text.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        text.push_str(letters.as_str());
    }
    text
}

/// Parses a value: as text if the setting is a string, otherwise as JSON if it is valid JSON. An
/// empty text is null for optional settings.
pub(super) fn parse_value(schema: &Value, key: &[String], text: &str) -> Value {
    match text {
        "" | "null" if is_optional(schema, key) => Value::Null,
        _ if is_text(schema, key) => Value::from(text),
        _ => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
    }
}

fn is_text(schema: &Value, key: &[String]) -> bool {
    schema_at(schema, key).is_some_and(|current| has_type(current, "string"))
}

/// Returns true if a setting is optional.
pub(super) fn is_optional(schema: &Value, key: &[String]) -> bool {
    schema_at(schema, key).is_some_and(|current| has_type(current, "null"))
}

fn schema_at<'a>(schema: &'a Value, key: &[String]) -> Option<&'a Value> {
    key.iter().try_fold(schema, |current, part| {
        match spanned::lookup_key(schema, current, part) {
            SchemaLookup::Known(next) => Some(next),
            SchemaLookup::Anything | SchemaLookup::Unknown(_) => None,
        }
    })
}

fn has_type(schema: &Value, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|known| known == kind),
        Some(only) => only == kind,
        None => false,
    }
}

fn nest(key: &[String], value: SpannedValue) -> SpannedValue {
    key.iter().rev().fold(value, |value, part| SpannedValue {
        line: 1,
        column: 1,
        kind: SpannedKind::Map(vec![SpannedEntry {
            key: part.clone(),
            line: 1,
            column: 1,
            value,
        }]),
    })
}

fn to_node(value: &Value) -> SpannedValue {
    let kind = match value {
        Value::Array(items) => SpannedKind::List(items.iter().map(to_node).collect()),
        Value::Object(map) => SpannedKind::Map(
            map.iter()
                .map(|(key, value)| SpannedEntry {
                    key: key.clone(),
                    line: 1,
                    column: 1,
                    value: to_node(value),
                })
                .collect(),
        ),
        scalar => SpannedKind::Scalar(scalar.clone()),
    };
    SpannedValue {
        line: 1,
        column: 1,
        kind,
    }
}
