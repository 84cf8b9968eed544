//! Slots and the state of the vault: what `lango vault` does.

use jiff::{SignedDuration, Timestamp};
use lango_domain::secret::Secret;
use lango_domain::vault::{RecordKind, SlotKind};

use crate::error::VaultError;
use crate::key_file::{create_key_file, file_error};
use crate::slots;
use crate::vault::{OpenedBy, Vault, blocking};

/// The least length of a passphrase, in characters.
pub const MIN_PASSPHRASE: usize = 8;

/// The state of the vault, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VaultState {
    /// Nothing has been stored yet.
    Empty,
    Locked,
    Open(OpenedBy),
    /// A key is there, but cannot be used.
    Failed(VaultError),
}

/// The report of `lango vault status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultStatus {
    pub state: VaultState,
    pub created: Option<Timestamp>,
    pub slots: Vec<(SlotKind, Timestamp)>,
    /// The number of records of each kind, with all versions, of all principals.
    pub records: Vec<(RecordKind, usize)>,
}

impl Vault {
    pub async fn status(&self) -> Result<VaultStatus, VaultError> {
        let Some(stored) = self.stored().await? else {
            return Ok(VaultStatus {
                state: VaultState::Empty,
                created: None,
                slots: Vec::new(),
                records: Vec::new(),
            });
        };
        let all = self.inner.store.all_records().await?;
        let count = |kind| all.iter().filter(|record| record.key.kind == kind).count();
        let state = match self.open_stored(&stored).await {
            Ok(open) => VaultState::Open(open.opened_by),
            Err(VaultError::Locked) => VaultState::Locked,
            Err(error) => VaultState::Failed(error),
        };
        Ok(VaultStatus {
            state,
            created: Some(stored.created),
            slots: stored
                .slots
                .iter()
                .map(|slot| (slot.kind, slot.created))
                .collect(),
            records: RecordKind::ALL.map(|kind| (kind, count(kind))).to_vec(),
        })
    }

    /// Opens the vault with a passphrase for all processes of this user. Returns the end.
    pub async fn unlock(
        &self,
        passphrase: &Secret,
        duration: SignedDuration,
    ) -> Result<Timestamp, VaultError> {
        self.open_with_passphrase(passphrase).await?;
        let open = self.open().await?;
        let file = self
            .unlocked_file(&open.id)
            .ok_or_else(|| VaultError::NoRuntimeFolder("XDG_RUNTIME_DIR is not set".to_owned()))?;
        let until = self
            .now()
            .saturating_add(duration)
            .unwrap_or(Timestamp::MAX);
        file.store(&open.key, until)?;
        Ok(until)
    }

    /// Removes the key of an unlocked vault. Returns false if it was not unlocked.
    pub async fn lock(&self) -> Result<bool, VaultError> {
        let stored = self.existing().await?;
        self.forget_key();
        self.unlocked_file(&stored.id)
            .map_or(Ok(false), |file| file.remove())
    }

    /// Adds a passphrase, or replaces it. The records stay as they are.
    pub async fn set_passphrase(&self, passphrase: &Secret) -> Result<(), VaultError> {
        if passphrase.expose().chars().count() < MIN_PASSPHRASE {
            return Err(VaultError::ShortPassphrase(MIN_PASSPHRASE));
        }
        let open = self.open_or_create().await?;
        let (passphrase, cost) = (passphrase.clone(), (self.inner.cost, self.now()));
        let slot = blocking(move || slots::passphrase_slot(&open.id, &open.key, &passphrase, cost))
            .await?;
        Ok(self.inner.store.put_slot(slot).await?)
    }

    pub async fn remove_passphrase(&self) -> Result<(), VaultError> {
        self.remove_slot(SlotKind::Passphrase).await
    }

    /// Adds a slot for the key file, which is created if it is missing. The way to recover a lost key
    /// file.
    pub async fn add_key_file(&self) -> Result<std::path::PathBuf, VaultError> {
        let file = self.inner.sources.key_file.clone();
        let file = file.ok_or(VaultError::NoDataFolder)?;
        let open = self.open_or_create().await?;
        let wrapping_key = create_key_file(&file)?;
        let slot = slots::key_file_slot(&open.id, &open.key, &wrapping_key, self.now())?;
        self.inner.store.put_slot(slot).await?;
        Ok(file)
    }

    /// Removes the slot of the key file, then the file, so that only the passphrase opens the vault.
    pub async fn remove_key_file(&self) -> Result<(), VaultError> {
        self.remove_slot(SlotKind::KeyFile).await?;
        self.forget_key();
        let Some(file) = &self.inner.sources.key_file else {
            return Ok(());
        };
        match std::fs::remove_file(file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(file_error(file, "removed", &error))
            }
            _ => Ok(()),
        }
    }

    /// Removes a slot, after the vault was opened: without a key, no slot can be removed.
    async fn remove_slot(&self, kind: SlotKind) -> Result<(), VaultError> {
        let stored = self.existing().await?;
        self.open_stored(&stored).await?;
        let has_slot = stored.slots.iter().any(|slot| slot.kind == kind);
        if !has_slot && kind == SlotKind::Passphrase {
            return Err(VaultError::NoPassphrase);
        }
        match !has_slot || self.inner.store.remove_slot(kind).await? {
            true => Ok(()),
            false => Err(VaultError::LastSlot(kind)),
        }
    }
}
