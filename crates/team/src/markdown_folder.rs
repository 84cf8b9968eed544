//! The markdown files of a folder, read once: what is shown, compared and used is the same content.

use std::path::{Path, PathBuf};

use lango_domain::text;
use lango_files::{FolderReader, ReadError};

/// More files than this, or more bytes in all, are no team.
const MAX_FILES: usize = 1000;
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// What a folder of prompts or of agents holds.
#[derive(Clone, Debug)]
pub struct MarkdownFolder {
    /// Where it is, for people.
    pub path: PathBuf,
    /// Those that mean something there, by their paths in it.
    pub files: Vec<MarkdownFile>,
    /// Those that mean nothing there; they are not read.
    pub ignored: Vec<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkdownFile {
    /// Relative to the folder.
    pub path: PathBuf,
    pub content: Result<Vec<u8>, ReadError>,
}

/// A folder could not be read at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read the folder {}: {reason}", text::strip_control_chars(&folder.to_string_lossy()))]
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

    /// Reads the files directly in `part` of the folder that `is_meant` knows by name, up to `most` bytes each.
    pub(crate) fn add(
        &mut self,
        folder: &FolderReader,
        part: &Path,
        is_meant: impl Fn(&str) -> bool,
        most: u64,
    ) -> Result<(), MarkdownFolderError> {
        let unreadable = |why| MarkdownFolderError {
            folder: self.path.join(part),
            reason: why,
        };
        for (name, kind) in folder.read_dir(part).map_err(unreadable)? {
            let (path, name) = (part.join(&name), name.to_string_lossy());
            if !name.ends_with(".md") || kind.is_dir() {
                continue;
            }
            if !is_meant(&name) {
                self.ignored.push(path);
                continue;
            }
            if self.files.len() >= MAX_FILES {
                let why = ReadError::Failed(format!("it has more than {MAX_FILES} files"));
                return Err(MarkdownFolderError {
                    folder: self.path.clone(),
                    reason: why,
                });
            }
            let content = folder.read(&path, most.min(MAX_BYTES.saturating_sub(self.bytes())));
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

    /// Where one of its files is, for people.
    pub fn full_path(&self, file: &MarkdownFile) -> PathBuf {
        self.path.join(&file.path)
    }
}
