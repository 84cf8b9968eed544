//! Sealed records: writing, reading and listing.

use jiff::Timestamp;
use lango_domain::event::Principal;
use lango_domain::vault::{
    OtherVersions, RecordChange, RecordKey, RecordKind, RecordWrite, SealedRecord, VaultId,
};
use zeroize::Zeroizing;

use crate::cipher::{self, associated_data};
use crate::error::VaultError;
use crate::vault::{OpenVault, Vault};

/// The label of a record in what it authenticates.
const RECORD_LABEL: &[u8] = b"lango-vault-record-1";
/// A write is tried again this often when other processes change the same record.
const MAX_ATTEMPTS: usize = 5;

/// A record with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRecord {
    pub version: u64,
    pub value: Zeroizing<Vec<u8>>,
    pub attributes: String,
    pub created: Timestamp,
}

impl Vault {
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
