//! Keys for signatures and encryption. Rotating a key keeps its earlier versions, which still verify
//! and decrypt.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use jiff::Timestamp;
use lango_domain::SecretName;
use lango_domain::event::Principal;
use lango_domain::vault::{OtherVersions, RecordKey, RecordKind, SealedRecord};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::cipher::{self, NONCE_BYTES, SymmetricKey, from_hex, to_hex};
use crate::error::VaultError;
use crate::vault::{OpenRecord, Vault};

/// The first word of an encrypted text. The number is the version of its form.
const ENCRYPTED_LABEL: &str = "lango-encrypted-1";
/// The DER prefix of an Ed25519 public key (RFC 8410).
const PUBLIC_KEY_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

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

/// What is known of a key without opening the vault.
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

/// A public key for signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Reads base64 or hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self, VaultError> {
        let bytes = decode_bytes(text.trim()).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        let invalid = "a public key is 32 bytes, as base64 or hexadecimal digits";
        bytes
            .map(Self)
            .ok_or_else(|| VaultError::Invalid(invalid.to_owned()))
    }

    pub fn to_base64(self) -> String {
        STANDARD.encode(self.0)
    }

    pub fn to_hex(self) -> String {
        to_hex(&self.0)
    }

    pub fn to_pem(self) -> String {
        let der = [&PUBLIC_KEY_PREFIX[..], &self.0[..]].concat();
        format!(
            "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
            STANDARD.encode(der)
        )
    }

    /// Returns true if the signature belongs to the data and this key. Weak keys never sign.
    pub fn verifies(self, data: &[u8], signature: &[u8]) -> bool {
        let key = VerifyingKey::from_bytes(&self.0);
        let signature = Signature::from_slice(signature);
        matches!((key, signature), (Ok(key), Ok(signature)) if key.verify_strict(data, &signature).is_ok())
    }
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

    /// Returns the key with all versions. The default key of a purpose is made on first use.
    async fn key_for(
        &self,
        principal: &Principal,
        name: Option<&SecretName>,
        purpose: KeyPurpose,
    ) -> Result<Vec<(KeyEntry, SymmetricKey)>, VaultError> {
        let default = SecretName::new(purpose.default_name())
            .map_err(|error| VaultError::Invalid(error.to_string()))?;
        let wanted = name.unwrap_or(&default);
        let versions = match self.open_key(principal, wanted).await {
            Err(VaultError::Unknown { .. }) if name.is_none() => {
                match self.create_key(principal, wanted, purpose).await {
                    Ok(_) | Err(VaultError::Exists { .. }) => {}
                    Err(error) => return Err(error),
                }
                self.open_key(principal, wanted).await?
            }
            found => found?,
        };
        match versions.first() {
            Some((newest, _)) if newest.purpose != purpose => Err(VaultError::Invalid(format!(
                "the key `{wanted}` is for {}, not to {}",
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
        let mut versions = self.key_for(principal, name, KeyPurpose::Sign).await?;
        let (key, private) = versions.swap_remove(0);
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
        let versions = self
            .key_for(principal, Some(name), KeyPurpose::Sign)
            .await?;
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
        let mut versions = self.key_for(principal, name, KeyPurpose::Encrypt).await?;
        let (key, private) = versions.swap_remove(0);
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
            .key_for(principal, Some(&encrypted.key), KeyPurpose::Encrypt)
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
        KeyPurpose::Sign => Some(STANDARD.encode(public_key(&value).0)),
        KeyPurpose::Encrypt => None,
    };
    let attributes = KeyAttributes {
        purpose,
        public_key,
    };
    let attributes = serde_json::to_string(&attributes).unwrap_or_default();
    Ok((value, attributes))
}

fn public_key(private: &SymmetricKey) -> PublicKey {
    PublicKey(
        SigningKey::from_bytes(private.as_bytes())
            .verifying_key()
            .to_bytes(),
    )
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

/// Reads bytes written as hexadecimal digits or as base64.
pub(crate) fn decode_bytes(text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    from_hex(text)
        .filter(|bytes| !bytes.is_empty())
        .or_else(|| STANDARD.decode(text).ok())
        .or_else(|| URL_SAFE_NO_PAD.decode(text).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8032, section 7.1, tests 1 to 3.
    #[test]
    fn signs_the_published_vectors() {
        let cases = [
            (
                "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
                "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
                "",
                "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
            ),
            (
                "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
                "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
                "72",
                "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
            ),
            (
                "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
                "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
                "af82",
                "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
            ),
        ];
        for (private, public, data, signature) in cases {
            let private = SymmetricKey::from_slice(&from_hex(private).unwrap()).unwrap();
            let data = from_hex(data).unwrap();
            let signed = SigningKey::from_bytes(private.as_bytes()).sign(&data);
            assert_eq!(to_hex(&signed.to_bytes()), signature);
            let key = public_key(&private);
            assert_eq!(key.to_hex(), public);
            assert!(key.verifies(&data, &signed.to_bytes()));
            assert!(!key.verifies(b"other", &signed.to_bytes()));
            assert!(!key.verifies(&data, &signed.to_bytes()[1..]));
        }
    }

    #[test]
    fn a_public_key_has_three_forms() {
        let hex = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        let key = PublicKey::parse(hex).unwrap();
        assert_eq!(PublicKey::parse(&key.to_base64()).unwrap(), key);
        assert!(
            key.to_pem()
                .contains("MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=")
        );
        for wrong in ["", "d75a", &hex[2..], "???"] {
            assert!(PublicKey::parse(wrong).is_err(), "{wrong}");
        }
        // The point of order 1 verifies anything with a lax check.
        let weak = PublicKey::parse(&format!("01{}", "00".repeat(31))).unwrap();
        let mut signature = [0; 64];
        signature[0] = 1;
        assert!(!weak.verifies(b"anything", &signature));
    }
}
