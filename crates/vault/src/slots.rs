//! Key slots: the data key of a vault, wrapped with the key of a key file or of a passphrase.

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use lango_domain::secret::Secret;
use lango_domain::vault::{KeySlot, SlotKind, VaultId};
use serde::{Deserialize, Serialize};

use crate::cipher::{self, SymmetricKey, associated_data, fill_random};
use crate::error::VaultError;

const SALT_BYTES: usize = 16;
/// The label of a slot in what it authenticates.
const SLOT_LABEL: &[u8] = b"lango-vault-slot-1";

/// The cost of deriving a key from a passphrase with Argon2id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassphraseCost {
    pub memory_kib: u32,
    pub passes: u32,
    pub lanes: u32,
}

impl PassphraseCost {
    /// The second recommendation of RFC 9106.
    pub const DEFAULT: Self = Self {
        memory_kib: 64 * 1024,
        passes: 3,
        lanes: 4,
    };
    /// The least that is accepted (OWASP).
    pub const LEAST: Self = Self {
        memory_kib: 19 * 1024,
        passes: 2,
        lanes: 1,
    };
    /// The most that is accepted, because a file from others names its own cost.
    pub const MOST: Self = Self {
        memory_kib: 1024 * 1024,
        passes: 16,
        lanes: 16,
    };

    fn check(self) -> Result<(), &'static str> {
        let within = |field: fn(Self) -> u32| {
            field(self) >= field(Self::LEAST) && field(self) <= field(Self::MOST)
        };
        if !within(|cost| cost.memory_kib) {
            return Err("the memory must be from 19 MiB to 1 GiB");
        }
        if !within(|cost| cost.passes) {
            return Err("the passes must be from 2 to 16");
        }
        if !within(|cost| cost.lanes) {
            return Err("the lanes must be from 1 to 16");
        }
        Ok(())
    }
}

/// The derivation of a key from a passphrase. Stored with the data that the key protects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PassphraseParameters {
    algorithm: DerivationAlgorithm,
    memory_kib: u32,
    passes: u32,
    lanes: u32,
    /// Base64.
    salt: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum DerivationAlgorithm {
    #[serde(rename = "argon2id")]
    Argon2id,
}

impl PassphraseParameters {
    pub fn with_new_salt(cost: PassphraseCost) -> Result<Self, VaultError> {
        let mut salt = [0; SALT_BYTES];
        fill_random(&mut salt)?;
        Ok(Self {
            algorithm: DerivationAlgorithm::Argon2id,
            memory_kib: cost.memory_kib,
            passes: cost.passes,
            lanes: cost.lanes,
            salt: STANDARD.encode(salt),
        })
    }

    /// Derives the key. Takes a fifth of a second with the default cost.
    pub fn derive(&self, passphrase: &Secret) -> Result<SymmetricKey, &'static str> {
        let cost = PassphraseCost {
            memory_kib: self.memory_kib,
            passes: self.passes,
            lanes: self.lanes,
        };
        cost.check()?;
        let salt = STANDARD.decode(&self.salt).ok();
        let salt = salt
            .filter(|salt| salt.len() == SALT_BYTES)
            .ok_or("the salt is not valid")?;
        derive_key(cost, passphrase.expose().as_bytes(), &salt)
    }
}

fn derive_key(
    cost: PassphraseCost,
    passphrase: &[u8],
    salt: &[u8],
) -> Result<SymmetricKey, &'static str> {
    let params = Params::new(cost.memory_kib, cost.passes, cost.lanes, None)
        .map_err(|_| "the cost is not valid")?;
    let mut key = SymmetricKey::from_slice(&[0; cipher::KEY_BYTES]).ok_or("no key")?;
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(passphrase, salt, key.as_mut_slice())
        .map_err(|_| "the memory for deriving the key is not available")?;
    Ok(key)
}

/// A new slot that a key file opens.
pub fn key_file_slot(
    vault: &VaultId,
    data_key: &SymmetricKey,
    wrapping_key: &SymmetricKey,
    now: Timestamp,
) -> Result<KeySlot, VaultError> {
    let parameters = "{}".to_owned();
    wrap(
        vault,
        SlotKind::KeyFile,
        parameters,
        (data_key, wrapping_key),
        now,
    )
}

/// A new slot that a passphrase opens.
pub fn passphrase_slot(
    vault: &VaultId,
    data_key: &SymmetricKey,
    passphrase: &Secret,
    (cost, now): (PassphraseCost, Timestamp),
) -> Result<KeySlot, VaultError> {
    let kind = SlotKind::Passphrase;
    let parameters = PassphraseParameters::with_new_salt(cost)?;
    let wrapping_key = parameters
        .derive(passphrase)
        .map_err(|reason| VaultError::InvalidSlot { slot: kind, reason })?;
    let parameters = serde_json::to_string(&parameters).unwrap_or_default();
    wrap(vault, kind, parameters, (data_key, &wrapping_key), now)
}

fn wrap(
    vault: &VaultId,
    kind: SlotKind,
    parameters: String,
    (data_key, wrapping_key): (&SymmetricKey, &SymmetricKey),
    created: Timestamp,
) -> Result<KeySlot, VaultError> {
    let associated = slot_data(vault, kind, &parameters);
    let sealed = cipher::seal(wrapping_key, &associated, data_key.as_bytes())?;
    Ok(KeySlot {
        kind,
        parameters,
        nonce: sealed.nonce,
        wrapped_key: sealed.ciphertext,
        created,
    })
}

/// Opens a slot with the key of a key file. Returns `None` if it is another key.
pub fn unwrap(
    vault: &VaultId,
    slot: &KeySlot,
    wrapping_key: &SymmetricKey,
) -> Option<SymmetricKey> {
    let associated = slot_data(vault, slot.kind, &slot.parameters);
    let opened = cipher::open(wrapping_key, &associated, &slot.nonce, &slot.wrapped_key).ok()?;
    SymmetricKey::from_slice(&opened)
}

/// Opens a slot with a passphrase.
pub fn unwrap_with_passphrase(
    vault: &VaultId,
    slot: &KeySlot,
    passphrase: &Secret,
) -> Result<SymmetricKey, VaultError> {
    let invalid = |reason| VaultError::InvalidSlot {
        slot: slot.kind,
        reason,
    };
    let parameters: PassphraseParameters =
        serde_json::from_str(&slot.parameters).map_err(|_| invalid("they cannot be read"))?;
    let wrapping_key = parameters.derive(passphrase).map_err(invalid)?;
    unwrap(vault, slot, &wrapping_key).ok_or(VaultError::WrongPassphrase)
}

fn slot_data(vault: &VaultId, kind: SlotKind, parameters: &str) -> Vec<u8> {
    let fields = [
        SLOT_LABEL,
        vault.0.as_bytes(),
        kind.as_str().as_bytes(),
        parameters.as_bytes(),
    ];
    associated_data(&fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cipher::from_hex;

    /// RFC 9106, section 5.3, with its secret and associated data.
    #[test]
    fn argon2id_derives_the_published_vector() {
        let associated = argon2::AssociatedData::new(&[4; 12]).unwrap();
        let params = argon2::ParamsBuilder::new()
            .m_cost(32)
            .t_cost(3)
            .p_cost(4)
            .data(associated)
            .build()
            .unwrap();
        let argon2 =
            Argon2::new_with_secret(&[3; 8], Algorithm::Argon2id, Version::V0x13, params).unwrap();
        let mut tag = [0; 32];
        argon2
            .hash_password_into(&[1; 32], &[2; 16], &mut tag)
            .unwrap();
        let expected = "0d640df58d78766c08c037a34a8b53c9d01ef0452d75b65eb52520e96b01e659";
        assert_eq!(tag.to_vec(), from_hex(expected).unwrap());
    }

    fn made() -> (VaultId, SymmetricKey, KeySlot) {
        let (vault, data_key) = (VaultId("v".to_owned()), SymmetricKey::random().unwrap());
        let cost = (PassphraseCost::LEAST, Timestamp::UNIX_EPOCH);
        let passphrase = Secret::new("correct horse");
        let slot = passphrase_slot(&vault, &data_key, &passphrase, cost).unwrap();
        (vault, data_key, slot)
    }

    #[test]
    fn a_passphrase_opens_its_slot_only() {
        let (vault, data_key, slot) = made();
        let opened = unwrap_with_passphrase(&vault, &slot, &Secret::new("correct horse")).unwrap();
        assert_eq!(opened.as_bytes(), data_key.as_bytes());
        for (vault, passphrase) in [("v", "correct hors"), ("other", "correct horse")] {
            let vault = VaultId(vault.to_owned());
            let opened = unwrap_with_passphrase(&vault, &slot, &Secret::new(passphrase));
            assert_eq!(opened.unwrap_err(), VaultError::WrongPassphrase);
        }
    }

    /// A slot with a hostile cost is refused before any memory is taken.
    #[test]
    fn the_cost_has_bounds() {
        let (vault, _, slot) = made();
        for (from, to) in [
            ("\"memory_kib\":19456", "\"memory_kib\":4294967295"),
            ("\"memory_kib\":19456", "\"memory_kib\":8"),
            ("\"passes\":2", "\"passes\":4000000000"),
            ("\"passes\":2", "\"passes\":1"),
            ("\"lanes\":1", "\"lanes\":0"),
            ("\"lanes\":1", "\"lanes\":70000"),
            ("\"salt\":\"", "\"salt\":\"!"),
            ("argon2id", "rot13"),
            ("{", "["),
        ] {
            assert!(slot.parameters.contains(from), "{}", slot.parameters);
            let changed = KeySlot {
                parameters: slot.parameters.replacen(from, to, 1),
                ..slot.clone()
            };
            let opened = unwrap_with_passphrase(&vault, &changed, &Secret::new("correct horse"));
            assert!(
                matches!(opened, Err(VaultError::InvalidSlot { .. })),
                "{to}"
            );
        }
    }

    #[test]
    fn changed_slots_do_not_open() {
        let (vault, data_key, _) = made();
        let wrapping = SymmetricKey::random().unwrap();
        let slot = key_file_slot(&vault, &data_key, &wrapping, Timestamp::UNIX_EPOCH).unwrap();
        assert!(unwrap(&vault, &slot, &wrapping).is_some());
        let mut changed = vec![slot.clone(); 4];
        changed[0].wrapped_key[3] ^= 1;
        changed[1].nonce[0] ^= 1;
        changed[2].parameters = "{ }".to_owned();
        changed[3].wrapped_key.truncate(10);
        for slot in changed {
            assert!(unwrap(&vault, &slot, &wrapping).is_none(), "{slot:?}");
        }
    }
}
