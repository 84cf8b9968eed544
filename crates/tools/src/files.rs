//! Files of a workspace: eight tools that stay inside it, and what lets their changes be taken back.

mod atomic;
mod change;
mod delete;
mod diff;
mod edit;
mod journal;
mod limits;
mod list;
mod mkdir;
mod parallel_search;
pub(crate) mod private_directory;
mod read;
mod read_intent;
mod relocate;
mod replace;
mod search;
mod sensitive_paths;
mod similarity;
mod stat;
mod text;
mod trash;
mod undo;
mod workspace;
mod write;

use std::path::Path;

use lango_domain::{Tool, ToolError};
use lango_files::confined_open;

pub use journal::{Journal, delete_turns};
pub use limits::{DenyRead, WorkspaceLimits};
pub use trash::{Trash, TrashEntry, TrashError, TrashedKind};
pub use undo::{UndoError, UndoReport};
pub use workspace::Workspace;

/// What the tools work on.
#[derive(Clone)]
pub struct FileTools {
    pub workspace: Workspace,
    pub undo_storage: UndoStorage,
}

/// What lets changes be taken back.
#[derive(Clone)]
pub struct UndoStorage {
    pub trash: Trash,
    pub journal: Journal,
}

impl UndoStorage {
    /// Kept below `data`. Without such a folder changes still work, but none can be taken back, and nothing is deleted.
    pub fn in_folder(data: Option<&Path>) -> Self {
        let trash = Trash::in_folder(data);
        Self {
            journal: Journal::in_folder(data, trash.clone()),
            trash,
        }
    }
}

/// The tools for files.
pub fn tools(files: FileTools) -> Vec<Tool> {
    vec![
        read::tool(files.clone()),
        list::tool(files.clone()),
        stat::tool(files.clone()),
        search::tool(files.clone()),
        write::tool(files.clone()),
        edit::tool(files.clone()),
        mkdir::tool(files.clone()),
        delete::tool(files),
    ]
}

/// File work waits for the disk, so it is done where waiting holds nobody up.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(ToolError(format!("the work on files broke off: {error}"))))
}
