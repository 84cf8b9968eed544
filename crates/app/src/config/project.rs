//! A project's own file: what it may set by itself, and what only once the user has confirmed it.
//!
//! The file and the folders that it names came with a project, from whoever made it. So until they are confirmed they
//! decide nothing that could spend, send, keep or loosen anything, or change what a model reads. Afterwards exactly what
//! was confirmed is used: the files are read once, beneath the project's root, and known by their content.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lango_domain::spanned::{self, SchemaLookup, SpannedEntry, SpannedKind, SpannedValue};
use lango_domain::text;
use lango_files::FolderReader;
use lango_knowledge::parse::content_hash;
use lango_team::{MarkdownFolder, MarkdownFolderError, agent_files, prompt_files};
use serde_json::{Value, json};

use super::redaction;

/// What any project may set. Everything else is closed until it is confirmed, new settings among them.
/// How often is delegated is bounded by `agent.limits`, and the router only chooses between agents that are there.
const ALLOWED: [&str; 3] = [
    "agent.maxDelegationRounds",
    "agent.router",
    "agent.routerConfidence",
];

/// Settings that name a folder whose files models read, and how such a folder is read.
const FOLDERS: [(&str, ReadFolder); 2] = [
    ("agent.promptsDir", prompt_files),
    ("agent.agentsDir", agent_files),
];
type ReadFolder = fn(&FolderReader, &Path) -> Result<MarkdownFolder, MarkdownFolderError>;

/// So many settings are named in a warning.
const MAX_NAMED: usize = 8;

/// The folders of a confirmed project, by the settings that name them.
pub(super) type MarkdownFolders = BTreeMap<&'static str, MarkdownFolder>;

/// What a project's file says, apart.
pub(super) struct ProjectSettings {
    pub allowed: SpannedValue,
    pub guarded: SpannedValue,
    /// The closed settings and their lines.
    names: Vec<(String, usize)>,
}

impl ProjectSettings {
    pub(super) fn new(schema: &Value, node: &SpannedValue) -> Self {
        let mut names = Vec::new();
        let (open, closed) = split_settings(
            ProjectCursor {
                root: schema,
                here: schema,
                key: "",
            },
            node,
            &mut names,
        );
        Self {
            allowed: open,
            guarded: closed,
            names,
        }
    }

    pub(super) fn is_all_allowed(&self) -> bool {
        self.names.is_empty()
    }

    /// What is not used, in one line.
    pub(super) fn untrusted_warning(&self, path: &Path, why: UntrustedReason) -> String {
        let name = |(key, line): &(String, usize)| {
            format!(
                "`{}` (line {line})",
                redaction::redact_secrets(&text::one_line(key))
            )
        };
        let names: Vec<String> = self.names.iter().take(MAX_NAMED).map(name).collect();
        let more = match self.names.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let why = match why {
            UntrustedReason::Unconfirmed => "not used until you confirm it for this folder",
            UntrustedReason::Changed => {
                "not used, since it or a file that it names changed after you confirmed it"
            }
        };
        let file = text::one_line(&path.to_string_lossy());
        format!(
            "{file}: {why}: {}{more}; `lango config trust` shows everything",
            names.join(", ")
        )
    }
}

/// Why closed settings are not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UntrustedReason {
    Unconfirmed,
    Changed,
}

/// The files that closed settings name, and what stands against using them.
pub(super) struct ProjectFolders {
    pub folders: MarkdownFolders,
    pub problems: Vec<String>,
}

impl ProjectFolders {
    /// Reads them beneath `root`.
    pub(super) fn load(root: &Path, closed: &SpannedValue) -> Self {
        let said = closed.to_value();
        let mut named = Self {
            folders: MarkdownFolders::new(),
            problems: Vec::new(),
        };
        for (key, read) in FOLDERS {
            let at = format!("/{}", key.replace('.', "/"));
            let Some(folder) = said
                .pointer(&at)
                .and_then(Value::as_str)
                .filter(|path| !path.is_empty())
            else {
                continue;
            };
            match read_folder(root, folder, read) {
                Ok(found) => {
                    named.problems.extend(found.files.iter().filter_map(|file| {
                        let place = text::one_line(&found.full_path(file).to_string_lossy());
                        Some(format!("{place}: {}", file_problem(file)?))
                    }));
                    named.folders.insert(key, found);
                }
                Err(why) => named.problems.push(format!("`{key}`: {why}")),
            }
        }
        named
    }

    /// What is confirmed: the closed settings and the content of every file. Nothing where a file cannot be used.
    pub(super) fn fingerprint(&self, closed: &SpannedValue) -> Option<String> {
        if !self.problems.is_empty() {
            return None;
        }
        let hashed = |folder: &MarkdownFolder| -> Vec<Value> {
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
            .map(|(key, folder)| (*key, hashed(folder)))
            .collect();
        let all = json!({ "settings": closed.to_value(), "files": files });
        Some(content_hash(all.to_string().as_bytes()))
    }
}

fn read_folder(root: &Path, named: &str, read: ReadFolder) -> Result<MarkdownFolder, String> {
    if named.contains("${") {
        return Err("a project's folder is named without variables".to_owned());
    }
    let shown: PathBuf = root.join(named);
    let folder =
        FolderReader::open_beneath(root, Path::new(named)).map_err(|why| why.to_string())?;
    read(&folder, &shown).map_err(|error| error.to_string())
}

fn file_problem(file: &lango_team::MarkdownFile) -> Option<String> {
    match &file.content {
        Ok(content) => std::str::from_utf8(content)
            .is_err()
            .then(|| "it is not valid UTF-8".to_owned()),
        Err(why) => Some(why.to_string()),
    }
}

/// A position in the settings.
#[derive(Clone, Copy)]
struct ProjectCursor<'a> {
    root: &'a Value,
    here: &'a Value,
    key: &'a str,
}

/// The open and the closed part of a table of settings. A table in which nothing is set says nothing.
fn split_settings(
    place: ProjectCursor<'_>,
    node: &SpannedValue,
    names: &mut Vec<(String, usize)>,
) -> (SpannedValue, SpannedValue) {
    let (mut open, mut closed) = (Vec::new(), Vec::new());
    let entries: &[SpannedEntry] = if let SpannedKind::Map(entries) = &node.kind {
        entries
    } else {
        &[]
    };
    for entry in entries {
        let key = if place.key.is_empty() {
            entry.key.clone()
        } else {
            format!("{}.{}", place.key, entry.key)
        };
        let group = match spanned::lookup_key(place.root, place.here, &entry.key) {
            SchemaLookup::Known(here) if spanned::is_group(place.root, here) => Some(here),
            _ => None,
        };
        match (&entry.value.kind, group) {
            (SpannedKind::Map(_), Some(here)) => {
                let before = names.len();
                let (opened, rest) = split_settings(
                    ProjectCursor {
                        here,
                        key: &key,
                        ..place
                    },
                    &entry.value,
                    names,
                );
                open.push(SpannedEntry {
                    value: opened,
                    ..entry.clone()
                });
                if names.len() > before {
                    closed.push(SpannedEntry {
                        value: rest,
                        ..entry.clone()
                    });
                }
            }
            (SpannedKind::Scalar(Value::Null), Some(_)) => {}
            _ if ALLOWED.contains(&key.as_str()) && !has_variable(&entry.value) => {
                open.push(entry.clone())
            }
            _ => {
                names.push((key, entry.line));
                closed.push(entry.clone());
            }
        }
    }
    let node = |entries| SpannedValue {
        line: node.line,
        kind: SpannedKind::Map(entries),
    };
    (node(open), node(closed))
}

/// What the environment holds is nothing that a project may have before it is confirmed.
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

    /// What is closed on purpose: whole groups, and single settings of groups that are open in part.
    const GUARDED: [&str; 25] = [
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
        "search",
        "net",
        "a2a",
    ];

    /// B100
    #[test]
    fn every_setting_is_open_or_closed_on_purpose() {
        let keys: Vec<String> = setting_docs().into_iter().map(|entry| entry.key).collect();
        let is_at_or_below = |key: &str, named: &str| {
            key.strip_prefix(named)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        for key in &keys {
            let open = ALLOWED.contains(&key.as_str());
            let closed = GUARDED.iter().any(|named| is_at_or_below(key, named));
            assert!(
                open != closed,
                "`{key}`: may a project set it before it is confirmed? Say so in OPEN or CLOSED"
            );
        }
        for named in ALLOWED.iter().chain(&GUARDED) {
            assert!(
                keys.iter().any(|key| is_at_or_below(key, named)),
                "there is no setting `{named}`"
            );
        }
        for (key, _) in FOLDERS {
            assert!(GUARDED.contains(&key), "{key}");
        }
    }
}
