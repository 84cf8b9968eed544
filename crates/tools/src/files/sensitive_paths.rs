//! Detects paths whose change makes other programs run something. Every change of a path goes
//! through [`Workspace::change_intent`], so that none of them passes as an ordinary file change.

mod git_config;
mod git_repository;
mod links;
mod patterns;

use std::os::fd::AsFd;
use std::path::{Component, Path, PathBuf};

use lango_domain::pattern::{Wildcard, matches};
use lango_domain::{Intent, Safety};
use lango_text::sanitize::is_hidden;
use rustix::fs::{AtFlags, FileType};
use unicode_normalization::UnicodeNormalization;

use super::text::{display_path, sibling_pattern};
use super::{Workspace, confined_open};
use links::PathReference;
use patterns::SENSITIVE_PATTERNS;

/// Number of trailing components of the root to include, because a workspace may itself be a
/// sensitive folder such as `.git/hooks`.
const ROOT_COMPONENTS: usize = 2;
/// Git treats a folder with this file and these parts as a repository, independent of its name.
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
    "git treats its folder as a repository and runs the programs named in its settings and hooks";
const CONFIG_REASON: &str = "Lango reads agents, prompts or settings from there";

/// A change, before its path is checked for effects on other programs.
pub(super) struct PlannedChange<'a> {
    /// The requested path, relative to the root, links not followed.
    pub requested: &'a Path,
    /// The real path, relative to the root.
    pub real: &'a Path,
    pub level: Safety,
    pub shows: String,
    /// The subject for approval rules.
    pub subject: String,
    /// A sensitive path inside a folder that is changed as a whole.
    pub inside: Option<SensitivePath>,
}

/// A path that other programs run or obey, with the consequence of changing it.
pub(super) struct SensitivePath {
    path: PathBuf,
    reason: &'static str,
    /// The link or setting that refers to it, if its own name is not sensitive.
    reference: Option<PathReference>,
}

impl SensitivePath {
    fn describe(&self) -> String {
        let path = display_path(&self.path);
        let reference = match &self.reference {
            None => return format!("{path} is a sensitive path: {}", self.reason),
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
        format!("{path}, {reference}, is a sensitive path: {}", self.reason)
    }
}

impl Workspace {
    /// Returns the intent of a change for the approval policy. If other programs run or obey the
    /// path, the change is dangerous, its preview says why, and no approval pattern for its folder
    /// covers it.
    pub(super) fn change_intent(&self, change: PlannedChange<'_>) -> Intent {
        let PlannedChange {
            requested,
            real,
            level,
            shows,
            subject,
            inside,
        } = change;
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
            .or_else(|| self.sensitive_by_name(requested))
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

    /// Checks if other programs run or obey a real path, by its name, by its folder, or by
    /// references to it.
    fn find_sensitive(&self, real: &Path) -> Option<SensitivePath> {
        let by_folder = || {
            let is_part = self.is_in_repository(real) || self.is_repository_marker(real);
            is_part.then(|| SensitivePath {
                path: real.to_owned(),
                reason: REPOSITORY_REASON,
                reference: None,
            })
        };
        self.sensitive_by_name(real)
            .or_else(by_folder)
            .or_else(|| self.sensitive_by_reference(real))
    }

    /// Checks a path by its name alone.
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
            let is_match = |names: &[String]| {
                names
                    .iter()
                    .zip(&parts)
                    .all(|(name, part)| matches(part, name, Wildcard::Anything))
            };
            all.windows(parts.len()).any(is_match)
        };
        let entry = SENSITIVE_PATTERNS
            .iter()
            .find(|entry| entry.paths.iter().any(|path| is_listed(path)))?;
        Some(found(entry.reason))
    }

    /// Checks a path in a folder that is changed as a whole.
    pub(super) fn sensitive_inside(&self, relative: &Path) -> Option<SensitivePath> {
        let marker = || SensitivePath {
            path: relative.to_owned(),
            reason: REPOSITORY_REASON,
            reference: None,
        };
        self.sensitive_by_name(relative)
            .or_else(|| self.is_repository_marker(relative).then(marker))
    }

    /// Returns true for a file that makes its folder a repository. Folders of this name have other
    /// purposes.
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

/// Normalizes a name as the most lenient file system compares it: in lower case, in NFKC form,
/// without invisible characters, without trailing dots and spaces, and without the name of a
/// stream.
fn normalize_name(name: &str) -> String {
    let visible = name
        .chars()
        .filter(|c| !is_hidden(*c))
        .nfkc()
        .flat_map(char::to_lowercase);
    let visible: String = visible.collect();
    let plain = visible
        .split(':')
        .next()
        .unwrap_or(&visible)
        .trim_end_matches(['.', ' ']);
    match plain {
        // The short name of `.git` on Windows.
        "git~1" => ".git".to_owned(),
        "" => visible,
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
    fn compares_names_as_lenient_file_systems_do() {
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

    /// B100: build files and sources are ordinary files.
    #[test]
    fn ignores_build_files_and_sources() {
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
    fn patterns_are_normalized_and_unique() {
        let mut seen = std::collections::BTreeSet::new();
        for entry in SENSITIVE_PATTERNS {
            assert!(!entry.reason.is_empty());
            for path in entry.paths {
                assert!(
                    path.split('/').all(|part| normalize_name(part) == part),
                    "{path}"
                );
                assert!(seen.insert(path), "{path} is listed twice");
            }
        }
    }

    /// B100
    #[test]
    fn detects_a_workspace_inside_a_sensitive_folder() {
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
