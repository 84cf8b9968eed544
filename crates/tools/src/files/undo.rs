//! Taking back what a turn changed.

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

/// What came of undoing a turn, or would come of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UndoReport {
    pub turn: String,
    /// What is as it was before the turn.
    pub restored: Vec<String>,
    /// What stays as it is, and why.
    pub skipped: Vec<(String, String)>,
    /// Commands of the turn; what they did stays done.
    pub commands: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    #[error("there is nothing to undo here")]
    NothingToUndo,
    #[error("nothing can be undone on this machine: Lango has no folder for its data")]
    NoJournal,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Changes, each with the file it is noted in.
type JournalEntries = Vec<(PathBuf, JournalEntry)>;

/// What taking back one change came to.
enum UndoOutcome {
    Restored,
    /// It is as it was, without doing anything.
    AlreadyRestored,
    Skipped(String),
}

impl Journal {
    /// Takes back the newest turn that did something below `root`; nothing is restored where it only ran commands. What was
    /// changed since is left alone and can be tried again; what lies outside of `root` waits for an undo there.
    pub fn undo_last(&self, root: &Path) -> Result<UndoReport, UndoError> {
        let (folder, turn, entries) = self.newest_turn(root)?;
        let workspace = self.workspace(root)?;
        let mut undone = UndoReport {
            turn: turn.turn,
            ..UndoReport::default()
        };
        let taker = Undoer {
            journal: self,
            workspace: &workspace,
            folder: &folder,
        };
        for (noted, entry) in entries.iter().rev() {
            if !entry_path(entry).starts_with(workspace.root()) {
                continue;
            }
            if let JournalEntry::Command { line, .. } = entry {
                undone.commands.insert(0, line.clone());
                Self::forget(&folder, noted)?;
                continue;
            }
            let Some((path, shown)) = relative_path(entry, workspace.root()) else {
                continue;
            };
            match taker.undo(entry, &path) {
                UndoOutcome::Restored | UndoOutcome::AlreadyRestored => {
                    if !undone.restored.contains(&shown) {
                        undone.restored.push(shown);
                    }
                    Self::forget(&folder, noted)?;
                }
                UndoOutcome::Skipped(why) => undone.skipped.push((shown, why)),
            }
        }
        Ok(undone)
    }

    /// Gives the newest turn up as it is, so that the next undo goes further back.
    pub fn skip_last(&self, root: &Path) -> Result<(), UndoError> {
        let (folder, ..) = self.newest_turn(root)?;
        Ok(Self::mark_undone(&folder)?)
    }

    /// What `undo_last` would take back, as far as nothing was changed since.
    pub fn preview_last(&self, root: &Path) -> Result<UndoReport, UndoError> {
        let (_, turn, entries) = self.newest_turn(root)?;
        let root = root.canonicalize()?;
        let mut undone = UndoReport {
            turn: turn.turn,
            ..UndoReport::default()
        };
        for (_, entry) in &entries {
            match (entry, relative_path(entry, &root)) {
                (JournalEntry::Command { line, .. }, _) => undone.commands.push(line.clone()),
                (_, Some((_, path))) if !undone.restored.contains(&path) => {
                    undone.restored.push(path)
                }
                _ => {}
            }
        }
        Ok(undone)
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
        let mut changing = with_entries
            .filter(|(entries, ..)| {
                entries
                    .iter()
                    .any(|(_, entry)| entry_path(entry).starts_with(&root))
            })
            .map(|(entries, folder, turn)| (folder, turn, entries));
        changing.next().ok_or(UndoError::NothingToUndo)
    }

    fn workspace(&self, root: &Path) -> io::Result<Workspace> {
        let data = self.folder.iter().filter_map(|folder| folder.parent());
        Workspace::open(root, data.map(Path::to_owned).collect())
    }
}

struct Undoer<'a> {
    journal: &'a Journal,
    workspace: &'a Workspace,
    /// Where the turn's copies are.
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
        let is_as_before = match (before, &now) {
            (PriorState::Nothing, None) => true,
            (PriorState::Copy { hash, .. }, Some(now)) => hash == now,
            _ => false,
        };
        if is_as_before {
            return Ok(UndoOutcome::AlreadyRestored);
        }
        match now {
            None => return Ok(UndoOutcome::Skipped("it is gone since".to_owned())),
            Some(now) if now != after => {
                return Ok(UndoOutcome::Skipped("it was changed since".to_owned()));
            }
            Some(_) => {}
        }
        let (folder, name) = self.open_parent(path)?;
        match before {
            PriorState::TooLarge => {
                return Ok(UndoOutcome::Skipped(
                    "it was too large to be kept".to_owned(),
                ));
            }
            PriorState::Nothing => {
                rustix::fs::unlinkat(&folder, name, AtFlags::empty())
                    .map_err(|error| error.to_string())?;
            }
            PriorState::Copy { file, mode, .. } => {
                let old = std::fs::read(self.folder.join(file))
                    .map_err(|error| format!("what was kept of it cannot be read: {error}"))?;
                let like = FileAttributes {
                    mode: Some(*mode),
                    owner: None,
                };
                atomic::write_atomically(&folder, name, &old, like)
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

    /// The hash of a file as it is now; none when there is none.
    fn current_hash(&self, path: &Path) -> Result<Option<String>, String> {
        self.workspace
            .check_not_hidden(&display_path(path), path)
            .map_err(|failure| failure.0)?;
        let opened = match confined_open::open_no_follow(self.workspace.root_fd(), path, READ) {
            Ok(opened) => File::from(opened),
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(Errno::LOOP) => return Err("a link is there now".to_owned()),
            Err(error) => return Err(error.to_string()),
        };
        if !opened.metadata().is_ok_and(|known| known.is_file()) {
            return Err("it is no file any more".to_owned());
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

/// Where a change was, relative to the root, and how that is shown; none when it was elsewhere.
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
