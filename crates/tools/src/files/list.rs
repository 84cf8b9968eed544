//! `fs_list`: lists the contents of a folder.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use lango_domain::{Safety, Tool, ToolError};
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::Deserialize;

use super::text::{count, display_path, modified, size};
use super::workspace::Workspace;
use super::{FileTools, confined_open, run_blocking};

const MAX_ENTRIES: usize = 1_000;
const MAX_DEPTH: u64 = 5;

#[derive(Deserialize, JsonSchema)]
struct FsListArgs {
    /// Path of the folder, relative to the workspace; without it the workspace itself.
    path: Option<String>,
    #[schemars(description = "How many levels of folders to show, from 1 (the default) to 5.")]
    depth: Option<u64>,
}

pub fn tool(files: FileTools) -> Tool {
    let intent_workspace = files.workspace.clone();
    let description = "Lists what is in a folder of the workspace, sorted by name, with sizes and times of \
        change. Folders end with `/`.";
    Tool::new("fs_list", description, Safety::Safe, move |_, args: FsListArgs| {
        let workspace = files.workspace.clone();
        async move { run_blocking(move || list(&workspace, &args)).await }
    })
    .with_intent(move |_, args: FsListArgs| {
        let workspace = intent_workspace.clone();
        async move { run_blocking(move || workspace.read_intent(args.path.as_deref().unwrap_or("."))).await }
    })
    .with_untrusted_output()
    .with_private_output()
    .with_phrases([
        "list [all] [of] [the] [my] (files|folders|directories|contents|)",
        "(list|show) [me] [all] [of] [the] [my] (files|folders|contents) (here|)",
        "list [all] [the] (files|folders|contents|) (in|of|inside|under|) [the] (folder|directory|) {path:word}",
        "(list|show) [me] [all] [the] (files|contents) (in|of|inside|under) [the] (folder|directory|) {path:word}",
        "(what|which) files are (in|inside|under) [the] (folder|directory|) {path:word}",
        "(what|which) files are [in] (here|there)",
        "what is in [the] (folder|directory) {path:word}",
        "ls {path:word}",
    ])
}

fn list(workspace: &Workspace, args: &FsListArgs) -> Result<String, ToolError> {
    let path = args.path.as_deref().unwrap_or(".");
    let depth = args.depth.unwrap_or(1);
    if !(1..=MAX_DEPTH).contains(&depth) {
        return Err(ToolError(format!(
            "depth is {depth}, but must be from 1 to {MAX_DEPTH}"
        )));
    }
    let (folder, relative) = workspace.open_dir(path)?;
    let mut listing = DirectoryListing {
        workspace,
        lines: Vec::new(),
        omitted: 0,
    };
    listing.add(&folder, &relative, Path::new(""), depth)?;
    if listing.lines.is_empty() {
        return Ok(format!("`{path}` is empty"));
    }
    if listing.omitted > 0 {
        let more = listing.omitted;
        listing.lines.push(format!(
            "[{more} more; list a folder further down, or use fs_search with a glob]"
        ));
    }
    Ok(listing.lines.join("\n"))
}

struct DirectoryListing<'a> {
    workspace: &'a Workspace,
    lines: Vec<String>,
    omitted: usize,
}

impl DirectoryListing<'_> {
    /// Adds the contents of a folder with the real path `real`, displayed under `prefix`.
    fn add(
        &mut self,
        folder: &OwnedFd,
        real: &Path,
        prefix: &Path,
        depth: u64,
    ) -> Result<(), ToolError> {
        let mut names = confined_open::read_dir(folder)
            .map_err(|error| self.workspace.explain(&display_path(real), real, error))?;
        names.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        for (index, (name, kind)) in names.iter().enumerate() {
            if self.lines.len() >= MAX_ENTRIES {
                self.omitted += names.len() - index;
                return Ok(());
            }
            let (real, path) = (real.join(name), prefix.join(name));
            if self.workspace.check_not_hidden("", &real).is_err()
                || self.workspace.is_denied(&real)
            {
                continue;
            }
            let Some(line) = entry_line(folder, Path::new(name), &path) else {
                continue;
            };
            self.lines.push(line);
            // Git's object store is large and of no use to the model.
            let can_descend = depth > 1 && name != ".git" && *kind != FileType::RegularFile;
            if can_descend
                && let Ok(inner) = confined_open::open_no_follow(
                    folder,
                    Path::new(name),
                    confined_open::DIRECTORY_LISTING,
                )
            {
                let _ = self.add(&inner, &real, &path, depth - 1);
            }
        }
        Ok(())
    }
}

/// Returns the line of an entry, or `None` if it no longer exists.
fn entry_line(folder: impl AsFd + Copy, name: &Path, path: &Path) -> Option<String> {
    let stat = confined_open::lstat(folder, name.as_os_str()).ok()?;
    let path = display_path(path);
    let time = modified(&stat);
    Some(match confined_open::file_type(&stat) {
        FileType::Directory => format!("{path}/  {time}"),
        FileType::Symlink => {
            let target = confined_open::link_target(folder, name.as_os_str()).unwrap_or_default();
            format!("{path} -> {}", display_path(&target))
        }
        FileType::RegularFile => format!("{path}  {}  {time}", count(size(&stat), "byte")),
        _ => format!("{path}  (special file)  {time}"),
    })
}
