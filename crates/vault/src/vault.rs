//! The vault: sealed records under one data key, which slots wrap.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, Once, PoisonError};

use jiff::Timestamp;
use lango_domain::Clock;
use lango_domain::event::Principal;
use lango_domain::secret::Secret;
use lango_domain::vault::{
    KeySlot, OtherVersions, RecordChange, RecordKey, RecordKind, RecordWrite, SealedRecord,
    SlotKind, StoredVault, VaultId, VaultStore,
};
use zeroize::Zeroizing;

use crate::cipher::{self, SymmetricKey, associated_data, random_hex};
use crate::error::VaultError;
use crate::key_file::{FileGuard, create_key_file, read_key_file};
use crate::slots::{self, PassphraseCost};
use crate::unlocked_file::UnlockedFile;

/// The label of a record in what it authenticates.
const RECORD_LABEL: &[u8] = b"lango-vault-record-1";
/// A write is tried again this often when other processes change the same record.
const MAX_ATTEMPTS: usize = 5;

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

/// What opened the vault.
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

/// A record with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRecord {
    pub version: u64,
    pub value: Zeroizing<Vec<u8>>,
    pub attributes: String,
    pub created: Timestamp,
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

    /// Returns the open vault. Fails if there is none, or if no key for it is at hand.
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

    /// Stores a new version of a record, and returns its number. `attributes` can be read without the
    /// key, but not changed.
    pub async fn put(
        &self,
        key: &RecordKey,
        value: &[u8],
        attributes: &str,
        others: OtherVersions,
    ) -> Result<u64, VaultError> {
        let open = self.open_or_create().await?;
        for _ in 0..MAX_ATTEMPTS {
            let versions = self.inner.store.record_versions(key).await?;
            let newest = versions.first().map_or(0, |record| record.version);
            if self
                .write(&open, key, (newest, value, attributes), others)
                .await?
                == RecordWrite::Written
            {
                return Ok(newest + 1);
            }
        }
        Err(VaultError::Conflict)
    }

    /// Stores the first version of a record. Fails if there is one.
    pub async fn create_record(
        &self,
        key: &RecordKey,
        value: &[u8],
        attributes: &str,
    ) -> Result<(), VaultError> {
        let open = self.open_or_create().await?;
        let written = self
            .write(&open, key, (0, value, attributes), OtherVersions::Keep)
            .await?;
        match written {
            RecordWrite::Written => Ok(()),
            RecordWrite::Outdated => Err(VaultError::Exists {
                kind: key.kind,
                name: key.name.clone(),
            }),
        }
    }

    async fn write(
        &self,
        open: &OpenVault,
        key: &RecordKey,
        (newest, value, attributes): (u64, &[u8], &str),
        others: OtherVersions,
    ) -> Result<RecordWrite, VaultError> {
        let record = OpenRecord {
            version: newest + 1,
            value: Zeroizing::new(value.to_vec()),
            attributes: attributes.to_owned(),
            created: self.now(),
        };
        let change = RecordChange {
            expected_version: newest,
            others,
            records: vec![seal_record(open, key, &record)?],
        };
        Ok(self.inner.store.change_records(vec![change]).await?)
    }

    /// Returns the newest version of a record with its value.
    pub async fn get(&self, key: &RecordKey) -> Result<OpenRecord, VaultError> {
        let mut versions = self.get_versions(key).await?;
        Ok(versions.swap_remove(0))
    }

    /// Returns all versions of a record with their values, newest first. Never empty.
    pub async fn get_versions(&self, key: &RecordKey) -> Result<Vec<OpenRecord>, VaultError> {
        let sealed = self.inner.store.record_versions(key).await?;
        if sealed.is_empty() {
            return Err(self.unknown(key).await);
        }
        let open = self.open().await?;
        sealed
            .iter()
            .map(|record| open_record(&open, record))
            .collect()
    }

    /// Returns a principal's records of a kind, without values. Works while the vault is locked.
    pub async fn list(
        &self,
        principal: &Principal,
        kind: RecordKind,
    ) -> Result<Vec<SealedRecord>, VaultError> {
        Ok(self.inner.store.records(principal, kind).await?)
    }

    /// Returns a record without its value. Works while the vault is locked.
    pub async fn find(&self, key: &RecordKey) -> Result<SealedRecord, VaultError> {
        let mut versions = self.inner.store.record_versions(key).await?;
        if versions.is_empty() {
            return Err(self.unknown(key).await);
        }
        Ok(versions.swap_remove(0))
    }

    /// Deletes all versions of a record.
    pub async fn delete(&self, key: &RecordKey) -> Result<(), VaultError> {
        match self.inner.store.delete_record(key).await? {
            true => Ok(()),
            false => Err(self.unknown(key).await),
        }
    }

    /// Returns the error for a name that does not exist, with the most similar name.
    async fn unknown(&self, key: &RecordKey) -> VaultError {
        let listed = self
            .list(&key.principal, key.kind)
            .await
            .unwrap_or_default();
        let names = listed.iter().map(|record| record.key.name.as_str());
        VaultError::Unknown {
            kind: key.kind,
            name: key.name.clone(),
            suggestion: lango_text::suggest::nearest(&key.name, names)
                .first()
                .map(|name| (*name).to_owned()),
        }
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

pub(crate) fn seal_record(
    open: &OpenVault,
    key: &RecordKey,
    record: &OpenRecord,
) -> Result<SealedRecord, VaultError> {
    let associated = record_data(&open.id, key, record.version, &record.attributes);
    let sealed = cipher::seal(&open.key, &associated, &record.value)?;
    Ok(SealedRecord {
        key: key.clone(),
        version: record.version,
        attributes: record.attributes.clone(),
        nonce: sealed.nonce,
        ciphertext: sealed.ciphertext,
        created: record.created,
        used: None,
    })
}

pub(crate) fn open_record(
    open: &OpenVault,
    record: &SealedRecord,
) -> Result<OpenRecord, VaultError> {
    let associated = record_data(&open.id, &record.key, record.version, &record.attributes);
    let value = cipher::open(&open.key, &associated, &record.nonce, &record.ciphertext);
    let value = value.map_err(|_| VaultError::Tampered {
        kind: record.key.kind,
        name: record.key.name.clone(),
    })?;
    Ok(OpenRecord {
        version: record.version,
        value,
        attributes: record.attributes.clone(),
        created: record.created,
    })
}

fn record_data(vault: &VaultId, key: &RecordKey, version: u64, attributes: &str) -> Vec<u8> {
    let fields = [
        RECORD_LABEL,
        vault.0.as_bytes(),
        key.kind.as_str().as_bytes(),
        key.principal.as_str().as_bytes(),
        key.name.as_bytes(),
        &version.to_le_bytes(),
        attributes.as_bytes(),
    ];
    associated_data(&fields)
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
