//! Finding passages by their words. The index is derived: its folder can be deleted at any time, and whoever holds the
//! writer fills it again from where the texts are kept.

mod analyzer;
mod index_directory;
mod normalize;
mod query;
mod stemmer;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tantivy::Index;

pub use self::analyzer::{analyze, analyze_query};
use self::index_directory::{IndexFields, IndexStamp};
use self::query::IndexSnapshot;
pub use self::writer::LexicalWriter;

/// A chunk of a document, as it is searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LexicalEntry {
    pub id: u64,
    pub collection: String,
    pub text: String,
    /// What the chunk stands under.
    pub heading: String,
    /// The document's.
    pub title: String,
}

#[derive(Debug, thiserror::Error)]
pub enum LexicalError {
    #[error("the search index in {} cannot be read or written: {reason}", folder.display())]
    Disk { folder: PathBuf, reason: String },
    /// `Lexical::open` begins anew where it finds one like this.
    #[error("the search index in {} is damaged: {reason}", folder.display())]
    Damaged { folder: PathBuf, reason: String },
    #[error("another process keeps the search index in {} busy", folder.display())]
    Busy { folder: PathBuf },
}

/// The index as a process sees it. Any number of processes may read one folder; one at a time writes.
pub struct LexicalIndex {
    folder: PathBuf,
    index: Index,
    fields: IndexFields,
    cached: Mutex<CachedSnapshot>,
}

/// The last state that was looked at, and how to tell that there is a newer one.
#[derive(Clone)]
struct CachedSnapshot {
    stamp: IndexStamp,
    applied_through: u64,
    snapshot: Arc<IndexSnapshot>,
}

impl CachedSnapshot {
    fn load(folder: &Path, index: &Index) -> Result<Self, LexicalError> {
        // First: what comes in between is seen the next time.
        let stamp = IndexStamp::load(folder)?;
        let applied = index_directory::applied_through(index, folder)?;
        let snapshot = IndexSnapshot::open(index)
            .map_err(|error| LexicalError::from_tantivy(error, folder))?;
        Ok(Self {
            stamp,
            applied_through: applied,
            snapshot: Arc::new(snapshot),
        })
    }
}

impl LexicalIndex {
    /// Opens the index or makes an empty one; what is damaged or of an older format is wiped. `needs_rebuild` tells.
    pub fn open(folder: &Path) -> Result<Self, LexicalError> {
        let (folder, index, seen) = index_directory::open(folder, CachedSnapshot::load)?;
        let fields = IndexFields::from_schema(&index.schema())
            .map_err(|error| LexicalError::from_tantivy(error, &folder))?;
        Ok(Self {
            folder,
            index,
            fields,
            cached: Mutex::new(seen),
        })
    }

    /// Wipes the index of a folder, for whoever found it damaged; nobody may be writing to it.
    pub fn wipe(folder: &Path) -> Result<(), LexicalError> {
        index_directory::wipe(folder)
    }

    /// Whether nothing was ever committed: all entries have to be put.
    pub fn needs_rebuild(&self) -> Result<bool, LexicalError> {
        Ok(self.applied_through()? == 0)
    }

    /// The number that the last commit of any process came with; 0 before the first.
    pub fn applied_through(&self) -> Result<u64, LexicalError> {
        Ok(self.current()?.applied_through)
    }

    /// Every name of a collection that an entry has or had.
    pub fn collections(&self) -> Result<Arc<[String]>, LexicalError> {
        Ok(self.snapshot()?.collections())
    }

    /// How many entries can be found.
    pub fn count(&self) -> Result<u64, LexicalError> {
        Ok(self.snapshot()?.count())
    }

    /// Reads everything and compares checksums: true when every byte is as it was written.
    pub fn has_valid_checksums(&self) -> Result<bool, LexicalError> {
        match self.index.validate_checksum() {
            Ok(broken) => Ok(broken.is_empty()),
            Err(error) => match LexicalError::from_tantivy(error, &self.folder) {
                LexicalError::Damaged { .. } => Ok(false),
                other => Err(other),
            },
        }
    }

    /// Nothing when somebody else is writing, here or in another process.
    pub fn try_writer(&self) -> Result<Option<LexicalWriter>, LexicalError> {
        LexicalWriter::try_open(&self.index, self.fields, &self.folder)
    }

    /// The best entries, with their BM25 scores; those that score alike by their ids. Any text is a query; nothing in
    /// it is syntax.
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
        let found = snapshot.search(self.fields, words, collections, limit);
        found.map_err(|error| LexicalError::from_tantivy(error, &self.folder))
    }

    fn snapshot(&self) -> Result<Arc<IndexSnapshot>, LexicalError> {
        Ok(self.current()?.snapshot)
    }

    /// What was committed last, by whichever process. To ask the file system costs a few microseconds; to open the
    /// index again is only done where something changed.
    fn current(&self) -> Result<CachedSnapshot, LexicalError> {
        let stamp = IndexStamp::load(&self.folder)?;
        let mut seen = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.stamp != stamp {
            *seen = CachedSnapshot::load(&self.folder, &self.index)?;
        }
        Ok(seen.clone())
    }
}

impl LexicalError {
    fn from_tantivy(error: tantivy::TantivyError, folder: &Path) -> Self {
        use std::io::ErrorKind::{InvalidData, NotFound, UnexpectedEof};
        use tantivy::TantivyError as Error;
        use tantivy::directory::error::{LockError, OpenReadError};
        let (folder, why) = (folder.to_path_buf(), error.to_string());
        let is_content =
            |error: &std::io::Error| matches!(error.kind(), InvalidData | NotFound | UnexpectedEof);
        match error {
            Error::LockFailure(LockError::LockBusy, _) => Self::Busy { folder },
            Error::IoError(error) if !is_content(&error) => Self::Disk {
                folder,
                reason: why,
            },
            Error::OpenReadError(OpenReadError::IoError { io_error, .. })
                if !is_content(&io_error) =>
            {
                Self::Disk {
                    folder,
                    reason: why,
                }
            }
            Error::LockFailure(..)
            | Error::OpenDirectoryError(_)
            | Error::OpenWriteError(_)
            | Error::SystemError(_)
            | Error::ErrorInThread(_)
            | Error::Poisoned => Self::Disk {
                folder,
                reason: why,
            },
            _ => Self::Damaged {
                folder,
                reason: why,
            },
        }
    }

    fn from_io(error: &std::io::Error, folder: &Path) -> Self {
        Self::Disk {
            folder: folder.to_path_buf(),
            reason: error.to_string(),
        }
    }
}
