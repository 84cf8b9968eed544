//! The workspace: the folder that the tools are confined to.

mod path_errors;
mod write_target;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lango_domain::ToolError;
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::confined_open::{self, DIRECTORY_LISTING, DIRECTORY_PATH, READ};
use super::limits::WorkspaceLimits;
use super::text::{display_path, size};

pub(super) use path_errors::not_a_regular_file;
pub(super) use write_target::WriteTarget;

/// A folder that tools may access, and nothing outside of it. Cheap to clone.
#[derive(Clone)]
pub struct Workspace(Arc<WorkspaceInner>);

struct WorkspaceInner {
    root: PathBuf,
    /// The root as configured; people and models may use it in paths.
    given_root: PathBuf,
    folder: OwnedFd,
    limits: WorkspaceLimits,
    write_lock: Mutex<()>,
}

/// An open regular file.
pub(super) struct OpenedFile {
    pub file: File,
    /// The real path, relative to the root.
    pub relative: PathBuf,
    pub stat: Stat,
}

/// A name in a folder, of any type; a link is not followed.
pub(super) struct WorkspaceEntry {
    pub folder: OwnedFd,
    pub name: OsString,
    pub relative: PathBuf,
    pub stat: Stat,
}

impl Workspace {
    /// Opens the workspace at `root`. No tool may access the `hidden` folders, even inside of it.
    pub fn open(root: &Path, hidden: Vec<PathBuf>) -> io::Result<Self> {
        Self::open_with_limits(
            root,
            WorkspaceLimits {
                hidden,
                deny_read: Box::new(|_| false),
                instruction_paths: Vec::new(),
            },
        )
    }

    /// Opens the workspace at `root` with restrictions.
    pub fn open_with_limits(root: &Path, mut limits: WorkspaceLimits) -> io::Result<Self> {
        let given_root = std::path::absolute(root)?;
        let root = root.canonicalize()?;
        let folder = rustix::fs::open(&root, DIRECTORY_PATH, Mode::empty())?;
        for path in limits
            .hidden
            .iter_mut()
            .chain(&mut limits.instruction_paths)
        {
            *path = canonicalize_existing(path);
        }
        Ok(Self(Arc::new(WorkspaceInner {
            root,
            given_root,
            folder,
            limits,
            write_lock: Mutex::new(()),
        })))
    }

    /// Returns the real path of the workspace.
    pub fn root(&self) -> &Path {
        &self.0.root
    }

    /// Returns the real absolute path of a folder in the workspace.
    pub fn resolve_folder(&self, path: &str) -> Result<PathBuf, ToolError> {
        let (_, relative) = self.open_dir(path)?;
        Ok(if relative.as_os_str().is_empty() {
            self.root().to_owned()
        } else {
            self.root().join(relative)
        })
    }

    /// Locks the workspace against other writers of this process, so that a read and the write
    /// after it are atomic.
    pub(super) fn write_lock(&self) -> MutexGuard<'_, ()> {
        self.0
            .write_lock
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the hidden folders inside the workspace.
    pub(super) fn hidden_inside(&self) -> Vec<PathBuf> {
        self.0
            .limits
            .hidden
            .iter()
            .filter(|path| path.starts_with(self.root()))
            .cloned()
            .collect()
    }

    /// Returns true if lists and searches omit a path.
    pub(super) fn denies_path(&self, path: &str) -> bool {
        (self.0.limits.deny_read)(path)
    }

    /// Returns the paths from which Lango reads its own settings and instructions.
    pub(super) fn instruction_paths(&self) -> &[PathBuf] {
        &self.0.limits.instruction_paths
    }

    pub(super) fn root_fd(&self) -> impl AsFd + '_ {
        self.0.folder.as_fd()
    }

    /// Opens a folder to list it, and returns its real path.
    pub(super) fn open_dir(&self, path: &str) -> Result<(OwnedFd, PathBuf), ToolError> {
        let relative = self.relative(path)?;
        let opened = self
            .resolve(&relative, DIRECTORY_LISTING)
            .map_err(|error| match error {
                Errno::NOTDIR => ToolError(format!("`{path}` is not a folder")),
                error => self.explain(path, &relative, error),
            })?;
        let real = self.real_path(path, &opened)?;
        Ok((opened, real))
    }

    /// Returns the real path of a folder, or `None` if it does not exist.
    pub(super) fn resolve_existing(
        &self,
        path: &str,
        relative: &Path,
    ) -> Result<Option<PathBuf>, ToolError> {
        match self.resolve(relative, DIRECTORY_PATH) {
            Ok(folder) => self.real_path(path, &folder).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::NOTDIR) if self.resolve(relative, READ).is_ok() => {
                Err(ToolError(format!("`{path}` is a file, not a folder")))
            }
            Err(error) => Err(self.explain(path, relative, error)),
        }
    }

    /// Opens a regular file for reading.
    pub(super) fn open_regular(&self, path: &str) -> Result<OpenedFile, ToolError> {
        let relative = self.relative(path)?;
        let opened = self
            .resolve(&relative, READ)
            .map_err(|error| self.explain(path, &relative, error))?;
        self.check_regular(path, opened)
    }

    /// Finds a name without following it if it is a link.
    pub(super) fn find_entry(&self, path: &str) -> Result<WorkspaceEntry, ToolError> {
        let relative = self.relative(path)?;
        let Some(name) = relative.file_name() else {
            return Err(ToolError(format!(
                "`{path}` is the workspace itself ({})",
                self.root().display()
            )));
        };
        let parent = relative.parent().unwrap_or(Path::new(""));
        let explain = |error| self.explain(path, &relative, error);
        let folder = self.resolve(parent, DIRECTORY_PATH).map_err(explain)?;
        let stat = confined_open::lstat(&folder, name).map_err(explain)?;
        let real = self.real_path(path, &folder)?.join(name);
        self.check_not_hidden(path, &real)?;
        Ok(WorkspaceEntry {
            name: name.to_owned(),
            folder,
            relative: real,
            stat,
        })
    }

    /// Normalizes a path from a model: relative to the root, without `.` and `..`.
    pub(super) fn relative(&self, path: &str) -> Result<PathBuf, ToolError> {
        let root = self.root().display();
        let reject = |reason: &str| {
            Err(ToolError(format!(
                "`{}` {reason}",
                display_path(Path::new(path))
            )))
        };
        if path.is_empty() {
            return Err(ToolError(format!(
                "the path is empty; give one relative to the workspace {root}"
            )));
        }
        if path.contains('\0') {
            return reject("contains a NUL character");
        }
        if path == "~" || path.starts_with("~/") {
            return reject(&format!(
                "refers to a home folder; give a path relative to the workspace {root}"
            ));
        }
        let given = Path::new(path);
        let inside = [&self.0.root, &self.0.given_root]
            .into_iter()
            .find_map(|root| given.strip_prefix(root).ok());
        let outside = || reject(&format!("is outside the workspace {root}"));
        let inside = match inside {
            Some(inside) => inside,
            None if given.is_absolute() => return outside(),
            None => given,
        };
        let mut relative = PathBuf::new();
        for part in inside.components() {
            match part {
                Component::Normal(name) => relative.push(name),
                Component::ParentDir if !relative.pop() => return outside(),
                _ => {}
            }
        }
        Ok(relative)
    }

    /// Rejects paths that belong to Lango.
    pub(super) fn check_not_hidden(&self, path: &str, relative: &Path) -> Result<(), ToolError> {
        let real = self.root().join(relative);
        if self
            .0
            .limits
            .hidden
            .iter()
            .any(|hidden| real.starts_with(hidden))
        {
            return Err(ToolError(format!(
                "`{path}` belongs to Lango itself; tools cannot access it"
            )));
        }
        Ok(())
    }

    /// Opens a path beneath the root. Also follows links to absolute paths inside, which the kernel
    /// rejects: opens their real path, without following any link.
    pub(super) fn resolve(&self, relative: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        match confined_open::open(&self.0.folder, relative, flags) {
            Err(Errno::XDEV) => {
                let inside = self.resolve_links(relative)?;
                confined_open::open_no_follow(&self.0.folder, &inside, flags)
            }
            result => result,
        }
    }

    /// Resolves links to absolute paths inside the workspace. The error reveals nothing about paths
    /// outside.
    fn resolve_links(&self, relative: &Path) -> Result<PathBuf, Errno> {
        for ancestor in relative.ancestors() {
            let path = self.root().join(ancestor);
            match path.canonicalize() {
                Ok(real) => {
                    let inside = real.strip_prefix(self.root()).map_err(|_| Errno::XDEV)?;
                    let rest = relative.strip_prefix(ancestor).unwrap_or(Path::new(""));
                    return Ok(inside.join(rest).components().collect());
                }
                Err(_) if path.is_symlink() => return Err(Errno::XDEV),
                Err(_) => {}
            }
        }
        Err(Errno::XDEV)
    }

    pub(super) fn check_regular(
        &self,
        path: &str,
        opened: OwnedFd,
    ) -> Result<OpenedFile, ToolError> {
        let stat = rustix::fs::fstat(&opened)
            .map_err(|error| self.explain(path, Path::new(path), error))?;
        let relative = self.real_path(path, &opened)?;
        match confined_open::file_type(&stat) {
            FileType::RegularFile => Ok(OpenedFile {
                file: File::from(opened),
                relative,
                stat,
            }),
            FileType::Directory => Err(ToolError(format!(
                "`{path}` is a folder; use fs_list to list it"
            ))),
            _ => Err(ToolError(not_a_regular_file(path))),
        }
    }

    /// Returns the real path, relative to the root. Rejects paths outside of the workspace and
    /// hidden ones.
    pub(super) fn real_path(&self, path: &str, opened: impl AsFd) -> Result<PathBuf, ToolError> {
        let real = confined_open::real_path(opened).map_err(|error| {
            ToolError(format!(
                "cannot determine the real path of `{path}`: {error}"
            ))
        })?;
        let Ok(relative) = real.strip_prefix(self.root()) else {
            let root = self.root().display();
            return Err(ToolError(format!(
                "`{path}` is no longer inside the workspace {root}"
            )));
        };
        self.check_not_hidden(path, relative)?;
        Ok(relative.to_owned())
    }
}

impl OpenedFile {
    pub fn bytes(&self) -> u64 {
        size(&self.stat)
    }
}

/// Returns the real path of a path that may not exist yet.
fn canonicalize_existing(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for ancestor in path.ancestors() {
        if let Ok(real) = ancestor.canonicalize() {
            return real.join(path.strip_prefix(ancestor).unwrap_or(Path::new("")));
        }
    }
    path
}
