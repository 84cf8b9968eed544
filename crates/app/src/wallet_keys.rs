//! The keys of wallets, which the vault keeps.

use std::sync::Arc;

use futures::future::FutureExt;
use lango_domain::event::Principal;
use lango_domain::payments::AccountAddress;
use lango_domain::vault::{RecordKey, RecordKind};
use lango_payments::{KeySigner, WalletError, WalletFuture, WalletKey, WalletKeys, WalletSigner};
use lango_vault::{RandomKey, Vault, VaultError, random_key};
use serde::{Deserialize, Serialize};

use crate::config::LoadedConfig;
use crate::lazy_stores::LazyStores;

/// Returns the keys of wallets of this machine; none without a vault.
pub(crate) fn wallet_keys(
    loaded: &LoadedConfig,
    stores: &LazyStores,
) -> Option<Arc<dyn WalletKeys>> {
    let is_enabled = loaded.settings.security.vault.enabled;
    is_enabled.then(|| {
        let stores = stores.clone();
        Arc::new(VaultWallets { stores }) as Arc<dyn WalletKeys>
    })
}

/// Wallets as records of the vault. The address is an attribute, so that wallets are known while the vault
/// is locked.
struct VaultWallets {
    stores: LazyStores,
}

impl VaultWallets {
    fn vault(&self) -> Result<Vault, WalletError> {
        let secrets = self.stores.vault().map_err(VaultError::from);
        let secrets = secrets.map_err(wallet_error)?;
        Ok(secrets.vault().clone())
    }

    async fn keys(&self, principal: &Principal) -> Result<Vec<WalletKey>, WalletError> {
        let records = self.vault()?.list(principal, RecordKind::Wallet).await;
        let records = records.map_err(wallet_error)?;
        records
            .into_iter()
            .map(|record| wallet_key(record.key.name, &record.attributes))
            .collect()
    }
}

impl WalletKeys for VaultWallets {
    fn create<'a>(
        &'a self,
        principal: &'a Principal,
        name: &'a str,
    ) -> WalletFuture<'a, WalletKey> {
        async move {
            let (bytes, signer) = new_key()?;
            let address = signer.address();
            let attributes = WalletAttributes {
                address: address.to_string(),
            };
            let attributes = serde_json::to_string(&attributes)
                .map_err(|error| WalletError::Other(error.to_string()))?;
            let (vault, key) = (self.vault()?, wallet_record(principal, name));
            let created = vault.create_record(&key, &bytes[..], &attributes).await;
            created.map_err(wallet_error)?;
            Ok(WalletKey {
                name: name.to_owned(),
                address,
            })
        }
        .boxed()
    }

    fn list<'a>(&'a self, principal: &'a Principal) -> WalletFuture<'a, Vec<WalletKey>> {
        self.keys(principal).boxed()
    }

    fn signer<'a>(
        &'a self,
        principal: &'a Principal,
        address: AccountAddress,
    ) -> WalletFuture<'a, Arc<dyn WalletSigner>> {
        async move {
            let keys = self.keys(principal).await?;
            let key = keys.into_iter().find(|key| key.address == address);
            let name = key.ok_or(WalletError::Missing)?.name;
            let record = self.vault()?.get(&wallet_record(principal, &name)).await;
            let record = record.map_err(wallet_error)?;
            let signer = KeySigner::from_bytes(&record.value).ok_or(WalletError::Missing)?;
            // The attribute is authenticated, but only the key says whose it is.
            if signer.address() != address {
                return Err(WalletError::Missing);
            }
            Ok(Arc::new(signer) as Arc<dyn WalletSigner>)
        }
        .boxed()
    }
}

/// The part of a wallet that can be read while the vault is locked.
#[derive(Serialize, Deserialize)]
struct WalletAttributes {
    address: String,
}

fn wallet_key(name: String, attributes: &str) -> Result<WalletKey, WalletError> {
    let damaged = || WalletError::Other(format!("the record of the wallet `{name}` is damaged"));
    let attributes: WalletAttributes = serde_json::from_str(attributes).map_err(|_| damaged())?;
    let address = attributes.address.parse().map_err(|_| damaged())?;
    Ok(WalletKey { name, address })
}

fn new_key() -> Result<(RandomKey, KeySigner), WalletError> {
    loop {
        let bytes = random_key().map_err(wallet_error)?;
        // A few numbers are too large to be a key.
        if let Some(signer) = KeySigner::from_bytes(&bytes[..]) {
            return Ok((bytes, signer));
        }
    }
}

fn wallet_record(principal: &Principal, name: &str) -> RecordKey {
    RecordKey {
        kind: RecordKind::Wallet,
        principal: principal.clone(),
        name: name.to_owned(),
    }
}

fn wallet_error(error: VaultError) -> WalletError {
    match error {
        VaultError::Locked => WalletError::Locked,
        VaultError::Exists { name, .. } => WalletError::Exists(name),
        other => WalletError::Other(other.to_string()),
    }
}
