//! The vault: finds the data key of a store, under which its records are sealed.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, Once, PoisonError};

use jiff::Timestamp;
use lango_domain::Clock;
use lango_domain::secret::Secret;
use lango_domain::vault::{KeySlot, SlotKind, StoredVault, VaultId, VaultStore};
use zeroize::Zeroizing;

use crate::cipher::{SymmetricKey, random_hex};
use crate::error::VaultError;
use crate::key_file::{FileGuard, create_key_file, read_key_file};
use crate::slots::{self, PassphraseCost};
use crate::unlocked_file::UnlockedFile;

/// The places where the keys of slots are found.
#[derive(Clone, Debug, Default)]
pub struct KeySources {
    /// Created with the vault. `None` without a data folder.
    pub key_file: Option<PathBuf>,
    /// The credential that systemd hands over: a key file, which is used instead of the other.
    pub credential: Option<PathBuf>,
    /// A file with the passphrase.
    pub passphrase_file: Option<PathBuf>,
    /// A folder in memory, for keys of unlocked vaults.
    pub runtime_folder: Option<PathBuf>,
}

/// The way in which the vault was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenedBy {
    KeyFile(PathBuf),
    Credential(PathBuf),
    PassphraseFile(PathBuf),
    /// A passphrase that was typed.
    Passphrase,
    /// `lango vault unlock`, until a time.
    Unlocked(Timestamp),
}

/// An open vault.
#[derive(Clone, Debug)]
pub(crate) struct OpenVault {
    pub id: VaultId,
    pub key: SymmetricKey,
    pub opened_by: OpenedBy,
}

/// The vault of a store. Cheap to clone; all clones share the opened key.
#[derive(Clone)]
pub struct Vault {
    pub(crate) inner: Arc<VaultInner>,
}

pub(crate) struct VaultInner {
    pub store: Arc<dyn VaultStore>,
    pub sources: KeySources,
    pub clock: Clock,
    pub cost: PassphraseCost,
    /// A key that this process found itself. A key that the user unlocked is read each time, so that
    /// it can be locked.
    opened: Mutex<Option<OpenVault>>,
}

impl Vault {
    pub fn new(store: Arc<dyn VaultStore>, sources: KeySources, clock: Clock) -> Self {
        Self::with_cost(store, sources, clock, PassphraseCost::DEFAULT)
    }

    /// Creates a vault whose new passphrase slots have another cost.
    pub fn with_cost(
        store: Arc<dyn VaultStore>,
        sources: KeySources,
        clock: Clock,
        cost: PassphraseCost,
    ) -> Self {
        let inner = VaultInner {
            store,
            sources,
            clock,
            cost,
            opened: Mutex::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    pub fn now(&self) -> Timestamp {
        (self.inner.clock)()
    }

    /// Returns the stored vault, or `None` before the first record.
    pub async fn stored(&self) -> Result<Option<StoredVault>, VaultError> {
        Ok(self.inner.store.vault().await?)
    }

    pub(crate) async fn existing(&self) -> Result<StoredVault, VaultError> {
        self.stored().await?.ok_or(VaultError::Empty)
    }

    /// Returns the open vault. Fails if there is none, or if there is no key for it.
    pub(crate) async fn open(&self) -> Result<OpenVault, VaultError> {
        let stored = self.existing().await?;
        self.open_stored(&stored).await
    }

    pub(crate) async fn open_stored(&self, stored: &StoredVault) -> Result<OpenVault, VaultError> {
        if let Some(open) = self.remembered(&stored.id) {
            return Ok(open);
        }
        if let Some(open) = self.unlocked(&stored.id) {
            return Ok(open);
        }
        let open = self.open_with_sources(stored).await?;
        self.remember(&open);
        Ok(open)
    }

    /// Returns the open vault, which is created if there is none.
    pub(crate) async fn open_or_create(&self) -> Result<OpenVault, VaultError> {
        match self.stored().await? {
            Some(stored) => self.open_stored(&stored).await,
            None => self.create().await,
        }
    }

    /// Creates the vault with a slot for the credential or the key file. If another process does the
    /// same, both use the vault that was stored first.
    async fn create(&self) -> Result<OpenVault, VaultError> {
        let sources = &self.inner.sources;
        let given = match &sources.credential {
            Some(file) => read_key_file(file, FileGuard::System)?,
            None => None,
        };
        let wrapping_key = match (given, &sources.key_file) {
            (Some(key), _) => key,
            (None, Some(file)) => create_key_file(file)?,
            (None, None) => return Err(VaultError::NoDataFolder),
        };
        let (id, now) = (VaultId(random_hex(16)?), self.now());
        let data_key = SymmetricKey::random()?;
        let slot = slots::key_file_slot(&id, &data_key, &wrapping_key, now)?;
        let stored = StoredVault {
            id,
            created: now,
            slots: vec![slot],
        };
        let stored = self.inner.store.create_vault(stored).await?;
        self.open_stored(&stored).await
    }

    async fn open_with_sources(&self, stored: &StoredVault) -> Result<OpenVault, VaultError> {
        let sources = &self.inner.sources;
        let open = |key, opened_by| OpenVault {
            id: stored.id.clone(),
            key,
            opened_by,
        };
        let slot = |kind| stored.slots.iter().find(|slot| slot.kind == kind);
        let (key_slot, passphrase_slot) = (slot(SlotKind::KeyFile), slot(SlotKind::Passphrase));
        if let Some(slot) = key_slot {
            if let Some(file) = &sources.credential
                && let Some(key) = open_key_slot(&stored.id, slot, (file, FileGuard::System))?
            {
                return Ok(open(key, OpenedBy::Credential(file.clone())));
            }
            if let Some(file) = &sources.key_file
                && let Some(key) = open_key_slot(&stored.id, slot, (file, FileGuard::Owner))?
            {
                return Ok(open(key, OpenedBy::KeyFile(file.clone())));
            }
        }
        if let (Some(_), Some(file)) = (passphrase_slot, &sources.passphrase_file) {
            let passphrase = read_passphrase_file(file)?;
            let key = self.derive(stored, &passphrase).await?;
            return Ok(open(key, OpenedBy::PassphraseFile(file.clone())));
        }
        match (passphrase_slot, &sources.key_file) {
            (None, Some(file)) => Err(VaultError::KeyFileMissing(file.clone())),
            _ => Err(VaultError::Locked),
        }
    }

    /// Opens the vault with a passphrase, for this process.
    pub async fn open_with_passphrase(&self, passphrase: &Secret) -> Result<(), VaultError> {
        let stored = self.existing().await?;
        let open = OpenVault {
            key: self.derive(&stored, passphrase).await?,
            id: stored.id,
            opened_by: OpenedBy::Passphrase,
        };
        self.remember(&open);
        Ok(())
    }

    async fn derive(
        &self,
        stored: &StoredVault,
        passphrase: &Secret,
    ) -> Result<SymmetricKey, VaultError> {
        let slot = stored
            .slots
            .iter()
            .find(|slot| slot.kind == SlotKind::Passphrase);
        let slot = slot.ok_or(VaultError::NoPassphrase)?.clone();
        let (id, passphrase) = (stored.id.clone(), passphrase.clone());
        blocking(move || slots::unwrap_with_passphrase(&id, &slot, &passphrase)).await
    }

    pub(crate) fn unlocked_file(&self, vault: &VaultId) -> Option<UnlockedFile> {
        let folder = self.inner.sources.runtime_folder.as_ref()?;
        Some(UnlockedFile::new(folder, vault))
    }

    fn unlocked(&self, vault: &VaultId) -> Option<OpenVault> {
        let found = self.unlocked_file(vault)?.load(self.now())?;
        hide_memory();
        Some(OpenVault {
            id: vault.clone(),
            key: found.key,
            opened_by: OpenedBy::Unlocked(found.until),
        })
    }

    fn remembered(&self, vault: &VaultId) -> Option<OpenVault> {
        let opened = self.inner.opened.lock();
        let opened = opened.unwrap_or_else(PoisonError::into_inner);
        opened.clone().filter(|open| open.id == *vault)
    }

    fn remember(&self, open: &OpenVault) {
        hide_memory();
        let opened = self.inner.opened.lock();
        *opened.unwrap_or_else(PoisonError::into_inner) = Some(open.clone());
    }

    /// Forgets the key of this process.
    pub(crate) fn forget_key(&self) {
        let opened = self.inner.opened.lock();
        opened.unwrap_or_else(PoisonError::into_inner).take();
    }
}

fn open_key_slot(
    vault: &VaultId,
    slot: &KeySlot,
    (file, guard): (&PathBuf, FileGuard),
) -> Result<Option<SymmetricKey>, VaultError> {
    let Some(wrapping_key) = read_key_file(file, guard)? else {
        return Ok(None);
    };
    let opened = slots::unwrap(vault, slot, &wrapping_key);
    match opened {
        Some(key) => Ok(Some(key)),
        None => Err(VaultError::KeyFileMismatch(file.clone())),
    }
}

/// Reads a passphrase: the first line of a file.
fn read_passphrase_file(file: &PathBuf) -> Result<Secret, VaultError> {
    let text = std::fs::read_to_string(file)
        .map(Zeroizing::new)
        .map_err(|error| crate::key_file::file_error(file, "read", &error))?;
    Ok(Secret::new(text.lines().next().unwrap_or_default()))
}

/// Runs a computation that takes long, such as deriving a key.
pub(crate) async fn blocking<T: Send + 'static>(
    run: impl FnOnce() -> Result<T, VaultError> + Send + 'static,
) -> Result<T, VaultError> {
    let done = tokio::task::spawn_blocking(run).await;
    done.unwrap_or_else(|error| Err(VaultError::Invalid(error.to_string())))
}

/// Keeps the memory of this process out of core dumps and away from other processes of the user, once
/// it holds a key.
fn hide_memory() {
    static HIDDEN: Once = Once::new();
    HIDDEN.call_once(|| {
        let behavior = rustix::process::DumpableBehavior::NotDumpable;
        if let Err(error) = rustix::process::set_dumpable_behavior(behavior) {
            tracing::warn!(%error, "the memory of this process is not protected");
        }
    });
}
