//! Public keys for signatures (Ed25519).

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ed25519_dalek::{Signature, SigningKey, VerifyingKey};

use crate::cipher::{SymmetricKey, from_hex, to_hex};
use crate::error::VaultError;

/// The DER prefix of an Ed25519 public key (RFC 8410).
const PUBLIC_KEY_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// A public key for signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Returns the public part of a private key.
    pub(crate) fn of(private: &SymmetricKey) -> Self {
        let key = SigningKey::from_bytes(private.as_bytes());
        Self(key.verifying_key().to_bytes())
    }

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
    use ed25519_dalek::Signer as _;

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
            let key = PublicKey::of(&private);
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
