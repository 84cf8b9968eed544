//! Finding the files below a path that may be documents.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ignore::{DirEntry, WalkBuilder};
use thiserror::Error;

use super::{MAX_BYTES, kinds};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WalkEntry {
    File {
        path: PathBuf,
        bytes: u64,
        /// Not every file system knows.
        modified: Option<SystemTime>,
    },
    Skipped {
        path: PathBuf,
        reason: SkipReason,
    },
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SkipReason {
    #[error("it is a binary file, not a document")]
    Binary,
    #[error("it has {0} bytes; at most {MAX_BYTES} are read")]
    TooLarge(u64),
    #[error("it cannot be opened: {0}")]
    Inaccessible(String),
}

/// Tells every file below `root`, or `root` itself when it is a file, sorted by name. What ignore files name, hidden
/// files and links are passed over; `root` itself may be any of these, since somebody named it.
pub fn walk(root: &Path, found: &mut dyn FnMut(WalkEntry)) {
    let mut builder = WalkBuilder::new(root);
    // Ignore files count without a repository around them, but not those of whoever happens to run this.
    builder
        .require_git(false)
        .git_global(false)
        .follow_links(false);
    builder.sort_by_file_name(std::ffi::OsStr::cmp);
    for entry in builder.build() {
        match entry {
            Ok(entry) => visit(&entry, found),
            Err(error) => found(walk_error(root, &error)),
        }
    }
}

fn visit(entry: &DirEntry, found: &mut dyn FnMut(WalkEntry)) {
    let path = entry.path().to_path_buf();
    // A link that somebody named is followed.
    let metadata = if entry.depth() == 0 {
        std::fs::metadata(&path).map_err(|error| error.to_string())
    } else {
        entry.metadata().map_err(|error| error.to_string())
    };
    match metadata {
        Ok(metadata) if metadata.is_file() => found(classify(path, &metadata)),
        Ok(_) => {}
        Err(why) => found(WalkEntry::Skipped {
            path,
            reason: SkipReason::Inaccessible(why),
        }),
    }
}

fn classify(path: PathBuf, metadata: &Metadata) -> WalkEntry {
    let bytes = metadata.len();
    if kinds::has_binary_extension(&path) {
        WalkEntry::Skipped {
            path,
            reason: SkipReason::Binary,
        }
    } else if bytes > MAX_BYTES {
        WalkEntry::Skipped {
            path,
            reason: SkipReason::TooLarge(bytes),
        }
    } else {
        WalkEntry::File {
            path,
            bytes,
            modified: metadata.modified().ok(),
        }
    }
}

fn walk_error(root: &Path, error: &ignore::Error) -> WalkEntry {
    let path = error_path(error).unwrap_or(root).to_path_buf();
    let why = error
        .io_error()
        .map_or_else(|| error.to_string(), ToString::to_string);
    WalkEntry::Skipped {
        path,
        reason: SkipReason::Inaccessible(why),
    }
}

fn error_path(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => {
            error_path(err)
        }
        _ => None,
    }
}
