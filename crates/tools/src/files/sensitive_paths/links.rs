//! Finds links and repositories through which other programs reach a path and run or obey it.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::FileType;

use super::super::{Workspace, confined_open};
use super::git_repository::GitRepository;
use super::{REPOSITORY_MARKER, REPOSITORY_REASON, SensitivePath};

/// Limits of the walk. A workspace may be huge and the user waits for the approval question, so
/// links beyond them are missed.
const MAX_ENTRIES: usize = 20_000;
const MAX_TIME: Duration = Duration::from_millis(200);
/// The kernel's limit for links in one path.
const MAX_LINKS: usize = 40;
/// Folders that tools fill with generated links and files, which are not sensitive by name.
const TOOL_FOLDERS: [&str; 2] = ["node_modules", "target"];
/// Large parts of a repository that contain nothing git runs.
const GIT_DATA_FOLDERS: [&str; 3] = ["objects", "refs", "logs"];

/// Next to [`REPOSITORY_MARKER`], these files make git read settings.
const GIT_CONFIG_FILES: [&str; 3] = ["config", "config.worktree", "commondir"];

const READ_BY_GIT_REASON: &str = "git runs it or follows its settings";

/// The path that a tool call changes.
pub struct ChangedPath {
    pub path: PathBuf,
    /// True if the change includes everything below the path.
    pub is_folder: bool,
}

impl ChangedPath {
    /// Returns true if this change also affects a real path.
    pub fn affects(&self, path: &Path) -> bool {
        self.path == path || (self.is_folder && path.starts_with(&self.path))
    }
}

impl Workspace {
    /// Checks if other programs reach a real path through a link to it or to its parents, or
    /// through settings that name it.
    pub(super) fn sensitive_by_reference(&self, real: &Path) -> Option<SensitivePath> {
        let is_folder = self.file_type(real) == Some(FileType::Directory);
        let changed = ChangedPath {
            path: self.root().join(real),
            is_folder,
        };
        // The workspace may be inside a repository.
        let above = self
            .root()
            .ancestors()
            .skip(1)
            .filter_map(GitRepository::from_work_tree);
        let found = above
            .into_iter()
            .find_map(|repository| self.sensitive_by_repository(&repository, &changed));
        found.or_else(|| self.sensitive_by_walk(real, &changed))
    }

    /// Searches the parents of the path first, then the workspace, folders near the root first.
    fn sensitive_by_walk(&self, real: &Path, changed: &ChangedPath) -> Option<SensitivePath> {
        let mut folders: VecDeque<PathBuf> = real.ancestors().skip(1).map(Path::to_owned).collect();
        let mut required = folders.len();
        let mut seen = HashSet::new();
        let mut entries = 0;
        let deadline = Instant::now() + MAX_TIME;
        while let Some(folder) = folders.pop_front() {
            if required == 0 && (entries >= MAX_ENTRIES || Instant::now() >= deadline) {
                return None;
            }
            required = required.saturating_sub(1);
            if !seen.insert(folder.clone()) {
                continue;
            }
            let Ok(opened) = confined_open::open_no_follow(
                self.root_fd(),
                &folder,
                confined_open::DIRECTORY_LISTING,
            ) else {
                continue;
            };
            let names = confined_open::read_dir(&opened).unwrap_or_default();
            entries += names.len();
            let repository =
                self.repository_in(&folder, names.iter().map(|(name, _)| name.as_os_str()));
            let found = repository
                .and_then(|repository| self.sensitive_by_repository(&repository, changed));
            let links = names
                .iter()
                .filter(|(_, kind)| matches!(kind, FileType::Symlink | FileType::Unknown));
            let mut links = links.map(|(name, _)| folder.join(name));
            let found = found
                .or_else(|| links.find_map(|link| self.sensitive_through_link(&link, changed)));
            if found.is_some() {
                return found;
            }
            let inner = names
                .iter()
                .filter(|(_, kind)| matches!(kind, FileType::Directory | FileType::Unknown));
            folders.extend(
                inner
                    .map(|(name, _)| folder.join(name))
                    .filter(|path| can_enter(path)),
            );
        }
        None
    }

    fn repository_in<'a>(
        &self,
        folder: &Path,
        names: impl Iterator<Item = &'a OsStr>,
    ) -> Option<GitRepository> {
        let (mut has_marker, mut has_settings, mut has_repository) = (false, false, false);
        for name in names {
            has_marker |= name == REPOSITORY_MARKER;
            has_settings |= GIT_CONFIG_FILES.iter().any(|one| name == *one);
            has_repository |= name == ".git";
        }
        let folder = self.root().join(folder);
        match (has_repository, has_marker && has_settings) {
            (true, _) => GitRepository::from_work_tree(&folder),
            (false, true) => Some(GitRepository::from_folder(folder)),
            (false, false) => None,
        }
    }

    fn sensitive_by_repository(
        &self,
        repository: &GitRepository,
        changed: &ChangedPath,
    ) -> Option<SensitivePath> {
        let relative = |path: &Path| path.strip_prefix(self.root()).unwrap_or(path).to_owned();
        let reference = repository.find_reference(changed)?;
        Some(SensitivePath {
            path: relative(&changed.path),
            reason: READ_BY_GIT_REASON,
            reference: Some(reference.relative(relative)),
        })
    }

    /// Checks if a change affects a path that is sensitive through a link.
    fn sensitive_through_link(&self, link: &Path, changed: &ChangedPath) -> Option<SensitivePath> {
        let target = resolve_target(&self.root().join(link));
        if !target.starts_with(self.root()) {
            return None;
        }
        let visible_path = match changed.path.strip_prefix(&target) {
            Ok(rest) => link.components().chain(rest.components()).collect(),
            Err(_) if changed.affects(&target) => link.to_owned(),
            Err(_) => return None,
        };
        let by_folder = || {
            self.is_in_repository(&visible_path).then(|| SensitivePath {
                path: visible_path.clone(),
                reason: REPOSITORY_REASON,
                reference: None,
            })
        };
        let found = self.sensitive_by_name(&visible_path).or_else(by_folder)?;
        let path = changed
            .path
            .strip_prefix(self.root())
            .unwrap_or(&changed.path)
            .to_owned();
        Some(SensitivePath {
            path,
            reference: Some(PathReference::Link(link.to_owned())),
            ..found
        })
    }
}

/// A reference through which other programs reach a path.
pub enum PathReference {
    Link(PathBuf),
    /// A file that makes a folder a part of a repository.
    Part(PathBuf),
    Setting {
        file: PathBuf,
        key: String,
    },
}

impl PathReference {
    fn relative(self, shorten: impl Fn(&Path) -> PathBuf) -> Self {
        match self {
            Self::Link(path) => Self::Link(shorten(&path)),
            Self::Part(path) => Self::Part(shorten(&path)),
            Self::Setting { file, key } => Self::Setting {
                file: shorten(&file),
                key,
            },
        }
    }
}

fn can_enter(folder: &Path) -> bool {
    let is_one_of = |names: &[&str]| {
        folder
            .file_name()
            .is_some_and(|name| names.iter().any(|one| name == *one))
    };
    let is_in_git = || folder.components().any(|part| part.as_os_str() == ".git");
    let is_excluded = is_one_of(&TOOL_FOLDERS) || (is_one_of(&GIT_DATA_FOLDERS) && is_in_git());
    !is_excluded
}

/// Resolves the links of an absolute path, which need not exist.
pub fn resolve_target(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        if let Ok(real) = path.canonicalize() {
            return real;
        }
        // A dangling link: the change may create its target.
        let next = path.ancestors().find_map(|ancestor| {
            let target = std::fs::read_link(ancestor).ok()?;
            let rest = path.strip_prefix(ancestor).ok()?;
            // Collecting the components drops a trailing slash, which would require a folder.
            Some(
                ancestor
                    .parent()?
                    .join(target)
                    .join(rest)
                    .components()
                    .collect(),
            )
        });
        match next {
            Some(next) => path = next,
            None => break,
        }
    }
    let real = path
        .ancestors()
        .find_map(|ancestor| Some((ancestor.canonicalize().ok()?, ancestor)));
    let (real, ancestor) = real.unwrap_or((PathBuf::new(), Path::new("")));
    let rest = path.strip_prefix(ancestor).unwrap_or(&path);
    rest.components().fold(real, |mut path, part| {
        match part {
            Component::ParentDir => _ = path.pop(),
            part => path.push(part),
        }
        path
    })
}
