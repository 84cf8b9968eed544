//! A wallet with a fixed key.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alloy_primitives::Address;
use futures::future::{FutureExt, ready};
use k256::ecdsa::SigningKey;
use lango_domain::event::Principal;
use lango_domain::payments::AccountAddress;
use lango_payments::{WalletError, WalletFuture, WalletKey, WalletKeys, WalletSigner};

/// The key of the wallet, which is worth nothing.
pub const KEY: [u8; 32] = [0x17; 32];

/// Counts its signatures.
#[derive(Clone, Default)]
pub struct BenchKeys {
    signatures: Arc<AtomicU64>,
}

impl BenchKeys {
    pub fn address(&self) -> Address {
        let key = SigningKey::from_slice(&KEY).ok();
        key.map_or(Address::ZERO, |key| Address::from_private_key(&key))
    }

    pub fn signatures(&self) -> u64 {
        self.signatures.load(Ordering::Relaxed)
    }
}

impl WalletSigner for BenchKeys {
    fn address(&self) -> AccountAddress {
        AccountAddress(self.address().into_array())
    }

    fn sign<'a>(&'a self, digest: &'a [u8; 32]) -> WalletFuture<'a, [u8; 65]> {
        self.signatures.fetch_add(1, Ordering::Relaxed);
        let signed =
            SigningKey::from_slice(&KEY).and_then(|key| key.sign_prehash_recoverable(digest));
        let bytes = signed.map(|(signature, recovery)| {
            let mut bytes = [recovery.to_byte(); 65];
            bytes[..64].copy_from_slice(&signature.to_bytes());
            bytes
        });
        ready(bytes.map_err(|error| WalletError::Other(error.to_string()))).boxed()
    }
}

impl WalletKeys for BenchKeys {
    fn create<'a>(&'a self, _: &'a Principal, name: &'a str) -> WalletFuture<'a, WalletKey> {
        ready(Err(WalletError::Exists(name.to_owned()))).boxed()
    }

    fn list<'a>(&'a self, _: &'a Principal) -> WalletFuture<'a, Vec<WalletKey>> {
        let address = WalletSigner::address(self);
        let name = "bench".to_owned();
        ready(Ok(vec![WalletKey { name, address }])).boxed()
    }

    fn signer<'a>(
        &'a self,
        _: &'a Principal,
        _: AccountAddress,
    ) -> WalletFuture<'a, Arc<dyn WalletSigner>> {
        ready(Ok(Arc::new(self.clone()) as Arc<dyn WalletSigner>)).boxed()
    }
}
