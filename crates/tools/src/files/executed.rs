//! Paths whose change makes other programs run something. Every change of a path is told here (`intent_of_change`), so that
//! none of them passes for an ordinary change of a file.

mod links;
mod repository;
mod settings;
mod table;

use std::os::fd::AsFd;
use std::path::{Component, Path, PathBuf};

use lango_domain::pattern::{Wildcard, matches};
use lango_domain::text::is_hidden;
use lango_domain::{Intent, Safety};
use rustix::fs::{AtFlags, FileType};
use unicode_normalization::UnicodeNormalization;

use super::text::{sibling_pattern, display_path};
use super::{Workspace, beneath};
use links::Way;
use table::ENTRIES;

/// A workspace may itself be such a folder, as `.git/hooks`; so many names of its own path are looked at.
const NAMES_OF_ROOT: usize = 2;
/// A folder with this file and these parts is a repository for git, whatever its name is.
const REPOSITORY_MARK: &str = "HEAD";
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
const REPOSITORY: &str = "git takes its folder for a repository, and runs what settings and hooks there name";
const CONFIGURED: &str = "Lango reads agents, prompts or settings from there";

/// A change, before anybody looked at what its path means to others.
pub(super) struct Told<'a> {
    /// As it was asked for, relative to the root; links on the way are not followed.
    pub asked: &'a Path,
    /// Where it really lies.
    pub real: &'a Path,
    pub level: Safety,
    pub shows: String,
    /// What rules know it by.
    pub subject: String,
    /// What was found in a folder that goes with everything in it.
    pub inside: Option<Finding>,
}

/// A path that others run or obey, and what comes of it.
pub(super) struct Finding {
    path: PathBuf,
    reason: &'static str,
    /// How others come to it, where its own name does not say so.
    way: Option<Way>,
}

impl Finding {
    fn words(&self) -> String {
        let path = display_path(&self.path);
        let way = match &self.way {
            None => return format!("{path} is more than a file: {}", self.reason),
            Some(Way::Link(link)) => format!("which {} links to", display_path(link)),
            Some(Way::Part(file)) => format!("which {} leads to", display_path(file)),
            Some(Way::Setting { file, key }) => {
                format!("which {} names ({})", display_path(file), display_path(Path::new(key)))
            }
        };
        format!("{path}, {way}, is more than a file: {}", self.reason)
    }
}

impl Workspace {
    /// What a change would do, for whoever decides. Where others run or obey what is changed it is dangerous, says why, and
    /// no permission for what lies around it covers it.
    pub(super) fn intent_of_change(&self, told: Told<'_>) -> Intent {
        let Told { asked, real, level, shows, subject, inside } = told;
        if level == Safety::Safe {
            return Intent { level, shows, subject, pattern: sibling_pattern(real) };
        }
        let found = self.executed(real).or_else(|| self.executed_by_name(asked)).or(inside);
        let Some(found) = found else {
            return Intent { level, shows, subject, pattern: sibling_pattern(real) };
        };
        let shows = format!("CAREFUL: {}\n{shows}", found.words());
        Intent { level: Safety::Dangerous, shows, subject, pattern: None }
    }

    /// Whether others run or obey what lies at a real path, by its name, its surroundings, or ways that lead there.
    fn executed(&self, real: &Path) -> Option<Finding> {
        let by_surroundings = || {
            let is_part = self.is_in_repository(real) || self.is_repository_mark(real);
            is_part.then(|| Finding { path: real.to_owned(), reason: REPOSITORY, way: None })
        };
        self.executed_by_name(real).or_else(by_surroundings).or_else(|| self.executed_from_elsewhere(real))
    }

    /// The same by its name alone.
    fn executed_by_name(&self, relative: &Path) -> Option<Finding> {
        let found = |reason| Finding { path: relative.to_owned(), reason, way: None };
        let absolute = self.root().join(relative);
        if self.instructions().iter().any(|path| absolute.starts_with(path) || path.starts_with(&absolute)) {
            return Some(found(CONFIGURED));
        }
        let names = |path: &Path| path.components().filter_map(name_in).collect::<Vec<String>>();
        let root = names(self.root());
        let mut all = root[root.len().saturating_sub(NAMES_OF_ROOT)..].to_vec();
        all.extend(names(relative));
        let is_listed = |path: &str| {
            let parts: Vec<&str> = path.split('/').collect();
            let is_here = |names: &[String]| {
                names.iter().zip(&parts).all(|(name, part)| matches(part, name, Wildcard::Anything))
            };
            all.windows(parts.len()).any(is_here)
        };
        let entry = ENTRIES.iter().find(|entry| entry.paths.iter().any(|path| is_listed(path)))?;
        Some(found(entry.reason))
    }

    /// Whether others run or obey a path in a folder that goes as a whole.
    pub(super) fn executed_inside(&self, relative: &Path) -> Option<Finding> {
        let mark = || Finding { path: relative.to_owned(), reason: REPOSITORY, way: None };
        self.executed_by_name(relative).or_else(|| self.is_repository_mark(relative).then(mark))
    }

    /// A file with which a folder becomes a repository. Folders are called like that for other reasons.
    fn is_repository_mark(&self, relative: &Path) -> bool {
        let is_named = relative
            .file_name()
            .is_some_and(|name| folded(&name.to_string_lossy()) == REPOSITORY_MARK.to_lowercase());
        is_named && self.kind_of(relative) != Some(FileType::Directory)
    }

    fn is_in_repository(&self, real: &Path) -> bool {
        real.ancestors().skip(1).any(|folder| {
            let part = real.strip_prefix(folder).ok().and_then(|rest| rest.components().find_map(name_in));
            part.is_some_and(|part| REPOSITORY_PARTS.contains(&part.as_str()))
                && self.kind_of(&folder.join(REPOSITORY_MARK)).is_some_and(|kind| kind != FileType::Directory)
        })
    }

    fn kind_of(&self, relative: &Path) -> Option<FileType> {
        let folder = self.as_folder();
        let found = rustix::fs::statat(folder.as_fd(), relative, AtFlags::SYMLINK_NOFOLLOW);
        found.ok().map(|stat| beneath::kind(&stat))
    }
}

fn name_in(component: Component<'_>) -> Option<String> {
    match component {
        Component::Normal(name) => Some(folded(&name.to_string_lossy())),
        _ => None,
    }
}

/// A name as the most forgiving file system takes it: in small letters, in one form of each character, without those that
/// nobody sees, without dots and spaces at its end, and without the name of a stream in it.
fn folded(name: &str) -> String {
    let seen = name.chars().filter(|c| !is_hidden(*c)).nfkc().flat_map(char::to_lowercase);
    let seen: String = seen.collect();
    let plain = seen.split(':').next().unwrap_or(&seen).trim_end_matches(['.', ' ']);
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
        workspace.executed(Path::new(path)).map(|finding| finding.reason)
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
        for entry in ENTRIES {
            assert!(!entry.reason.is_empty());
            for path in entry.paths {
                assert!(path.split('/').all(|part| folded(part) == part), "{path}");
                assert!(seen.insert(path), "{path} stands there twice");
            }
        }
    }

    /// B100
    #[test]
    fn a_workspace_may_itself_be_such_a_folder() {
        let outer = tempfile::tempdir().unwrap();
        for (root, path) in [(".git", "config"), (".git/hooks", "x"), (".github", "workflows/ci.yml")] {
            let root = outer.path().join(root);
            std::fs::create_dir_all(&root).unwrap();
            assert!(reason(&root, path).is_some(), "{path}");
        }
    }
}
