//! The markdown files of a folder. They are read once, so that the content that is displayed, compared
//! and used is the same.

use std::path::{Path, PathBuf};

use lango_files::{FolderReader, ReadError};
use lango_text::sanitize;

/// Limits for a folder; no team needs more.
const MAX_FILES: usize = 1000;
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The contents of a folder with prompts or agents.
#[derive(Clone, Debug)]
pub struct MarkdownFolder {
    /// The path to display.
    pub path: PathBuf,
    /// The files with a known name.
    pub files: Vec<MarkdownFile>,
    /// Files with unknown names, which are not read.
    pub ignored: Vec<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkdownFile {
    /// Relative to the folder.
    pub path: PathBuf,
    pub content: Result<Vec<u8>, ReadError>,
}

/// The error for a folder that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read the folder {}: {reason}", sanitize::strip_control_chars(&folder.to_string_lossy()))]
pub struct MarkdownFolderError {
    pub folder: PathBuf,
    pub reason: ReadError,
}

impl MarkdownFolder {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            files: Vec::new(),
            ignored: Vec::new(),
        }
    }

    /// Reads the files in the subfolder `part` for which `is_known` returns true, up to `max_bytes` each.
    pub(crate) fn add(
        &mut self,
        folder: &FolderReader,
        part: &Path,
        is_known: impl Fn(&str) -> bool,
        max_bytes: u64,
    ) -> Result<(), MarkdownFolderError> {
        let unreadable = |reason| MarkdownFolderError {
            folder: self.path.join(part),
            reason,
        };
        for (name, kind) in folder.read_dir(part).map_err(unreadable)? {
            let (path, name) = (part.join(&name), name.to_string_lossy());
            if !name.ends_with(".md") || kind.is_dir() {
                continue;
            }
            if !is_known(&name) {
                self.ignored.push(path);
                continue;
            }
            if self.files.len() >= MAX_FILES {
                let reason = ReadError::Failed(format!("it has more than {MAX_FILES} files"));
                return Err(MarkdownFolderError {
                    folder: self.path.clone(),
                    reason,
                });
            }
            let remaining = MAX_BYTES.saturating_sub(self.bytes());
            let content = folder.read(&path, max_bytes.min(remaining));
            self.files.push(MarkdownFile { path, content });
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.files
            .iter()
            .flat_map(|file| &file.content)
            .map(|content| content.len() as u64)
            .sum()
    }

    /// Returns the path of a file to display.
    pub fn full_path(&self, file: &MarkdownFile) -> PathBuf {
        self.path.join(&file.path)
    }
}
