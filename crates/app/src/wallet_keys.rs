//! The keys of wallets. They belong into the vault; this is where payments meet it.

use std::sync::Arc;

use futures::future::{FutureExt, ready};
use lango_domain::event::Principal;
use lango_domain::payments::AccountAddress;
use lango_payments::{WalletError, WalletFuture, WalletKey, WalletKeys, WalletSigner};

use crate::config::LoadedConfig;
use crate::environment::Environment;
use crate::lazy_stores::LazyStores;

/// Returns the keys of wallets of this machine.
pub(crate) fn wallet_keys(
    _: &LoadedConfig,
    _: &Environment,
    _: &LazyStores,
) -> Option<Arc<dyn WalletKeys>> {
    Some(Arc::new(NoWalletKeys))
}

/// No place for keys: wallets can only be watched.
struct NoWalletKeys;

impl WalletKeys for NoWalletKeys {
    fn create<'a>(&'a self, _: &'a Principal, _: &'a str) -> WalletFuture<'a, WalletKey> {
        let error = "there is no vault that could keep the key";
        ready(Err(WalletError::Other(error.to_owned()))).boxed()
    }

    fn list<'a>(&'a self, _: &'a Principal) -> WalletFuture<'a, Vec<WalletKey>> {
        ready(Ok(Vec::new())).boxed()
    }

    fn signer<'a>(
        &'a self,
        _: &'a Principal,
        _: AccountAddress,
    ) -> WalletFuture<'a, Arc<dyn WalletSigner>> {
        ready(Err(WalletError::Missing)).boxed()
    }
}
