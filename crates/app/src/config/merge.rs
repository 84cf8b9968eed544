//! Merges layers of settings into one value, with the origin of each leaf.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use lango_domain::spanned::{self, KeyErrorKind, SchemaLookup, SpannedKind, SpannedValue};
use lango_text::sanitize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{ConfigError, ConfigLayer, ConfigSource, redaction, variables};
use crate::environment::Environment;

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingOrigin {
    File { path: PathBuf, line: usize },
    Variable(String),
    Set(String),
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Set(key) => write!(f, "--set {key}"),
        }
    }
}

impl ConfigSource {
    fn origin_at(&self, line: usize) -> SettingOrigin {
        match self {
            Self::File(path) => SettingOrigin::File {
                path: path.clone(),
                line,
            },
            Self::Variable(name) => SettingOrigin::Variable(name.clone()),
            Self::Set(key) => SettingOrigin::Set(key.clone()),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct MergedConfig {
    value: Value,
    origins: BTreeMap<String, SettingOrigin>,
    /// Keys whose value was expanded from variables. Errors do not repeat it, since it may be a
    /// secret.
    expanded: BTreeSet<String>,
    schema: Value,
}

impl MergedConfig {
    pub(super) fn new(
        schema: &Value,
        layers: Vec<ConfigLayer>,
        environment: &Environment,
    ) -> Result<Self, ConfigError> {
        let mut merged = Self {
            value: Value::Object(Map::new()),
            schema: schema.clone(),
            ..Self::default()
        };
        for layer in layers {
            let mut leaves = Vec::new();
            collect_leaves(
                SettingCursor {
                    root: schema,
                    schema: Some(schema),
                    path: &[],
                },
                &layer.node,
                layer.node.line,
                &mut leaves,
            );
            for leaf in leaves {
                let origin = layer.source.origin_at(leaf.line);
                let key = leaf.path.join(".");
                let value = expand(schema, &leaf, environment)
                    .map_err(|problem| problem.to_config_error(&origin, &key))?;
                let is_expanded = value != leaf.value && !value.is_null();
                merged.set_leaf(&leaf.path, value, origin);
                if is_expanded {
                    merged.expanded.insert(key);
                }
            }
        }
        Ok(merged)
    }

    /// Deserializes `group` as the settings of one crate, ignoring the keys of other crates.
    pub(super) fn deserialize_group<T: DeserializeOwned + Default>(
        &self,
        group: &str,
    ) -> Result<T, ConfigError> {
        // An empty table is null.
        let Some(value) = self.value.get(group).filter(|value| !value.is_null()) else {
            return Ok(T::default());
        };
        serde_path_to_error::deserialize(value).map_err(|error| {
            let path = [vec![group.to_owned()], spanned::path_parts(error.path())].concat();
            let key = path.join(".");
            let origin = self
                .nearest_origin(&key)
                .map_or(String::new(), |origin| format!("{origin}: "));
            // Do not repeat secrets or the values of variables.
            let reason = if redaction::is_secret(&self.schema, &path) {
                "expected a text or a table of texts".to_owned()
            } else if self.is_expanded(&key) {
                "the value of the variable has the wrong type".to_owned()
            } else {
                redaction::redact_message(&error.inner().to_string())
            };
            ConfigError::new(format!("{origin}`{key}`: {reason}"))
                .with_hint("`lango config schema` prints the type of each setting")
        })
    }

    pub(super) fn origin(&self, key: &str) -> Option<&SettingOrigin> {
        self.origins.get(key)
    }

    pub(super) fn origins_under(&self, key: &str) -> impl Iterator<Item = &SettingOrigin> {
        let is_under = move |known: &str| {
            known
                .strip_prefix(key)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.origins
            .iter()
            .filter(move |(known, _)| is_under(known))
            .map(|(_, origin)| origin)
    }

    /// Sets a leaf. Invariant: a leaf replaces everything at or below its path, including the
    /// origins. Null resets a setting to its default, and so does an empty text for an optional
    /// setting.
    fn set_leaf(&mut self, path: &[String], value: Value, origin: SettingOrigin) {
        let key = path.join(".");
        let child_prefix = format!("{key}.");
        self.origins
            .retain(|known, _| *known != key && !known.starts_with(&child_prefix));
        self.expanded
            .retain(|known| *known != key && !known.starts_with(&child_prefix));
        let Some((last, groups)) = path.split_last() else {
            return;
        };
        let mut current = &mut self.value;
        if value.is_null() {
            let mut groups = groups.iter();
            // Groups that do not exist are not created, since a table cannot be read from null.
            let table = groups.try_fold(current, |table, group| table.get_mut(group));
            if let Some(Value::Object(map)) = table {
                map.remove(last);
            }
            return;
        }
        for group in groups {
            current = &mut ensure_table(current)[group.as_str()];
        }
        ensure_table(current)[last.as_str()] = value;
        self.origins.insert(key, origin);
    }

    /// Returns true if a value at, above or below the key was expanded from a variable.
    fn is_expanded(&self, key: &str) -> bool {
        let is_below = |one: &str, other: &str| {
            one.strip_prefix(other)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.expanded
            .iter()
            .any(|known| is_below(known, key) || is_below(key, known))
    }

    fn nearest_origin(&self, key: &str) -> Option<&SettingOrigin> {
        let mut key = key;
        loop {
            if let Some(origin) = self.origins.get(key) {
                return Some(origin);
            }
            key = key.rsplit_once('.')?.0;
        }
    }
}

/// Turns the value into a table if it is not one.
fn ensure_table(value: &mut Value) -> &mut Value {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value
}

pub(super) fn check_unknown_keys(
    schema: &Value,
    layers: &[ConfigLayer],
) -> Result<(), ConfigError> {
    const MAX_MESSAGES: usize = 10;
    let mut messages = Vec::new();
    let mut hint = None;
    for layer in layers {
        for error in spanned::validate_keys(schema, &layer.node) {
            messages.push(format!(
                "{}: {}",
                layer.source.origin_at(error.line),
                redaction::redact_message(&sanitize::strip_control_chars(&error.message()))
            ));
            if let KeyErrorKind::Unknown {
                suggestion: Some(key),
            } = error.kind
            {
                hint = hint.or(Some(format!("did you mean `{key}`?")));
            }
        }
    }
    if messages.is_empty() {
        return Ok(());
    }
    if messages.len() > MAX_MESSAGES {
        let rest = messages.len() - MAX_MESSAGES;
        messages.truncate(MAX_MESSAGES);
        messages.push(format!("and {rest} more"));
    }
    let hint = hint.unwrap_or_else(|| "`lango config schema` lists every setting".to_owned());
    Err(ConfigError::new(messages.join("\n")).with_hint(hint))
}

struct Leaf {
    path: Vec<String>,
    value: Value,
    line: usize,
}

/// Collects the leaves of a layer. Tables of settings are merged key by key; all other values are
/// replaced.
fn collect_leaves(
    cursor: SettingCursor<'_>,
    node: &SpannedValue,
    line: usize,
    leaves: &mut Vec<Leaf>,
) {
    let is_group = cursor
        .schema
        .is_some_and(|schema| spanned::is_group(cursor.root, schema));
    match &node.kind {
        SpannedKind::Map(entries) if is_group || !entries.is_empty() => {
            for entry in entries {
                let schema = cursor.schema.and_then(|schema| {
                    match spanned::lookup_key(cursor.root, schema, &entry.key) {
                        SchemaLookup::Known(schema) => Some(schema),
                        SchemaLookup::Anything | SchemaLookup::Unknown(_) => None,
                    }
                });
                let path = [cursor.path, std::slice::from_ref(&entry.key)].concat();
                collect_leaves(
                    SettingCursor {
                        root: cursor.root,
                        schema,
                        path: &path,
                    },
                    &entry.value,
                    entry.line,
                    leaves,
                );
            }
        }
        // An empty section sets nothing.
        SpannedKind::Scalar(Value::Null) if is_group => {}
        _ => leaves.push(Leaf {
            path: cursor.path.to_vec(),
            value: node.to_value(),
            line,
        }),
    }
}

/// A position in the settings.
#[derive(Clone, Copy)]
struct SettingCursor<'a> {
    root: &'a Value,
    schema: Option<&'a Value>,
    path: &'a [String],
}

/// An error in a `${NAME}` reference.
enum VariableError {
    Unset(String),
    Unclosed,
}

impl VariableError {
    fn to_config_error(&self, origin: &SettingOrigin, key: &str) -> ConfigError {
        match self {
            Self::Unset(name) => ConfigError::new(format!(
                "{origin}: `{key}` uses the variable ${{{name}}}, which is not set"
            ))
            .with_hint(format!(
                "set the variable {name}, or write $${{{name}}} for the literal text"
            )),
            Self::Unclosed => ConfigError::new(format!(
                "{origin}: `{key}` has a `${{` without a closing `}}`"
            ))
            .with_hint("write $${ for the literal text"),
        }
    }
}

/// Expands `${NAME}` to the value of the variable and `$${` to itself. For settings that are not
/// text, the result is parsed as JSON.
fn expand(schema: &Value, leaf: &Leaf, environment: &Environment) -> Result<Value, VariableError> {
    match &leaf.value {
        Value::String(text) if text.contains("${") => {
            let expanded = expand_text(text, environment)?;
            Ok(variables::parse_value(schema, &leaf.path, &expanded))
        }
        Value::String(text) if text.is_empty() && variables::is_optional(schema, &leaf.path) => {
            Ok(Value::Null)
        }
        other => expand_within(other, environment),
    }
}

fn expand_within(value: &Value, environment: &Environment) -> Result<Value, VariableError> {
    Ok(match value {
        Value::String(text) => Value::String(expand_text(text, environment)?),
        Value::Array(items) => Value::Array(
            items
                .iter()
                .map(|item| expand_within(item, environment))
                .collect::<Result<_, _>>()?,
        ),
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(key, item)| Ok((key.clone(), expand_within(item, environment)?)))
                .collect::<Result<_, VariableError>>()?,
        ),
        other => other.clone(),
    })
}

fn expand_text(text: &str, environment: &Environment) -> Result<String, VariableError> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, reference) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('$') {
            expanded.push_str(before);
            expanded.push_str("${");
            rest = &reference[2..];
            continue;
        }
        let end = reference.find('}').ok_or(VariableError::Unclosed)?;
        let name = &reference[2..end];
        expanded.push_str(before);
        expanded.push_str(
            environment
                .variables
                .get(name)
                .ok_or_else(|| VariableError::Unset(name.to_owned()))?,
        );
        rest = &reference[end + 1..];
    }
    expanded.push_str(rest);
    Ok(expanded)
}
