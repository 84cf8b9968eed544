//! Intents of read access, for approval rules.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use lango_domain::{Intent, Safety, ToolError};
use rustix::fs::{FileType, OFlags};

use super::confined_open::{self, READ};
use super::text::display_path;
use super::workspace::{Workspace, not_a_regular_file};

impl Workspace {
    /// Returns the intent of reading a path. Its subject is the real path.
    pub(super) fn read_intent(&self, path: &str) -> Result<Intent, ToolError> {
        let relative = self.relative(path)?;
        let subject = match self.resolve(&relative, OFlags::PATH | OFlags::CLOEXEC) {
            Ok(opened) => {
                let real = display_path(&self.real_path(path, &opened)?);
                let is_folder = rustix::fs::fstat(&opened)
                    .is_ok_and(|stat| confined_open::file_type(&stat) == FileType::Directory);
                if is_folder { format!("{real}/") } else { real }
            }
            // A dangling link can still be inspected itself.
            Err(error) => match self.find_entry(path) {
                Ok(entry) => display_path(&entry.relative),
                Err(_) => return Err(self.explain(path, &relative, error)),
            },
        };
        Ok(Intent {
            level: Safety::Safe,
            shows: format!("look at {subject}"),
            subject,
            pattern: None,
        })
    }

    /// Returns the real path of a file or folder in the workspace, and its subject for approval
    /// rules.
    pub fn resolve_for_rules(&self, path: &str) -> Result<(PathBuf, String), ToolError> {
        let relative = self.relative(path)?;
        let opened = self.resolve(&relative, OFlags::PATH | OFlags::CLOEXEC);
        let opened = opened.map_err(|error| self.explain(path, &relative, error))?;
        let real = self.real_path(path, &opened)?;
        let stat =
            rustix::fs::fstat(&opened).map_err(|error| self.explain(path, &relative, error))?;
        let subject = match confined_open::file_type(&stat) {
            FileType::Directory => format!("{}/", display_path(&real)),
            FileType::RegularFile => display_path(&real),
            _ => return Err(ToolError(not_a_regular_file(path))),
        };
        Ok((self.root().join(real).components().collect(), subject))
    }

    /// Opens a file at a real path, and returns it with its subject for approval rules. Follows no
    /// link, because a link there would be new.
    pub fn open_file(&self, path: &Path) -> io::Result<(File, String)> {
        let denied = |error: ToolError| io::Error::new(ErrorKind::PermissionDenied, error.0);
        let name = display_path(path);
        let relative = path.strip_prefix(self.root()).map_err(io::Error::other)?;
        let opened = confined_open::open_no_follow(self.root_fd(), relative, READ)?;
        let opened = self.check_regular(&name, opened).map_err(denied)?;
        Ok((opened.file, display_path(&opened.relative)))
    }

    /// Returns true if lists and searches omit this path.
    pub(super) fn is_denied(&self, relative: &Path) -> bool {
        let path = display_path(relative);
        self.denies_path(&path) || self.denies_path(&format!("{path}/"))
    }
}
