//! `fs_search`: finds lines that match a pattern, or files that match a glob.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use globset::{GlobBuilder, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use lango_domain::{Safety, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::parallel_search::{FileQuery, MatchedLine, SearchResults, search_files};
use super::text::{count, display_path, truncate};
use super::workspace::Workspace;
use super::{FileTools, run_blocking};

const DEFAULT_LIMIT: u64 = 100;
const MAX_LIMIT: u64 = 1_000;
const MAX_CONTEXT: u64 = 5;
const MAX_TEXT_CHARS: usize = 300;

#[derive(Deserialize, JsonSchema)]
struct FsSearchArgs {
    /// Regular expression that lines must match. Without it, the files that fit the glob are listed.
    pattern: Option<String>,
    /// Which files, by name (`*.rs`) or by path (`src/**/*.rs`).
    glob: Option<String>,
    /// Folder or file to search in, relative to the workspace; without it the whole workspace.
    path: Option<String>,
    #[schemars(
        description = "Whether upper and lower case differ. By default they do when the pattern has upper case letters."
    )]
    case_sensitive: Option<bool>,
    /// Lines to show around each match, from 0 to 5.
    context: Option<u64>,
    #[schemars(description = "At most so many matches, 100 by default and 1000 at most.")]
    limit: Option<u64>,
    /// Also search hidden files.
    #[serde(default)]
    hidden: bool,
}

pub fn tool(files: FileTools) -> Tool {
    let intent_workspace = files.workspace.clone();
    let description = "Searches the files of the workspace for lines that match a regular expression, or lists \
        the files that fit a glob. Ignored files (.gitignore), hidden ones and files without text are left out.";
    Tool::new("fs_search", description, Safety::Safe, move |_, args: FsSearchArgs| {
        let workspace = files.workspace.clone();
        async move {
            let guard = CancelOnDrop(Arc::default());
            let is_cancelled = Arc::clone(&guard.0);
            run_blocking(move || search(&workspace, &args, &is_cancelled)).await
        }
    })
    .with_intent(move |_, args: FsSearchArgs| {
        let workspace = intent_workspace.clone();
        async move { run_blocking(move || workspace.read_intent(args.path.as_deref().unwrap_or("."))).await }
    })
    .with_untrusted_output()
    .with_private_output()
    .with_phrases([
        "(search|look|grep) [for] {pattern} (in|inside|under) [the] (folder|file|directory|) {path:word}",
        "(search|grep) [the] [all] (files|workspace|code|) for {pattern}",
        "(search|look|grep) [for] {pattern} in [all] [the] [my] (files|workspace|code)",
        "grep {pattern}",
        "find [all] [the] (files|file) (named|called|matching|like) {glob:word}",
        "find [all] [the] files (named|called|matching|like) {glob:word} in [the] (folder|directory|) {path:word}",
        "(which|what) files (contain|mention|hold) {pattern}",
        "find {pattern} in [the] (folder|file|directory) {path:word}",
    ])
}

/// Stops the search when its caller is dropped.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn search(
    workspace: &Workspace,
    args: &FsSearchArgs,
    is_cancelled: &AtomicBool,
) -> Result<String, ToolError> {
    let query = build_query(workspace, args)?;
    let found = search_files(workspace, &query, is_cancelled);
    Ok(format_results(&query, found))
}

/// Builds the query from the arguments, or returns an error if they are invalid.
fn build_query(workspace: &Workspace, args: &FsSearchArgs) -> Result<FileQuery, ToolError> {
    let pattern = args
        .pattern
        .as_deref()
        .filter(|pattern| !pattern.is_empty());
    let glob = args.glob.as_deref().filter(|glob| !glob.is_empty());
    if pattern.is_none() && glob.is_none() {
        return Err(ToolError(
            "give a pattern that lines match, or a glob that file names match".to_owned(),
        ));
    }
    let limit = check_range("limit", args.limit.unwrap_or(DEFAULT_LIMIT), 1, MAX_LIMIT)?;
    let context = check_range("context", args.context.unwrap_or(0), 0, MAX_CONTEXT)?;
    let start = resolve_start(workspace, args.path.as_deref().unwrap_or("."))?;
    let prefix = start
        .strip_prefix(workspace.root())
        .unwrap_or(&start)
        .to_owned();
    Ok(FileQuery {
        pattern: pattern
            .map(|pattern| build_matcher(pattern, args.case_sensitive))
            .transpose()?,
        glob: glob
            .map(|glob| build_glob_matcher(glob, args.case_sensitive))
            .transpose()?,
        is_path_glob: glob.is_some_and(|glob| trim_glob(glob).contains('/')),
        start,
        prefix,
        context,
        limit,
        with_hidden: args.hidden,
    })
}

fn check_range(name: &str, value: u64, min: u64, max: u64) -> Result<usize, ToolError> {
    if (min..=max).contains(&value) {
        return Ok(value as usize);
    }
    Err(ToolError(format!(
        "{name} is {value}, but must be from {min} to {max}"
    )))
}

/// Returns the real path of the folder or file to search in.
fn resolve_start(workspace: &Workspace, path: &str) -> Result<std::path::PathBuf, ToolError> {
    match workspace.open_regular(path) {
        Ok(opened) => Ok(workspace.root().join(opened.relative)),
        Err(failure) => workspace.resolve_folder(path).map_err(|_| failure),
    }
}

fn build_matcher(pattern: &str, case_sensitive: Option<bool>) -> Result<RegexMatcher, ToolError> {
    let mut builder = RegexMatcherBuilder::new();
    // `$` also matches before CRLF.
    builder
        .multi_line(true)
        .line_terminator(Some(b'\n'))
        .crlf(true);
    match case_sensitive {
        Some(is_sensitive) => builder.case_insensitive(!is_sensitive),
        None => builder.case_smart(true),
    };
    builder
        .build(pattern)
        .map_err(|error| ToolError(format!("invalid pattern: {error}")))
}

fn trim_glob(glob: &str) -> &str {
    glob.trim_start_matches("./").trim_start_matches('/')
}

fn build_glob_matcher(glob: &str, case_sensitive: Option<bool>) -> Result<GlobMatcher, ToolError> {
    let plain = trim_glob(glob);
    let everything_in = format!("{plain}**");
    let plain = if plain.ends_with('/') {
        &everything_in
    } else {
        plain
    };
    let glob = GlobBuilder::new(plain)
        .literal_separator(true)
        .case_insensitive(case_sensitive == Some(false))
        .build()
        .map_err(|error| ToolError(format!("invalid glob: {error}")))?;
    Ok(glob.compile_matcher())
}

fn format_results(query: &FileQuery, mut found: SearchResults) -> String {
    found.files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let mut text = Vec::new();
    let mut remaining = query.limit;
    for file in &found.files {
        let path = display_path(&file.path);
        if query.pattern.is_none() {
            text.push(path);
            remaining -= 1;
        } else {
            remaining -= add_lines(&mut text, &path, &file.lines, remaining, query.context > 0);
        }
        if remaining == 0 {
            break;
        }
    }
    if text.is_empty() {
        let searched = count(found.searched, "file");
        return format!("no matches in {searched}");
    }
    if found.matches > query.limit {
        let limit = query.limit;
        text.push(format!(
            "[there are more than {limit}; search more narrowly, or raise the limit]"
        ));
    }
    text.join("\n")
}

/// Adds the matches of a file, at most `limit`, and returns their number.
fn add_lines(
    text: &mut Vec<String>,
    path: &str,
    lines: &[MatchedLine],
    limit: usize,
    with_gaps: bool,
) -> usize {
    let mut matches = 0;
    let mut last: Option<u64> = None;
    for line in lines {
        if line.is_match && matches == limit {
            break;
        }
        if with_gaps && last.map_or(!text.is_empty(), |last| last + 1 != line.number) {
            text.push("--".to_owned());
        }
        last = Some(line.number);
        let sign = if line.is_match { ':' } else { '-' };
        text.push(format!(
            "{path}{sign}{}{sign} {}",
            line.number,
            truncate(&line.text, MAX_TEXT_CHARS)
        ));
        matches += usize::from(line.is_match);
    }
    matches
}
