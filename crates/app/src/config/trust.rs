//! What a project's own file may say: everything, but what loosens the hold on tools, opens a door, or decides who reads
//! requests and where they are kept, only after the user has confirmed it. Otherwise a folder that came from elsewhere could
//! let itself run commands, let others in, or have keys sent to itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lango_domain::located::{Entry, Kind, Node};
use lango_knowledge::reading::content_hash;
use serde_json::Value;

use super::ConfigError;
use crate::environment::Environment;

/// Groups of settings that need it, and single ones of other groups.
const GUARDED: [&str; 9] =
    ["security", "tools", "net", "a2a", "server", "store", "providers", "embedding", "search"];
const GUARDED_WITHIN: [(&str, &[&str]); 2] = [
    ("agent", &["provider", "model", "models", "fallback"]),
    ("observationalMemory", &["provider", "model"]),
];
const FILE: &str = "trusted-projects.json";

/// By the file's path, the hash of what was confirmed of it: there may be keys in it.
type Confirmed = BTreeMap<PathBuf, String>;

/// Takes out what was not confirmed; says what, and where it stands.
pub(super) fn withhold(environment: &Environment, path: &Path, node: &mut Node) -> Vec<String> {
    let asked = guarded(node);
    if asked.as_object().is_none_or(serde_json::Map::is_empty)
        || confirmed(environment).get(path) == Some(&hash(&asked))
    {
        return Vec::new();
    }
    let Kind::Map(entries) = &mut node.kind else { return Vec::new() };
    let mut withheld = take_out(path, "", entries, |key| GUARDED.contains(&key));
    for entry in entries {
        if let Kind::Map(inner) = &mut entry.value.kind {
            let names = within(&entry.key);
            withheld.extend(take_out(path, &format!("{}.", entry.key), inner, |key| names.contains(&key)));
        }
    }
    withheld
}

fn take_out(
    path: &Path,
    group: &str,
    entries: &mut Vec<Entry>,
    is_guarded: impl Fn(&str) -> bool,
) -> Vec<String> {
    let line = |entry: Entry| {
        let (file, Entry { line, key, .. }) = (path.display(), entry);
        format!(
            "{file}:{line}: `{group}{key}` is not used until you confirm it for this folder: `lango config trust`"
        )
    };
    entries.extract_if(.., |entry| is_guarded(&entry.key)).map(line).collect()
}

/// The guarded settings of a group that is not guarded as a whole.
fn within(group: &str) -> &'static [&'static str] {
    GUARDED_WITHIN.iter().find(|(name, _)| *name == group).map_or(&[], |(_, names)| names)
}

/// Confirms what the file says now, and gives it back without keys.
pub(super) fn confirm(environment: &Environment, path: &Path, node: &Node) -> Result<Value, ConfigError> {
    let Some(folder) = environment.data_folder() else {
        return Err(
            ConfigError::new("there is no folder to remember this in").with_hint("set HOME or LANGO_HOME")
        );
    };
    let asked = guarded(node);
    let mut all = confirmed(environment);
    all.insert(path.to_path_buf(), hash(&asked));
    let written = std::fs::create_dir_all(&folder).and_then(|()| {
        std::fs::write(folder.join(FILE), serde_json::to_vec_pretty(&all).unwrap_or_default())
    });
    written.map_err(|error| {
        ConfigError::new(format!("cannot remember this in {}: {error}", folder.display()))
    })?;
    Ok(without_secrets(asked))
}

fn hash(asked: &Value) -> String {
    content_hash(asked.to_string().as_bytes())
}

/// What stands where a key belongs is not shown, unless it only names a variable.
fn without_secrets(value: Value) -> Value {
    const SECRET: [&str; 3] = ["apiKey", "token", "headers"];
    match value {
        Value::Object(map) => {
            let shown = |(key, value): (String, Value)| {
                let value =
                    if SECRET.contains(&key.as_str()) { hidden(value) } else { without_secrets(value) };
                (key, value)
            };
            Value::Object(map.into_iter().map(shown).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_secrets).collect()),
        other => other,
    }
}

fn hidden(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            Value::Object(map.into_iter().map(|(key, value)| (key, hidden(value))).collect())
        }
        Value::String(text) if text.starts_with("${") && text.ends_with('}') => Value::String(text),
        _ => Value::from("***"),
    }
}

fn guarded(node: &Node) -> Value {
    let Value::Object(all) = node.to_value() else { return Value::Null };
    let kept = all.into_iter().filter_map(|(group, value)| match value {
        value if GUARDED.contains(&group.as_str()) => Some((group, value)),
        Value::Object(mut inner) => {
            inner.retain(|key, _| within(&group).contains(&key.as_str()));
            (!inner.is_empty()).then_some((group, Value::Object(inner)))
        }
        _ => None,
    });
    Value::Object(kept.collect())
}

/// Nothing where there is no such file, or none that can be read.
fn confirmed(environment: &Environment) -> Confirmed {
    let file = environment.data_folder().map(|folder| folder.join(FILE));
    let bytes = file.and_then(|file| std::fs::read(file).ok());
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}
