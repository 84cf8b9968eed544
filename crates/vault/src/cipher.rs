//! Authenticated encryption with XChaCha20-Poly1305.

use std::fmt;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use crate::error::VaultError;

pub const KEY_BYTES: usize = 32;
pub const NONCE_BYTES: usize = 24;

/// A key of 32 bytes. It is overwritten when it is dropped, and never shown.
#[derive(Clone)]
pub struct SymmetricKey(Box<Zeroizing<[u8; KEY_BYTES]>>);

impl SymmetricKey {
    pub fn random() -> Result<Self, VaultError> {
        let mut key = Self(Box::new(Zeroizing::new([0; KEY_BYTES])));
        fill_random(key.0.as_mut_slice())?;
        Ok(key)
    }

    /// Returns a key with these bytes, or `None` if there are too few or too many.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        let mut key = Self(Box::new(Zeroizing::new([0; KEY_BYTES])));
        (bytes.len() == KEY_BYTES).then(|| {
            key.0.copy_from_slice(bytes);
            key
        })
    }

    pub fn as_bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        self.0.as_mut_slice()
    }
}

impl fmt::Debug for SymmetricKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SymmetricKey(***)")
    }
}

/// Encrypted bytes with their nonce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    pub nonce: Vec<u8>,
    pub ciphertext: Vec<u8>,
}

/// The ciphertext does not belong to the key or to the associated data, or was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAuthentic;

/// Encrypts with a random nonce, which is long enough never to occur twice.
pub fn seal(key: &SymmetricKey, associated: &[u8], value: &[u8]) -> Result<Sealed, VaultError> {
    let mut nonce = [0; NONCE_BYTES];
    fill_random(&mut nonce)?;
    let payload = Payload {
        msg: value,
        aad: associated,
    };
    let ciphertext = cipher(key)
        .encrypt(&XNonce::from(nonce), payload)
        .map_err(|_| VaultError::Invalid("the value is too long to be encrypted".to_owned()))?;
    Ok(Sealed {
        nonce: nonce.to_vec(),
        ciphertext,
    })
}

pub fn open(
    key: &SymmetricKey,
    associated: &[u8],
    nonce: &[u8],
    ciphertext: &[u8],
) -> Result<Zeroizing<Vec<u8>>, NotAuthentic> {
    let nonce = <[u8; NONCE_BYTES]>::try_from(nonce).map_err(|_| NotAuthentic)?;
    let payload = Payload {
        msg: ciphertext,
        aad: associated,
    };
    let value = cipher(key).decrypt(&XNonce::from(nonce), payload);
    value.map(Zeroizing::new).map_err(|_| NotAuthentic)
}

fn cipher(key: &SymmetricKey) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(key.as_bytes().into())
}

/// Joins fields with their lengths, so that no two lists of fields have the same bytes.
pub fn associated_data(fields: &[&[u8]]) -> Vec<u8> {
    let mut joined = Vec::new();
    for field in fields {
        joined.extend((field.len() as u64).to_le_bytes());
        joined.extend(*field);
    }
    joined
}

pub fn fill_random(bytes: &mut [u8]) -> Result<(), VaultError> {
    getrandom::fill(bytes).map_err(|error| VaultError::Random(error.to_string()))
}

/// The bytes of a key. They are erased when they are dropped.
pub type RandomKey = Zeroizing<[u8; KEY_BYTES]>;

/// Returns random bytes for a key.
pub fn random_key() -> Result<RandomKey, VaultError> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    fill_random(key.as_mut_slice())?;
    Ok(key)
}

/// Returns random hexadecimal digits, two per byte.
pub fn random_hex(bytes: usize) -> Result<String, VaultError> {
    let mut random = vec![0; bytes];
    fill_random(&mut random)?;
    Ok(to_hex(&random))
}

pub fn to_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Reads hexadecimal digits, with or without `0x`.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    digits
        .chunks(2)
        .map(|pair| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vector of draft-irtf-cfrg-xchacha-03, section A.3.1.
    #[test]
    fn decrypts_the_published_vector() {
        let key = SymmetricKey::from_slice(
            &from_hex("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f").unwrap(),
        )
        .unwrap();
        let nonce = from_hex("404142434445464748494a4b4c4d4e4f5051525354555657").unwrap();
        let associated = from_hex("50515253c0c1c2c3c4c5c6c7").unwrap();
        let ciphertext = from_hex(
            "bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb\
            731c7f1b0b4aa6440bf3a82f4eda7e39ae64c6708c54c216cb96b72e1213b452\
            2f8c9ba40db5d945b11b69b982c1bb9e3f3fac2bc369488f76b2383565d3fff9\
            21f9664c97637da9768812f615c68b13b52e\
            c0875924c1c7987947deafd8780acf49",
        )
        .unwrap();
        let text = open(&key, &associated, &nonce, &ciphertext).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&text),
            "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the \
            future, sunscreen would be it."
        );
    }

    #[test]
    fn every_changed_bit_is_noticed() {
        let key = SymmetricKey::random().unwrap();
        let sealed = seal(&key, b"place", b"value").unwrap();
        let opened = open(&key, b"place", &sealed.nonce, &sealed.ciphertext).unwrap();
        assert_eq!(&**opened, b"value");
        for at in 0..sealed.ciphertext.len() * 8 {
            let mut changed = sealed.ciphertext.clone();
            changed[at / 8] ^= 1 << (at % 8);
            assert_eq!(
                open(&key, b"place", &sealed.nonce, &changed),
                Err(NotAuthentic)
            );
        }
        for (associated, nonce) in [
            (&b"other"[..], &sealed.nonce[..]),
            (b"place", &[0; NONCE_BYTES]),
            (b"place", &sealed.nonce[1..]),
        ] {
            let opened = open(&key, associated, nonce, &sealed.ciphertext);
            assert_eq!(opened, Err(NotAuthentic));
        }
    }

    #[test]
    fn fields_cannot_run_into_each_other() {
        assert_ne!(
            associated_data(&[b"ab", b"c"]),
            associated_data(&[b"a", b"bc"])
        );
        assert_ne!(associated_data(&[b"a"]), associated_data(&[b"a", b""]));
    }

    #[test]
    fn a_key_is_never_shown() {
        let key = SymmetricKey::from_slice(&[7; KEY_BYTES]).unwrap();
        assert_eq!(format!("{key:?}"), "SymmetricKey(***)");
        assert!(SymmetricKey::from_slice(&[7; 31]).is_none());
    }
}
