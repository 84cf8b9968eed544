//! Export and import: all records in one file, encrypted under a passphrase of its own.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use lango_domain::StoreError;
use lango_domain::event::Principal;
use lango_domain::secret::Secret;
use lango_domain::vault::{
    OtherVersions, RecordChange, RecordKey, RecordKind, RecordWrite, SealedRecord,
};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::cipher::{self, associated_data};
use crate::error::VaultError;
use crate::key_file::{file_error, sync_folder, write_private};
use crate::management::MIN_PASSPHRASE;
use crate::records::{OpenRecord, open_record, seal_record};
use crate::slots::PassphraseParameters;
use crate::vault::{Vault, blocking};

/// The version of the form of an export.
const VERSION: u32 = 1;
/// The label of an export in what it authenticates.
const EXPORT_LABEL: &[u8] = b"lango-vault-export";
/// The largest export that is read, in bytes.
const MAX_EXPORT_BYTES: u64 = 256 * 1024 * 1024;

/// An export as it is written.
#[derive(Serialize, Deserialize)]
struct ExportFile {
    lango_vault_export: u32,
    parameters: PassphraseParameters,
    nonce: String,
    ciphertext: String,
}

/// Reads the version alone, so that a newer form gives its own error.
#[derive(Deserialize)]
struct ExportVersion {
    lango_vault_export: u32,
}

/// A version of a record in an export.
#[derive(Serialize, Deserialize)]
struct ExportedRecord {
    kind: RecordKind,
    principal: Principal,
    name: String,
    version: u64,
    attributes: String,
    created: Timestamp,
    /// Base64.
    value: Zeroizing<String>,
}

/// The treatment of a name that the vault has already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingRecords {
    Keep,
    Replace,
}

/// The result of an import, by kind and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    pub added: Vec<RecordKey>,
    pub replaced: Vec<RecordKey>,
    /// Names that exist with another value, and stayed.
    pub kept: Vec<RecordKey>,
    /// Names that exist with the same value.
    pub unchanged: Vec<RecordKey>,
}

impl Vault {
    /// Writes all records of all principals to a new file. Returns the number of names.
    pub async fn export(&self, file: &Path, passphrase: &Secret) -> Result<usize, VaultError> {
        if passphrase.expose().chars().count() < MIN_PASSPHRASE {
            return Err(VaultError::ShortPassphrase(MIN_PASSPHRASE));
        }
        if file.symlink_metadata().is_ok() {
            return Err(StoreError::FileExists(file.to_path_buf()).into());
        }
        let open = self.open().await?;
        let sealed = self.inner.store.all_records().await?;
        let records: Vec<ExportedRecord> = sealed
            .iter()
            .map(|record| Ok(exported(&record.key, &open_record(&open, record)?)))
            .collect::<Result<_, VaultError>>()?;
        let names: std::collections::BTreeSet<&RecordKey> =
            sealed.iter().map(|record| &record.key).collect();
        let (passphrase, cost) = (passphrase.clone(), self.inner.cost);
        let content = blocking(move || {
            let parameters = PassphraseParameters::with_new_salt(cost)?;
            encrypt(&records, parameters, &passphrase)
        })
        .await?;
        write_private(file, content.as_bytes())
            .and_then(|()| sync_folder(file))
            .map_err(|error| file_error(file, "written", &error))?;
        Ok(names.len())
    }

    /// Reads an export and stores its records: all of them, or none.
    pub async fn import(
        &self,
        file: &Path,
        passphrase: &Secret,
        existing: ExistingRecords,
    ) -> Result<ImportReport, VaultError> {
        let (path, passphrase) = (file.to_path_buf(), passphrase.clone());
        let records = blocking(move || decrypt(&read(&path)?, &passphrase)).await?;
        let mut by_key: BTreeMap<RecordKey, Vec<OpenRecord>> = BTreeMap::new();
        for record in records {
            let (key, opened) = imported(record)?;
            by_key.entry(key).or_default().push(opened);
        }
        let open = self.open_or_create().await?;
        let (mut report, mut changes) = (ImportReport::default(), Vec::new());
        for (key, mut records) in by_key {
            records.sort_by_key(|record| record.version);
            let found = self.inner.store.record_versions(&key).await?;
            let is_same = is_same(&open_all(&open, &found)?, &records);
            let list = match (found.is_empty(), is_same, existing) {
                (true, ..) => &mut report.added,
                (false, true, _) => &mut report.unchanged,
                (false, false, ExistingRecords::Keep) => &mut report.kept,
                (false, false, ExistingRecords::Replace) => &mut report.replaced,
            };
            list.push(key.clone());
            let is_written =
                report.added.last() == Some(&key) || report.replaced.last() == Some(&key);
            if report.replaced.last() == Some(&key) && key.kind == RecordKind::Wallet {
                let name = key.name;
                return Err(VaultError::InvalidExport(format!(
                    "it has another private key for the wallet `{name}`, and replacing that one could lose money"
                )));
            }
            if is_written {
                changes.push(RecordChange {
                    expected_version: found.first().map_or(0, |record| record.version),
                    others: OtherVersions::Delete,
                    records: records
                        .iter()
                        .map(|record| seal_record(&open, &key, record))
                        .collect::<Result<_, _>>()?,
                });
            }
        }
        match self.inner.store.change_records(changes).await? {
            RecordWrite::Written => Ok(report),
            RecordWrite::Outdated => Err(VaultError::Conflict),
        }
    }
}

fn open_all(
    open: &crate::vault::OpenVault,
    sealed: &[SealedRecord],
) -> Result<Vec<OpenRecord>, VaultError> {
    let oldest_first = sealed.iter().rev();
    oldest_first
        .map(|record| open_record(open, record))
        .collect()
}

/// Returns true if both have the same newest value and attributes.
fn is_same(found: &[OpenRecord], imported: &[OpenRecord]) -> bool {
    matches!((found.last(), imported.last()), (Some(found), Some(imported))
        if found.value == imported.value && found.attributes == imported.attributes)
}

fn exported(key: &RecordKey, record: &OpenRecord) -> ExportedRecord {
    ExportedRecord {
        kind: key.kind,
        principal: key.principal.clone(),
        name: key.name.clone(),
        version: record.version,
        attributes: record.attributes.clone(),
        created: record.created,
        value: Zeroizing::new(STANDARD.encode(&*record.value)),
    }
}

fn imported(record: ExportedRecord) -> Result<(RecordKey, OpenRecord), VaultError> {
    let invalid = || VaultError::InvalidExport("a record in it cannot be read".to_owned());
    let value = STANDARD
        .decode(record.value.as_bytes())
        .map_err(|_| invalid())?;
    let name = lango_domain::SecretName::new(record.name).map_err(|_| invalid())?;
    if record.version == 0 || record.version > i64::MAX as u64 {
        return Err(invalid());
    }
    let key = RecordKey {
        kind: record.kind,
        principal: record.principal,
        name: name.to_string(),
    };
    let record = OpenRecord {
        version: record.version,
        value: Zeroizing::new(value),
        attributes: record.attributes,
        created: record.created,
    };
    Ok((key, record))
}

fn encrypt(
    records: &[ExportedRecord],
    parameters: PassphraseParameters,
    passphrase: &Secret,
) -> Result<String, VaultError> {
    let key = parameters
        .derive(passphrase)
        .map_err(|reason| VaultError::InvalidExport(reason.to_owned()))?;
    let content = serde_json::to_vec(records).map(Zeroizing::new);
    let content = content.map_err(|error| VaultError::Invalid(error.to_string()))?;
    let sealed = cipher::seal(&key, &header(VERSION, &parameters), &content)?;
    let file = ExportFile {
        lango_vault_export: VERSION,
        parameters,
        nonce: STANDARD.encode(sealed.nonce),
        ciphertext: STANDARD.encode(sealed.ciphertext),
    };
    let text = serde_json::to_string(&file);
    Ok(text.map_err(|error| VaultError::Invalid(error.to_string()))? + "\n")
}

fn read(file: &Path) -> Result<Vec<u8>, VaultError> {
    use std::io::Read as _;
    let failed = |error: std::io::Error| file_error(file, "read", &error);
    let opened = std::fs::File::open(file).map_err(failed)?;
    let mut content = Vec::new();
    opened
        .take(MAX_EXPORT_BYTES + 1)
        .read_to_end(&mut content)
        .map_err(failed)?;
    if content.len() as u64 > MAX_EXPORT_BYTES {
        return Err(VaultError::InvalidExport("it is too large".to_owned()));
    }
    Ok(content)
}

fn decrypt(content: &[u8], passphrase: &Secret) -> Result<Vec<ExportedRecord>, VaultError> {
    let invalid = |reason: &str| VaultError::InvalidExport(reason.to_owned());
    let version: ExportVersion = serde_json::from_slice(content)
        .map_err(|_| invalid("it is not an export of a vault, or not complete"))?;
    if version.lango_vault_export != VERSION {
        return Err(invalid("it was written by a newer version of Lango"));
    }
    let file: ExportFile =
        serde_json::from_slice(content).map_err(|_| invalid("its header cannot be read"))?;
    let key = file.parameters.derive(passphrase).map_err(invalid)?;
    let decode = |text: &str| STANDARD.decode(text).map_err(|_| invalid("it is damaged"));
    let (nonce, ciphertext) = (decode(&file.nonce)?, decode(&file.ciphertext)?);
    let header = header(file.lango_vault_export, &file.parameters);
    let content = cipher::open(&key, &header, &nonce, &ciphertext)
        .map_err(|_| invalid("the passphrase is wrong, or the file was changed"))?;
    serde_json::from_slice(&content).map_err(|_| invalid("a record in it cannot be read"))
}

fn header(version: u32, parameters: &PassphraseParameters) -> Vec<u8> {
    let parameters = serde_json::to_vec(parameters).unwrap_or_default();
    associated_data(&[EXPORT_LABEL, &version.to_le_bytes(), &parameters])
}
