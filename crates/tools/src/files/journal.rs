//! What was there before each change, turn by turn.

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

/// Older turns are forgotten.
const MAX_TURNS: usize = 50;
const FOLDER: &str = "undo";
const TURN_FILE: &str = "turn.json";
const UNDONE_MARKER: &str = "undone";

/// What lets the changes of recent turns be taken back; cheap to clone.
#[derive(Clone, Debug)]
pub struct Journal {
    pub(super) folder: Option<PathBuf>,
    pub(super) trash: Trash,
    write_lock: Arc<Mutex<()>>,
}

/// A turn as the journal knows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct JournalTurn {
    /// Whose session it is. Turns that were noted without it are anybody's.
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
    /// It cannot be taken back; whoever undoes the rest should know of it.
    Command {
        line: String,
        folder: PathBuf,
    },
}

/// What was where a file was written.
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

/// An entry made before its change; forgotten when the change fails.
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
    /// Kept below `data`; without such a folder nothing is kept.
    pub(super) fn in_folder(data: Option<&Path>, trash: Trash) -> Self {
        Self {
            folder: data.map(|data| data.join(FOLDER)),
            trash,
            write_lock: Arc::default(),
        }
    }

    /// Notes a command, which cannot be taken back.
    pub fn record_command(&self, context: &ToolContext, folder: &Path, line: &str) {
        // Nothing depends on this note; a command is not refused for want of it.
        let note = |_| JournalEntry::Command {
            line: line.to_owned(),
            folder: folder.to_owned(),
        };
        let _ = self.append(context, &[], note);
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

    /// Folders of turns that were not undone, newest first.
    pub(super) fn undoable_turns(&self) -> Vec<(PathBuf, JournalTurn)> {
        let Some(folder) = &self.folder else {
            return Vec::new();
        };
        let mut folders = turn_folders(folder);
        folders.reverse();
        let open = folders
            .into_iter()
            .filter(|folder| !folder.join(UNDONE_MARKER).exists());
        open.filter_map(|folder| {
            private_directory::read_json(&folder.join(TURN_FILE)).map(|turn| (folder, turn))
        })
        .collect()
    }

    /// The changes of a turn that were not taken back yet, in order, each with the file it is noted in.
    pub(super) fn entries(folder: &Path) -> Vec<(PathBuf, JournalEntry)> {
        let mut paths = entry_paths(folder);
        paths.sort();
        let noted = |path: PathBuf| private_directory::read_json(&path).map(|entry| (path, entry));
        paths.into_iter().filter_map(noted).collect()
    }

    /// A change that was taken back; the turn is done with when none is left.
    pub(super) fn forget(folder: &Path, noted: &Path) -> io::Result<()> {
        let _ = std::fs::remove_file(noted.with_extension("old"));
        std::fs::remove_file(noted)?;
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
                "nothing was changed, because the old state could not be kept: {error}"
            ))
        })
    }

    /// Writes an entry, after a copy of what was there.
    fn append(
        &self,
        context: &ToolContext,
        old: &[u8],
        entry: impl Fn(String) -> JournalEntry,
    ) -> io::Result<PendingEntry> {
        let Some(folder) = &self.folder else {
            return Ok(PendingEntry(None));
        };
        let _alone = self
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

/// What the turns of a deleted session did: its command lines, its paths, and the states before them.
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

/// The folder of the turn that calls; the first change of a turn makes it and forgets the oldest ones.
fn turn_folder(journal: &Path, context: &ToolContext) -> io::Result<PathBuf> {
    let (session, turn) = (context.session.to_string(), context.turn.to_string());
    let principal = context.principal.to_string();
    let name = &hash(format!("{session}\0{turn}").as_bytes())[..16];
    let known = turn_folders(journal);
    let is_this = |folder: &&PathBuf| {
        folder.to_string_lossy().ends_with(name) && !folder.join(UNDONE_MARKER).exists()
    };
    if let Some(folder) = known.iter().rfind(is_this) {
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
    for old in known
        .iter()
        .take((known.len() + 1).saturating_sub(MAX_TURNS))
    {
        let _ = private_directory::remove_folder(old);
    }
    Ok(folder)
}

/// Oldest first: names begin with the time.
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

/// The number of an entry; none for other files.
fn entry_number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    name.strip_suffix(".json")?.parse().ok()
}
