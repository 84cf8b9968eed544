//! The directory of the index: opens, creates and wipes it while other processes may do the same.
//! Creating and wiping happen under the writer lock.

use std::fs;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use tantivy::directory::{Directory, DirectoryLock, INDEX_WRITER_LOCK, META_LOCK, MmapDirectory};
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, STRING, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::{Index, IndexSettings};

use super::LexicalError;
use super::writer::SectionTokenizer;

/// Increment with every change of the fields or the analyzer. Each format has its own directory,
/// so that a running process of an older version is not disturbed.
const FORMAT: u32 = 2;
const META: &str = "meta.json";
pub(super) const ID: &str = "id";
pub(super) const COLLECTION: &str = "collection";
const TEXT: &str = "text";
const ANALYZER: &str = "lango";
/// The time to wait for another process that creates the index.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
pub(super) struct IndexFields {
    pub id: Field,
    pub collection: Field,
    /// Text, heading and title in one field; terms of headings and titles are repeated.
    pub text: Field,
}

impl IndexFields {
    pub fn from_schema(schema: &Schema) -> tantivy::Result<Self> {
        Ok(Self {
            id: schema.get_field(ID)?,
            collection: schema.get_field(COLLECTION)?,
            text: schema.get_field(TEXT)?,
        })
    }
}

fn schema() -> Schema {
    let mut schema = Schema::builder();
    schema.add_u64_field(ID, INDEXED | FAST);
    schema.add_text_field(COLLECTION, STRING | FAST);
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(ANALYZER)
        .set_index_option(IndexRecordOption::WithFreqs);
    schema.add_text_field(TEXT, TextOptions::default().set_indexing_options(indexing));
    schema.build()
}

/// Identifies a state of the index: every commit replaces the file that lists its segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IndexStamp {
    inode: u64,
    length: u64,
    modified: Option<SystemTime>,
}

impl IndexStamp {
    pub fn load(folder: &Path) -> Result<Self, LexicalError> {
        use std::os::unix::fs::MetadataExt;
        let metadata = fs::metadata(folder.join(META)).map_err(|error| match error.kind() {
            ErrorKind::NotFound => LexicalError::Damaged {
                folder: folder.to_path_buf(),
                reason: error.to_string(),
            },
            _ => LexicalError::from_io(&error, folder),
        })?;
        Ok(Self {
            inode: metadata.ino(),
            length: metadata.len(),
            modified: metadata.modified().ok(),
        })
    }
}

/// Opens the index and reads it with `load`; recreates it if that fails. Also returns the
/// directory of the current format.
pub(super) fn open<T>(
    folder: &Path,
    load: impl Fn(&Path, &Index) -> Result<T, LexicalError>,
) -> Result<(PathBuf, Index, T), LexicalError> {
    remove_older_formats(folder);
    let folder = format_dir(folder, FORMAT);
    create_private_dir(&folder)?;
    let deadline = Instant::now() + OPEN_TIMEOUT;
    loop {
        let open_and_load =
            || open_existing(&folder).and_then(|index| Ok((load(&folder, &index)?, index)));
        match catch_panics(&folder, open_and_load) {
            Ok((loaded, index)) => return Ok((folder, index, loaded)),
            Err(LexicalError::Damaged { reason, .. }) => match lock(&folder) {
                Ok(lock) => recreate(&folder, &reason, lock)?,
                // Another process is creating it.
                Err(LexicalError::Busy { .. }) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => return Err(error),
            },
            Err(error) => return Err(error),
        }
    }
}

pub(super) fn wipe(folder: &Path) -> Result<(), LexicalError> {
    let folder = format_dir(folder, FORMAT);
    create_private_dir(&folder)?;
    let _lock = lock(&folder)?;
    remove_files(&folder)
}

pub(super) fn applied_through(index: &Index, folder: &Path) -> Result<u64, LexicalError> {
    let metas = index
        .load_metas()
        .map_err(|error| LexicalError::from_tantivy(error, folder))?;
    Ok(metas
        .payload
        .and_then(|payload| payload.parse().ok())
        .unwrap_or(0))
}

fn format_dir(folder: &Path, format: u32) -> PathBuf {
    folder.join(format!("v{format}"))
}

fn open_existing(folder: &Path) -> Result<Index, LexicalError> {
    let index =
        Index::open_in_dir(folder).map_err(|error| LexicalError::from_tantivy(error, folder))?;
    if index.schema() != schema() {
        let reason = "its fields differ from the expected ones".to_owned();
        return Err(LexicalError::Damaged {
            folder: folder.to_path_buf(),
            reason,
        });
    }
    index
        .tokenizers()
        .register(ANALYZER, SectionTokenizer::default());
    Ok(index)
}

/// Replaces the index with an empty one, unless another process did so before the lock was taken.
fn recreate(folder: &Path, reason: &str, _lock: DirectoryLock) -> Result<(), LexicalError> {
    let open = || {
        let index = open_existing(folder)?;
        super::query::IndexSnapshot::open(&index)
            .map_err(|error| LexicalError::from_tantivy(error, folder))
    };
    if catch_panics(folder, open).is_ok() {
        return Ok(());
    }
    if folder.join(META).exists() {
        tracing::warn!(folder = %folder.display(), reason, "rebuilding the search index");
    }
    remove_files(folder)?;
    Index::builder()
        .schema(schema())
        .settings(IndexSettings::default())
        .create_in_dir(folder)
        .map(drop)
        .map_err(|error| LexicalError::from_tantivy(error, folder))
}

/// Runs `work` and turns a panic into an error: tantivy panics on some truncated files, which a
/// power failure may leave.
fn catch_panics<T>(
    folder: &Path,
    work: impl FnOnce() -> Result<T, LexicalError>,
) -> Result<T, LexicalError> {
    // Unwind safe: a partial result is dropped.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let reason = "its files are inconsistent".to_owned();
        Err(LexicalError::Damaged {
            folder: folder.to_path_buf(),
            reason,
        })
    })
}

fn lock(folder: &Path) -> Result<DirectoryLock, LexicalError> {
    let directory = MmapDirectory::open(folder)
        .map_err(|error| LexicalError::from_tantivy(error.into(), folder))?;
    let locked = directory.acquire_lock(&INDEX_WRITER_LOCK);
    locked.map_err(|error| {
        LexicalError::from_tantivy(tantivy::TantivyError::LockFailure(error, None), folder)
    })
}

/// Removes all files except the locks, for which other processes may wait. The list of segments is
/// removed first: without it, no process reads the rest.
fn remove_files(folder: &Path) -> Result<(), LexicalError> {
    let to_error = |error: std::io::Error| LexicalError::from_io(&error, folder);
    let is_lock = |file: &Path| {
        [&*INDEX_WRITER_LOCK, &*META_LOCK]
            .iter()
            .any(|lock| file.ends_with(&lock.filepath))
    };
    let entries: Result<Vec<_>, _> = fs::read_dir(folder).map_err(to_error)?.collect();
    let mut files: Vec<PathBuf> = entries
        .map_err(to_error)?
        .into_iter()
        .map(|entry| entry.path())
        .collect();
    files.sort_by_key(|file| !file.ends_with(META));
    for file in files.iter().filter(|file| !is_lock(file)) {
        let removed = if file.is_dir() {
            fs::remove_dir_all(file)
        } else {
            fs::remove_file(file)
        };
        match removed {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(to_error(error)),
            _ => {}
        }
    }
    Ok(())
}

/// Removes the indexes of older formats, except those that an older process is writing to.
fn remove_older_formats(folder: &Path) {
    for older in (0..FORMAT)
        .map(|format| format_dir(folder, format))
        .filter(|older| older.is_dir())
    {
        if lock(&older).is_ok()
            && let Err(error) = fs::remove_dir_all(&older)
        {
            tracing::warn!(folder = %older.display(), %error, "cannot remove an old search index");
        }
    }
}

/// Creates a directory that only the user can access.
fn create_private_dir(folder: &Path) -> Result<(), LexicalError> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| LexicalError::from_io(&error, folder))
}
