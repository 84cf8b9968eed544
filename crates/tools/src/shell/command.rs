//! A command to run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::command_kind::{CommandKind, classify};

pub struct CommandRequest {
    pub program: Program,
    /// The working directory; must be in the workspace.
    pub folder: PathBuf,
    pub stdin: String,
    /// `None` for the default timeout.
    pub timeout: Option<Duration>,
    /// Variables that are set for this command alone.
    pub env: Vec<(String, String)>,
    /// Folders outside of the workspace that it may read.
    pub extra_read_paths: Vec<PathBuf>,
}

pub enum Program {
    /// A command line for the shell.
    Line(String),
    /// An executable file with arguments, run without a shell.
    File { path: PathBuf, args: Vec<OsString> },
}

impl CommandRequest {
    /// Returns true if the command may start other programs. A read-only command may not, because
    /// one approval can cover many calls of its kind.
    pub(super) fn starts_programs(&self) -> bool {
        match &self.program {
            Program::Line(line) => {
                !matches!(classify(line, &self.folder), Some(CommandKind::ReadOnly(_)))
            }
            Program::File { .. } => true,
        }
    }

    /// Returns the command as a user would type it.
    pub fn command_line(&self) -> String {
        match &self.program {
            Program::Line(line) => line.clone(),
            Program::File { path, args } => {
                let words = [path.display().to_string()].into_iter();
                words
                    .chain(args.iter().map(|arg| arg.to_string_lossy().into_owned()))
                    .collect::<Vec<_>>()
                    .join(" ")
            }
        }
    }

    pub(super) fn argv(&self) -> Vec<String> {
        match &self.program {
            Program::Line(line) => vec![shell_path().to_owned(), "-c".to_owned(), line.clone()],
            Program::File { path, args } => {
                let words = [path.to_string_lossy().into_owned()].into_iter();
                words
                    .chain(args.iter().map(|arg| arg.to_string_lossy().into_owned()))
                    .collect()
            }
        }
    }
}

/// Returns bash if it is installed, because most command lines are written for it, or else the
/// POSIX shell.
fn shell_path() -> &'static str {
    if Path::new("/bin/bash").exists() {
        "/bin/bash"
    } else {
        "/bin/sh"
    }
}
