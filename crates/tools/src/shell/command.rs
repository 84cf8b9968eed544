//! Something to run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::command_kind::{CommandKind, classify};

pub struct CommandRequest {
    pub program: Program,
    /// Where it starts; must lie in the workspace.
    pub folder: PathBuf,
    pub stdin: String,
    /// None: the usual time.
    pub timeout: Option<Duration>,
    /// Folders beyond the workspace that it may read.
    pub extra_read_paths: Vec<PathBuf>,
}

pub enum Program {
    /// A line for the shell.
    Line(String),
    /// A file, run as it is, with arguments.
    File { path: PathBuf, args: Vec<OsString> },
}

impl CommandRequest {
    /// What only reads needs no other program, and gets none: a permission for its kind may cover many such calls.
    pub(super) fn starts_programs(&self) -> bool {
        match &self.program {
            Program::Line(line) => {
                !matches!(classify(line, &self.folder), Some(CommandKind::ReadOnly(_)))
            }
            Program::File { .. } => true,
        }
    }

    /// As one would type it.
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

/// What people type is mostly written for bash; where there is none, the plain shell must do.
fn shell_path() -> &'static str {
    if Path::new("/bin/bash").exists() {
        "/bin/bash"
    } else {
        "/bin/sh"
    }
}
