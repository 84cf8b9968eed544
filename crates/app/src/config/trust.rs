//! What a project's own file may say: everything, but what loosens the hold on tools only after the user has confirmed it.
//! Otherwise a folder that came from elsewhere could let itself run commands.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lango_domain::located::{Kind, Node};
use serde_json::Value;

use super::ConfigError;
use crate::environment::Environment;

/// Groups of settings that need it.
const GUARDED: [&str; 4] = ["security", "tools", "net", "a2a"];
const FILE: &str = "trusted-projects.json";

/// By the file's path, what was confirmed of it.
type Confirmed = BTreeMap<PathBuf, Value>;

/// Takes out what was not confirmed; says what, and where it stands.
pub(super) fn withhold(environment: &Environment, path: &Path, node: &mut Node) -> Vec<String> {
    let asked = guarded(node);
    if asked.as_object().is_none_or(serde_json::Map::is_empty)
        || confirmed(environment).get(path) == Some(&asked)
    {
        return Vec::new();
    }
    let Kind::Map(entries) = &mut node.kind else { return Vec::new() };
    let is_guarded = |key: &str| GUARDED.contains(&key);
    let line = |entry: &lango_domain::located::Entry| {
        format!(
            "{}:{}: `{}` is not used until you confirm it for this folder: `lango config trust`",
            path.display(),
            entry.line,
            entry.key
        )
    };
    let withheld = entries.iter().filter(|entry| is_guarded(&entry.key)).map(line).collect();
    entries.retain(|entry| !is_guarded(&entry.key));
    withheld
}

/// Confirms what the file says now, and gives it back.
pub(super) fn confirm(environment: &Environment, path: &Path, node: &Node) -> Result<Value, ConfigError> {
    let Some(folder) = environment.data_folder() else {
        return Err(
            ConfigError::new("there is no folder to remember this in").with_hint("set HOME or LANGO_HOME")
        );
    };
    let asked = guarded(node);
    let mut all = confirmed(environment);
    all.insert(path.to_path_buf(), asked.clone());
    let written = std::fs::create_dir_all(&folder).and_then(|()| {
        std::fs::write(folder.join(FILE), serde_json::to_vec_pretty(&all).unwrap_or_default())
    });
    written.map_err(|error| {
        ConfigError::new(format!("cannot remember this in {}: {error}", folder.display()))
    })?;
    Ok(asked)
}

fn guarded(node: &Node) -> Value {
    let Value::Object(all) = node.to_value() else { return Value::Null };
    Value::Object(all.into_iter().filter(|(key, _)| GUARDED.contains(&key.as_str())).collect())
}

/// Nothing where there is no such file, or none that can be read.
fn confirmed(environment: &Environment) -> Confirmed {
    let file = environment.data_folder().map(|folder| folder.join(FILE));
    let bytes = file.and_then(|file| std::fs::read(file).ok());
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}
