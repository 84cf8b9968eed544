//! Project configuration: the settings that a project may always set, and those that need the
//! user's trust.
//!
//! The author of a project's file and of the folders that it names is unknown. Until the user
//! trusts them, they cannot spend money, send or store data, loosen a limit or change what a model
//! reads. Afterwards exactly the trusted content is used: the files are read once, beneath the
//! project's root, and identified by their content.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lango_documents::parse::content_hash;
use lango_domain::spanned::{self, SchemaLookup, SpannedEntry, SpannedKind, SpannedValue};
use lango_files::FolderReader;
use lango_team::{MarkdownFolder, MarkdownFolderError, agent_files, prompt_files};
use lango_text::sanitize;
use serde_json::{Value, json};

use super::redaction;

/// The settings that any project may set. All others, including new ones, are guarded until the
/// project is trusted. Delegation rounds are bounded by `agent.limits`, and the router only chooses
/// between existing agents.
const ALLOWED: [&str; 3] = [
    "agent.maxDelegationRounds",
    "agent.router",
    "agent.routerConfidence",
];

/// The settings that name a folder with files for models, and the function that reads the folder.
const FOLDERS: [(&str, ReadFolder); 2] = [
    ("agent.promptsDir", prompt_files),
    ("agent.agentsDir", agent_files),
];
type ReadFolder = fn(&FolderReader, &Path) -> Result<MarkdownFolder, MarkdownFolderError>;

/// The maximum number of settings that a warning lists.
const MAX_NAMED: usize = 8;

/// The folders of a trusted project, by the settings that name them.
pub(super) type MarkdownFolders = BTreeMap<&'static str, MarkdownFolder>;

/// The settings of a project's file, split into allowed and guarded ones.
pub(super) struct ProjectSettings {
    pub allowed: SpannedValue,
    pub guarded: SpannedValue,
    /// The guarded settings and their lines.
    names: Vec<(String, usize)>,
}

impl ProjectSettings {
    pub(super) fn new(schema: &Value, node: &SpannedValue) -> Self {
        let mut names = Vec::new();
        let (allowed, guarded) = split_settings(
            ProjectCursor {
                root: schema,
                schema,
                key: "",
            },
            node,
            &mut names,
        );
        Self {
            allowed,
            guarded,
            names,
        }
    }

    pub(super) fn is_all_allowed(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns a one-line warning about the settings that are not used.
    pub(super) fn untrusted_warning(&self, path: &Path, reason: UntrustedReason) -> String {
        let name = |(key, line): &(String, usize)| {
            format!(
                "`{}` (line {line})",
                redaction::redact_secrets(&sanitize::one_line(key))
            )
        };
        let names: Vec<String> = self.names.iter().take(MAX_NAMED).map(name).collect();
        let more = match self.names.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let reason = match reason {
            UntrustedReason::Unconfirmed => "settings not used until you trust this folder",
            UntrustedReason::Changed => {
                "settings not used because they or their files changed after you trusted them"
            }
        };
        let file = sanitize::one_line(&path.to_string_lossy());
        format!(
            "{file}: {reason}: {}{more}; review them with `lango config trust`",
            names.join(", ")
        )
    }
}

/// The reason why guarded settings are not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UntrustedReason {
    Unconfirmed,
    Changed,
}

/// The folders that guarded settings name, and problems with their files.
pub(super) struct ProjectFolders {
    pub folders: MarkdownFolders,
    pub problems: Vec<String>,
}

impl ProjectFolders {
    /// Reads the folders beneath `root`.
    pub(super) fn load(root: &Path, guarded: &SpannedValue) -> Self {
        let settings = guarded.to_value();
        let mut loaded = Self {
            folders: MarkdownFolders::new(),
            problems: Vec::new(),
        };
        for (key, read) in FOLDERS {
            let pointer = format!("/{}", key.replace('.', "/"));
            let Some(folder) = settings
                .pointer(&pointer)
                .and_then(Value::as_str)
                .filter(|path| !path.is_empty())
            else {
                continue;
            };
            match read_folder(root, folder, read) {
                Ok(folder) => {
                    loaded
                        .problems
                        .extend(folder.files.iter().filter_map(|file| {
                            let path =
                                sanitize::one_line(&folder.full_path(file).to_string_lossy());
                            Some(format!("{path}: {}", file_problem(file)?))
                        }));
                    loaded.folders.insert(key, folder);
                }
                Err(reason) => loaded.problems.push(format!("`{key}`: {reason}")),
            }
        }
        loaded
    }

    /// Returns a fingerprint of the guarded settings and the content of every file, or none if a
    /// file cannot be used.
    pub(super) fn fingerprint(&self, guarded: &SpannedValue) -> Option<String> {
        if !self.problems.is_empty() {
            return None;
        }
        let hashes = |folder: &MarkdownFolder| -> Vec<Value> {
            let file = |file: &lango_team::MarkdownFile| {
                let content = file.content.as_deref().unwrap_or_default();
                json!([
                    content_hash(file.path.as_os_str().as_encoded_bytes()),
                    content_hash(content)
                ])
            };
            folder.files.iter().map(file).collect()
        };
        let files: BTreeMap<&str, Vec<Value>> = self
            .folders
            .iter()
            .map(|(key, folder)| (*key, hashes(folder)))
            .collect();
        let all = json!({ "settings": guarded.to_value(), "files": files });
        Some(content_hash(all.to_string().as_bytes()))
    }
}

fn read_folder(root: &Path, path: &str, read: ReadFolder) -> Result<MarkdownFolder, String> {
    if path.contains("${") {
        return Err("variables are not allowed in the folder names of a project".to_owned());
    }
    let full_path: PathBuf = root.join(path);
    let folder =
        FolderReader::open_beneath(root, Path::new(path)).map_err(|error| error.to_string())?;
    read(&folder, &full_path).map_err(|error| error.to_string())
}

fn file_problem(file: &lango_team::MarkdownFile) -> Option<String> {
    match &file.content {
        Ok(content) => std::str::from_utf8(content)
            .is_err()
            .then(|| "not valid UTF-8".to_owned()),
        Err(error) => Some(error.to_string()),
    }
}

/// A position in the settings.
#[derive(Clone, Copy)]
struct ProjectCursor<'a> {
    root: &'a Value,
    schema: &'a Value,
    key: &'a str,
}

/// Splits a table into allowed and guarded settings. An empty table is not reported.
fn split_settings(
    cursor: ProjectCursor<'_>,
    node: &SpannedValue,
    names: &mut Vec<(String, usize)>,
) -> (SpannedValue, SpannedValue) {
    let (mut allowed, mut guarded) = (Vec::new(), Vec::new());
    let entries: &[SpannedEntry] = if let SpannedKind::Map(entries) = &node.kind {
        entries
    } else {
        &[]
    };
    for entry in entries {
        let key = if cursor.key.is_empty() {
            entry.key.clone()
        } else {
            format!("{}.{}", cursor.key, entry.key)
        };
        let group = match spanned::lookup_key(cursor.root, cursor.schema, &entry.key) {
            SchemaLookup::Known(schema) if spanned::is_group(cursor.root, schema) => Some(schema),
            _ => None,
        };
        match (&entry.value.kind, group) {
            (SpannedKind::Map(_), Some(schema)) => {
                let before = names.len();
                let (inner_allowed, inner_guarded) = split_settings(
                    ProjectCursor {
                        schema,
                        key: &key,
                        ..cursor
                    },
                    &entry.value,
                    names,
                );
                allowed.push(SpannedEntry {
                    value: inner_allowed,
                    ..entry.clone()
                });
                if names.len() > before {
                    guarded.push(SpannedEntry {
                        value: inner_guarded,
                        ..entry.clone()
                    });
                }
            }
            (SpannedKind::Scalar(Value::Null), Some(_)) => {}
            _ if ALLOWED.contains(&key.as_str()) && !has_variable(&entry.value) => {
                allowed.push(entry.clone())
            }
            _ => {
                names.push((key, entry.line));
                guarded.push(entry.clone());
            }
        }
    }
    let node = |entries| SpannedValue {
        line: node.line,
        column: node.column,
        kind: SpannedKind::Map(entries),
    };
    (node(allowed), node(guarded))
}

/// Returns true if a value refers to an environment variable, which an untrusted project must not
/// read.
fn has_variable(node: &SpannedValue) -> bool {
    match &node.kind {
        SpannedKind::Scalar(Value::String(text)) => text.contains("${"),
        SpannedKind::Scalar(_) => false,
        SpannedKind::List(items) => items.iter().any(has_variable),
        SpannedKind::Map(entries) => entries.iter().any(|entry| has_variable(&entry.value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::setting_docs;

    /// The settings that are guarded on purpose: whole groups, and single settings of groups with
    /// allowed ones.
    const GUARDED: [&str; 32] = [
        "agent.multiAgent",
        "agent.team",
        "agent.agentsDir",
        "agent.promptsDir",
        "agent.routes",
        "agent.limits",
        "agent.provider",
        "agent.model",
        "agent.models",
        "agent.fallback",
        "providers",
        "prices",
        "server",
        "store",
        "security",
        "tools",
        "embedding",
        "rag",
        "graph",
        "observationalMemory",
        "knowledge",
        "librarian",
        "cron",
        "background",
        "workflow",
        "automation",
        "payment",
        "browser",
        "search",
        "net",
        "a2a",
        "mcp",
    ];

    /// B100
    #[test]
    fn every_setting_is_allowed_or_guarded_on_purpose() {
        let keys: Vec<String> = setting_docs().into_iter().map(|entry| entry.key).collect();
        let is_at_or_below = |key: &str, group: &str| {
            key.strip_prefix(group)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        for key in &keys {
            let allowed = ALLOWED.contains(&key.as_str());
            let guarded = GUARDED.iter().any(|group| is_at_or_below(key, group));
            assert!(allowed != guarded, "`{key}`: add it to ALLOWED or GUARDED");
        }
        for group in ALLOWED.iter().chain(&GUARDED) {
            assert!(
                keys.iter().any(|key| is_at_or_below(key, group)),
                "unknown setting `{group}`"
            );
        }
        for (key, _) in FOLDERS {
            assert!(GUARDED.contains(&key), "{key}");
        }
    }
}
