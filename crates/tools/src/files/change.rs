//! A change of a file's content: planned, previewed, and applied so that it can be undone.

use std::ffi::OsStr;
use std::io::Read as _;
use std::os::fd::AsFd;
use std::path::PathBuf;

use lango_domain::{Intent, Safety, ToolContext, ToolError};
use rustix::fs::{Access, AtFlags, Stat};

use super::atomic::{self, FileAttributes};
use super::diff::{head_and_tail, unified_diff};
use super::sensitive_paths::PlannedChange;
use super::text::{count, display_path, size};
use super::workspace::{OpenedFile, WriteTarget};
use super::{FileTools, Workspace, confined_open};

/// Larger files are neither edited nor stored for undo.
pub const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Limits for the preview of a new file and of a diff in an approval question.
const MAX_SHOWN_LINES: usize = 1_000;
const MAX_DIFF_LINES: usize = 1_000;

/// The content of a file before a change.
pub enum PriorContent {
    Nothing,
    Content {
        bytes: Vec<u8>,
        stat: Stat,
    },
    /// Too large to store for undo.
    TooLarge(Stat),
}

/// A file with its new content, before it is written.
pub struct FileChange {
    /// The requested path, links not followed.
    pub requested: PathBuf,
    /// The real path, relative to the root.
    pub relative: PathBuf,
    pub before: PriorContent,
    pub after: Vec<u8>,
}

impl PriorContent {
    pub fn read(path: &str, existing: Option<OpenedFile>) -> Result<Self, ToolError> {
        let Some(mut opened) = existing else {
            return Ok(Self::Nothing);
        };
        let stat = opened.stat;
        if opened.bytes() > MAX_BYTES {
            return Ok(Self::TooLarge(stat));
        }
        let mut bytes = Vec::with_capacity(opened.bytes() as usize);
        let read = opened
            .file
            .by_ref()
            .take(MAX_BYTES + 1)
            .read_to_end(&mut bytes);
        read.map_err(|error| ToolError(format!("`{path}`: {error}")))?;
        // It may have grown while it was read.
        Ok(if bytes.len() as u64 > MAX_BYTES {
            Self::TooLarge(stat)
        } else {
            Self::Content { bytes, stat }
        })
    }

    fn stat(&self) -> Option<&Stat> {
        match self {
            Self::Nothing => None,
            Self::Content { stat, .. } | Self::TooLarge(stat) => Some(stat),
        }
    }
}

impl FileChange {
    /// Returns the write target of a path. Rejects read-only files, although a new file could
    /// replace them.
    pub fn write_target(workspace: &Workspace, path: &str) -> Result<WriteTarget, ToolError> {
        let target = workspace.write_target(path)?;
        if target.existing.is_some() {
            let allowed = rustix::fs::accessat(
                workspace.root_fd(),
                &target.relative,
                Access::WRITE_OK,
                AtFlags::empty(),
            );
            allowed.map_err(|_| ToolError(format!("`{path}` is read-only")))?;
        }
        Ok(target)
    }

    pub fn is_empty(&self) -> bool {
        matches!(&self.before, PriorContent::Content { bytes, .. } if *bytes == self.after)
    }

    /// Describes the change for the approval policy.
    pub fn intent(&self, workspace: &Workspace) -> Intent {
        let level = match &self.before {
            _ if self.is_empty() => Safety::Safe,
            // A change that cannot be undone is dangerous.
            PriorContent::TooLarge(_) => Safety::Dangerous,
            PriorContent::Nothing | PriorContent::Content { .. } => Safety::Moderate,
        };
        workspace.change_intent(PlannedChange {
            requested: &self.requested,
            real: &self.relative,
            level,
            shows: self.preview(),
            subject: display_path(&self.relative),
            inside: None,
        })
    }

    fn preview(&self) -> String {
        let path = display_path(&self.relative);
        match &self.before {
            _ if self.is_empty() => format!("{path} has exactly this content already"),
            PriorContent::Nothing => {
                let text = String::from_utf8_lossy(&self.after);
                format!("new file {path}\n{}", head_and_tail(&text, MAX_SHOWN_LINES))
            }
            PriorContent::Content { bytes, .. } if bytes.contains(&0) => {
                let text = String::from_utf8_lossy(&self.after);
                let bytes = count(bytes.len() as u64, "byte");
                format!(
                    "{path}, a binary file of {bytes}, becomes\n{}",
                    head_and_tail(&text, MAX_SHOWN_LINES)
                )
            }
            PriorContent::Content { bytes, .. } => self.diff(bytes, MAX_DIFF_LINES),
            PriorContent::TooLarge(stat) => {
                let bytes = size(stat);
                let text = String::from_utf8_lossy(&self.after);
                let start = head_and_tail(&text, MAX_SHOWN_LINES);
                format!("{path}, {bytes} bytes and too large to be restored, becomes\n{start}")
            }
        }
    }

    pub fn diff(&self, before: &[u8], max_lines: usize) -> String {
        let (old, new) = (
            String::from_utf8_lossy(before),
            String::from_utf8_lossy(&self.after),
        );
        unified_diff(&self.relative, &old, &new, max_lines)
    }

    /// Records the old content in the journal, then writes. Fails without writing if it cannot be
    /// recorded.
    pub fn apply(&self, files: &FileTools, context: &ToolContext) -> Result<(), ToolError> {
        let workspace = &files.workspace;
        let journal = &files.undo_storage.journal;
        let folder = workspace.create_parents(&self.relative, |created| {
            journal
                .record_mkdir(context, &workspace.root().join(created))
                .map(drop)
        })?;
        let path = display_path(&self.relative);
        let name = self
            .relative
            .file_name()
            .ok_or_else(|| ToolError(format!("`{path}` does not name a file")))?;
        self.check_unchanged(&folder, name)?;
        let pending =
            journal.record_write(context, &workspace.root().join(&self.relative), self)?;
        let attributes = self
            .before
            .stat()
            .map(FileAttributes::from_stat)
            .unwrap_or_default();
        atomic::write_atomically(&folder, name, &self.after, attributes).map_err(|error| {
            pending.remove();
            ToolError(format!("`{path}` could not be written: {error}"))
        })
    }

    /// Rejects the write if another program changed the file since it was read.
    fn check_unchanged(&self, folder: impl AsFd, name: &OsStr) -> Result<(), ToolError> {
        let version = |stat: &Stat| (stat.st_ino, stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
        let now = confined_open::lstat(folder, name).ok();
        if now.as_ref().map(version) == self.before.stat().map(version) {
            return Ok(());
        }
        Err(ToolError(format!(
            "`{}` was changed by another program since it was read; read it again",
            display_path(&self.relative)
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::UndoStorage;
    use lango_domain::event::{CallId, Principal, SessionId, TurnId};
    use lango_domain::{AgentName, ToolOutputSink};

    fn context() -> ToolContext {
        ToolContext {
            session: SessionId::new("s"),
            principal: Principal::local(),
            turn: TurnId::new("t1"),
            agent: AgentName::new("operator").unwrap(),
            call: CallId::new("c1"),
            label: Default::default(),
            typed_addresses: Vec::new(),
            output_sink: ToolOutputSink::disconnected(),
            redactor: Default::default(),
        }
    }

    #[test]
    fn keeps_concurrent_changes_of_other_programs() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a.txt");
        std::fs::write(&path, "old").unwrap();
        let workspace = Workspace::open(temp.path(), Vec::new()).unwrap();
        let files = FileTools {
            workspace,
            undo_storage: UndoStorage::in_folder(None),
        };
        for name in ["a.txt", "new.txt"] {
            let target = FileChange::write_target(&files.workspace, name).unwrap();
            let before = PriorContent::read(name, target.existing).unwrap();
            let change = FileChange {
                requested: target.requested,
                relative: target.relative,
                before,
                after: b"mine".to_vec(),
            };
            std::fs::write(temp.path().join(name), "theirs").unwrap();
            let failure = change.apply(&files, &context()).unwrap_err();
            assert!(
                failure.0.contains("changed by another program"),
                "{failure}"
            );
            assert_eq!(
                std::fs::read_to_string(temp.path().join(name)).unwrap(),
                "theirs"
            );
        }
    }
}
