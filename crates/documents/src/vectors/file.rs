//! The vector file: an append-only file next to the lexical index, so that a new process does not
//! have to load each vector from the store. Like the index, it is derived data.
//!
//! The process that holds the lock appends the changes of all processes; the others read what was
//! appended. Nothing is synced to disk: a batch that a crash truncated does not match its
//! fingerprint, is removed and written again.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use lango_domain::documents::ChunkOwner;

use super::batch::{NewVectorBatch, NewVectorRow, VectorBatch};
use super::{Filter, VectorError, VectorMatrix};
use lango_text::fingerprint;

/// The start of the file, with the version of the format.
const FORMAT: [u8; 8] = *b"lvec0001";
/// The file is compacted if more rows than this, and more than remain, were removed.
const MAX_REMOVED: usize = 10_000;
/// Rows per batch in a compacted file.
const ROWS_PER_BATCH: usize = 4_000;

/// The vectors of one embedder, in memory as far as the file was read.
pub struct VectorFile {
    path: PathBuf,
    /// Kept open, so that its inode number is not reused for another file.
    file: Option<File>,
    /// The number of bytes read.
    length: u64,
    applied_through: u64,
    removed_rows: usize,
    owners: Vec<ChunkOwner>,
    owner_ids: HashMap<ChunkOwner, u32>,
    vectors: VectorMatrix,
}

/// A vector with the owner of its chunk.
pub struct VectorRecord {
    pub id: u64,
    pub owner: ChunkOwner,
    pub vector: Vec<f32>,
}

/// The lock of the writing process, released when it is dropped.
pub struct WriterLock(File);

impl VectorFile {
    /// Creates an empty instance; `refresh` reads the file.
    pub fn new(folder: &Path, embedder: &str) -> Self {
        let path = folder.join(format!("{:016x}.vectors", fingerprint(embedder.as_bytes())));
        Self {
            path,
            file: None,
            length: 0,
            applied_through: 0,
            removed_rows: 0,
            owners: Vec::new(),
            owner_ids: HashMap::new(),
            vectors: VectorMatrix::default(),
        }
    }

    /// Returns the last change of the store that the file contains.
    pub fn applied_through(&self) -> u64 {
        self.applied_through
    }

    /// Returns the size of the rows in memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.vectors.memory_bytes()
    }

    /// Returns the nearest vectors among those whose owner passes `is_wanted`.
    pub fn search(
        &self,
        query: &[f32],
        limit: usize,
        is_wanted: impl Fn(&ChunkOwner) -> bool,
    ) -> Result<Vec<(u64, f32)>, VectorError> {
        if self.vectors.is_empty() {
            return Ok(Vec::new());
        }
        let wanted: Vec<bool> = self.owners.iter().map(is_wanted).collect();
        let filter = |owner: u32| wanted.get(owner as usize).copied().unwrap_or(false);
        let filter: Option<&Filter<'_>> = if wanted.iter().all(|is_wanted| *is_wanted) {
            None
        } else {
            Some(&filter)
        };
        self.vectors.search(query, limit, filter)
    }

    /// Returns true if `refresh` has nothing to do.
    pub fn is_current(&self) -> bool {
        let Some(Ok(opened)) = self.file.as_ref().map(File::metadata) else {
            return false;
        };
        fs::metadata(&self.path)
            .is_ok_and(|current| is_same_file(&current, &opened) && current.len() == self.length)
    }

    /// Reads the batches appended since the last call. Starts over if the file was replaced or deleted.
    pub fn refresh(&mut self) -> Result<(), VectorFileError> {
        Ok(self.read_appended()?)
    }

    fn read_appended(&mut self) -> io::Result<()> {
        let current = match fs::metadata(&self.path) {
            Ok(current) => current,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.reset(None);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let opened = self.file.as_ref().map(File::metadata).transpose()?;
        let is_same = opened.is_some_and(|opened| is_same_file(&current, &opened));
        if !is_same || current.len() < self.length {
            let file = OpenOptions::new().read(true).write(true).open(&self.path)?;
            self.reset(Some(file));
        }
        if current.len() > self.length {
            self.read_batches(current.len())
        } else {
            Ok(())
        }
    }

    fn reset(&mut self, file: Option<File>) {
        let path = std::mem::take(&mut self.path);
        *self = Self {
            path,
            file,
            ..Self::new(Path::new(""), "")
        };
    }

    fn read_batches(&mut self, file_len: u64) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        file.seek(SeekFrom::Start(self.length))?;
        let mut bytes = Vec::with_capacity((file_len - self.length) as usize);
        file.take(file_len - self.length).read_to_end(&mut bytes)?;
        let mut rest = bytes.as_slice();
        if self.length == 0 {
            let Some(batches) = rest.strip_prefix(&FORMAT) else {
                return Ok(());
            };
            (self.length, rest) = (FORMAT.len() as u64, batches);
        }
        while let Some((batch, length)) = VectorBatch::parse(rest) {
            if !self.apply(&batch, rest.len()) {
                break;
            }
            self.length += length as u64;
            rest = &rest[length..];
        }
        Ok(())
    }

    /// Applies a batch. Returns false if its dimensions do not match the previous batches.
    fn apply(&mut self, batch: &VectorBatch<'_>, bytes_left: usize) -> bool {
        let mut rows = batch.rows().peekable();
        if rows.peek().is_some() {
            if self.vectors.dimensions() == 0 {
                self.vectors = VectorMatrix::new(batch.dimensions);
                self.vectors.reserve(bytes_left / (16 + 2 * batch.stride()));
            }
            if self.vectors.dimensions() != batch.dimensions
                || self.vectors.stride() != batch.stride()
            {
                return false;
            }
        }
        for owner in &batch.owners {
            self.owner_ids
                .insert(owner.clone(), self.owners.len() as u32);
            self.owners.push(owner.clone());
        }
        for id in &batch.removed {
            self.removed_rows += usize::from(self.vectors.remove(*id));
        }
        rows.for_each(|row| self.removed_rows += usize::from(self.vectors.put_row(&row)));
        self.applied_through = batch.through;
        true
    }

    /// Takes the writer lock. Returns `None` if this or another process holds it.
    pub fn try_lock(&self) -> Result<Option<WriterLock>, VectorFileError> {
        if let Some(folder) = self.path.parent() {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        let lock = private_file_options()
            .create(true)
            .open(self.path.with_extension("lock"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(WriterLock(lock))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }

    /// Appends the changes through a change of the store. Writes nothing if the directory was deleted
    /// meanwhile; after the next `refresh`, `applied_through` returns where to continue.
    pub fn append(
        &mut self,
        lock: &WriterLock,
        through: u64,
        removed: Vec<u64>,
        records: Vec<VectorRecord>,
    ) -> Result<(), VectorFileError> {
        let batch = self.build_batch(through, removed, records)?;
        if !lock.is_lock_at(&self.path.with_extension("lock")) {
            return Ok(());
        }
        if self.file.is_none() || self.length == 0 {
            self.replace_file(&[])?;
        }
        self.append_bytes(&batch.to_bytes())?;
        if self.removed_rows > MAX_REMOVED.max(self.vectors.len()) {
            self.replace_file(&self.compacted_batches())?;
        }
        Ok(self.read_appended()?)
    }

    fn build_batch(
        &self,
        through: u64,
        removed: Vec<u64>,
        records: Vec<VectorRecord>,
    ) -> Result<NewVectorBatch, VectorError> {
        let dimensions = match self.vectors.dimensions() {
            0 => records.first().map_or(0, |record| record.vector.len()),
            known => known,
        };
        let matrix = VectorMatrix::new(dimensions);
        let mut batch = NewVectorBatch {
            through,
            removed,
            dimensions,
            ..NewVectorBatch::default()
        };
        let mut new_owners: HashMap<ChunkOwner, u32> = HashMap::new();
        for VectorRecord { id, owner, vector } in records {
            let owner = match self
                .owner_ids
                .get(&owner)
                .or_else(|| new_owners.get(&owner))
            {
                Some(number) => *number,
                None => {
                    let number = (self.owners.len() + batch.owners.len()) as u32;
                    batch.owners.push(owner.clone());
                    new_owners.insert(owner, number);
                    number
                }
            };
            batch.rows.push(NewVectorRow {
                id,
                owner,
                vector: matrix.quantize(&vector)?,
            });
        }
        Ok(batch)
    }

    /// Writes a batch after the bytes read so far. Incomplete bytes that a crash left there are
    /// overwritten.
    fn append_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        file.set_len(self.length)?;
        file.seek(SeekFrom::Start(self.length))?;
        file.write_all(bytes)?;
        // Applies the batch as other processes read it.
        match VectorBatch::parse(bytes) {
            Some((batch, length)) if self.apply(&batch, length) => {
                self.length += length as u64;
                Ok(())
            }
            _ => Err(io::Error::new(
                ErrorKind::InvalidData,
                "the written batch cannot be read back",
            )),
        }
    }

    /// Returns batches of all remaining rows.
    fn compacted_batches(&self) -> Vec<NewVectorBatch> {
        let all_rows: Vec<usize> = (0..self.vectors.len()).collect();
        let mut batches: Vec<NewVectorBatch> = all_rows
            .chunks(ROWS_PER_BATCH)
            .map(|rows| NewVectorBatch {
                through: self.applied_through,
                dimensions: self.vectors.dimensions(),
                rows: rows.iter().map(|at| self.vectors.row(*at)).collect(),
                ..NewVectorBatch::default()
            })
            .collect();
        if batches.is_empty() {
            batches.push(NewVectorBatch {
                through: self.applied_through,
                ..NewVectorBatch::default()
            });
        }
        batches[0].owners.clone_from(&self.owners);
        batches
    }

    /// Replaces the file atomically; readers of the old file detect the replacement.
    fn replace_file(&mut self, batches: &[NewVectorBatch]) -> io::Result<()> {
        let temporary = self.path.with_extension("new");
        let mut file = private_file_options()
            .create(true)
            .truncate(true)
            .open(&temporary)?;
        file.write_all(&FORMAT)?;
        for batch in batches {
            file.write_all(&batch.to_bytes())?;
        }
        fs::rename(&temporary, &self.path)?;
        self.read_appended()
    }
}

/// An error of the vector file.
#[derive(Debug, thiserror::Error)]
pub enum VectorFileError {
    #[error("cannot read or write the vector file of the search index: {0}")]
    Disk(#[from] io::Error),
    #[error(transparent)]
    Vector(#[from] VectorError),
}

impl WriterLock {
    /// Returns true if the lock file at `path` is still this one; it may have been deleted with its
    /// directory.
    fn is_lock_at(&self, path: &Path) -> bool {
        match (self.0.metadata(), fs::metadata(path)) {
            (Ok(own), Ok(current)) => is_same_file(&own, &current),
            _ => false,
        }
    }
}

fn is_same_file(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Returns options for files that only the user can access.
fn private_file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}
