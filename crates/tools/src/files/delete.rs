//! `fs_delete`: moves files to the trash.

use lango_domain::{Intent, Safety, Tool, ToolContext, ToolError};
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::Deserialize;

use super::relocate::{FolderEntry, TreeSize, measure};
use super::sensitive_paths::{PlannedChange, SensitivePath};
use super::text::{count, display_path};
use super::trash::{TrashEntry, TrashError};
use super::workspace::WorkspaceEntry;
use super::{FileTools, confined_open, run_blocking};

#[derive(Deserialize, JsonSchema)]
struct FsDeleteArgs {
    /// Path of the file, link or folder, relative to the workspace.
    path: String,
    /// Needed for a folder that is not empty.
    #[serde(default)]
    recursive: bool,
}

pub fn tool(files: FileTools) -> Tool {
    let intent_files = files.clone();
    let description = "Moves a file, a link or a folder of the workspace to the trash, from where the user can \
        restore it. A folder with something in it needs recursive=true.";
    Tool::new(
        "fs_delete",
        description,
        Safety::Moderate,
        move |context, args: FsDeleteArgs| {
            let files = files.clone();
            async move { run_blocking(move || delete(&files, &context, &args)).await }
        },
    )
    .with_intent(move |_, args: FsDeleteArgs| {
        let files = intent_files.clone();
        async move { run_blocking(move || intent(&files, &args)).await }
    })
    .with_phrases([
        "(delete|remove|trash|erase) [the] (file|folder|directory|) {path:word}",
        "(move|put|throw) [the] (file|folder|directory|) {path:word} (to|into|in) [the] trash",
        "(get rid of|throw away) [the] (file|folder|directory|) {path:word}",
        "rm {path:word}",
    ])
}

fn delete(
    files: &FileTools,
    context: &ToolContext,
    args: &FsDeleteArgs,
) -> Result<String, ToolError> {
    let _lock = files.workspace.write_lock();
    let DeletePlan { entry, size, .. } = plan(files, args)?;
    let (trash, journal) = (&files.undo_storage.trash, &files.undo_storage.journal);
    let path = display_path(&entry.relative);
    let failed = |error: TrashError| ToolError(format!("cannot delete `{path}`: {error}"));
    let id = trash.reserve_id().map_err(failed)?;
    let original = files.workspace.root().join(&entry.relative);
    let pending = journal
        .record_delete(context, &original, &id)
        .inspect_err(|_| trash.discard_id(&id))?;
    let trashed = TrashEntry::new(id, &files.workspace, &entry, size).with_context(context);
    trash.move_in(&entry, &trashed).map_err(|error| {
        pending.remove();
        failed(error)
    })?;
    Ok(format!(
        "moved {} to the trash as {}",
        describe_entry(&entry, size),
        trashed.id
    ))
}

fn intent(files: &FileTools, args: &FsDeleteArgs) -> Result<Intent, ToolError> {
    let DeletePlan {
        entry,
        size,
        inside,
    } = plan(files, args)?;
    Ok(files.workspace.change_intent(PlannedChange {
        requested: &files.workspace.relative(&args.path)?,
        real: &entry.relative,
        level: Safety::Moderate,
        shows: format!("to the trash: {}", describe_entry(&entry, size)),
        subject: match confined_open::file_type(&entry.stat) {
            FileType::Directory => format!("{}/", display_path(&entry.relative)),
            _ => display_path(&entry.relative),
        },
        inside,
    }))
}

/// A deletion before it is applied.
struct DeletePlan {
    entry: WorkspaceEntry,
    size: TreeSize,
    /// The first path inside that other programs run or obey.
    inside: Option<SensitivePath>,
}

/// Plans the deletion and checks that it is allowed.
fn plan(files: &FileTools, args: &FsDeleteArgs) -> Result<DeletePlan, ToolError> {
    let workspace = &files.workspace;
    if !files.undo_storage.trash.exists() {
        let reason =
            "cannot delete: Lango has no data folder for its trash, so it could not be restored";
        return Err(ToolError(reason.to_owned()));
    }
    let entry = workspace.find_entry(&args.path)?;
    let real = workspace.root().join(&entry.relative);
    if workspace
        .hidden_inside()
        .iter()
        .any(|hidden| hidden.starts_with(&real))
    {
        return Err(ToolError(format!(
            "`{}` contains folders that belong to Lango; it is not deleted",
            args.path
        )));
    }
    let folder_entry = FolderEntry::new(&entry.folder, &entry.name);
    let mut inside = None;
    let size = measure(folder_entry, &entry.relative, &mut |path| {
        if inside.is_none() {
            inside = workspace.sensitive_inside(path);
        }
    });
    let size = size.map_err(|error| ToolError(format!("`{}`: {error}", args.path)))?;
    if !args.recursive && size.files + size.folders > 1 {
        let (path, contents) = (&args.path, describe_contents(size));
        return Err(ToolError(format!(
            "`{path}` is a folder with {contents}; delete it with recursive=true"
        )));
    }
    Ok(DeletePlan {
        entry,
        size,
        inside,
    })
}

fn describe_entry(entry: &WorkspaceEntry, size: TreeSize) -> String {
    let path = display_path(&entry.relative);
    match confined_open::file_type(&entry.stat) {
        FileType::Directory if size.files + size.folders == 1 => {
            format!("{path}/ (an empty folder)")
        }
        FileType::Directory => format!(
            "{path}/ ({}, {})",
            describe_contents(size),
            count(size.bytes, "byte")
        ),
        FileType::Symlink => format!("{path} (a link; its target is not deleted)"),
        _ => format!("{path} ({})", count(size.bytes, "byte")),
    }
}

/// Describes the contents of a folder, not counting the folder itself.
fn describe_contents(size: TreeSize) -> String {
    match size.folders.saturating_sub(1) {
        0 => count(size.files, "file"),
        folders => format!(
            "{} and {}",
            count(size.files, "file"),
            count(folders, "folder")
        ),
    }
}
