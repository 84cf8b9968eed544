//! `fs_stat`: returns the metadata of a path.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use lango_domain::{Safety, Tool, ToolError};
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text::{display_path, modified, size};
use super::workspace::{Workspace, WorkspaceEntry};
use super::{FileTools, confined_open, run_blocking};

/// Lines are not counted in larger files.
const MAX_COUNTED: u64 = 64 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
struct FsStatArgs {
    /// Path of the file or folder, relative to the workspace.
    path: String,
}

/// The result of the tool.
#[derive(Serialize)]
struct FileStat {
    path: String,
    kind: &'static str,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<u64>,
    modified: String,
    mode: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

pub fn tool(files: FileTools) -> Tool {
    let intent_workspace = files.workspace.clone();
    let description = "Tells kind, size, number of lines, time of change and mode of a file or folder of the \
        workspace. A link is described itself, with its target.";
    Tool::new("fs_stat", description, Safety::Safe, move |_, args: FsStatArgs| {
        let workspace = files.workspace.clone();
        async move { run_blocking(move || stat(&workspace, &args.path)).await }
    })
    .with_intent(move |_, args: FsStatArgs| {
        let workspace = intent_workspace.clone();
        async move { run_blocking(move || workspace.read_intent(&args.path)).await }
    })
    .with_untrusted_output()
    .with_private_output()
    .with_phrases([
        "stat [the] (file|folder|directory|) {path:word}",
        "describe [the] (file|folder|directory) {path:word}",
        "(show|give|tell) [me] [the] (size|details|information|info|metadata) (of|about|on|for) [the] (file|folder|) {path:word}",
        "how (big|large|long) is [the] (file|folder|) {path:word}",
        "how many lines (has|are in|does) [the] [file] {path:word} [have]",
        "when was [the] (file|folder|) {path:word} [last] (changed|modified|edited|updated)",
        "does [the] (file|folder|) {path:word} exist",
    ])
}

fn stat(workspace: &Workspace, path: &str) -> Result<String, ToolError> {
    let result = if workspace.relative(path)?.as_os_str().is_empty() {
        let (folder, _) = workspace.open_dir(path)?;
        let stat = rustix::fs::fstat(&folder)
            .map_err(|error| workspace.explain(path, Path::new(""), error))?;
        file_stat(Path::new(""), &stat)
    } else {
        let entry = workspace.find_entry(path)?;
        let mut result = file_stat(&entry.relative, &entry.stat);
        match confined_open::file_type(&entry.stat) {
            FileType::Symlink => result.target = link_target(&entry),
            FileType::RegularFile if result.bytes <= MAX_COUNTED => {
                result.lines = line_count(&entry)
            }
            _ => {}
        }
        result
    };
    serde_json::to_string_pretty(&result).map_err(|error| ToolError(error.to_string()))
}

fn file_stat(path: &Path, stat: &rustix::fs::Stat) -> FileStat {
    let kind = match confined_open::file_type(stat) {
        FileType::RegularFile => "file",
        FileType::Directory => "folder",
        FileType::Symlink => "link",
        FileType::Fifo => "pipe",
        FileType::Socket => "socket",
        _ => "device",
    };
    let mode = format!("{:04o}", stat.st_mode & 0o7777);
    FileStat {
        path: display_path(path),
        kind,
        bytes: size(stat),
        lines: None,
        modified: modified(stat),
        mode,
        target: None,
    }
}

fn link_target(entry: &WorkspaceEntry) -> Option<String> {
    confined_open::link_target(&entry.folder, &entry.name)
        .ok()
        .map(|target| display_path(&target))
}

/// Returns the number of lines, or `None` for binary or unreadable files.
fn line_count(entry: &WorkspaceEntry) -> Option<u64> {
    let opened =
        confined_open::open_no_follow(&entry.folder, Path::new(&entry.name), confined_open::READ)
            .ok()?;
    count_lines(&File::from(opened)).ok().flatten()
}

fn count_lines(mut file: &File) -> io::Result<Option<u64>> {
    let (mut lines, mut last, mut seen) = (0, b'\n', 0);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let length = file.read(&mut buffer)?;
        let read = &buffer[..length];
        if seen < 8 * 1024 && read.iter().take(8 * 1024).any(|byte| *byte == 0) {
            return Ok(None);
        }
        let Some(end) = read.last() else { break };
        lines += read.iter().filter(|byte| **byte == b'\n').count() as u64;
        seen += length as u64;
        last = *end;
        if seen > MAX_COUNTED {
            return Ok(None);
        }
    }
    Ok(Some(if last == b'\n' { lines } else { lines + 1 }))
}
