//! Settings from environment variables (`LANGO_AGENT__MULTI_AGENT=false`) and from `--set key=value`.

use lango_domain::spanned::{self, SchemaLookup, SpannedEntry, SpannedKind, SpannedValue};
use serde_json::Value;

use super::redaction::{self, SchemaPosition};
use super::{ConfigError, ConfigLayer, ConfigSource};
use crate::environment::Environment;

const PREFIX: &str = "LANGO_";
/// Between the parts of a key; a variable without it is not a setting.
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
        let said = redaction::redact_secrets(assignment);
        ConfigError::new(format!("--set {said}: not of the form key=value"))
            .with_hint("for example --set agent.multiAgent=false")
    };
    let (key, value) = assignment.split_once('=').ok_or_else(malformed)?;
    let key = key_parts(key.trim());
    if key.iter().any(String::is_empty) {
        return Err(malformed());
    }
    let node = nest(&key, to_node(&parse_value(schema, &key, value)));
    if let Some(place) = SchemaPosition::at_root(schema).find_secret(&node.to_value()) {
        return Err(secret_argument_error(schema, &place));
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
    // A variable is offered only where it means this key.
    let variable = (is_name && variable_key(schema, &name) == key)
        .then(|| format!("set the variable {name}, or "));
    let message = format!(
        "--set {}: a key or password is not taken from the command line, which everybody on this machine can read",
        redaction::redact_secrets(&key.join("."))
    );
    ConfigError::new(message).with_hint(format!(
        "{}write it into your configuration file; `${{NAME}}` there stands for the variable NAME",
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

/// The parts of a dotted key; what stands in quotes is one part, dots and all: `prices."gpt-4.1".input`.
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

/// `LANGO_AGENT__MULTI_AGENT` → `agent.multiAgent`, by what the schema knows; what it does not know is spelled in
/// camelCase, so that a suggestion can be made.
fn variable_key(schema: &Value, name: &str) -> Vec<String> {
    let mut here = Some(schema);
    let mut key = Vec::new();
    for part in name[PREFIX.len()..].split(SEPARATOR) {
        let shapes = here
            .map(|here| spanned::object_schemas(schema, here))
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
        here = here.and_then(|here| match spanned::lookup_key(schema, here, &part) {
            SchemaLookup::Known(next) => Some(next),
            SchemaLookup::Anything | SchemaLookup::Unknown(_) => None,
        });
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

/// Text where a text is wanted, else JSON where it is JSON; `null` where nothing may stand.
pub(super) fn parse_value(schema: &Value, key: &[String], text: &str) -> Value {
    match text {
        "" | "null" if is_optional(schema, key) => Value::Null,
        _ if is_text(schema, key) => Value::from(text),
        _ => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
    }
}

fn is_text(schema: &Value, key: &[String]) -> bool {
    schema_at(schema, key).is_some_and(|here| has_type(here, "string"))
}

/// Whether a setting may be left empty.
pub(super) fn is_optional(schema: &Value, key: &[String]) -> bool {
    schema_at(schema, key).is_some_and(|here| has_type(here, "null"))
}

fn schema_at<'a>(schema: &'a Value, key: &[String]) -> Option<&'a Value> {
    key.iter().try_fold(schema, |here, part| {
        match spanned::lookup_key(schema, here, part) {
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
        kind: SpannedKind::Map(vec![SpannedEntry {
            key: part.clone(),
            line: 1,
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
                    value: to_node(value),
                })
                .collect(),
        ),
        scalar => SpannedKind::Scalar(scalar.clone()),
    };
    SpannedValue { line: 1, kind }
}
