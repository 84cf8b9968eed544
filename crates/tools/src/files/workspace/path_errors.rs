//! Error messages for paths that cannot be opened.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use lango_domain::ToolError;
use lango_text::suggest::nearest;
use rustix::io::Errno;

use super::super::confined_open::{self, DIRECTORY_LISTING};
use super::super::text::{display_path, truncate};
use super::Workspace;

/// Maximum number of names searched for a similar one.
const MAX_CANDIDATES: usize = 10_000;

impl Workspace {
    /// Returns the error message for a path that could not be opened.
    pub(in crate::files) fn explain(&self, path: &str, relative: &Path, error: Errno) -> ToolError {
        let shown_path = display_path(Path::new(path));
        let root = self.root().display();
        ToolError(match error {
            Errno::NOENT => return self.not_found(&shown_path, relative),
            Errno::XDEV => {
                format!("`{shown_path}` leads out of the workspace {root} through a link")
            }
            Errno::NOTDIR => format!("`{shown_path}` goes through a file, not a folder"),
            Errno::LOOP => {
                format!("`{shown_path}` goes through a link that cannot be followed")
            }
            Errno::ACCESS | Errno::PERM => format!("no permission for `{shown_path}`"),
            Errno::NXIO | Errno::NODEV => not_a_regular_file(&shown_path),
            Errno::NAMETOOLONG => {
                format!("`{}` is too long", truncate(&shown_path, 80))
            }
            Errno::NOSYS => {
                "this kernel cannot confine file access to the workspace; it needs openat2 (Linux 5.6)".to_owned()
            }
            error => format!("`{shown_path}`: {}", io::Error::from(error)),
        })
    }

    /// Returns the error for a missing path, with its first missing folder and a similar name.
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
        let missing_folder = if wrong == relative {
            String::new()
        } else {
            format!(" (no folder `{}`)", display_path(wrong))
        };
        let similar = similar.map(|hint| format!("; {hint}")).unwrap_or_default();
        ToolError(format!(
            "no file or folder `{path}` in the workspace {}{missing_folder}{similar}",
            self.root().display()
        ))
    }

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

pub(in crate::files) fn not_a_regular_file(path: &str) -> String {
    format!("`{path}` is not a regular file but a pipe, a socket or a device")
}
