//! The key file: random bytes that open the vault without a question.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustix::fs::OFlags;
use zeroize::Zeroizing;

use crate::cipher::{SymmetricKey, random_hex, to_hex};
use crate::error::VaultError;

/// The first word of a key file. The number is the version of its form.
const LABEL: &str = "lango-vault-key-1";
/// A key file is shorter. More is not read.
const MAX_BYTES: u64 = 1_000;
/// Bytes of the checksum, which tells a damaged file from a wrong one.
const CHECKSUM_BYTES: usize = 4;

/// Who guards the permissions of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileGuard {
    /// The file must be readable by its owner only.
    Owner,
    /// The system gives the file to this process, and sets its permissions.
    System,
}

/// Reads a key file. Returns `None` if there is none.
pub fn read_key_file(file: &Path, guard: FileGuard) -> Result<Option<SymmetricKey>, VaultError> {
    let error = |error: io::Error| file_error(file, "read", &error);
    let invalid = |reason| VaultError::KeyFileInvalid {
        file: file.to_path_buf(),
        reason,
    };
    let flags = (OFlags::NONBLOCK | OFlags::CLOEXEC).bits() as i32;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(file);
    let opened = match opened {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(error)?,
    };
    let metadata = opened.metadata().map_err(error)?;
    if !metadata.is_file() {
        return Err(invalid("it is not a file"));
    }
    let mode = metadata.permissions().mode() & 0o777;
    if guard == FileGuard::Owner && mode & 0o077 != 0 {
        return Err(VaultError::KeyFileExposed {
            file: file.to_path_buf(),
            mode,
        });
    }
    let mut text = Zeroizing::new(String::new());
    let read = opened.take(MAX_BYTES).read_to_string(&mut text);
    match read {
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            return Err(invalid("it is damaged"));
        }
        read => read.map_err(error)?,
    };
    parse(&text).map(Some).map_err(invalid)
}

/// Creates the key file, or reads the one that another process created at the same time.
pub fn create_key_file(file: &Path) -> Result<SymmetricKey, VaultError> {
    let error = |error: io::Error| file_error(file, "created", &error);
    if let Some(folder) = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(error)?;
    }
    let key = SymmetricKey::random()?;
    // A link appears with its whole content, unlike a file that is written in place.
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", random_hex(6)?));
    let draft = file.with_file_name(name);
    let linked = write_private(&draft, format_key(&key).as_bytes())
        .and_then(|()| fs::hard_link(&draft, file))
        .and_then(|()| sync_folder(file));
    let _ = fs::remove_file(&draft);
    match linked {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let found = read_key_file(file, FileGuard::Owner)?;
            found.ok_or_else(|| VaultError::KeyFileMissing(file.to_path_buf()))
        }
        linked => linked.map(|()| key).map_err(error),
    }
}

/// Writes a new file that only the owner can read, and waits until it is on the disk.
pub(crate) fn write_private(file: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut created = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)?;
    let written = created.write_all(content).and_then(|()| created.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(file);
    }
    written
}

pub(crate) fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

pub(crate) fn file_error(file: &Path, action: &'static str, error: &io::Error) -> VaultError {
    VaultError::File {
        file: file.to_path_buf(),
        action,
        reason: error.to_string(),
    }
}

fn format_key(key: &SymmetricKey) -> Zeroizing<String> {
    let encoded = Zeroizing::new(URL_SAFE_NO_PAD.encode(key.as_bytes()));
    let checksum = checksum(&encoded);
    Zeroizing::new(format!("{LABEL} {} {checksum}\n", *encoded))
}

fn parse(text: &str) -> Result<SymmetricKey, &'static str> {
    let mut words = text.split_ascii_whitespace();
    match words.next() {
        Some(LABEL) => {}
        None => return Err("it is empty"),
        Some(_) => return Err("it is not a key file of this version of Lango"),
    }
    let (Some(encoded), Some(found), None) = (words.next(), words.next(), words.next()) else {
        return Err("it is not complete");
    };
    if found != checksum(encoded) {
        return Err("it is damaged");
    }
    let bytes = URL_SAFE_NO_PAD.decode(encoded).map(Zeroizing::new);
    let bytes = bytes.map_err(|_| "it is damaged")?;
    SymmetricKey::from_slice(&bytes).ok_or("it is damaged")
}

fn checksum(encoded: &str) -> String {
    let hash = blake3::derive_key("lango vault key file checksum 1", encoded.as_bytes());
    to_hex(&hash[..CHECKSUM_BYTES])
}
