//! The configuration of a git repository, and the files that git runs or obeys because of it.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use lango_domain::pattern::{Wildcard, matches};

use super::REPOSITORY_PARTS;
use super::git_config::{GitSetting, parse_config, read_config};
use super::links::{ChangedPath, PathReference, resolve_target};

/// Limits of the inspection. Git itself has none, so references beyond them are missed.
const MAX_FILES: usize = 32;
const MAX_WORDS: usize = 2_000;
/// Settings with values that git neither runs nor obeys.
const HARMLESS_KEYS: [&str; 16] = [
    "blame.ignorerevsfile",
    "branch.*",
    "commit.template",
    "core.excludesfile",
    "core.worktree",
    "extensions.*",
    "init.defaultbranch",
    "mailmap.*",
    "remote.*.fetch",
    "remote.*.push",
    "remote.*.pushurl",
    "remote.*.url",
    "submodule.*.active",
    "submodule.*.path",
    "submodule.*.url",
    "user.*",
];
/// Settings that name a folder and apply to its contents.
const FOLDER_KEYS: [&str; 2] = ["core.hookspath", "init.templatedir"];
const QUOTES: [char; 2] = ['"', '\''];
/// Separators of words in a command.
const SEPARATORS: &[char] = &[
    ' ', '\t', '\n', ';', '&', '|', '(', ')', '{', '}', '<', '>', '`', '"', '\'', '=', '!', '$',
    ',', ':',
];
/// In a URL, the text before it names a transport program.
const TRANSPORT_SEPARATOR: &str = "::";

pub struct GitRepository {
    /// The path where git starts to read.
    entry: PathBuf,
    folder: PathBuf,
    /// The folder shared by all work trees.
    shared_folder: PathBuf,
    work_tree: PathBuf,
}

/// A setting with its file.
struct GitSettingEntry {
    file: PathBuf,
    setting: GitSetting,
}

impl GitRepository {
    /// Returns the repository of a work tree: its `.git` folder, or the folder that a `.git` file
    /// points to.
    pub fn from_work_tree(tree: &Path) -> Option<Self> {
        let entry = tree.join(".git");
        let metadata = std::fs::metadata(&entry).ok()?;
        let folder = if metadata.is_dir() {
            resolve_target(&entry)
        } else {
            let text = read_config(&entry)?;
            resolve_target(&tree.join(text.strip_prefix("gitdir:")?.trim()))
        };
        Some(Self {
            shared_folder: read_shared_folder(&folder),
            entry,
            folder,
            work_tree: tree.to_owned(),
        })
    }

    /// Returns the repository for a folder that is itself one.
    pub fn from_folder(folder: PathBuf) -> Self {
        Self {
            entry: folder.clone(),
            shared_folder: read_shared_folder(&folder),
            work_tree: folder.clone(),
            folder,
        }
    }

    /// Returns the reference through which git reaches the changed path.
    pub fn find_reference(&self, changed: &ChangedPath) -> Option<PathReference> {
        self.find_part(changed)
            .or_else(|| self.find_link(changed))
            .or_else(|| self.find_setting(changed))
    }

    /// Checks if the change is inside a repository folder that only its work tree, or another part
    /// of it, points to.
    fn find_part(&self, changed: &ChangedPath) -> Option<PathReference> {
        let is_part = |folder: &Path| match changed.path.strip_prefix(folder) {
            Ok(inside) if self.has_work_tree_in(folder) => {
                inside.iter().next().is_some_and(is_part_of_repository)
            }
            Ok(_) => true,
            Err(_) => changed.affects(folder),
        };
        if self.folder != self.entry && is_part(&self.folder) {
            return Some(PathReference::Part(self.entry.clone()));
        }
        let is_shared = self.shared_folder != self.folder && is_part(&self.shared_folder);
        is_shared.then(|| PathReference::Part(self.folder.join("commondir")))
    }

    /// Returns true if the work tree is inside `folder`, next to the parts of the repository.
    fn has_work_tree_in(&self, folder: &Path) -> bool {
        self.work_tree.starts_with(folder)
    }

    fn find_link(&self, changed: &ChangedPath) -> Option<PathReference> {
        let folders = [
            self.shared_folder.join("hooks"),
            self.shared_folder.join("info"),
            self.folder.join("info"),
            self.shared_folder.clone(),
            self.folder.clone(),
        ];
        let entries = folders
            .iter()
            .filter_map(|folder| std::fs::read_dir(folder).ok())
            .flatten()
            .flatten();
        let mut links = entries.filter(|entry| {
            let is_read = entry
                .path()
                .parent()
                .is_none_or(|folder| !self.has_work_tree_in(folder))
                || is_part_of_repository(&entry.file_name());
            is_read && entry.file_type().is_ok_and(|kind| kind.is_symlink())
        });
        links.find_map(|entry| {
            let target = resolve_target(&entry.path());
            let is_target = changed.path.starts_with(&target) || changed.affects(&target);
            is_target.then(|| PathReference::Link(entry.path()))
        })
    }

    fn find_setting(&self, changed: &ChangedPath) -> Option<PathReference> {
        let all = self.load_settings();
        let trees = all
            .iter()
            .filter(|entry| entry.setting.key == "core.worktree")
            .map(|entry| resolve_target(&self.folder.join(&entry.setting.value)));
        let mut bases = vec![
            self.work_tree.clone(),
            self.folder.clone(),
            self.shared_folder.clone(),
        ];
        bases.extend(trees);
        let mut words_left = MAX_WORDS;
        let found = all.into_iter().find(|entry| {
            let is_harmless = HARMLESS_KEYS
                .iter()
                .any(|key| matches(key, &entry.setting.key, Wildcard::Anything))
                && !entry.setting.value.contains(TRANSPORT_SEPARATOR);
            !is_harmless && self.is_referenced(entry, &bases, changed, &mut words_left)
        })?;
        Some(PathReference::Setting {
            file: found.file,
            key: found.setting.key,
        })
    }

    /// Loads all settings that git may read, with included files, regardless of the conditions of
    /// includes.
    fn load_settings(&self) -> Vec<GitSettingEntry> {
        let names = ["config", "config.worktree"];
        let mut files: Vec<PathBuf> = names
            .iter()
            .map(|name| self.shared_folder.join(name))
            .collect();
        files.extend(names.iter().map(|name| self.folder.join(name)));
        let mut seen = HashSet::new();
        let mut all = Vec::new();
        while let Some(file) = files.pop() {
            if seen.len() == MAX_FILES {
                break;
            }
            if !seen.insert(file.clone()) {
                continue;
            }
            for setting in read_config(&file)
                .map(|text| parse_config(&text))
                .unwrap_or_default()
            {
                if setting.is_include() {
                    let named = file
                        .parent()
                        .unwrap_or(&self.folder)
                        .join(expand_home(&setting.value));
                    files.extend(
                        named
                            .parent()
                            .zip(named.file_name())
                            .map(|(folder, name)| resolve_target(folder).join(name)),
                    );
                }
                all.push(GitSettingEntry {
                    file: file.clone(),
                    setting,
                });
            }
        }
        all
    }

    fn is_referenced(
        &self,
        entry: &GitSettingEntry,
        bases: &[PathBuf],
        changed: &ChangedPath,
        words_left: &mut usize,
    ) -> bool {
        let value = entry.setting.value.as_str();
        let config_folder = entry.file.parent().unwrap_or(&self.folder);
        let bases = || bases.iter().map(PathBuf::as_path).chain([config_folder]);
        let mut is_named = |word: &str, is_folder: bool| {
            *words_left = words_left.saturating_sub(1);
            let path = expand_home(word);
            *words_left > 0
                && bases().any(|base| {
                    let named = resolve_target(&base.join(&path));
                    // The work tree itself is not a folder of hooks; hooks are detected by name in
                    // any folder.
                    let is_above =
                        || changed.path.starts_with(&named) && !self.work_tree.starts_with(&named);
                    changed.affects(&named) || (is_folder && is_above())
                })
        };
        if FOLDER_KEYS.contains(&entry.setting.key.as_str()) {
            return is_named(value, true);
        }
        let mut words = std::iter::once(value)
            .chain(value.split(QUOTES))
            .chain(value.split_whitespace())
            .chain(value.split(SEPARATORS))
            .filter(|word| !word.is_empty());
        words.any(|word| is_named(word, false) || self.is_likely_path(word, changed))
    }

    /// Returns true if a word of a command looks like the path. A command may change its folder
    /// first, or compute the path.
    fn is_likely_path(&self, word: &str, changed: &ChangedPath) -> bool {
        let path: PathBuf = Path::new(word)
            .components()
            .filter(|part| matches!(part, Component::Normal(_)))
            .collect();
        let is_path = word.contains(['.', '/']) && !path.as_os_str().is_empty();
        let inside = changed
            .path
            .strip_prefix(&self.work_tree)
            .ok()
            .filter(|inside| !inside.as_os_str().is_empty());
        let is_longer =
            || !word.starts_with('/') && inside.is_some_and(|inside| path.ends_with(inside));
        is_path && (changed.path.ends_with(&path) || is_longer())
    }
}

fn is_part_of_repository(name: &OsStr) -> bool {
    REPOSITORY_PARTS.iter().any(|part| name == *part)
}

fn read_shared_folder(folder: &Path) -> PathBuf {
    match read_config(&folder.join("commondir")) {
        Some(text) => resolve_target(&folder.join(text.trim())),
        None => folder.to_owned(),
    }
}

/// Replaces a leading `~/` by the home folder.
fn expand_home(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => PathBuf::from(path),
    }
}
