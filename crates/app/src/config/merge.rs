//! Layers of settings into one value; each leaf remembers who set it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use lango_domain::located::{self, Kind, Node};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{ConfigError, Layer, Source};
use crate::environment::Environment;

/// Where a value was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    File { path: PathBuf, line: usize },
    Variable(String),
    Set(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Set(key) => write!(f, "--set {key}"),
        }
    }
}

impl Source {
    fn at(&self, line: usize) -> Origin {
        match self {
            Self::File(path) => Origin::File { path: path.clone(), line },
            Self::Variable(name) => Origin::Variable(name.clone()),
            Self::Set(key) => Origin::Set(key.clone()),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Merged {
    value: Value,
    origins: BTreeMap<String, Origin>,
}

impl Merged {
    pub(super) fn of(
        schema: &Value,
        layers: Vec<Layer>,
        environment: &Environment,
    ) -> Result<Self, ConfigError> {
        refuse_unknown_keys(schema, &layers)?;
        let mut merged = Self { value: Value::Object(Map::new()), origins: BTreeMap::new() };
        for layer in layers {
            let mut leaves = Vec::new();
            collect_leaves(&layer.node, &mut Vec::new(), layer.node.line, &mut leaves);
            for leaf in leaves {
                let origin = layer.source.at(leaf.line);
                let value = expand(leaf.value, environment)
                    .map_err(|name| unset_variable(&origin, &leaf.path.join("."), &name))?;
                merged.put(&leaf.path, value, origin);
            }
        }
        Ok(merged)
    }

    /// What stands under `group`, read as one crate's settings; keys that belong to others are passed over.
    pub(super) fn read<T: DeserializeOwned + Default>(&self, group: &str) -> Result<T, ConfigError> {
        let Some(value) = self.value.get(group) else { return Ok(T::default()) };
        serde_path_to_error::deserialize(value).map_err(|error| {
            let key = match error.path().to_string().as_str() {
                "." => group.to_owned(),
                path => format!("{group}.{path}"),
            };
            let origin = self.nearest_origin(&key).map_or(String::new(), |origin| format!("{origin}: "));
            ConfigError::new(format!("{origin}`{key}`: {}", error.inner()))
                .with_hint("`lango config schema` says what each setting takes")
        })
    }

    pub(super) fn origin(&self, key: &str) -> Option<&Origin> {
        self.origins.get(key)
    }

    pub(super) fn origins_under(&self, key: &str) -> impl Iterator<Item = &Origin> {
        let is_under = move |known: &str| {
            known.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.origins.iter().filter(move |(known, _)| is_under(known)).map(|(_, origin)| origin)
    }

    /// Invariant: a leaf replaces whatever stood at or below its path, and its origin with it.
    fn put(&mut self, path: &[String], value: Value, origin: Origin) {
        let mut here = &mut self.value;
        for part in path {
            if !here.is_object() {
                *here = Value::Object(Map::new());
            }
            let Value::Object(map) = here else { return };
            here = map.entry(part).or_insert(Value::Null);
        }
        *here = value;
        let key = path.join(".");
        let below = format!("{key}.");
        self.origins.retain(|known, _| !known.starts_with(&below));
        self.origins.insert(key, origin);
    }

    fn nearest_origin(&self, key: &str) -> Option<&Origin> {
        let mut key = key;
        loop {
            if let Some(origin) = self.origins.get(key) {
                return Some(origin);
            }
            key = key.rsplit_once('.')?.0;
        }
    }
}

fn refuse_unknown_keys(schema: &Value, layers: &[Layer]) -> Result<(), ConfigError> {
    let mut messages = Vec::new();
    let mut hint = None;
    for layer in layers {
        for unknown in located::unknown_keys(schema, &layer.node) {
            messages.push(format!("{}: {}", layer.source.at(unknown.line), unknown.message()));
            hint = hint.or(unknown.suggestion.map(|near| format!("did you mean `{near}`?")));
        }
    }
    if messages.is_empty() {
        return Ok(());
    }
    let hint = hint.unwrap_or_else(|| "`lango config schema` lists every setting".to_owned());
    Err(ConfigError::new(messages.join("\n")).with_hint(hint))
}

struct Leaf {
    path: Vec<String>,
    value: Value,
    line: usize,
}

/// Maps are merged key by key, everything else is replaced whole; what is written as null counts as not written.
fn collect_leaves(node: &Node, path: &mut Vec<String>, line: usize, leaves: &mut Vec<Leaf>) {
    match &node.kind {
        Kind::Map(entries) if !entries.is_empty() || path.is_empty() => {
            for entry in entries {
                path.push(entry.key.clone());
                collect_leaves(&entry.value, path, entry.line, leaves);
                path.pop();
            }
        }
        Kind::Scalar(Value::Null) | Kind::Map(_) => {}
        _ => leaves.push(Leaf { path: path.clone(), value: node.to_value(), line }),
    }
}

/// `${NAME}` stands for the variable's value, `$${` for itself. The name of an unset variable is the error.
fn expand(value: Value, environment: &Environment) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => Value::String(expand_text(&text, environment)?),
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| expand(item, environment)).collect::<Result<_, _>>()?)
        }
        Value::Object(map) => Value::Object(
            map.into_iter()
                .map(|(key, item)| Ok((key, expand(item, environment)?)))
                .collect::<Result<_, String>>()?,
        ),
        other => other,
    })
}

fn expand_text(text: &str, environment: &Environment) -> Result<String, String> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        let Some(end) = from.find('}') else { break };
        if let Some(before) = before.strip_suffix('$') {
            expanded.push_str(before);
            expanded.push_str(&from[..=end]);
        } else {
            let name = &from[2..end];
            expanded.push_str(before);
            expanded.push_str(environment.variables.get(name).ok_or(name)?);
        }
        rest = &from[end + 1..];
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn unset_variable(origin: &Origin, key: &str, name: &str) -> ConfigError {
    ConfigError::new(format!("{origin}: `{key}` takes its value from ${{{name}}}, which is not set"))
        .with_hint(format!("set the variable {name}, or write $${{{name}}} if the text itself is meant"))
}
