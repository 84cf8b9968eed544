//! `fs_delete`: into the trash, never for good.

use lango_domain::{Intent, Safety, Tool, ToolContext, ToolError};
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::Deserialize;

use super::executed::{Finding, Told};
use super::text::{count, shown};
use super::transfer::{Spot, Tally, tally};
use super::trash::{TrashError, Trashed};
use super::workspace::Named;
use super::{Files, beneath, blocking};

#[derive(Deserialize, JsonSchema)]
struct Delete {
    /// Path of the file, link or folder, relative to the workspace.
    path: String,
    /// Needed for a folder that is not empty.
    #[serde(default)]
    recursive: bool,
}

pub fn tool(files: Files) -> Tool {
    let telling = files.clone();
    let description = "Moves a file, a link or a folder of the workspace to the trash, from where the user can \
        restore it. A folder with something in it needs recursive=true.";
    Tool::new("fs_delete", description, Safety::Moderate, move |context, args: Delete| {
        let files = files.clone();
        async move { blocking(move || delete(&files, &context, &args)).await }
    })
    .with_intent(move |_, args: Delete| {
        let files = telling.clone();
        async move { blocking(move || intent(&files, &args)).await }
    })
    .with_phrases([
        "(delete|remove|trash|erase) [the] (file|folder|directory|) {path:word}",
        "(move|put|throw) [the] (file|folder|directory|) {path:word} (to|into|in) [the] trash",
        "(get rid of|throw away) [the] (file|folder|directory|) {path:word}",
        "rm {path:word}",
    ])
}

fn delete(files: &Files, context: &ToolContext, args: &Delete) -> Result<String, ToolError> {
    let _alone = files.workspace.changing();
    let Plan { named, tally, .. } = plan(files, args)?;
    let (trash, journal) = (&files.keeping.trash, &files.keeping.journal);
    let path = shown(&named.relative);
    let failed = |error: TrashError| ToolError(format!("`{path}` was not deleted: {error}"));
    let id = trash.new_id().map_err(failed)?;
    let original = files.workspace.root().join(&named.relative);
    let kept = journal.deleted(context, &original, &id).inspect_err(|_| trash.drop_id(&id))?;
    let trashed = Trashed::new(id, &files.workspace, &named, tally).by(context);
    trash.take(&named, &trashed).map_err(|error| {
        kept.forget();
        failed(error)
    })?;
    Ok(format!("moved {} to the trash as {}", described(&named, tally), trashed.id))
}

fn intent(files: &Files, args: &Delete) -> Result<Intent, ToolError> {
    let Plan { named, tally, inside } = plan(files, args)?;
    Ok(files.workspace.intent_of_change(Told {
        asked: &files.workspace.relative(&args.path)?,
        real: &named.relative,
        level: Safety::Moderate,
        shows: format!("to the trash: {}", described(&named, tally)),
        subject: match beneath::kind(&named.stat) {
            FileType::Directory => format!("{}/", shown(&named.relative)),
            _ => shown(&named.relative),
        },
        inside,
    }))
}

/// What would go.
struct Plan {
    named: Named,
    tally: Tally,
    /// What of it others run or obey.
    inside: Option<Finding>,
}

/// What would go, if it may.
fn plan(files: &Files, args: &Delete) -> Result<Plan, ToolError> {
    let workspace = &files.workspace;
    if !files.keeping.trash.exists() {
        let why =
            "nothing can be deleted here: Lango has no folder for its trash, so it could not be restored";
        return Err(ToolError(why.to_owned()));
    }
    let named = workspace.named(&args.path)?;
    let real = workspace.root().join(&named.relative);
    if workspace.hidden_inside().iter().any(|hidden| hidden.starts_with(&real)) {
        return Err(ToolError(format!("`{}` holds folders of Lango itself; it stays", args.path)));
    }
    let spot = Spot::new(&named.folder, &named.name);
    let mut inside = None;
    let tally = tally(spot, &named.relative, &mut |path| {
        if inside.is_none() {
            inside = workspace.executed_inside(path);
        }
    });
    let tally = tally.map_err(|error| ToolError(format!("`{}`: {error}", args.path)))?;
    if !args.recursive && tally.files + tally.folders > 1 {
        let (path, holds) = (&args.path, contents(tally));
        return Err(ToolError(format!(
            "`{path}` is a folder that holds {holds}; delete it with recursive=true"
        )));
    }
    Ok(Plan { named, tally, inside })
}

fn described(named: &Named, tally: Tally) -> String {
    let path = shown(&named.relative);
    match beneath::kind(&named.stat) {
        FileType::Directory if tally.files + tally.folders == 1 => format!("{path}/ (an empty folder)"),
        FileType::Directory => format!("{path}/ ({}, {})", contents(tally), count(tally.bytes, "byte")),
        FileType::Symlink => format!("{path} (a link; what it leads to stays)"),
        _ => format!("{path} ({})", count(tally.bytes, "byte")),
    }
}

/// What is in a folder, without itself.
fn contents(tally: Tally) -> String {
    match tally.folders.saturating_sub(1) {
        0 => count(tally.files, "file"),
        folders => format!("{} and {}", count(tally.files, "file"), count(folders, "folder")),
    }
}
