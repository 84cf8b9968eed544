//! Resolves paths to write to, and creates their missing parents.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use lango_domain::ToolError;
use rustix::fs::Mode;
use rustix::io::Errno;

use super::super::confined_open::{self, DIRECTORY_PATH, READ};
use super::super::text::display_path;
use super::{OpenedFile, Workspace};

/// The resolved path of a write.
pub(in crate::files) struct WriteTarget {
    /// The requested path, links not followed.
    pub requested: PathBuf,
    pub relative: PathBuf,
    pub existing: Option<OpenedFile>,
}

impl Workspace {
    /// Resolves the path of a file to write. Follows links that stay inside; the file need not
    /// exist.
    pub(in crate::files) fn write_target(&self, path: &str) -> Result<WriteTarget, ToolError> {
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

    /// Returns the real path of a file that does not exist yet. Its parents may be missing too.
    pub(in crate::files) fn resolve_new(
        &self,
        path: &str,
        relative: &Path,
    ) -> Result<PathBuf, ToolError> {
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
                let target = display_path(&target);
                return Err(ToolError(format!(
                    "`{link}` is a link to `{target}`, which does not exist"
                )));
            }
            let real = self.real_path(path, &folder)?.join(rest);
            self.check_not_hidden(path, &real)?;
            return Ok(real);
        }
        Err(self.explain(path, relative, Errno::NOENT))
    }

    /// Opens the parent of a real path. Creates missing folders, and calls `before_create` with
    /// each of them first.
    pub(in crate::files) fn create_parents(
        &self,
        relative: &Path,
        mut before_create: impl FnMut(&Path) -> Result<(), ToolError>,
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
                    before_create(&path)?;
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
}
