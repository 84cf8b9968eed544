//! The undo journal: the state before each change, grouped by turn.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use lango_domain::event::{Principal, SessionId};
use lango_domain::{ToolContext, ToolError};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::change::{FileChange, PriorContent};
use super::private_directory;
use super::trash::Trash;

/// Older turns are removed.
const MAX_TURNS: usize = 50;
const FOLDER: &str = "undo";
const TURN_FILE: &str = "turn.json";
const UNDONE_MARKER: &str = "undone";

/// The data to undo the changes of recent turns. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Journal {
    pub(super) folder: Option<PathBuf>,
    pub(super) trash: Trash,
    write_lock: Arc<Mutex<()>>,
}

/// A turn in the journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct JournalTurn {
    /// The owner of the session. Empty in entries of older versions, which belong to every
    /// principal.
    #[serde(default)]
    pub principal: String,
    pub session: String,
    pub turn: String,
    pub at: Timestamp,
}

/// One change of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "camelCase")]
pub(super) enum JournalEntry {
    Written {
        path: PathBuf,
        before: PriorState,
        after: String,
    },
    MadeFolder {
        path: PathBuf,
    },
    Deleted {
        path: PathBuf,
        trash: String,
    },
    /// It cannot be undone; it is listed when the rest of the turn is undone.
    Command {
        line: String,
        folder: PathBuf,
    },
}

/// The state of a path before a file was written there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "was", rename_all = "camelCase")]
pub(super) enum PriorState {
    Nothing,
    Copy {
        file: String,
        mode: u32,
        hash: String,
    },
    TooLarge,
}

/// An entry recorded before its change; removed if the change fails.
#[derive(Debug)]
#[must_use]
pub(super) struct PendingEntry(Option<PathBuf>);

impl PendingEntry {
    pub fn remove(self) {
        if let Some(path) = self.0 {
            let _ = std::fs::remove_file(path.with_extension("old"));
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Journal {
    /// Stores the journal below `data`. Without a folder, nothing is recorded.
    pub(super) fn in_folder(data: Option<&Path>, trash: Trash) -> Self {
        Self {
            folder: data.map(|data| data.join(FOLDER)),
            trash,
            write_lock: Arc::default(),
        }
    }

    /// Records a command, which cannot be undone.
    pub fn record_command(&self, context: &ToolContext, folder: &Path, line: &str) {
        // The record is informational: a failure to write it does not stop the command.
        let entry = |_| JournalEntry::Command {
            line: line.to_owned(),
            folder: folder.to_owned(),
        };
        let _ = self.append(context, &[], entry);
    }

    pub(super) fn record_write(
        &self,
        context: &ToolContext,
        path: &Path,
        change: &FileChange,
    ) -> Result<PendingEntry, ToolError> {
        let after = hash(&change.after);
        let old: &[u8] = match &change.before {
            PriorContent::Content { bytes, .. } => bytes,
            _ => &[],
        };
        self.record(context, old, |file| {
            let before = match &change.before {
                PriorContent::Nothing => PriorState::Nothing,
                PriorContent::Content { stat, .. } => PriorState::Copy {
                    file,
                    mode: stat.st_mode,
                    hash: hash(old),
                },
                PriorContent::TooLarge(_) => PriorState::TooLarge,
            };
            JournalEntry::Written {
                path: path.to_owned(),
                before,
                after: after.clone(),
            }
        })
    }

    pub(super) fn record_mkdir(
        &self,
        context: &ToolContext,
        path: &Path,
    ) -> Result<PendingEntry, ToolError> {
        self.record(context, &[], |_| JournalEntry::MadeFolder {
            path: path.to_owned(),
        })
    }

    pub(super) fn record_delete(
        &self,
        context: &ToolContext,
        path: &Path,
        id: &str,
    ) -> Result<PendingEntry, ToolError> {
        self.record(context, &[], |_| JournalEntry::Deleted {
            path: path.to_owned(),
            trash: id.to_owned(),
        })
    }

    /// Returns the folders of turns that were not undone, newest first.
    pub(super) fn undoable_turns(&self) -> Vec<(PathBuf, JournalTurn)> {
        let Some(folder) = &self.folder else {
            return Vec::new();
        };
        let mut folders = turn_folders(folder);
        folders.reverse();
        let undoable = folders
            .into_iter()
            .filter(|folder| !folder.join(UNDONE_MARKER).exists());
        undoable
            .filter_map(|folder| {
                private_directory::read_json(&folder.join(TURN_FILE)).map(|turn| (folder, turn))
            })
            .collect()
    }

    /// Returns the changes of a turn that were not undone yet, in order, each with its journal
    /// file.
    pub(super) fn entries(folder: &Path) -> Vec<(PathBuf, JournalEntry)> {
        let mut paths = entry_paths(folder);
        paths.sort();
        let read = |path: PathBuf| private_directory::read_json(&path).map(|entry| (path, entry));
        paths.into_iter().filter_map(read).collect()
    }

    /// Removes the entry of an undone change. Marks the turn as undone if it was the last one.
    pub(super) fn remove_entry(folder: &Path, entry_file: &Path) -> io::Result<()> {
        let _ = std::fs::remove_file(entry_file.with_extension("old"));
        std::fs::remove_file(entry_file)?;
        if entry_paths(folder).is_empty() {
            Self::mark_undone(folder)
        } else {
            Ok(())
        }
    }

    pub(super) fn mark_undone(folder: &Path) -> io::Result<()> {
        private_directory::write(&folder.join(UNDONE_MARKER), b"")
    }

    fn record(
        &self,
        context: &ToolContext,
        old: &[u8],
        entry: impl Fn(String) -> JournalEntry,
    ) -> Result<PendingEntry, ToolError> {
        self.append(context, old, entry).map_err(|error| {
            ToolError(format!(
                "nothing was changed, because the old state could not be saved for undo: {error}"
            ))
        })
    }

    /// Writes an entry, after a copy of the old content.
    fn append(
        &self,
        context: &ToolContext,
        old: &[u8],
        entry: impl Fn(String) -> JournalEntry,
    ) -> io::Result<PendingEntry> {
        let Some(folder) = &self.folder else {
            return Ok(PendingEntry(None));
        };
        let _lock = self
            .write_lock
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let folder = turn_folder(folder, context)?;
        let last = entry_paths(&folder)
            .iter()
            .filter_map(|path| entry_number(path))
            .max()
            .unwrap_or(0);
        let path = folder.join(format!("{:05}.json", last + 1));
        let copy = path.with_extension("old");
        let name = copy
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let entry = entry(name);
        if matches!(
            &entry,
            JournalEntry::Written {
                before: PriorState::Copy { .. },
                ..
            }
        ) {
            private_directory::write(&copy, old)?;
        }
        private_directory::write_json(&path, &entry)?;
        Ok(PendingEntry(Some(path)))
    }
}

/// Deletes the turns of a deleted session: its commands, its paths and their old contents.
pub fn delete_turns(data: &Path, principal: &Principal, session: &SessionId) {
    let (principal, session) = (principal.to_string(), session.to_string());
    for folder in turn_folders(&data.join(FOLDER)) {
        let turn: Option<JournalTurn> = private_directory::read_json(&folder.join(TURN_FILE));
        let is_of_session = |turn: JournalTurn| {
            turn.session == session && (turn.principal.is_empty() || turn.principal == principal)
        };
        if turn.is_some_and(is_of_session) {
            let _ = private_directory::remove_folder(&folder);
        }
    }
}

pub(super) fn hash(bytes: &[u8]) -> String {
    to_hex(&Sha256::digest(bytes))
}

pub(super) fn to_hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the folder of the calling turn. The first change of a turn creates it and removes the
/// oldest turns.
fn turn_folder(journal: &Path, context: &ToolContext) -> io::Result<PathBuf> {
    let (session, turn) = (context.session.to_string(), context.turn.to_string());
    let principal = context.principal.to_string();
    let name = &hash(format!("{session}\0{turn}").as_bytes())[..16];
    let existing = turn_folders(journal);
    let is_current = |folder: &&PathBuf| {
        folder.to_string_lossy().ends_with(name) && !folder.join(UNDONE_MARKER).exists()
    };
    if let Some(folder) = existing.iter().rfind(is_current) {
        return Ok(folder.clone());
    }
    let at = Timestamp::now();
    let folder = journal.join(format!("{:016}-{name}", at.as_microsecond()));
    private_directory::make_folder(&folder)?;
    private_directory::write_json(
        &folder.join(TURN_FILE),
        &JournalTurn {
            principal,
            session,
            turn,
            at,
        },
    )?;
    let excess = (existing.len() + 1).saturating_sub(MAX_TURNS);
    for old in existing.iter().take(excess) {
        let _ = private_directory::remove_folder(old);
    }
    Ok(folder)
}

/// Returns the folders of all turns, oldest first: their names start with the time.
fn turn_folders(journal: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(journal).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders
}

fn entry_paths(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| entry_number(path).is_some())
        .collect()
}

/// Returns the number of an entry file, or `None` for other files.
fn entry_number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    name.strip_suffix(".json")?.parse().ok()
}
