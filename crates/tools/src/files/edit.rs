//! `fs_edit`: replaces a part of a file, given as text or as a range of lines.

use lango_domain::{Safety, Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::change::{FileChange, MAX_BYTES, PriorContent};
use super::replace::{ReplaceTarget, Replacement, replace};
use super::text::display_path;
use super::{FileTools, Workspace, run_blocking};

/// Maximum number of diff lines in the result.
const MAX_DIFF_LINES: usize = 60;

#[derive(Deserialize, JsonSchema)]
struct FsEditArgs {
    /// Path of the file, relative to the workspace.
    path: String,
    /// The exact text to replace; it must be in the file exactly once. Instead of it, start_line and end_line can be given.
    old_text: Option<String>,
    #[schemars(description = "What stands there afterwards; empty to remove.")]
    new_text: String,
    /// First line to replace, counted from 1.
    start_line: Option<u64>,
    /// Last line to replace; without it only start_line is replaced.
    end_line: Option<u64>,
    /// Replace every occurrence of old_text.
    #[serde(default)]
    all: bool,
}

pub fn tool(files: FileTools) -> Tool {
    let intent_files = files.clone();
    let description = "Replaces a part of a text file of the workspace: an exact text that occurs once, or a \
        range of lines. Gives back the difference.";
    Tool::new("fs_edit", description, Safety::Moderate, move |context, args: FsEditArgs| {
        let files = files.clone();
        async move { run_blocking(move || edit(&files, &context, &args)).await }
    })
    .with_intent(move |_, args: FsEditArgs| {
        let files = intent_files.clone();
        async move { run_blocking(move || plan(&files.workspace, &args).map(|(change, _)| change.intent(&files.workspace))).await }
    })
    .with_untrusted_output()
    .with_private_output()
    .with_phrases([
        "(replace|change|substitute) {old_text} (with|by|to|into) {new_text} in [the] [file] {path:word}",
        "in [the] [file] {path:word} (replace|change|substitute) {old_text} (with|by|to|into) {new_text}",
        "(replace|change) line {start_line:word} (of|in) [the] [file] {path:word} (with|by|to|into) {new_text}",
        "edit [the] [file] {path:word} and (replace|change) {old_text} (with|by|to|into) {new_text}",
    ])
}

fn edit(files: &FileTools, context: &ToolContext, args: &FsEditArgs) -> Result<String, ToolError> {
    let _lock = files.workspace.write_lock();
    let (change, replaced) = plan(&files.workspace, args)?;
    change.apply(files, context)?;
    let before = match &change.before {
        PriorContent::Content { bytes, .. } => bytes.as_slice(),
        _ => &[],
    };
    let (path, first, last) = (
        display_path(&change.relative),
        replaced.first,
        replaced.last,
    );
    Ok(format!(
        "edited {path}: lines {first}-{last}\n{}",
        change.diff(before, MAX_DIFF_LINES)
    ))
}

fn plan(workspace: &Workspace, args: &FsEditArgs) -> Result<(FileChange, Replacement), ToolError> {
    let replace_target = replace_target(args)?;
    let target = FileChange::write_target(workspace, &args.path)?;
    if target.existing.is_none() {
        let missing = workspace.explain(
            &args.path,
            &workspace.relative(&args.path)?,
            rustix::io::Errno::NOENT,
        );
        return Err(ToolError(format!(
            "{missing}; use fs_write to create a file"
        )));
    }
    let before = PriorContent::read(&args.path, target.existing)?;
    let PriorContent::Content { bytes, .. } = &before else {
        let limit = MAX_BYTES / 1024 / 1024;
        return Err(ToolError(format!(
            "`{}` is larger than {limit} MiB; too large to edit",
            args.path
        )));
    };
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(ToolError(format!(
            "`{}` is not valid UTF-8 text, so it cannot be edited",
            args.path
        )));
    };
    let replaced = replace(text, &replace_target, &args.new_text)
        .map_err(|reason| ToolError(format!("`{}`: {reason}", args.path)))?;
    let after = replaced.text.clone().into_bytes();
    Ok((
        FileChange {
            requested: target.requested,
            relative: target.relative,
            before,
            after,
        },
        replaced,
    ))
}

/// Returns the part to replace, or an error if the arguments contradict each other.
fn replace_target(args: &FsEditArgs) -> Result<ReplaceTarget<'_>, ToolError> {
    let old_text = args.old_text.as_deref();
    match (old_text, args.start_line) {
        (Some(old), None) if !old.is_empty() && args.end_line.is_none() => Ok(if args.all {
            ReplaceTarget::Everywhere(old)
        } else {
            ReplaceTarget::Once(old)
        }),
        (None | Some(""), Some(first)) => {
            let last = args.end_line.unwrap_or(first);
            if first == 0 || last < first {
                return Err(ToolError(format!(
                    "lines {first} to {last} are not a valid range; lines count from 1"
                )));
            }
            Ok(ReplaceTarget::Lines { first, last })
        }
        (Some(_), Some(_)) => Err(ToolError(
            "give either old_text or start_line, not both".to_owned(),
        )),
        _ => Err(ToolError(
            "say what to replace: old_text, or start_line and end_line".to_owned(),
        )),
    }
}
