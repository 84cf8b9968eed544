//! The trash: deleted files until they are restored or removed for good.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use lango_domain::ToolContext;
use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::relocate::{FolderEntry, TreeSize, move_entry};
use super::workspace::{Workspace, WorkspaceEntry};
use super::{confined_open, private_directory};

const INFO_FILE: &str = "info.json";
const CONTENT_NAME: &str = "content";

/// Deleted files and folders, each in a separate folder. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Trash {
    folder: Option<PathBuf>,
}

/// A deleted file or folder in the trash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrashEntry {
    pub id: String,
    /// The original path.
    pub path: PathBuf,
    /// The root of its workspace.
    pub root: PathBuf,
    pub at: Timestamp,
    pub kind: TrashedKind,
    pub bytes: u64,
    pub files: u64,
    pub session: String,
    pub turn: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrashedKind {
    File,
    Folder,
    Link,
    Special,
}

#[derive(Debug, thiserror::Error)]
pub enum TrashError {
    #[error("there is no trash: Lango has no data folder on this machine")]
    NoTrash,
    #[error("`{0}` is not in the trash")]
    NotFound(String),
    #[error("`{wanted}` is ambiguous: it matches {}", paths.join(", "))]
    Ambiguous { wanted: String, paths: Vec<String> },
    #[error("{} exists; move it away first", .0.display())]
    Occupied(PathBuf),
    #[error("cannot restore {}: {reason}", path.display())]
    Unreachable { path: PathBuf, reason: String },
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Trash {
    /// The trash below `data`. Without a folder there is no trash.
    pub fn in_folder(data: Option<&Path>) -> Self {
        Self {
            folder: data.map(|data| data.join("trash")),
        }
    }

    /// Returns the entries, newest first.
    pub fn list(&self) -> Vec<TrashEntry> {
        let Some(entries) = self
            .folder
            .as_ref()
            .and_then(|folder| std::fs::read_dir(folder).ok())
        else {
            return Vec::new();
        };
        let mut all: Vec<TrashEntry> = entries
            .flatten()
            .filter_map(|entry| read_entry(&entry.path()))
            .collect();
        all.sort_by(|a, b| b.at.cmp(&a.at).then_with(|| b.id.cmp(&a.id)));
        all
    }

    /// Restores an entry, found by its id or by the end of its path, to its original path. Fails if
    /// that path exists.
    pub fn restore(&self, which: &str) -> Result<PathBuf, TrashError> {
        let trashed = self.find(which)?;
        let folder = self
            .folder
            .as_ref()
            .ok_or(TrashError::NoTrash)?
            .join(&trashed.id);
        let unreachable = |reason: String| TrashError::Unreachable {
            path: trashed.path.clone(),
            reason,
        };
        std::fs::create_dir_all(&trashed.root)?;
        let workspace = Workspace::open(&trashed.root, self.folder.iter().cloned().collect())?;
        let relative = trashed
            .path
            .strip_prefix(workspace.root())
            .map_err(|error| unreachable(error.to_string()))?;
        let name = relative
            .file_name()
            .ok_or_else(|| unreachable("it has no name".to_owned()))?;
        let parent = workspace
            .create_parents(relative, |_| Ok(()))
            .map_err(|failure| unreachable(failure.0))?;
        let entry = File::open(&folder)?;
        move_entry(
            FolderEntry::new(&entry, OsStr::new(CONTENT_NAME)),
            FolderEntry::new(&parent, name),
        )
        .map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => TrashError::Occupied(trashed.path.clone()),
            _ => TrashError::Io(error),
        })?;
        std::fs::remove_dir_all(&folder)?;
        Ok(trashed.path)
    }

    /// Removes for good all entries deleted before `older_than`, or all entries. Returns their
    /// number.
    pub fn empty(&self, older_than: Option<Timestamp>) -> usize {
        let Some(folder) = &self.folder else { return 0 };
        let old = self
            .list()
            .into_iter()
            .filter(|trashed| older_than.is_none_or(|limit| trashed.at < limit));
        old.filter(|trashed| private_directory::remove_folder(&folder.join(&trashed.id)).is_ok())
            .count()
    }

    /// Returns true if there is a folder for the trash.
    pub(super) fn exists(&self) -> bool {
        self.folder.is_some()
    }

    /// Reserves an id for an entry that is about to be moved in.
    pub(super) fn reserve_id(&self) -> Result<String, TrashError> {
        let folder = self.folder.as_ref().ok_or(TrashError::NoTrash)?;
        private_directory::make_folder(folder)?;
        loop {
            let id = generate_id();
            let entry = folder.join(&id);
            if !entry.exists() {
                private_directory::make_folder(&entry)?;
                return Ok(id);
            }
        }
    }

    /// Moves an entry into the trash. Its info file is written first, so that the content is never
    /// lost if the move is interrupted.
    pub(super) fn move_in(
        &self,
        source: &WorkspaceEntry,
        trashed: &TrashEntry,
    ) -> Result<(), TrashError> {
        let folder = self
            .folder
            .as_ref()
            .ok_or(TrashError::NoTrash)?
            .join(&trashed.id);
        let info = private_directory::write_json(&folder.join(INFO_FILE), trashed);
        let moved = info.and_then(|()| {
            let target = File::open(&folder)?;
            private_directory::sync(folder.parent().unwrap_or(&folder));
            move_entry(
                FolderEntry::new(&source.folder, &source.name),
                FolderEntry::new(&target, OsStr::new(CONTENT_NAME)),
            )
        });
        // Keep an entry with content: parts of the original may be removed already.
        if moved.is_err() && folder.join(CONTENT_NAME).symlink_metadata().is_err() {
            let _ = private_directory::remove_folder(&folder);
        }
        Ok(moved?)
    }

    /// Releases a reserved id that was not used.
    pub(super) fn discard_id(&self, id: &str) {
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir(folder.join(id));
        }
    }

    fn find(&self, which: &str) -> Result<TrashEntry, TrashError> {
        if self.folder.is_none() {
            return Err(TrashError::NoTrash);
        }
        let mut found = self.list();
        if let Some(at) = found.iter().position(|trashed| trashed.id == which) {
            return Ok(found.swap_remove(at));
        }
        found.retain(|trashed| !which.is_empty() && trashed.path.ends_with(which));
        let mut paths: Vec<String> = found
            .iter()
            .map(|trashed| trashed.path.display().to_string())
            .collect();
        paths.sort();
        paths.dedup();
        if paths.len() > 1 {
            return Err(TrashError::Ambiguous {
                wanted: which.to_owned(),
                paths,
            });
        }
        found
            .into_iter()
            .next()
            .ok_or_else(|| TrashError::NotFound(which.to_owned()))
    }
}

impl TrashEntry {
    pub(super) fn new(
        id: String,
        workspace: &Workspace,
        entry: &WorkspaceEntry,
        size: TreeSize,
    ) -> Self {
        Self {
            id,
            path: workspace.root().join(&entry.relative),
            root: workspace.root().to_owned(),
            at: Timestamp::now(),
            kind: kind(&entry.stat),
            bytes: size.bytes,
            files: size.files,
            session: String::new(),
            turn: String::new(),
        }
    }

    pub(super) fn with_context(self, context: &ToolContext) -> Self {
        Self {
            session: context.session.to_string(),
            turn: context.turn.to_string(),
            ..self
        }
    }
}

/// Generates a short id that sorts by time.
fn generate_id() -> String {
    let random = Uuid::now_v7().simple().to_string();
    format!(
        "{:011x}-{}",
        Timestamp::now().as_millisecond(),
        &random[26..]
    )
}

/// Reads an entry, or returns `None` if it is incomplete.
fn read_entry(folder: &Path) -> Option<TrashEntry> {
    folder.join(CONTENT_NAME).symlink_metadata().ok()?;
    let trashed: TrashEntry = private_directory::read_json(&folder.join(INFO_FILE))?;
    (folder.file_name() == Some(OsStr::new(&trashed.id))).then_some(trashed)
}

fn kind(stat: &Stat) -> TrashedKind {
    match confined_open::file_type(stat) {
        FileType::RegularFile => TrashedKind::File,
        FileType::Directory => TrashedKind::Folder,
        FileType::Symlink => TrashedKind::Link,
        _ => TrashedKind::Special,
    }
}
