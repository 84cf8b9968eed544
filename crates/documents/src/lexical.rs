//! The lexical index: BM25 search over chunks. The index is derived data: its directory can be
//! deleted at any time, and the next writer fills it again from the store.

mod index_directory;
mod query;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use lango_text::analyze_query;
use tantivy::Index;

use self::index_directory::{IndexFields, IndexStamp};
use self::query::IndexSnapshot;
pub use self::writer::LexicalWriter;

/// The searchable text of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LexicalEntry {
    pub id: u64,
    pub collection: String,
    pub text: String,
    /// The headings above the chunk.
    pub heading: String,
    /// The title of the document.
    pub title: String,
}

#[derive(Debug, thiserror::Error)]
pub enum LexicalError {
    #[error("cannot read or write the search index in {}: {reason}", folder.display())]
    Disk { folder: PathBuf, reason: String },
    /// `LexicalIndex::open` replaces such an index with an empty one.
    #[error("the search index in {} is corrupt: {reason}", folder.display())]
    Damaged { folder: PathBuf, reason: String },
    #[error("another process is writing to the search index in {}; try again later", folder.display())]
    Busy { folder: PathBuf },
}

/// An open lexical index. Any number of processes may read a directory; one at a time writes.
pub struct LexicalIndex {
    folder: PathBuf,
    index: Index,
    fields: IndexFields,
    cached: Mutex<CachedSnapshot>,
}

/// The last loaded state of the index, with a stamp that changes with every commit.
#[derive(Clone)]
struct CachedSnapshot {
    stamp: IndexStamp,
    applied_through: u64,
    snapshot: Arc<IndexSnapshot>,
}

impl CachedSnapshot {
    fn load(folder: &Path, index: &Index) -> Result<Self, LexicalError> {
        // Taken first: a commit in between is detected on the next load.
        let stamp = IndexStamp::load(folder)?;
        let applied_through = index_directory::applied_through(index, folder)?;
        let snapshot = IndexSnapshot::open(index)
            .map_err(|error| LexicalError::from_tantivy(error, folder))?;
        Ok(Self {
            stamp,
            applied_through,
            snapshot: Arc::new(snapshot),
        })
    }
}

impl LexicalIndex {
    /// Opens the index, or creates an empty one if it is missing, corrupt or of an older format;
    /// `needs_rebuild` then returns true.
    pub fn open(folder: &Path) -> Result<Self, LexicalError> {
        let (folder, index, cached) = index_directory::open(folder, CachedSnapshot::load)?;
        let fields = IndexFields::from_schema(&index.schema())
            .map_err(|error| LexicalError::from_tantivy(error, &folder))?;
        Ok(Self {
            folder,
            index,
            fields,
            cached: Mutex::new(cached),
        })
    }

    /// Deletes a corrupt index. Fails if another process is writing to it.
    pub fn wipe(folder: &Path) -> Result<(), LexicalError> {
        index_directory::wipe(folder)
    }

    /// Returns true if nothing was ever committed, so that all entries have to be added.
    pub fn needs_rebuild(&self) -> Result<bool, LexicalError> {
        Ok(self.applied_through()? == 0)
    }

    /// Returns the change number of the last commit of any process; 0 before the first.
    pub fn applied_through(&self) -> Result<u64, LexicalError> {
        Ok(self.current()?.applied_through)
    }

    /// Returns the names of all collections, including those whose entries were all removed.
    pub fn collections(&self) -> Result<Arc<[String]>, LexicalError> {
        Ok(self.snapshot()?.collections())
    }

    /// Returns the number of entries.
    pub fn count(&self) -> Result<u64, LexicalError> {
        Ok(self.snapshot()?.count())
    }

    /// Reads the whole index and returns true if all checksums match.
    pub fn has_valid_checksums(&self) -> Result<bool, LexicalError> {
        match self.index.validate_checksum() {
            Ok(corrupt) => Ok(corrupt.is_empty()),
            Err(error) => match LexicalError::from_tantivy(error, &self.folder) {
                LexicalError::Damaged { .. } => Ok(false),
                other => Err(other),
            },
        }
    }

    /// Opens the writer. Returns `None` if this or another process has one already.
    pub fn try_writer(&self) -> Result<Option<LexicalWriter>, LexicalError> {
        LexicalWriter::try_open(&self.index, self.fields, &self.folder)
    }

    /// Returns the best entries with their BM25 scores; equal scores are ordered by id. Any text is
    /// a valid query: there is no query syntax.
    pub fn search(
        &self,
        query: &str,
        collections: Option<&[String]>,
        limit: usize,
    ) -> Result<Vec<(u64, f32)>, LexicalError> {
        let words = analyze_query(query);
        if words.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let snapshot = self.snapshot()?;
        snapshot
            .search(self.fields, words, collections, limit)
            .map_err(|error| LexicalError::from_tantivy(error, &self.folder))
    }

    fn snapshot(&self) -> Result<Arc<IndexSnapshot>, LexicalError> {
        Ok(self.current()?.snapshot)
    }

    /// Returns the state of the last commit of any process. The stamp costs a few microseconds; the
    /// index is only reopened if the stamp changed.
    fn current(&self) -> Result<CachedSnapshot, LexicalError> {
        let stamp = IndexStamp::load(&self.folder)?;
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.stamp != stamp {
            *cached = CachedSnapshot::load(&self.folder, &self.index)?;
        }
        Ok(cached.clone())
    }
}

impl LexicalError {
    fn from_tantivy(error: tantivy::TantivyError, folder: &Path) -> Self {
        use std::io::ErrorKind::{InvalidData, NotFound, UnexpectedEof};
        use tantivy::TantivyError as Error;
        use tantivy::directory::error::{LockError, OpenReadError};
        let (folder, reason) = (folder.to_path_buf(), error.to_string());
        let is_content_error =
            |error: &std::io::Error| matches!(error.kind(), InvalidData | NotFound | UnexpectedEof);
        match error {
            Error::LockFailure(LockError::LockBusy, _) => Self::Busy { folder },
            Error::IoError(error) if !is_content_error(&error) => Self::Disk { folder, reason },
            Error::OpenReadError(OpenReadError::IoError { io_error, .. })
                if !is_content_error(&io_error) =>
            {
                Self::Disk { folder, reason }
            }
            Error::LockFailure(..)
            | Error::OpenDirectoryError(_)
            | Error::OpenWriteError(_)
            | Error::SystemError(_)
            | Error::ErrorInThread(_)
            | Error::Poisoned => Self::Disk { folder, reason },
            _ => Self::Damaged { folder, reason },
        }
    }

    fn from_io(error: &std::io::Error, folder: &Path) -> Self {
        Self::Disk {
            folder: folder.to_path_buf(),
            reason: error.to_string(),
        }
    }
}
