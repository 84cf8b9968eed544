//! The folder: how it is opened, made and wiped while others may be doing the same. Whoever makes or wipes an index
//! holds the lock of the writer meanwhile.

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

/// Goes up with every change to the fields or to what counts as a word: each has a folder of its own, so that an older
/// process that still runs is not disturbed.
const FORMAT: u32 = 2;
const META: &str = "meta.json";
pub(super) const ID: &str = "id";
pub(super) const COLLECTION: &str = "collection";
const TEXT: &str = "text";
const ANALYZER: &str = "lango";
/// How long somebody else may take to make an index.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
pub(super) struct IndexFields {
    pub id: Field,
    pub collection: Field,
    /// Text, heading and title in one, told apart by how often their words count.
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
    let words = TextFieldIndexing::default()
        .set_tokenizer(ANALYZER)
        .set_index_option(IndexRecordOption::WithFreqs);
    schema.add_text_field(TEXT, TextOptions::default().set_indexing_options(words));
    schema.build()
}

/// Which state of the index is there: every commit replaces the file that lists its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IndexStamp {
    inode: u64,
    length: u64,
    modified: Option<SystemTime>,
}

impl IndexStamp {
    pub fn load(folder: &Path) -> Result<Self, LexicalError> {
        use std::os::unix::fs::MetadataExt;
        let found = fs::metadata(folder.join(META)).map_err(|error| match error.kind() {
            ErrorKind::NotFound => LexicalError::Damaged {
                folder: folder.to_path_buf(),
                reason: error.to_string(),
            },
            _ => LexicalError::from_io(&error, folder),
        })?;
        Ok(Self {
            inode: found.ino(),
            length: found.len(),
            modified: found.modified().ok(),
        })
    }
}

/// Opens what is there and lets `read` look at all of it; where that cannot be, begins anew. Returns the folder of the
/// format as well.
pub(super) fn open<T>(
    folder: &Path,
    read: impl Fn(&Path, &Index) -> Result<T, LexicalError>,
) -> Result<(PathBuf, Index, T), LexicalError> {
    remove_older_formats(folder);
    let folder = format_dir(folder, FORMAT);
    create_private_dir(&folder)?;
    let until = Instant::now() + OPEN_TIMEOUT;
    loop {
        let opened =
            || open_existing(&folder).and_then(|index| Ok((read(&folder, &index)?, index)));
        match catch_panics(&folder, opened) {
            Ok((read, index)) => return Ok((folder, index, read)),
            Err(LexicalError::Damaged { reason: why, .. }) => match lock(&folder) {
                Ok(held) => recreate(&folder, &why, held)?,
                // Somebody is making it at this moment.
                Err(LexicalError::Busy { .. }) if Instant::now() < until => {
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
    let _held = lock(&folder)?;
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
        let why = "it has other fields".to_owned();
        return Err(LexicalError::Damaged {
            folder: folder.to_path_buf(),
            reason: why,
        });
    }
    index
        .tokenizers()
        .register(ANALYZER, SectionTokenizer::default());
    Ok(index)
}

/// Another process may have made it between our look and our lock, so it is looked at once more.
fn recreate(folder: &Path, why: &str, _held: DirectoryLock) -> Result<(), LexicalError> {
    let look = || {
        let index = open_existing(folder)?;
        super::query::IndexSnapshot::open(&index)
            .map_err(|error| LexicalError::from_tantivy(error, folder))
    };
    if catch_panics(folder, look).is_ok() {
        return Ok(());
    }
    if folder.join(META).exists() {
        tracing::warn!(folder = %folder.display(), why, "the search index is built anew");
    }
    remove_files(folder)?;
    let made = Index::builder()
        .schema(schema())
        .settings(IndexSettings::default())
        .create_in_dir(folder);
    made.map(drop)
        .map_err(|error| LexicalError::from_tantivy(error, folder))
}

/// Files that were cut short, by a power failure for instance, are not always told from whole ones before they are read.
fn catch_panics<T>(
    folder: &Path,
    look: impl FnOnce() -> Result<T, LexicalError>,
) -> Result<T, LexicalError> {
    // Nothing is kept of what was begun.
    catch_unwind(AssertUnwindSafe(look)).unwrap_or_else(|_| {
        let why = "its parts do not fit together".to_owned();
        Err(LexicalError::Damaged {
            folder: folder.to_path_buf(),
            reason: why,
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

/// Everything but the locks, which others may be waiting for. The list of parts goes first: without it nobody looks
/// for the rest.
fn remove_files(folder: &Path) -> Result<(), LexicalError> {
    let trouble = |error: std::io::Error| LexicalError::from_io(&error, folder);
    let is_lock = |file: &Path| {
        [&*INDEX_WRITER_LOCK, &*META_LOCK]
            .iter()
            .any(|lock| file.ends_with(&lock.filepath))
    };
    let found: Result<Vec<_>, _> = fs::read_dir(folder).map_err(trouble)?.collect();
    let mut files: Vec<PathBuf> = found
        .map_err(trouble)?
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
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(trouble(error)),
            _ => {}
        }
    }
    Ok(())
}

/// Whatever an older Lango left; one that still writes keeps its own.
fn remove_older_formats(folder: &Path) {
    for older in (0..FORMAT)
        .map(|format| format_dir(folder, format))
        .filter(|older| older.is_dir())
    {
        if lock(&older).is_ok()
            && let Err(error) = fs::remove_dir_all(&older)
        {
            tracing::warn!(folder = %older.display(), %error, "an old search index could not be removed");
        }
    }
}

/// What was read stays the user's alone.
fn create_private_dir(folder: &Path) -> Result<(), LexicalError> {
    use std::os::unix::fs::DirBuilderExt;
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder);
    made.map_err(|error| LexicalError::from_io(&error, folder))
}
