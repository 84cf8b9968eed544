//! `fs_write`: writes a file or appends to it.

use lango_domain::{Safety, Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::change::{FileChange, MAX_BYTES, PriorContent};
use super::text::{count, display_path, uses_crlf, with_crlf};
use super::{FileTools, Workspace, run_blocking};

/// Number of bytes inspected to detect the line endings of a file.
const LINE_END_SAMPLE: usize = 64 * 1024;

#[derive(Deserialize, JsonSchema)]
struct FsWriteArgs {
    /// Path of the file, relative to the workspace; missing folders are made.
    path: String,
    /// The whole new content, or what is added to the end.
    content: String,
    /// Add to the end instead of replacing everything.
    #[serde(default)]
    append: bool,
}

pub fn tool(files: FileTools) -> Tool {
    let intent_files = files.clone();
    let description = "Writes a file of the workspace, new or over an old one, and makes missing folders. \
        To change a part of a file use fs_edit.";
    Tool::new("fs_write", description, Safety::Moderate, move |context, args: FsWriteArgs| {
        let files = files.clone();
        async move { run_blocking(move || write(&files, &context, &args)).await }
    })
    .with_intent(move |_, args: FsWriteArgs| {
        let files = intent_files.clone();
        async move { run_blocking(move || plan(&files.workspace, &args).map(|change| change.intent(&files.workspace))).await }
    })
    .with_phrases([
        "write {content} (to|into|in) [the] [a] [new] [file] {path:word}",
        "(save|put|store) {content} (to|into|in|as) [the] [a] [new] file {path:word}",
        "(create|make|write) [a] [the] [new] file (called|named|) {path:word} (with|containing|that says) [the] (text|content|contents|words|) {content}",
        "write [a] [the] [new] file {path:word} with [the] (text|content|contents|) {content}",
        "(save|write) (it|this|that|the result|the answer|the output) (to|into|in|as) [the] [a] [file] {path:word} {content=result}",
        "(save|write) [a] [the] summary (to|into|in|as) [the] [a] [file] {path:word} {content=summary}",
    ])
}

fn write(
    files: &FileTools,
    context: &ToolContext,
    args: &FsWriteArgs,
) -> Result<String, ToolError> {
    let _lock = files.workspace.write_lock();
    let change = plan(&files.workspace, args)?;
    let path = display_path(&change.relative);
    if change.is_empty() {
        return Ok(format!("{path} has exactly this content already"));
    }
    change.apply(files, context)?;
    let bytes = count(change.after.len() as u64, "byte");
    let lines = count(
        String::from_utf8_lossy(&change.after).lines().count() as u64,
        "line",
    );
    Ok(match change.before {
        PriorContent::Nothing => format!("created {path}: {lines}, {bytes}"),
        _ if args.append => format!("added to {path}: now {lines}, {bytes}"),
        _ => format!("wrote {path}: {lines}, {bytes}"),
    })
}

/// Plans the requested change. Keeps the line endings of an existing file.
fn plan(workspace: &Workspace, args: &FsWriteArgs) -> Result<FileChange, ToolError> {
    let target = FileChange::write_target(workspace, &args.path)?;
    let before = PriorContent::read(&args.path, target.existing)?;
    let old: &[u8] = match &before {
        PriorContent::Content { bytes, .. } => bytes,
        PriorContent::TooLarge(_) if args.append => {
            let limit = MAX_BYTES / 1024 / 1024;
            return Err(ToolError(format!(
                "`{}` is larger than {limit} MiB; append with the shell",
                args.path
            )));
        }
        _ => &[],
    };
    let sample = &old[..old.len().min(LINE_END_SAMPLE)];
    let has_only_lf = !args.content.contains("\r\n");
    let content = if has_only_lf && uses_crlf(sample) {
        with_crlf(&args.content)
    } else {
        args.content.clone()
    };
    let mut after = if args.append {
        old.to_vec()
    } else {
        Vec::new()
    };
    after.extend_from_slice(content.as_bytes());
    Ok(FileChange {
        requested: target.requested,
        relative: target.relative,
        before,
        after,
    })
}
