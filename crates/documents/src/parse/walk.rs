//! Walks the files below a path that may be documents.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ignore::{DirEntry, WalkBuilder};
use thiserror::Error;

use super::{MAX_BYTES, file_type};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WalkEntry {
    File {
        path: PathBuf,
        bytes: u64,
        /// `None` if the file system does not record it.
        modified: Option<SystemTime>,
    },
    Skipped {
        path: PathBuf,
        reason: SkipReason,
    },
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SkipReason {
    #[error("binary file")]
    Binary,
    #[error("file too large: {0} bytes; the limit is {MAX_BYTES}")]
    TooLarge(u64),
    #[error("cannot open the file: {0}")]
    Inaccessible(String),
}

/// Calls `on_entry` with every file below `root`, or with `root` itself if it is a file, sorted by
/// name. Omits ignored files, hidden files and links; `root` itself may be any of these, because
/// the user named it.
pub fn walk(root: &Path, on_entry: &mut dyn FnMut(WalkEntry)) {
    let mut builder = WalkBuilder::new(root);
    // Ignore files apply outside of a repository too, but the user's global ones do not.
    builder
        .require_git(false)
        .git_global(false)
        .follow_links(false);
    builder.sort_by_file_name(std::ffi::OsStr::cmp);
    for entry in builder.build() {
        match entry {
            Ok(entry) => visit(&entry, on_entry),
            Err(error) => on_entry(walk_error(root, &error)),
        }
    }
}

fn visit(entry: &DirEntry, on_entry: &mut dyn FnMut(WalkEntry)) {
    let path = entry.path().to_path_buf();
    // A link that the user named is followed.
    let metadata = if entry.depth() == 0 {
        std::fs::metadata(&path).map_err(|error| error.to_string())
    } else {
        entry.metadata().map_err(|error| error.to_string())
    };
    match metadata {
        Ok(metadata) if metadata.is_file() => on_entry(classify(path, &metadata)),
        Ok(_) => {}
        Err(error) => on_entry(WalkEntry::Skipped {
            path,
            reason: SkipReason::Inaccessible(error),
        }),
    }
}

fn classify(path: PathBuf, metadata: &Metadata) -> WalkEntry {
    let bytes = metadata.len();
    if file_type::has_binary_extension(&path) {
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
    let reason = error
        .io_error()
        .map_or_else(|| error.to_string(), ToString::to_string);
    WalkEntry::Skipped {
        path,
        reason: SkipReason::Inaccessible(reason),
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
