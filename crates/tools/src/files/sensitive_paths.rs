//! Paths whose change makes other programs run something. Every change of a path is told here (`intent_of_change`), so that
//! none of them passes for an ordinary change of a file.

mod git_config;
mod git_repository;
mod links;
mod patterns;

use std::os::fd::AsFd;
use std::path::{Component, Path, PathBuf};

use lango_domain::pattern::{Wildcard, matches};
use lango_domain::text::is_hidden;
use lango_domain::{Intent, Safety};
use rustix::fs::{AtFlags, FileType};
use unicode_normalization::UnicodeNormalization;

use super::text::{display_path, sibling_pattern};
use super::{Workspace, confined_open};
use links::PathReference;
use patterns::SENSITIVE_PATTERNS;

/// A workspace may itself be such a folder, as `.git/hooks`; so many names of its own path are looked at.
const ROOT_COMPONENTS: usize = 2;
/// A folder with this file and these parts is a repository for git, whatever its name is.
const REPOSITORY_MARKER: &str = "HEAD";
const REPOSITORY_PARTS: [&str; 11] = [
    "config",
    "config.worktree",
    "commondir",
    "gitdir",
    "hooks",
    "info",
    "modules",
    "objects",
    "refs",
    "reftable",
    "worktrees",
];
const REPOSITORY_REASON: &str =
    "git takes its folder for a repository, and runs what settings and hooks there name";
const CONFIG_REASON: &str = "Lango reads agents, prompts or settings from there";

/// A change, before anybody looked at what its path means to others.
pub(super) struct PlannedChange<'a> {
    /// As it was asked for, relative to the root; links on the way are not followed.
    pub requested: &'a Path,
    /// Where it really lies.
    pub real: &'a Path,
    pub level: Safety,
    pub shows: String,
    /// What rules know it by.
    pub subject: String,
    /// What was found in a folder that goes with everything in it.
    pub inside: Option<SensitivePath>,
}

/// A path that others run or obey, and what comes of it.
pub(super) struct SensitivePath {
    path: PathBuf,
    reason: &'static str,
    /// How others come to it, where its own name does not say so.
    reference: Option<PathReference>,
}

impl SensitivePath {
    fn describe(&self) -> String {
        let path = display_path(&self.path);
        let way = match &self.reference {
            None => return format!("{path} is more than a file: {}", self.reason),
            Some(PathReference::Link(link)) => format!("which {} links to", display_path(link)),
            Some(PathReference::Part(file)) => format!("which {} leads to", display_path(file)),
            Some(PathReference::Setting { file, key }) => {
                format!(
                    "which {} names ({})",
                    display_path(file),
                    display_path(Path::new(key))
                )
            }
        };
        format!("{path}, {way}, is more than a file: {}", self.reason)
    }
}

impl Workspace {
    /// What a change would do, for whoever decides. Where others run or obey what is changed it is dangerous, says why, and
    /// no permission for what lies around it covers it.
    pub(super) fn change_intent(&self, told: PlannedChange<'_>) -> Intent {
        let PlannedChange {
            requested: asked,
            real,
            level,
            shows,
            subject,
            inside,
        } = told;
        if level == Safety::Safe {
            return Intent {
                level,
                shows,
                subject,
                pattern: sibling_pattern(real),
            };
        }
        let found = self
            .find_sensitive(real)
            .or_else(|| self.sensitive_by_name(asked))
            .or(inside);
        let Some(found) = found else {
            return Intent {
                level,
                shows,
                subject,
                pattern: sibling_pattern(real),
            };
        };
        let shows = format!("CAREFUL: {}\n{shows}", found.describe());
        Intent {
            level: Safety::Dangerous,
            shows,
            subject,
            pattern: None,
        }
    }

    /// Whether others run or obey what lies at a real path, by its name, its surroundings, or ways that lead there.
    fn find_sensitive(&self, real: &Path) -> Option<SensitivePath> {
        let by_surroundings = || {
            let is_part = self.is_in_repository(real) || self.is_repository_marker(real);
            is_part.then(|| SensitivePath {
                path: real.to_owned(),
                reason: REPOSITORY_REASON,
                reference: None,
            })
        };
        self.sensitive_by_name(real)
            .or_else(by_surroundings)
            .or_else(|| self.sensitive_by_reference(real))
    }

    /// The same by its name alone.
    fn sensitive_by_name(&self, relative: &Path) -> Option<SensitivePath> {
        let found = |reason| SensitivePath {
            path: relative.to_owned(),
            reason,
            reference: None,
        };
        let absolute = self.root().join(relative);
        if self
            .instruction_paths()
            .iter()
            .any(|path| absolute.starts_with(path) || path.starts_with(&absolute))
        {
            return Some(found(CONFIG_REASON));
        }
        let names = |path: &Path| {
            path.components()
                .filter_map(component_name)
                .collect::<Vec<String>>()
        };
        let root = names(self.root());
        let mut all = root[root.len().saturating_sub(ROOT_COMPONENTS)..].to_vec();
        all.extend(names(relative));
        let is_listed = |path: &str| {
            let parts: Vec<&str> = path.split('/').collect();
            let is_here = |names: &[String]| {
                names
                    .iter()
                    .zip(&parts)
                    .all(|(name, part)| matches(part, name, Wildcard::Anything))
            };
            all.windows(parts.len()).any(is_here)
        };
        let entry = SENSITIVE_PATTERNS
            .iter()
            .find(|entry| entry.paths.iter().any(|path| is_listed(path)))?;
        Some(found(entry.reason))
    }

    /// Whether others run or obey a path in a folder that goes as a whole.
    pub(super) fn sensitive_inside(&self, relative: &Path) -> Option<SensitivePath> {
        let mark = || SensitivePath {
            path: relative.to_owned(),
            reason: REPOSITORY_REASON,
            reference: None,
        };
        self.sensitive_by_name(relative)
            .or_else(|| self.is_repository_marker(relative).then(mark))
    }

    /// A file with which a folder becomes a repository. Folders are called like that for other reasons.
    fn is_repository_marker(&self, relative: &Path) -> bool {
        let is_named = relative.file_name().is_some_and(|name| {
            normalize_name(&name.to_string_lossy()) == REPOSITORY_MARKER.to_lowercase()
        });
        is_named && self.file_type(relative) != Some(FileType::Directory)
    }

    fn is_in_repository(&self, real: &Path) -> bool {
        real.ancestors().skip(1).any(|folder| {
            let part = real
                .strip_prefix(folder)
                .ok()
                .and_then(|rest| rest.components().find_map(component_name));
            part.is_some_and(|part| REPOSITORY_PARTS.contains(&part.as_str()))
                && self
                    .file_type(&folder.join(REPOSITORY_MARKER))
                    .is_some_and(|kind| kind != FileType::Directory)
        })
    }

    fn file_type(&self, relative: &Path) -> Option<FileType> {
        let folder = self.root_fd();
        let found = rustix::fs::statat(folder.as_fd(), relative, AtFlags::SYMLINK_NOFOLLOW);
        found.ok().map(|stat| confined_open::file_type(&stat))
    }
}

fn component_name(component: Component<'_>) -> Option<String> {
    match component {
        Component::Normal(name) => Some(normalize_name(&name.to_string_lossy())),
        _ => None,
    }
}

/// A name as the most forgiving file system takes it: in small letters, in one form of each character, without those that
/// nobody sees, without dots and spaces at its end, and without the name of a stream in it.
fn normalize_name(name: &str) -> String {
    let seen = name
        .chars()
        .filter(|c| !is_hidden(*c))
        .nfkc()
        .flat_map(char::to_lowercase);
    let seen: String = seen.collect();
    let plain = seen
        .split(':')
        .next()
        .unwrap_or(&seen)
        .trim_end_matches(['.', ' ']);
    match plain {
        // Its short name on Windows.
        "git~1" => ".git".to_owned(),
        "" => seen,
        plain => plain.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(root: &Path, path: &str) -> Option<&'static str> {
        let workspace = Workspace::open(root, Vec::new()).unwrap();
        workspace
            .find_sensitive(Path::new(path))
            .map(|finding| finding.reason)
    }

    /// B100
    #[test]
    fn names_are_compared_as_forgiving_file_systems_do() {
        let root = tempfile::tempdir().unwrap();
        for path in [
            ".git",
            ".git/config",
            ".GIT/Config",
            ".git./hooks",
            ".git /hooks",
            ".git. . /x",
            ".git::$INDEX_ALLOCATION/config",
            "GIT~1/config",
            ".g\u{200c}it/config",
            ".gi\u{feff}t/config",
            "．ｇｉｔ/config",
            "deep/down/.Git/config",
            ".GitHub/Workflows/ci.yml",
            "AGENTS.MD",
            "Agents.md ",
            "sub/Claude.md",
            ".VSCode/tasks.json",
            ".cargo/config.toml",
            ".pre-commit-config.yaml",
            "tools/post-checkout",
            "lango.yaml",
            ".helix/languages.toml",
            ".pylintrc",
            "venv/bin/activate",
            "env/bin/activate.fish",
            "venv/Scripts/Activate.ps1",
            ".venv/bin/activate_this.py",
            ".bash_completion",
            "home/.config/starship.toml",
            "home/.config/hypr/hyprland.conf",
            "home/.config/sway/config",
            "home/.config/i3/config",
            "tools/sendemail-validate",
        ] {
            assert!(reason(root.path(), path).is_some(), "{path}");
        }
    }

    /// B100: ordinary work stays ordinary.
    #[test]
    fn build_files_and_sources_are_files() {
        let root = tempfile::tempdir().unwrap();
        for path in [
            "Makefile",
            "package.json",
            "Cargo.toml",
            "build.rs",
            "src/main.rs",
            ".gitignore",
            ".gitkeep",
            ".github/ISSUE_TEMPLATE/bug.md",
            "hooks/use_state.ts",
            "config/app.toml",
            "components/Head/index.tsx",
            "digit/config",
            "my.git.notes",
            "docs/agents/md",
            "README.md",
            ".env.example",
            ".eslintrc.js",
            "eslint.config.mjs",
            "bin/run",
            "scripts/check.sh",
            ".config/app.toml",
            "Dockerfile",
        ] {
            assert_eq!(reason(root.path(), path), None, "{path}");
        }
    }

    #[test]
    fn each_entry_is_written_as_it_is_compared() {
        let mut seen = std::collections::BTreeSet::new();
        for entry in SENSITIVE_PATTERNS {
            assert!(!entry.reason.is_empty());
            for path in entry.paths {
                assert!(
                    path.split('/').all(|part| normalize_name(part) == part),
                    "{path}"
                );
                assert!(seen.insert(path), "{path} stands there twice");
            }
        }
    }

    /// B100
    #[test]
    fn a_workspace_may_itself_be_such_a_folder() {
        let outer = tempfile::tempdir().unwrap();
        for (root, path) in [
            (".git", "config"),
            (".git/hooks", "x"),
            (".github", "workflows/ci.yml"),
        ] {
            let root = outer.path().join(root);
            std::fs::create_dir_all(&root).unwrap();
            assert!(reason(&root, path).is_some(), "{path}");
        }
    }
}
