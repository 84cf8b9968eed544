//! `fs_delete`: into the trash, never for good.

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
    let telling = files.clone();
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
        let files = telling.clone();
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
    let _alone = files.workspace.write_lock();
    let DeletePlan {
        entry: named,
        size: tally,
        ..
    } = plan(files, args)?;
    let (trash, journal) = (&files.undo_storage.trash, &files.undo_storage.journal);
    let path = display_path(&named.relative);
    let failed = |error: TrashError| ToolError(format!("`{path}` was not deleted: {error}"));
    let id = trash.reserve_id().map_err(failed)?;
    let original = files.workspace.root().join(&named.relative);
    let kept = journal
        .record_delete(context, &original, &id)
        .inspect_err(|_| trash.discard_id(&id))?;
    let trashed = TrashEntry::new(id, &files.workspace, &named, tally).with_context(context);
    trash.move_in(&named, &trashed).map_err(|error| {
        kept.remove();
        failed(error)
    })?;
    Ok(format!(
        "moved {} to the trash as {}",
        describe_entry(&named, tally),
        trashed.id
    ))
}

fn intent(files: &FileTools, args: &FsDeleteArgs) -> Result<Intent, ToolError> {
    let DeletePlan {
        entry: named,
        size: tally,
        inside,
    } = plan(files, args)?;
    Ok(files.workspace.change_intent(PlannedChange {
        requested: &files.workspace.relative(&args.path)?,
        real: &named.relative,
        level: Safety::Moderate,
        shows: format!("to the trash: {}", describe_entry(&named, tally)),
        subject: match confined_open::file_type(&named.stat) {
            FileType::Directory => format!("{}/", display_path(&named.relative)),
            _ => display_path(&named.relative),
        },
        inside,
    }))
}

/// What would go.
struct DeletePlan {
    entry: WorkspaceEntry,
    size: TreeSize,
    /// What of it others run or obey.
    inside: Option<SensitivePath>,
}

/// What would go, if it may.
fn plan(files: &FileTools, args: &FsDeleteArgs) -> Result<DeletePlan, ToolError> {
    let workspace = &files.workspace;
    if !files.undo_storage.trash.exists() {
        let why = "nothing can be deleted here: Lango has no folder for its trash, so it could not be restored";
        return Err(ToolError(why.to_owned()));
    }
    let named = workspace.find_entry(&args.path)?;
    let real = workspace.root().join(&named.relative);
    if workspace
        .hidden_inside()
        .iter()
        .any(|hidden| hidden.starts_with(&real))
    {
        return Err(ToolError(format!(
            "`{}` holds folders of Lango itself; it stays",
            args.path
        )));
    }
    let spot = FolderEntry::new(&named.folder, &named.name);
    let mut inside = None;
    let tally = measure(spot, &named.relative, &mut |path| {
        if inside.is_none() {
            inside = workspace.sensitive_inside(path);
        }
    });
    let tally = tally.map_err(|error| ToolError(format!("`{}`: {error}", args.path)))?;
    if !args.recursive && tally.files + tally.folders > 1 {
        let (path, holds) = (&args.path, describe_contents(tally));
        return Err(ToolError(format!(
            "`{path}` is a folder that holds {holds}; delete it with recursive=true"
        )));
    }
    Ok(DeletePlan {
        entry: named,
        size: tally,
        inside,
    })
}

fn describe_entry(named: &WorkspaceEntry, tally: TreeSize) -> String {
    let path = display_path(&named.relative);
    match confined_open::file_type(&named.stat) {
        FileType::Directory if tally.files + tally.folders == 1 => {
            format!("{path}/ (an empty folder)")
        }
        FileType::Directory => format!(
            "{path}/ ({}, {})",
            describe_contents(tally),
            count(tally.bytes, "byte")
        ),
        FileType::Symlink => format!("{path} (a link; what it leads to stays)"),
        _ => format!("{path} ({})", count(tally.bytes, "byte")),
    }
}

/// What is in a folder, without itself.
fn describe_contents(tally: TreeSize) -> String {
    match tally.folders.saturating_sub(1) {
        0 => count(tally.files, "file"),
        folders => format!(
            "{} and {}",
            count(tally.files, "file"),
            count(folders, "folder")
        ),
    }
}
