//! Vectors on disk, so that a new process need not ask for each of them: a file that only grows, next to the index of
//! words and as derived as that. Whoever holds its lock writes what everyone changed; the others read what was added.
//! Nothing is flushed: what a crash tore is noticed by its fingerprint, cut off, and made again.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use lango_domain::documents::ChunkOwner;

use super::batch::{NewVectorBatch, NewVectorRow, VectorBatch};
use super::{Filter, VectorError, VectorMatrix};
use crate::fingerprint;

/// At the beginning of the file; another form has another number.
const FORMAT: [u8; 8] = *b"lvec0001";
/// So many rows may be gone before the file is written anew, unless more are left.
const MAX_REMOVED: usize = 10_000;
/// So many rows are written at one time when it is.
const ROWS_PER_BATCH: usize = 4_000;

/// All vectors of one embedder, in memory as far as they were read.
pub struct VectorFile {
    path: PathBuf,
    /// Kept open: as long as it is, no other file can be taken for it.
    file: Option<File>,
    /// What was read of it.
    length: u64,
    applied_through: u64,
    removed_rows: usize,
    owners: Vec<ChunkOwner>,
    owner_ids: HashMap<ChunkOwner, u32>,
    vectors: VectorMatrix,
}

/// A vector, and whose it is.
pub struct VectorRecord {
    pub id: u64,
    pub owner: ChunkOwner,
    pub vector: Vec<f32>,
}

/// Held by the one process that writes; goes with it.
pub struct WriterLock(File);

impl VectorFile {
    /// Nothing is read until `refresh`.
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

    /// The last change of the store that is in here.
    pub fn applied_through(&self) -> u64 {
        self.applied_through
    }

    /// Bytes that the rows take in memory.
    pub fn memory_bytes(&self) -> usize {
        self.vectors.memory_bytes()
    }

    /// The nearest of those whose owner is wanted.
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

    /// Whether `refresh` has nothing to do.
    pub fn is_current(&self) -> bool {
        let Some(Ok(known)) = self.file.as_ref().map(File::metadata) else {
            return false;
        };
        fs::metadata(&self.path)
            .is_ok_and(|found| is_same_file(&found, &known) && found.len() == self.length)
    }

    /// Reads what was added since; a file that was replaced or deleted begins anew.
    pub fn refresh(&mut self) -> Result<(), VectorFileError> {
        Ok(self.read_appended()?)
    }

    fn read_appended(&mut self) -> io::Result<()> {
        let found = match fs::metadata(&self.path) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.reset(None);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let known = self.file.as_ref().map(File::metadata).transpose()?;
        if !known.is_some_and(|known| is_same_file(&found, &known)) || found.len() < self.length {
            let opened = OpenOptions::new().read(true).write(true).open(&self.path)?;
            self.reset(Some(opened));
        }
        if found.len() > self.length {
            self.read_batches(found.len())
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

    fn read_batches(&mut self, until: u64) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        file.seek(SeekFrom::Start(self.length))?;
        let mut bytes = Vec::with_capacity((until - self.length) as usize);
        file.take(until - self.length).read_to_end(&mut bytes)?;
        let mut rest = bytes.as_slice();
        if self.length == 0 {
            let Some(behind) = rest.strip_prefix(&FORMAT) else {
                return Ok(());
            };
            (self.length, rest) = (FORMAT.len() as u64, behind);
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

    /// Whether the batch could belong to what was read before.
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

    /// Nothing when somebody else writes, here or in another process.
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

    /// Writes what changed, up to a change of the store. Nothing is written where the folder was deleted meanwhile;
    /// the next `refresh` tells from where to go on.
    pub fn append(
        &mut self,
        lock: &WriterLock,
        upto: u64,
        removed: Vec<u64>,
        measured: Vec<VectorRecord>,
    ) -> Result<(), VectorFileError> {
        let batch = self.build_batch(upto, removed, measured)?;
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
        upto: u64,
        removed: Vec<u64>,
        measured: Vec<VectorRecord>,
    ) -> Result<NewVectorBatch, VectorError> {
        let dimensions = match self.vectors.dimensions() {
            0 => measured.first().map_or(0, |row| row.vector.len()),
            known => known,
        };
        let shape = VectorMatrix::new(dimensions);
        let mut batch = NewVectorBatch {
            through: upto,
            removed,
            dimensions,
            ..NewVectorBatch::default()
        };
        let mut fresh: HashMap<ChunkOwner, u32> = HashMap::new();
        for VectorRecord { id, owner, vector } in measured {
            let owner = match self.owner_ids.get(&owner).or_else(|| fresh.get(&owner)) {
                Some(number) => *number,
                None => {
                    let number = (self.owners.len() + batch.owners.len()) as u32;
                    batch.owners.push(owner.clone());
                    fresh.insert(owner, number);
                    number
                }
            };
            batch.rows.push(NewVectorRow {
                id,
                owner,
                vector: shape.quantize(&vector)?,
            });
        }
        Ok(batch)
    }

    /// Behind what was read; what a crash left there is not whole and goes.
    fn append_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        file.set_len(self.length)?;
        file.seek(SeekFrom::Start(self.length))?;
        file.write_all(bytes)?;
        // As everybody else will read it.
        match VectorBatch::parse(bytes) {
            Some((batch, length)) if self.apply(&batch, length) => {
                self.length += length as u64;
                Ok(())
            }
            _ => Err(io::Error::new(
                ErrorKind::InvalidData,
                "what was written cannot be read back",
            )),
        }
    }

    /// All that is left, as it would have been written without what is gone.
    fn compacted_batches(&self) -> Vec<NewVectorBatch> {
        let numbers: Vec<usize> = (0..self.vectors.len()).collect();
        let mut batches: Vec<NewVectorBatch> = numbers
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

    /// Takes the place of the file at once; whoever reads the old one notices that it is another.
    fn replace_file(&mut self, batches: &[NewVectorBatch]) -> io::Result<()> {
        let new = self.path.with_extension("new");
        let mut file = private_file_options()
            .create(true)
            .truncate(true)
            .open(&new)?;
        file.write_all(&FORMAT)?;
        for batch in batches {
            file.write_all(&batch.to_bytes())?;
        }
        fs::rename(&new, &self.path)?;
        self.read_appended()
    }
}

/// Why vectors could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum VectorFileError {
    #[error("the vectors beside the index of words cannot be read or written: {0}")]
    Disk(#[from] io::Error),
    #[error(transparent)]
    Vector(#[from] VectorError),
}

impl WriterLock {
    /// Whether it is still the lock that others find; with its folder it may have been deleted.
    fn is_lock_at(&self, path: &Path) -> bool {
        matches!((self.0.metadata(), fs::metadata(path)), (Ok(own), Ok(found)) if is_same_file(&own, &found))
    }
}

fn is_same_file(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// What was read stays the user's alone.
fn private_file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}
