//! Signs with a key in memory, for the time of one payment. Where the key is kept is the matter of others.

use alloy_primitives::Address;
use futures::future::{FutureExt, ready};
use k256::ecdsa::SigningKey;
use lango_domain::payments::AccountAddress;

use crate::wallet::{WalletError, WalletFuture, WalletSigner};

/// A private key. It is erased when it is dropped.
pub struct KeySigner(SigningKey);

impl KeySigner {
    /// Returns `None` for bytes that are no key. Of random ones, almost all are.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        // The library would accept shorter ones.
        let bytes: &[u8; 32] = bytes.try_into().ok()?;
        SigningKey::from_slice(bytes).ok().map(Self)
    }
}

impl WalletSigner for KeySigner {
    fn address(&self) -> AccountAddress {
        AccountAddress(Address::from_private_key(&self.0).into_array())
    }

    fn sign<'a>(&'a self, digest: &'a [u8; 32]) -> WalletFuture<'a, [u8; 65]> {
        let signed = self.0.sign_prehash_recoverable(digest);
        let bytes = signed.map(|(signature, recovery)| {
            let mut bytes = [recovery.to_byte(); 65];
            bytes[..64].copy_from_slice(&signature.to_bytes());
            bytes
        });
        ready(bytes.map_err(|error| WalletError::Other(error.to_string()))).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::shown_address;

    /// The address of the key 1 is known to everyone.
    #[test]
    fn addresses_belong_to_keys() {
        let mut one = [0; 32];
        one[31] = 1;
        let signer = KeySigner::from_bytes(&one).unwrap();
        let expected = "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf";
        assert_eq!(shown_address(signer.address()), expected);
        for bad in [&[0; 32][..], &[0xff; 32], &[1; 31]] {
            assert!(KeySigner::from_bytes(bad).is_none());
        }
    }
}
