//! `fs_mkdir`: creates a folder and its missing parents.

use std::path::PathBuf;

use lango_domain::{Intent, Safety, Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::sensitive_paths::PlannedChange;
use super::text::display_path;
use super::{FileTools, Workspace, run_blocking};

#[derive(Deserialize, JsonSchema)]
struct FsMkdirArgs {
    /// Path of the folder, relative to the workspace; missing folders around it are made too.
    path: String,
}

/// The effect of creating a folder.
enum MkdirPlan {
    Exists(PathBuf),
    New(PathBuf),
}

pub fn tool(files: FileTools) -> Tool {
    let intent_files = files.clone();
    let description =
        "Makes a folder in the workspace, and the folders around it that are missing.";
    Tool::new(
        "fs_mkdir",
        description,
        Safety::Moderate,
        move |context, args: FsMkdirArgs| {
            let files = files.clone();
            async move { run_blocking(move || make(&files, &context, &args.path)).await }
        },
    )
    .with_intent(move |_, args: FsMkdirArgs| {
        let files = intent_files.clone();
        async move { run_blocking(move || intent(&files.workspace, &args.path)).await }
    })
    .with_phrases([
        "(create|make|add) [a] [the] [new] (folder|directory) (called|named|) {path:word}",
        "(create|make|add) [a] [the] [new] (folder|directory) [with] [the] name {path:word}",
        "mkdir {path:word}",
    ])
}

fn make(files: &FileTools, context: &ToolContext, path: &str) -> Result<String, ToolError> {
    let workspace = &files.workspace;
    let _lock = workspace.write_lock();
    match plan(workspace, path)? {
        MkdirPlan::Exists(relative) => Ok(format!(
            "the folder {} exists already",
            display_path(&relative)
        )),
        MkdirPlan::New(relative) => {
            // `create_parents` creates the parents of a path, so it gets a path inside the new
            // folder.
            let inside = relative.join("inside");
            workspace.create_parents(&inside, |created| {
                files
                    .undo_storage
                    .journal
                    .record_mkdir(context, &workspace.root().join(created))
                    .map(drop)
            })?;
            Ok(format!("made the folder {}", display_path(&relative)))
        }
    }
}

fn plan(workspace: &Workspace, path: &str) -> Result<MkdirPlan, ToolError> {
    let relative = workspace.relative(path)?;
    match workspace.resolve_existing(path, &relative)? {
        Some(real) => Ok(MkdirPlan::Exists(real)),
        None => Ok(MkdirPlan::New(workspace.resolve_new(path, &relative)?)),
    }
}

fn intent(workspace: &Workspace, path: &str) -> Result<Intent, ToolError> {
    let requested = workspace.relative(path)?;
    let (level, effect, real) = match plan(workspace, path)? {
        MkdirPlan::Exists(real) => (Safety::Safe, "nothing to do for the folder", real),
        MkdirPlan::New(real) => (Safety::Moderate, "new folder", real),
    };
    let subject = display_path(&real);
    let shows = format!("{effect} {subject}");
    Ok(workspace.change_intent(PlannedChange {
        requested: &requested,
        real: &real,
        level,
        shows,
        subject,
        inside: None,
    }))
}
