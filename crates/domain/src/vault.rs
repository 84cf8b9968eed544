//! The vault's storage: sealed records, and the slots that wrap the key of all records.
//!
//! The store only sees names, attributes and ciphertext. It never sees a key.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::Principal;
use crate::session::StoreFuture;

/// The random id of a vault. It is part of what every record and slot authenticates.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VaultId(pub String);

/// A stored vault without its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredVault {
    pub id: VaultId,
    pub created: Timestamp,
    /// Ordered by name. Each of them opens the vault.
    pub slots: Vec<KeySlot>,
}

/// The data key of a vault, wrapped with another key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySlot {
    pub kind: SlotKind,
    /// The derivation of the wrapping key, as JSON.
    pub parameters: String,
    pub nonce: Vec<u8>,
    pub wrapped_key: Vec<u8>,
    pub created: Timestamp,
}

/// The source of the key that opens a slot. A vault has at most one slot of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlotKind {
    /// Random bytes in a key file or a credential.
    KeyFile,
    /// A passphrase.
    Passphrase,
}

impl SlotKind {
    pub const ALL: [Self; 2] = [Self::KeyFile, Self::Passphrase];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::KeyFile => "key-file",
            Self::Passphrase => "passphrase",
        }
    }

    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordKind {
    /// A value that tools use by reference.
    Secret,
    /// A key for signatures or encryption.
    Key,
    /// The private key of a wallet.
    Wallet,
}

impl RecordKind {
    pub const ALL: [Self; 3] = [Self::Secret, Self::Key, Self::Wallet];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::Key => "key",
            Self::Wallet => "wallet",
        }
    }

    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// The owner, kind and name of a record. Names are unique per principal and kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordKey {
    pub kind: RecordKind,
    pub principal: Principal,
    pub name: String,
}

/// A version of a record. The value is in the ciphertext.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedRecord {
    pub key: RecordKey,
    /// Counted from 1.
    pub version: u64,
    /// Readable without a key, as JSON, but authenticated by the ciphertext.
    pub attributes: String,
    pub nonce: Vec<u8>,
    pub ciphertext: Vec<u8>,
    pub created: Timestamp,
    /// The last use of the value. Not authenticated.
    pub used: Option<Timestamp>,
}

/// The treatment of other versions of a record when one is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherVersions {
    Keep,
    Delete,
}

/// A change of the records of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordChange {
    /// The newest version that the writer knows, or 0. The change fails if the store has another one.
    pub expected_version: u64,
    pub others: OtherVersions,
    /// The new versions of one record key. Not empty.
    pub records: Vec<SealedRecord>,
}

/// The result of a write that depends on what the store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordWrite {
    Written,
    /// Another process was faster. Nothing was changed.
    Outdated,
}

/// Identifies a state of a principal's records of a kind: equal revisions mean equal records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordsRevision {
    pub newest: u64,
    pub count: u64,
}

/// Stores the vault.
pub trait VaultStore: Send + Sync {
    /// Returns the vault, or `None` if there is none yet.
    fn vault(&self) -> StoreFuture<'_, Option<StoredVault>>;

    /// Creates the vault with its first slot, unless there is one. Returns the stored one.
    fn create_vault(&self, vault: StoredVault) -> StoreFuture<'_, StoredVault>;

    /// Adds a slot, or replaces the slot of its kind.
    fn put_slot(&self, slot: KeySlot) -> StoreFuture<'_, ()>;

    /// Removes a slot. Returns false, and removes nothing, if it is missing or the last one.
    fn remove_slot(&self, kind: SlotKind) -> StoreFuture<'_, bool>;

    /// Makes all changes, or none.
    fn change_records(&self, changes: Vec<RecordChange>) -> StoreFuture<'_, RecordWrite>;

    /// Returns all versions of a record, newest first.
    fn record_versions<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, Vec<SealedRecord>>;

    /// Returns the newest version of each of a principal's records of a kind, ordered by name.
    fn records<'a>(
        &'a self,
        principal: &'a Principal,
        kind: RecordKind,
    ) -> StoreFuture<'a, Vec<SealedRecord>>;

    /// Returns every version of every record of every principal, for an export.
    fn all_records(&self) -> StoreFuture<'_, Vec<SealedRecord>>;

    /// Deletes all versions of a record. Returns false if there is none.
    fn delete_record<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, bool>;

    /// Notes that a value was used.
    fn mark_used<'a>(&'a self, key: &'a RecordKey, at: Timestamp) -> StoreFuture<'a, ()>;

    /// Returns the revision of a principal's records of a kind.
    fn records_revision<'a>(
        &'a self,
        principal: &'a Principal,
        kind: RecordKind,
    ) -> StoreFuture<'a, RecordsRevision>;
}
