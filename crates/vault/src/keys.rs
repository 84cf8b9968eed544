//! Keys for signatures and encryption. Rotating a key keeps its earlier versions, which still verify
//! and decrypt.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ed25519_dalek::{Signer as _, SigningKey};
use jiff::Timestamp;
use lango_domain::SecretName;
use lango_domain::event::Principal;
use lango_domain::vault::{OtherVersions, RecordKey, RecordKind, SealedRecord};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::cipher::{self, NONCE_BYTES, SymmetricKey};
use crate::error::VaultError;
use crate::public_key::PublicKey;
use crate::records::OpenRecord;
use crate::vault::Vault;

/// The first word of an encrypted text. The number is the version of its form.
const ENCRYPTED_LABEL: &str = "lango-encrypted-1";
/// The use of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyPurpose {
    /// Ed25519.
    Sign,
    /// XChaCha20-Poly1305.
    Encrypt,
}

impl KeyPurpose {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sign => "sign",
            Self::Encrypt => "encrypt",
        }
    }

    pub fn algorithm(self) -> &'static str {
        match self {
            Self::Sign => "ed25519",
            Self::Encrypt => "xchacha20-poly1305",
        }
    }

    /// The key that is used, and made, when a call names none.
    pub fn default_name(self) -> &'static str {
        match self {
            Self::Sign => "signing",
            Self::Encrypt => "encryption",
        }
    }
}

/// The part of a key that is known without opening the vault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct KeyAttributes {
    purpose: KeyPurpose,
    /// Base64; only of a key that signs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    public_key: Option<String>,
}

/// A key without its private part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyEntry {
    pub name: String,
    pub purpose: KeyPurpose,
    pub version: u64,
    pub created: Timestamp,
    pub public_key: Option<PublicKey>,
}

/// A signature with the key that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeSignature {
    /// Base64.
    pub signature: String,
    pub key: KeyEntry,
}

fn key_record(principal: &Principal, name: &SecretName) -> RecordKey {
    RecordKey {
        kind: RecordKind::Key,
        principal: principal.clone(),
        name: name.to_string(),
    }
}

impl Vault {
    pub async fn create_key(
        &self,
        principal: &Principal,
        name: &SecretName,
        purpose: KeyPurpose,
    ) -> Result<KeyEntry, VaultError> {
        let key = key_record(principal, name);
        let (value, attributes) = new_key(purpose)?;
        self.create_record(&key, value.as_bytes(), &attributes)
            .await?;
        self.key(principal, name).await
    }

    /// Adds a version, which signs and encrypts from now on.
    pub async fn rotate_key(
        &self,
        principal: &Principal,
        name: &SecretName,
    ) -> Result<KeyEntry, VaultError> {
        let key = key_record(principal, name);
        let purpose = entry(&self.find(&key).await?)?.purpose;
        let (value, attributes) = new_key(purpose)?;
        self.put(&key, value.as_bytes(), &attributes, OtherVersions::Keep)
            .await?;
        self.key(principal, name).await
    }

    /// Returns the newest version of a key. Works while the vault is locked.
    pub async fn key(
        &self,
        principal: &Principal,
        name: &SecretName,
    ) -> Result<KeyEntry, VaultError> {
        entry(&self.find(&key_record(principal, name)).await?)
    }

    /// Returns the newest versions of all keys, by name. Works while the vault is locked.
    pub async fn keys(&self, principal: &Principal) -> Result<Vec<KeyEntry>, VaultError> {
        let records = self.list(principal, RecordKind::Key).await?;
        records.iter().map(entry).collect()
    }

    /// Returns all versions of a key, newest first, after checking that they are authentic.
    pub async fn key_versions(
        &self,
        principal: &Principal,
        name: &SecretName,
    ) -> Result<Vec<KeyEntry>, VaultError> {
        let versions = self.open_key(principal, name).await?;
        Ok(versions.into_iter().map(|(entry, _)| entry).collect())
    }

    async fn open_key(
        &self,
        principal: &Principal,
        name: &SecretName,
    ) -> Result<Vec<(KeyEntry, SymmetricKey)>, VaultError> {
        let key = key_record(principal, name);
        let versions = self.get_versions(&key).await?;
        versions
            .iter()
            .map(|record| open_version(name, record))
            .collect()
    }

    /// Returns the key to sign or encrypt with. The default key of a purpose is made on first use.
    async fn key_for(
        &self,
        principal: &Principal,
        name: Option<&SecretName>,
        purpose: KeyPurpose,
    ) -> Result<(KeyEntry, SymmetricKey), VaultError> {
        let default = SecretName::new(purpose.default_name())
            .map_err(|error| VaultError::Invalid(error.to_string()))?;
        let wanted = name.unwrap_or(&default);
        let found = self.existing_key(principal, wanted, purpose).await;
        let mut versions = match found {
            Err(VaultError::Unknown { .. }) if *wanted == default => {
                match self.create_key(principal, wanted, purpose).await {
                    Ok(_) | Err(VaultError::Exists { .. }) => {}
                    Err(error) => return Err(error),
                }
                self.existing_key(principal, wanted, purpose).await?
            }
            found => found?,
        };
        Ok(versions.swap_remove(0))
    }

    /// Returns all versions of a key that has this purpose. Never empty.
    async fn existing_key(
        &self,
        principal: &Principal,
        name: &SecretName,
        purpose: KeyPurpose,
    ) -> Result<Vec<(KeyEntry, SymmetricKey)>, VaultError> {
        let versions = self.open_key(principal, name).await?;
        match versions.first() {
            Some((newest, _)) if newest.purpose != purpose => Err(VaultError::Invalid(format!(
                "the key `{name}` is for {}, not to {}",
                newest.purpose.algorithm(),
                purpose.as_str()
            ))),
            _ => Ok(versions),
        }
    }

    /// Signs with the newest version of a key.
    pub async fn sign(
        &self,
        principal: &Principal,
        name: Option<&SecretName>,
        data: &[u8],
    ) -> Result<MadeSignature, VaultError> {
        let (key, private) = self.key_for(principal, name, KeyPurpose::Sign).await?;
        let signature = SigningKey::from_bytes(private.as_bytes()).sign(data);
        Ok(MadeSignature {
            signature: STANDARD.encode(signature.to_bytes()),
            key,
        })
    }

    /// Returns the version of a key that signed the data, or `None`.
    pub async fn verify(
        &self,
        principal: &Principal,
        name: &SecretName,
        (data, signature): (&[u8], &[u8]),
    ) -> Result<Option<KeyEntry>, VaultError> {
        let versions = self.existing_key(principal, name, KeyPurpose::Sign).await?;
        let made = |key: &KeyEntry| {
            let public_key = key.public_key;
            public_key.is_some_and(|public_key| public_key.verifies(data, signature))
        };
        let entries = versions.into_iter().map(|(entry, _)| entry);
        Ok(entries.into_iter().find(made))
    }

    /// Encrypts with the newest version of a key. The text names key and version.
    pub async fn encrypt(
        &self,
        principal: &Principal,
        name: Option<&SecretName>,
        data: &[u8],
    ) -> Result<String, VaultError> {
        let (key, private) = self.key_for(principal, name, KeyPurpose::Encrypt).await?;
        let header = format!("{ENCRYPTED_LABEL}:{}:{}", key.name, key.version);
        let sealed = cipher::seal(&private, header.as_bytes(), data)?;
        let bytes = [sealed.nonce, sealed.ciphertext].concat();
        Ok(format!("{header}:{}", URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Decrypts a text, with the version of the key that it names.
    pub async fn decrypt(
        &self,
        principal: &Principal,
        name: Option<&SecretName>,
        text: &str,
    ) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        let encrypted = EncryptedText::parse(text.trim())?;
        if let Some(name) = name.filter(|name| **name != encrypted.key) {
            return Err(VaultError::Invalid(format!(
                "it was encrypted with the key `{}`, not `{name}`",
                encrypted.key
            )));
        }
        let versions = self
            .existing_key(principal, &encrypted.key, KeyPurpose::Encrypt)
            .await?;
        let version = versions
            .iter()
            .find(|(entry, _)| entry.version == encrypted.version);
        let (_, private) = version.ok_or_else(|| {
            VaultError::Invalid(format!(
                "the key `{}` has no version {}",
                encrypted.key, encrypted.version
            ))
        })?;
        let (nonce, ciphertext) = encrypted.bytes.split_at(NONCE_BYTES);
        cipher::open(private, encrypted.header.as_bytes(), nonce, ciphertext).map_err(|_| {
            VaultError::Invalid("it was changed, or encrypted with another key".to_owned())
        })
    }
}

/// An encrypted text: label, key, version and bytes, separated by `:`.
struct EncryptedText<'t> {
    header: &'t str,
    key: SecretName,
    version: u64,
    bytes: Vec<u8>,
}

impl<'t> EncryptedText<'t> {
    fn parse(text: &'t str) -> Result<Self, VaultError> {
        let invalid = || {
            let message = format!(
                "it is not a text of crypto_encrypt, which begins with `{ENCRYPTED_LABEL}:`"
            );
            VaultError::Invalid(message)
        };
        let (header, bytes) = text.rsplit_once(':').ok_or_else(invalid)?;
        let words: Vec<&str> = header.split(':').collect();
        let [ENCRYPTED_LABEL, key, version] = words[..] else {
            return Err(invalid());
        };
        let bytes = URL_SAFE_NO_PAD.decode(bytes).ok();
        let bytes = bytes.filter(|bytes| bytes.len() > NONCE_BYTES);
        Ok(Self {
            header,
            key: SecretName::new(key).map_err(|_| invalid())?,
            version: version.parse().map_err(|_| invalid())?,
            bytes: bytes.ok_or_else(|| VaultError::Invalid("it is not complete".to_owned()))?,
        })
    }
}

fn new_key(purpose: KeyPurpose) -> Result<(SymmetricKey, String), VaultError> {
    let value = SymmetricKey::random()?;
    let public_key = match purpose {
        KeyPurpose::Sign => Some(PublicKey::of(&value).to_base64()),
        KeyPurpose::Encrypt => None,
    };
    let attributes = KeyAttributes {
        purpose,
        public_key,
    };
    let attributes = serde_json::to_string(&attributes).unwrap_or_default();
    Ok((value, attributes))
}

fn entry(record: &SealedRecord) -> Result<KeyEntry, VaultError> {
    let version = (record.version, record.created);
    entry_of(&record.key.name, version, &record.attributes)
}

fn entry_of(
    name: &str,
    (version, created): (u64, Timestamp),
    attributes: &str,
) -> Result<KeyEntry, VaultError> {
    let tampered = || VaultError::Tampered {
        kind: RecordKind::Key,
        name: name.to_owned(),
    };
    let attributes: KeyAttributes = serde_json::from_str(attributes).map_err(|_| tampered())?;
    let public_key = attributes.public_key.as_deref().map(PublicKey::parse);
    Ok(KeyEntry {
        name: name.to_owned(),
        purpose: attributes.purpose,
        version,
        created,
        public_key: public_key.transpose().map_err(|_| tampered())?,
    })
}

fn open_version(
    name: &SecretName,
    record: &OpenRecord,
) -> Result<(KeyEntry, SymmetricKey), VaultError> {
    let version = (record.version, record.created);
    let entry = entry_of(name.as_str(), version, &record.attributes)?;
    let private = SymmetricKey::from_slice(&record.value).ok_or(VaultError::Tampered {
        kind: RecordKind::Key,
        name: name.to_string(),
    })?;
    Ok((entry, private))
}
