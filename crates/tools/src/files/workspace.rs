//! The folder that tools work in, and the border around it.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lango_domain::ToolError;
use lango_domain::suggest::nearest;
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::confined_open::{self, DIRECTORY_LISTING, DIRECTORY_PATH, READ};
use super::limits::WorkspaceLimits;
use super::text::{display_path, size};

/// Among so many names of a folder a similar one is looked for.
const MAX_CANDIDATES: usize = 10_000;

/// A folder whose inside tools may reach, and nothing else; cheap to clone.
#[derive(Clone)]
pub struct Workspace(Arc<WorkspaceInner>);

struct WorkspaceInner {
    root: PathBuf,
    /// The root as it was given: people and models may name it so.
    given_root: PathBuf,
    folder: OwnedFd,
    limits: WorkspaceLimits,
    write_lock: Mutex<()>,
}

/// An open regular file.
pub(super) struct OpenedFile {
    pub file: File,
    /// Where it really lies, relative to the root.
    pub relative: PathBuf,
    pub stat: Stat,
}

/// A name in a folder, whatever it stands for; a link is not followed.
pub(super) struct WorkspaceEntry {
    pub folder: OwnedFd,
    pub name: OsString,
    pub relative: PathBuf,
    pub stat: Stat,
}

/// Where something is to be written.
pub(super) struct WriteTarget {
    /// As it was asked for, links not followed.
    pub requested: PathBuf,
    pub relative: PathBuf,
    pub existing: Option<OpenedFile>,
}

impl Workspace {
    /// The workspace at `root`. No tool touches the `hidden` folders, even where they lie inside.
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

    /// The same with all that is special there.
    pub fn open_with_limits(root: &Path, mut limits: WorkspaceLimits) -> io::Result<Self> {
        let given = std::path::absolute(root)?;
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
            given_root: given,
            folder,
            limits,
            write_lock: Mutex::new(()),
        })))
    }

    /// Its real path.
    pub fn root(&self) -> &Path {
        &self.0.root
    }

    /// The real absolute path of a folder inside.
    pub fn resolve_folder(&self, path: &str) -> Result<PathBuf, ToolError> {
        let (_, relative) = self.open_dir(path)?;
        Ok(if relative.as_os_str().is_empty() {
            self.root().to_owned()
        } else {
            self.root().join(relative)
        })
    }

    /// Whoever holds this reads and writes without others of this process writing in between.
    pub(super) fn write_lock(&self) -> MutexGuard<'_, ()> {
        self.0
            .write_lock
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Folders that are not touched, as far as they lie inside.
    pub(super) fn hidden_inside(&self) -> Vec<PathBuf> {
        self.0
            .limits
            .hidden
            .iter()
            .filter(|path| path.starts_with(self.root()))
            .cloned()
            .collect()
    }

    /// Whether lists and searches leave a path out.
    pub(super) fn denies_path(&self, path: &str) -> bool {
        (self.0.limits.deny_read)(path)
    }

    /// Where Lango itself reads what it obeys.
    pub(super) fn instruction_paths(&self) -> &[PathBuf] {
        &self.0.limits.instruction_paths
    }

    pub(super) fn root_fd(&self) -> impl AsFd + '_ {
        self.0.folder.as_fd()
    }

    /// A folder to list, and where it really lies.
    pub(super) fn open_dir(&self, path: &str) -> Result<(OwnedFd, PathBuf), ToolError> {
        let relative = self.relative(path)?;
        let opened = self
            .resolve(&relative, DIRECTORY_LISTING)
            .map_err(|error| match error {
                Errno::NOTDIR => ToolError(format!("`{path}` is no folder")),
                error => self.explain(path, &relative, error),
            })?;
        let real = self.real_path(path, &opened)?;
        Ok((opened, real))
    }

    /// The real place of a folder; none when nothing is there.
    pub(super) fn resolve_existing(
        &self,
        path: &str,
        relative: &Path,
    ) -> Result<Option<PathBuf>, ToolError> {
        match self.resolve(relative, DIRECTORY_PATH) {
            Ok(folder) => self.real_path(path, &folder).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::NOTDIR) if self.resolve(relative, READ).is_ok() => Err(ToolError(format!(
                "`{path}` is a file, so no folder can be there"
            ))),
            Err(error) => Err(self.explain(path, relative, error)),
        }
    }

    /// A regular file, open for reading.
    pub(super) fn open_regular(&self, path: &str) -> Result<OpenedFile, ToolError> {
        let relative = self.relative(path)?;
        let opened = self
            .resolve(&relative, READ)
            .map_err(|error| self.explain(path, &relative, error))?;
        self.check_regular(path, opened)
    }

    /// A name, without following it when it is a link.
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

    /// Where a file of that path would be written: where links lead that stay inside, or where nothing is yet.
    pub(super) fn write_target(&self, path: &str) -> Result<WriteTarget, ToolError> {
        let relative = self.relative(path)?;
        match self.resolve(&relative, READ) {
            Ok(opened) => {
                let existing = self.check_regular(path, opened)?;
                Ok(WriteTarget {
                    requested: relative,
                    relative: existing.relative.clone(),
                    existing: Some(existing),
                })
            }
            Err(Errno::NOENT) => {
                let real = self.resolve_new(path, &relative)?;
                Ok(WriteTarget {
                    requested: relative,
                    relative: real,
                    existing: None,
                })
            }
            Err(error) => Err(self.explain(path, &relative, error)),
        }
    }

    /// The real place of something that is not there yet; folders on the way may be missing too.
    pub(super) fn resolve_new(&self, path: &str, relative: &Path) -> Result<PathBuf, ToolError> {
        for ancestor in relative.ancestors().skip(1) {
            let folder = match self.resolve(ancestor, DIRECTORY_PATH) {
                Ok(folder) => folder,
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(self.explain(path, relative, error)),
            };
            let rest = relative.strip_prefix(ancestor).unwrap_or(relative);
            if let Some(next) = rest.components().next()
                && let Ok(target) = confined_open::link_target(&folder, next.as_os_str())
            {
                let link = display_path(&ancestor.join(next));
                let nowhere = display_path(&target);
                return Err(ToolError(format!(
                    "`{link}` is a link to `{nowhere}`, which does not exist"
                )));
            }
            let real = self.real_path(path, &folder)?.join(rest);
            self.check_not_hidden(path, &real)?;
            return Ok(real);
        }
        Err(self.explain(path, relative, Errno::NOENT))
    }

    /// The folder around a real path; missing ones are made, each announced before.
    pub(super) fn create_parents(
        &self,
        relative: &Path,
        mut announce: impl FnMut(&Path) -> Result<(), ToolError>,
    ) -> Result<OwnedFd, ToolError> {
        let explain = |error| self.explain(&display_path(relative), relative, error);
        let mut folder = self
            .0
            .folder
            .try_clone()
            .map_err(|error| ToolError(error.to_string()))?;
        let mut path = PathBuf::new();
        for part in relative.parent().unwrap_or(Path::new("")).components() {
            path.push(part);
            let name = Path::new(part.as_os_str());
            folder = match confined_open::open_no_follow(&folder, name, DIRECTORY_PATH) {
                Err(Errno::NOENT) => {
                    self.check_not_hidden(&display_path(relative), &path)?;
                    announce(&path)?;
                    match rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {
                            confined_open::open_no_follow(&folder, name, DIRECTORY_PATH)
                        }
                        Err(error) => Err(error),
                    }
                }
                opened => opened,
            }
            .map_err(explain)?;
        }
        self.real_path(&display_path(relative), &folder)?;
        Ok(folder)
    }

    /// A path as a model gives it, relative to the root and without detours.
    pub(super) fn relative(&self, path: &str) -> Result<PathBuf, ToolError> {
        let root = self.root().display();
        let refuse = |why: &str| {
            Err(ToolError(format!(
                "`{}` {why}",
                display_path(Path::new(path))
            )))
        };
        if path.is_empty() {
            return Err(ToolError(format!(
                "the path is empty; give one relative to the workspace {root}"
            )));
        }
        if path.contains('\0') {
            return refuse("holds a NUL character; no path does");
        }
        if path == "~" || path.starts_with("~/") {
            return refuse(&format!(
                "means a home folder; give a path relative to the workspace {root}"
            ));
        }
        let given = Path::new(path);
        let inside = [&self.0.root, &self.0.given_root]
            .into_iter()
            .find_map(|root| given.strip_prefix(root).ok());
        let outside = || refuse(&format!("is outside the workspace {root}"));
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

    /// Why something did not open, in words that help.
    pub(super) fn explain(&self, path: &str, relative: &Path, error: Errno) -> ToolError {
        let shown_path = display_path(Path::new(path));
        let root = self.root().display();
        ToolError(match error {
            Errno::NOENT => return self.not_found(&shown_path, relative),
            Errno::XDEV => {
                format!("`{shown_path}` leads out of the workspace {root} through a link")
            }
            Errno::NOTDIR => format!("`{shown_path}` goes through a file as if it were a folder"),
            Errno::LOOP => {
                format!("`{shown_path}` goes through a link that cannot be followed here")
            }
            Errno::ACCESS | Errno::PERM => format!("no permission for `{shown_path}`"),
            Errno::NXIO | Errno::NODEV => not_a_regular_file(&shown_path),
            Errno::NAMETOOLONG => {
                format!("`{}` is too long", super::text::truncate(&shown_path, 80))
            }
            Errno::NOSYS => {
                "this kernel cannot keep file access inside the workspace (openat2)".to_owned()
            }
            error => format!("`{shown_path}`: {}", io::Error::from(error)),
        })
    }

    /// Refuses what belongs to Lango.
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
                "`{path}` belongs to Lango itself; tools do not touch it"
            )));
        }
        Ok(())
    }

    /// Opens beneath the root. A link that names an absolute path inside is followed too, though the kernel counts it
    /// as leaving: its real path is opened, and that without any link.
    pub(super) fn resolve(&self, relative: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        match confined_open::open(&self.0.folder, relative, flags) {
            Err(Errno::XDEV) => {
                let inside = self.resolve_links(relative)?;
                confined_open::open_no_follow(&self.0.folder, &inside, flags)
            }
            done => done,
        }
    }

    /// The real path behind links that name absolute paths; only inside, and nothing is said about what is outside.
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
                "`{path}` is a folder; fs_list shows what is in it"
            ))),
            _ => Err(ToolError(not_a_regular_file(path))),
        }
    }

    /// Where it really lies, relative to the root; refused when that is not ours to touch.
    pub(super) fn real_path(&self, path: &str, opened: impl AsFd) -> Result<PathBuf, ToolError> {
        let real = confined_open::real_path(opened).map_err(|error| {
            ToolError(format!(
                "`{path}`: where it really lies is not known: {error}"
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

    /// Nothing there: the first part of the path that is missing, and what has a similar name.
    fn not_found(&self, path: &str, relative: &Path) -> ToolError {
        let mut wrong = relative;
        let mut similar = None;
        for ancestor in relative.ancestors().skip(1) {
            if let Ok(folder) = self.resolve(ancestor, DIRECTORY_LISTING) {
                similar = self.suggest_similar(ancestor, &folder, wrong);
                break;
            }
            wrong = ancestor;
        }
        let place = if wrong == relative {
            String::new()
        } else {
            format!(" (no folder `{}`)", display_path(wrong))
        };
        let similar = similar
            .map(|words| format!("; {words}"))
            .unwrap_or_default();
        ToolError(format!(
            "no file or folder `{path}` in the workspace {}{place}{similar}",
            self.root().display()
        ))
    }
}

impl Workspace {
    fn suggest_similar(&self, parent: &Path, folder: &OwnedFd, wrong: &Path) -> Option<String> {
        let names: Vec<String> = confined_open::read_dir(folder)
            .unwrap_or_default()
            .iter()
            .take(MAX_CANDIDATES)
            .filter(|(name, _)| self.check_not_hidden("", &parent.join(name)).is_ok())
            .map(|(name, _)| display_path(Path::new(name)))
            .collect();
        let name = display_path(Path::new(wrong.file_name()?));
        let near = nearest(&name, names.iter().map(String::as_str));
        let near: Vec<String> = near
            .iter()
            .map(|name| format!("`{}`", display_path(&parent.join(name))))
            .collect();
        (!near.is_empty()).then(|| format!("did you mean {}?", near.join(" or ")))
    }
}

impl OpenedFile {
    pub fn bytes(&self) -> u64 {
        size(&self.stat)
    }
}

pub(super) fn not_a_regular_file(path: &str) -> String {
    format!("`{path}` is no regular file (a pipe, a socket or a device), so it is left alone")
}

/// The real path of what may not exist yet.
fn canonicalize_existing(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for ancestor in path.ancestors() {
        if let Ok(real) = ancestor.canonicalize() {
            return real.join(path.strip_prefix(ancestor).unwrap_or(Path::new("")));
        }
    }
    path
}
