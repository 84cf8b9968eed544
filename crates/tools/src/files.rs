//! The eight file tools, confined to the workspace, and the storage to undo their changes.

mod append_once;
mod atomic;
mod change;
mod delete;
mod diff;
mod edit;
mod journal;
mod limits;
mod line_diff;
mod list;
mod mkdir;
mod parallel_search;
pub(crate) mod private_directory;
mod read;
mod read_intent;
mod relocate;
mod replace;
mod save_new;
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

pub use append_once::AppendError;
pub use journal::{Journal, delete_turns};
pub use limits::{DenyRead, WorkspaceLimits};
pub use trash::{Trash, TrashEntry, TrashError, TrashedKind};
pub use undo::{UndoError, UndoReport};
pub use workspace::Workspace;

/// The state shared by the file tools.
#[derive(Clone)]
pub struct FileTools {
    pub workspace: Workspace,
    pub undo_storage: UndoStorage,
}

/// The storage to undo changes: trash and journal.
#[derive(Clone)]
pub struct UndoStorage {
    pub trash: Trash,
    pub journal: Journal,
}

impl UndoStorage {
    /// Stores undo data below `data`. Without a folder, changes cannot be undone and `fs_delete` is
    /// rejected.
    pub fn in_folder(data: Option<&Path>) -> Self {
        let trash = Trash::in_folder(data);
        Self {
            journal: Journal::in_folder(data, trash.clone()),
            trash,
        }
    }
}

/// Returns the file tools.
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

/// Runs blocking file work on a thread for blocking tasks.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let result = tokio::task::spawn_blocking(work).await;
    result.unwrap_or_else(|error| Err(ToolError(format!("the file operation failed: {error}"))))
}
