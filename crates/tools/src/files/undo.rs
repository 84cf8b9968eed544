//! Undoes the changes of a turn.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::AtFlags;
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::atomic::{self, FileAttributes};
use super::confined_open::{self, READ};
use super::journal::{Journal, JournalEntry, JournalTurn, PriorState, to_hex};
use super::text::display_path;
use super::trash::TrashError;
use super::workspace::Workspace;

/// The result of undoing a turn, or a preview of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UndoReport {
    pub turn: String,
    /// Paths restored to their state before the turn.
    pub restored: Vec<String>,
    /// Paths that were not restored, with the reason.
    pub skipped: Vec<(String, String)>,
    /// Commands of the turn. Their effects are not report.
    pub commands: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    #[error("nothing to undo in this workspace")]
    NothingToUndo,
    #[error("cannot undo: Lango has no data folder on this machine")]
    NoJournal,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Changes, each with its journal file.
type JournalEntries = Vec<(PathBuf, JournalEntry)>;

/// The result of undoing one change.
enum UndoOutcome {
    Restored,
    /// The path already was in its old state.
    AlreadyRestored,
    Skipped(String),
}

impl Journal {
    /// Undoes the newest turn with entries below `root`. A turn that only ran commands restores
    /// nothing. Paths that were changed since are skipped and can be retried; paths outside of
    /// `root` are left for an undo in their workspace.
    pub fn undo_last(&self, root: &Path) -> Result<UndoReport, UndoError> {
        let (folder, turn, entries) = self.newest_turn(root)?;
        let workspace = self.workspace(root)?;
        let mut report = UndoReport {
            turn: turn.turn,
            ..UndoReport::default()
        };
        let undoer = Undoer {
            journal: self,
            workspace: &workspace,
            folder: &folder,
        };
        for (entry_file, entry) in entries.iter().rev() {
            if !entry_path(entry).starts_with(workspace.root()) {
                continue;
            }
            if let JournalEntry::Command { line, .. } = entry {
                report.commands.insert(0, line.clone());
                Self::remove_entry(&folder, entry_file)?;
                continue;
            }
            let Some((path, shown)) = relative_path(entry, workspace.root()) else {
                continue;
            };
            match undoer.undo(entry, &path) {
                UndoOutcome::Restored | UndoOutcome::AlreadyRestored => {
                    if !report.restored.contains(&shown) {
                        report.restored.push(shown);
                    }
                    Self::remove_entry(&folder, entry_file)?;
                }
                UndoOutcome::Skipped(reason) => report.skipped.push((shown, reason)),
            }
        }
        Ok(report)
    }

    /// Marks the newest turn as undone without restoring it, so that the next undo takes the turn
    /// before it.
    pub fn skip_last(&self, root: &Path) -> Result<(), UndoError> {
        let (folder, ..) = self.newest_turn(root)?;
        Ok(Self::mark_undone(&folder)?)
    }

    /// Returns what `undo_last` would restore, assuming that nothing was changed since.
    pub fn preview_last(&self, root: &Path) -> Result<UndoReport, UndoError> {
        let (_, turn, entries) = self.newest_turn(root)?;
        let root = root.canonicalize()?;
        let mut report = UndoReport {
            turn: turn.turn,
            ..UndoReport::default()
        };
        for (_, entry) in &entries {
            match (entry, relative_path(entry, &root)) {
                (JournalEntry::Command { line, .. }, _) => report.commands.push(line.clone()),
                (_, Some((_, path))) if !report.restored.contains(&path) => {
                    report.restored.push(path)
                }
                _ => {}
            }
        }
        Ok(report)
    }

    fn newest_turn(
        &self,
        root: &Path,
    ) -> Result<(PathBuf, JournalTurn, JournalEntries), UndoError> {
        if self.folder.is_none() {
            return Err(UndoError::NoJournal);
        }
        let root = root.canonicalize()?;
        let with_entries = self
            .undoable_turns()
            .into_iter()
            .map(|(folder, turn)| (Self::entries(&folder), folder, turn));
        let mut matching = with_entries
            .filter(|(entries, ..)| {
                entries
                    .iter()
                    .any(|(_, entry)| entry_path(entry).starts_with(&root))
            })
            .map(|(entries, folder, turn)| (folder, turn, entries));
        matching.next().ok_or(UndoError::NothingToUndo)
    }

    fn workspace(&self, root: &Path) -> io::Result<Workspace> {
        let data = self.folder.iter().filter_map(|folder| folder.parent());
        Workspace::open(root, data.map(Path::to_owned).collect())
    }
}

struct Undoer<'a> {
    journal: &'a Journal,
    workspace: &'a Workspace,
    /// The folder of the turn with its copies of old contents.
    folder: &'a Path,
}

impl Undoer<'_> {
    fn undo(&self, entry: &JournalEntry, path: &Path) -> UndoOutcome {
        let outcome = match entry {
            JournalEntry::Written { before, after, .. } => self.undo_write(path, before, after),
            JournalEntry::MadeFolder { .. } => self.undo_mkdir(path),
            JournalEntry::Deleted { trash, .. } => self.undo_delete(path, trash),
            JournalEntry::Command { .. } => Ok(UndoOutcome::AlreadyRestored),
        };
        outcome.unwrap_or_else(UndoOutcome::Skipped)
    }

    fn undo_write(
        &self,
        path: &Path,
        before: &PriorState,
        after: &str,
    ) -> Result<UndoOutcome, String> {
        let now = self.current_hash(path)?;
        let is_restored = match (before, &now) {
            (PriorState::Nothing, None) => true,
            (PriorState::Copy { hash, .. }, Some(now)) => hash == now,
            _ => false,
        };
        if is_restored {
            return Ok(UndoOutcome::AlreadyRestored);
        }
        match now {
            None => return Ok(UndoOutcome::Skipped("it was removed since".to_owned())),
            Some(now) if now != after => {
                return Ok(UndoOutcome::Skipped("it was changed since".to_owned()));
            }
            Some(_) => {}
        }
        let (folder, name) = self.open_parent(path)?;
        match before {
            PriorState::TooLarge => {
                return Ok(UndoOutcome::Skipped(
                    "its old content was too large to save".to_owned(),
                ));
            }
            PriorState::Nothing => {
                rustix::fs::unlinkat(&folder, name, AtFlags::empty())
                    .map_err(|error| error.to_string())?;
            }
            PriorState::Copy { file, mode, .. } => {
                let old = std::fs::read(self.folder.join(file))
                    .map_err(|error| format!("cannot read its saved content: {error}"))?;
                let attributes = FileAttributes {
                    mode: Some(*mode),
                    owner: None,
                };
                atomic::write_atomically(&folder, name, &old, attributes)
                    .map_err(|error| error.to_string())?;
            }
        }
        Ok(UndoOutcome::Restored)
    }

    fn undo_mkdir(&self, path: &Path) -> Result<UndoOutcome, String> {
        self.workspace
            .check_not_hidden(&display_path(path), path)
            .map_err(|failure| failure.0)?;
        let Ok(folder) = confined_open::open_no_follow(
            self.workspace.root_fd(),
            parent(path),
            confined_open::DIRECTORY_PATH,
        ) else {
            return Ok(UndoOutcome::AlreadyRestored);
        };
        match rustix::fs::unlinkat(&folder, file_name(path)?, AtFlags::REMOVEDIR) {
            Ok(()) => Ok(UndoOutcome::Restored),
            Err(Errno::NOENT) => Ok(UndoOutcome::AlreadyRestored),
            Err(Errno::NOTEMPTY | Errno::EXIST) => {
                Ok(UndoOutcome::Skipped("the folder is not empty".to_owned()))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    fn undo_delete(&self, path: &Path, id: &str) -> Result<UndoOutcome, String> {
        match self.journal.trash.restore(id) {
            Ok(_) => Ok(UndoOutcome::Restored),
            Err(TrashError::NotFound(_))
                if self.workspace.root().join(path).symlink_metadata().is_ok() =>
            {
                Ok(UndoOutcome::AlreadyRestored)
            }
            Err(TrashError::NotFound(_)) => Ok(UndoOutcome::Skipped(
                "it is no longer in the trash".to_owned(),
            )),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Returns the hash of the current content, or `None` if the file does not exist.
    fn current_hash(&self, path: &Path) -> Result<Option<String>, String> {
        self.workspace
            .check_not_hidden(&display_path(path), path)
            .map_err(|failure| failure.0)?;
        let opened = match confined_open::open_no_follow(self.workspace.root_fd(), path, READ) {
            Ok(opened) => File::from(opened),
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(Errno::LOOP) => return Err("it is a link now".to_owned()),
            Err(error) => return Err(error.to_string()),
        };
        if !opened.metadata().is_ok_and(|metadata| metadata.is_file()) {
            return Err("it is no longer a regular file".to_owned());
        }
        hash_file(opened)
            .map(Some)
            .map_err(|error| error.to_string())
    }

    fn open_parent<'a>(&self, path: &'a Path) -> Result<(std::os::fd::OwnedFd, &'a OsStr), String> {
        let folder = self
            .workspace
            .create_parents(path, |_| Ok(()))
            .map_err(|failure| failure.0)?;
        Ok((folder, file_name(path)?))
    }
}

fn hash_file(mut file: File) -> io::Result<String> {
    use std::io::Read as _;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(to_hex(&digest.finalize())),
            length => digest.update(&buffer[..length]),
        }
    }
}

/// Returns the path of a change relative to the root, and its display form. `None` for commands and
/// for paths outside of the root.
fn relative_path(entry: &JournalEntry, root: &Path) -> Option<(PathBuf, String)> {
    if matches!(entry, JournalEntry::Command { .. }) {
        return None;
    }
    let relative = entry_path(entry).strip_prefix(root).ok()?;
    Some((relative.to_owned(), display_path(relative)))
}

fn entry_path(entry: &JournalEntry) -> &Path {
    match entry {
        JournalEntry::Written { path, .. }
        | JournalEntry::MadeFolder { path }
        | JournalEntry::Deleted { path, .. } => path,
        JournalEntry::Command { folder, .. } => folder,
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn file_name(path: &Path) -> Result<&OsStr, String> {
    path.file_name().ok_or_else(|| "it has no name".to_owned())
}
