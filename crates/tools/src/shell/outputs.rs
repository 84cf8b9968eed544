//! Stores complete outputs of commands, to be read in parts later. They are deleted with their
//! session.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use lango_domain::ToolContext;
use lango_domain::event::{Principal, SessionId};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Maximum number of outputs per session; the oldest are removed first.
const MAX_OUTPUTS: usize = 50;
/// Maximum stored size of one output.
const MAX_BYTES: u64 = 32 * 1024 * 1024;
const FOLDER: &str = "outputs";

#[derive(Clone)]
pub struct OutputStore {
    folder: Option<PathBuf>,
}

/// An output being written. Without a data folder it is discarded.
pub struct StoredOutput {
    pub id: String,
    file: Option<File>,
    written: u64,
}

impl OutputStore {
    pub fn in_folder(data: Option<&Path>) -> Self {
        Self {
            folder: data.map(|data| data.join(FOLDER)),
        }
    }

    pub fn create(&self, context: &ToolContext) -> StoredOutput {
        let id = new_id();
        let folder = self
            .folder
            .as_ref()
            .map(|folder| folder.join(session_folder(&context.principal, &context.session)));
        let file = folder.and_then(|folder| {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&folder)
                .ok()?;
            prune(&folder);
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(folder.join(&id))
                .ok()
        });
        StoredOutput {
            id,
            file,
            written: 0,
        }
    }

    /// Returns the file of an output of this session.
    pub fn find(&self, context: &ToolContext, id: &str) -> Option<PathBuf> {
        let is_id = !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric());
        let folder = self.folder.as_ref().filter(|_| is_id)?;
        let file = folder
            .join(session_folder(&context.principal, &context.session))
            .join(id);
        file.is_file().then_some(file)
    }
}

impl StoredOutput {
    /// Returns an output that is not stored.
    pub fn discarded() -> Self {
        Self {
            id: String::new(),
            file: None,
            written: 0,
        }
    }

    pub fn write(&mut self, piece: &[u8]) {
        let space = MAX_BYTES
            .saturating_sub(self.written)
            .min(piece.len() as u64) as usize;
        if let Some(file) = &mut self.file
            && file.write_all(&piece[..space]).is_ok()
        {
            self.written += space as u64;
        }
    }

    pub fn is_stored(&self) -> bool {
        self.file.is_some()
    }
}

/// Deletes the command outputs of a session.
pub fn delete_outputs(data: &Path, principal: &Principal, session: &SessionId) {
    let _ = fs::remove_dir_all(data.join(FOLDER).join(session_folder(principal, session)));
}

/// Returns a folder name that does not reveal the session.
fn session_folder(principal: &Principal, session: &SessionId) -> String {
    let digest = Sha256::digest(format!("{principal}\0{session}"));
    digest
        .iter()
        .take(12)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn new_id() -> String {
    let id = Uuid::now_v7().simple().to_string();
    // The end is random; eight digits are enough to distinguish the outputs of one session.
    id[id.len() - 8..].to_owned()
}

fn prune(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let mut files: Vec<(std::time::SystemTime, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    files.sort();
    let excess = (files.len() + 1).saturating_sub(MAX_OUTPUTS);
    for (_, file) in files.into_iter().take(excess) {
        let _ = fs::remove_file(file);
    }
}
