//! The data key of an unlocked vault, in a file in memory, for other processes of the user.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use lango_domain::vault::VaultId;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::cipher::{SymmetricKey, random_hex};
use crate::error::VaultError;
use crate::key_file::write_private;

/// File systems that never reach a disk, except through swap.
const MEMORY_FILE_SYSTEMS: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// The file with the data key of one vault.
#[derive(Clone, Debug)]
pub struct UnlockedFile {
    folder: PathBuf,
    vault: VaultId,
}

/// The key of an unlocked vault, and the time at which it locks.
#[derive(Clone, Debug)]
pub struct UnlockedKey {
    pub key: SymmetricKey,
    pub until: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct Content {
    vault: VaultId,
    until: Timestamp,
    key: Zeroizing<String>,
}

impl UnlockedFile {
    /// `runtime_folder` is `$XDG_RUNTIME_DIR`.
    pub fn new(runtime_folder: &Path, vault: &VaultId) -> Self {
        Self {
            folder: runtime_folder.join("lango"),
            vault: vault.clone(),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(format!("vault-{}.json", self.vault.0))
    }

    /// Stores the key until a time. Refuses folders that are on a disk or open to others.
    pub fn store(&self, key: &SymmetricKey, until: Timestamp) -> Result<(), VaultError> {
        let failed = |error: io::Error| {
            VaultError::NoRuntimeFolder(format!("{}: {error}", self.folder.display()))
        };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
            .map_err(failed)?;
        let file_system = rustix::fs::statfs(&self.folder).map_err(|error| failed(error.into()))?;
        if !MEMORY_FILE_SYSTEMS.contains(&(file_system.f_type as u64)) {
            let folder = self.folder.display();
            let reason = format!("{folder} is on a disk, where the key could be found later");
            return Err(VaultError::NoRuntimeFolder(reason));
        }
        self.check_owner().map_err(failed)?;
        let content = Content {
            vault: self.vault.clone(),
            until,
            key: Zeroizing::new(STANDARD.encode(key.as_bytes())),
        };
        let text = Zeroizing::new(serde_json::to_string(&content).unwrap_or_default());
        let draft = self.path().with_extension(random_hex(6)?);
        let stored =
            write_private(&draft, text.as_bytes()).and_then(|()| fs::rename(&draft, self.path()));
        stored
            .inspect_err(|_| drop(fs::remove_file(&draft)))
            .map_err(failed)
    }

    /// Returns the key, if the vault is unlocked. A key whose time is over is removed.
    pub fn load(&self, now: Timestamp) -> Option<UnlockedKey> {
        self.check_owner().ok()?;
        let metadata = fs::symlink_metadata(self.path()).ok()?;
        if !metadata.is_file() || metadata.mode() & 0o077 != 0 {
            return None;
        }
        let text = fs::read_to_string(self.path()).map(Zeroizing::new).ok()?;
        let content: Content = serde_json::from_str(&text).ok()?;
        if content.vault != self.vault {
            return None;
        }
        if content.until <= now {
            let _ = self.remove();
            return None;
        }
        let bytes = STANDARD.decode(content.key.as_bytes()).map(Zeroizing::new);
        Some(UnlockedKey {
            key: SymmetricKey::from_slice(&bytes.ok()?)?,
            until: content.until,
        })
    }

    /// Removes the key. Returns false if there was none.
    pub fn remove(&self) -> Result<bool, VaultError> {
        match fs::remove_file(self.path()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(VaultError::File {
                file: self.path(),
                action: "removed",
                reason: error.to_string(),
            }),
        }
    }

    /// Fails if the folder belongs to another user or lets others in.
    fn check_owner(&self) -> io::Result<()> {
        let metadata = fs::symlink_metadata(&self.folder)?;
        let is_mine = metadata.uid() == rustix::process::geteuid().as_raw();
        if metadata.is_dir() && is_mine && metadata.mode() & 0o077 == 0 {
            return Ok(());
        }
        let message = "it is not a folder that only you can use";
        Err(io::Error::new(ErrorKind::PermissionDenied, message))
    }
}
