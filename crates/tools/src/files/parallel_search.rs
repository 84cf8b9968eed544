//! Searches the files of a workspace on all processors, opening each beneath the root.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use globset::GlobMatcher;
use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, MmapChoice, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish,
    SinkMatch,
};
use ignore::{DirEntry, ParallelVisitor, ParallelVisitorBuilder, WalkBuilder, WalkState};

use super::confined_open;
use super::workspace::Workspace;

/// Longer lines are cut; the result shows even less.
const MAX_LINE_BYTES: usize = 2_000;
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// The parameters of a search.
pub struct FileQuery {
    pub pattern: Option<RegexMatcher>,
    pub glob: Option<GlobMatcher>,
    /// True if the glob matches paths instead of names.
    pub is_path_glob: bool,
    /// The real path of the folder or file to search in; `prefix` is the same relative to the root.
    pub start: PathBuf,
    pub prefix: PathBuf,
    pub context: usize,
    pub limit: usize,
    pub with_hidden: bool,
}

#[derive(Default)]
pub struct SearchResults {
    pub files: Vec<FileMatches>,
    /// Exact up to the limit; counting stops after it.
    pub matches: usize,
    pub searched: u64,
}

pub struct FileMatches {
    pub path: PathBuf,
    pub lines: Vec<MatchedLine>,
}

pub struct MatchedLine {
    pub number: u64,
    pub text: String,
    pub is_match: bool,
}

/// Returns all matches, unsorted. Stops early when there are more than the limit.
pub fn search_files(
    workspace: &Workspace,
    query: &FileQuery,
    is_cancelled: &AtomicBool,
) -> SearchResults {
    let state = SearchState {
        workspace,
        query,
        is_cancelled,
        matches: AtomicUsize::new(0),
        found: Mutex::default(),
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let hidden = workspace.hidden_inside();
    let filter_workspace = workspace.clone();
    let mut builder = WalkBuilder::new(&query.start);
    builder
        .threads(threads)
        .hidden(!query.with_hidden)
        .require_git(false)
        .parents(query.start.ancestors().skip(1).all(has_plain_ignore_files))
        .filter_entry(move |entry| {
            let relative = entry
                .path()
                .strip_prefix(filter_workspace.root())
                .unwrap_or(entry.path());
            can_enter(entry, &hidden) && !filter_workspace.is_denied(relative)
        });
    if has_plain_ignore_files(&query.start) {
        builder.build_parallel().visit(&mut &state);
    }
    let mut found = state
        .found
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    found.matches = state.matches.into_inner();
    found
}

/// Returns false for folders of Lango and Git, and for folders whose ignore files are pipes or
/// devices, which would block the reader.
fn can_enter(entry: &DirEntry, hidden: &[PathBuf]) -> bool {
    if hidden.iter().any(|hidden| entry.path().starts_with(hidden)) {
        return false;
    }
    if !entry.file_type().is_some_and(|kind| kind.is_dir()) {
        return true;
    }
    let is_git = entry.file_name() == ".git" && entry.depth() > 0;
    !is_git && has_plain_ignore_files(entry.path())
}

fn has_plain_ignore_files(folder: &Path) -> bool {
    IGNORE_FILES.iter().all(|name| {
        folder
            .join(name)
            .metadata()
            .map_or(true, |metadata| metadata.is_file())
    })
}

struct SearchState<'a> {
    workspace: &'a Workspace,
    query: &'a FileQuery,
    is_cancelled: &'a AtomicBool,
    matches: AtomicUsize,
    found: Mutex<SearchResults>,
}

impl SearchState<'_> {
    fn is_done(&self) -> bool {
        self.matches.load(Ordering::Relaxed) > self.query.limit
            || self.is_cancelled.load(Ordering::Relaxed)
    }
}

impl<'s> ParallelVisitorBuilder<'s> for &'s SearchState<'s> {
    fn build(&mut self) -> Box<dyn ParallelVisitor + 's> {
        let searcher = SearcherBuilder::new()
            .memory_map(MmapChoice::never())
            .binary_detection(BinaryDetection::quit(0))
            .before_context(self.query.context)
            .after_context(self.query.context)
            .line_number(true)
            .line_terminator(grep_matcher::LineTerminator::crlf())
            .build();
        let pattern = self.query.pattern.clone();
        Box::new(SearchVisitor {
            state: self,
            searcher,
            pattern,
            found: SearchResults::default(),
            lines: Vec::new(),
        })
    }
}

/// The search of one thread.
struct SearchVisitor<'s> {
    state: &'s SearchState<'s>,
    searcher: Searcher,
    pattern: Option<RegexMatcher>,
    found: SearchResults,
    lines: Vec<MatchedLine>,
}

impl ParallelVisitor for SearchVisitor<'_> {
    fn visit(&mut self, entry: Result<DirEntry, ignore::Error>) -> WalkState {
        if self.state.is_done() {
            return WalkState::Quit;
        }
        if let Ok(entry) = entry
            && entry.file_type().is_some_and(|kind| kind.is_file())
            && let Some(relative) = relative_path(self.state.workspace.root(), entry.path())
            && self.is_candidate(&entry, relative)
        {
            self.found.searched += 1;
            self.search(relative);
        }
        WalkState::Continue
    }
}

impl SearchVisitor<'_> {
    fn is_candidate(&self, entry: &DirEntry, relative: &Path) -> bool {
        let query = self.state.query;
        match &query.glob {
            None => true,
            Some(glob) if query.is_path_glob => {
                glob.is_match(relative)
                    || relative
                        .strip_prefix(&query.prefix)
                        .is_ok_and(|inner| glob.is_match(inner))
            }
            Some(glob) => glob.is_match(entry.file_name()),
        }
    }

    fn search(&mut self, relative: &Path) {
        let root = self.state.workspace.root_fd();
        let Some(pattern) = &self.pattern else {
            // The walk uses paths; opening the file confirms that it is beneath the root.
            let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
            if confined_open::open_no_follow(root, relative, flags).is_ok() {
                self.push_file(relative, 1);
            }
            return;
        };
        let Ok(opened) = confined_open::open_no_follow(root, relative, confined_open::READ) else {
            return;
        };
        self.lines.clear();
        let mut sink = LineSink {
            lines: &mut self.lines,
            max_matches: self.state.query.limit + 1,
            matches: 0,
            is_binary: false,
        };
        let done = self
            .searcher
            .search_file(pattern, &File::from(opened), &mut sink);
        if done.is_ok() && !sink.is_binary && sink.matches > 0 {
            let matches = sink.matches;
            self.push_file(relative, matches);
        }
    }

    fn push_file(&mut self, relative: &Path, matches: usize) {
        let lines = std::mem::take(&mut self.lines);
        self.found.files.push(FileMatches {
            path: relative.to_owned(),
            lines,
        });
        self.state.matches.fetch_add(matches, Ordering::Relaxed);
    }
}

impl Drop for SearchVisitor<'_> {
    fn drop(&mut self) {
        let mut all = self
            .state
            .found
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        all.files.append(&mut self.found.files);
        all.searched += self.found.searched;
    }
}

/// Returns the part of a path after the root.
fn relative_path<'a>(root: &Path, path: &'a Path) -> Option<&'a Path> {
    let rest = path
        .as_os_str()
        .as_bytes()
        .strip_prefix(root.as_os_str().as_bytes())?;
    let rest = rest.strip_prefix(b"/").unwrap_or(rest);
    Some(Path::new(OsStr::from_bytes(rest)))
}

/// Collects the matched lines of one file.
struct LineSink<'a> {
    lines: &'a mut Vec<MatchedLine>,
    max_matches: usize,
    matches: usize,
    is_binary: bool,
}

impl LineSink<'_> {
    fn push_line(&mut self, number: Option<u64>, bytes: &[u8], is_match: bool) {
        let line = &bytes[..bytes.len().min(MAX_LINE_BYTES)];
        let text = String::from_utf8_lossy(line)
            .trim_end_matches(['\r', '\n'])
            .to_owned();
        self.lines.push(MatchedLine {
            number: number.unwrap_or_default(),
            text,
            is_match,
        });
    }
}

impl Sink for LineSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.push_line(found.line_number(), found.bytes(), true);
        self.matches += 1;
        Ok(self.matches < self.max_matches)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> Result<bool, io::Error> {
        self.push_line(line.line_number(), line.bytes(), false);
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> Result<(), io::Error> {
        self.is_binary = end.binary_byte_offset().is_some();
        Ok(())
    }
}
