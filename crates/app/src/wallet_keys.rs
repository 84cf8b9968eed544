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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Overrides;
    use crate::environment::Environment;
    use lango_domain::secret::Secret;

    fn wallets(folder: &std::path::Path) -> VaultWallets {
        let variables = [
            ("HOME".to_owned(), folder.display().to_string()),
            (
                "LANGO_HOME".to_owned(),
                folder.join("home").display().to_string(),
            ),
            ("XDG_RUNTIME_DIR".to_owned(), folder.display().to_string()),
        ];
        let environment = Environment {
            variables: variables.into(),
            working_folder: folder.to_owned(),
        };
        let loaded = LoadedConfig::load(&environment, &Overrides::default()).unwrap();
        VaultWallets {
            stores: LazyStores::new(&loaded, &environment),
        }
    }

    /// B131: a key is found again by its address, by its principal only.
    #[tokio::test]
    async fn a_key_signs_for_its_address_and_principal() {
        let folder = tempfile::tempdir().unwrap();
        let (local, ann) = (Principal::local(), Principal::new("ann"));
        let created = wallets(folder.path()).create(&local, "main").await.unwrap();
        // Another process.
        let keys = wallets(folder.path());
        assert_eq!(
            keys.list(&local).await.unwrap(),
            std::slice::from_ref(&created)
        );
        assert_eq!(keys.list(&ann).await.unwrap(), []);
        let signer = keys.signer(&local, created.address).await.unwrap();
        assert_eq!(signer.address(), created.address);
        let signatures = [signer.sign(&[7; 32]).await, signer.sign(&[7; 32]).await];
        assert_eq!(
            signatures[0].as_ref().unwrap(),
            signatures[1].as_ref().unwrap()
        );
        let foreign = keys.signer(&ann, created.address).await.err().unwrap();
        assert!(matches!(foreign, WalletError::Missing), "{foreign}");
        let other = keys.create(&ann, "main").await.unwrap();
        assert_ne!(other.address, created.address);
        let unknown = keys.signer(&local, other.address).await.err().unwrap();
        assert!(matches!(unknown, WalletError::Missing), "{unknown}");
    }

    /// B131
    #[tokio::test]
    async fn a_name_is_taken_once() {
        let folder = tempfile::tempdir().unwrap();
        let (keys, local) = (wallets(folder.path()), Principal::local());
        let first = keys.create(&local, "main").await.unwrap();
        let again = keys.create(&local, "main").await.unwrap_err();
        assert!(matches!(again, WalletError::Exists(name) if name == "main"));
        assert_eq!(keys.list(&local).await.unwrap(), [first]);
    }

    /// B131: a locked vault lists its wallets, and signs nothing.
    #[tokio::test]
    async fn a_locked_vault_lists_and_does_not_sign() {
        let folder = tempfile::tempdir().unwrap();
        let (keys, local) = (wallets(folder.path()), Principal::local());
        let created = keys.create(&local, "main").await.unwrap();
        let vault = keys.vault().unwrap();
        vault
            .set_passphrase(&Secret::new("correct horse battery"))
            .await
            .unwrap();
        vault.remove_key_file().await.unwrap();
        vault.lock().await.unwrap();
        let locked = wallets(folder.path());
        assert_eq!(
            locked.list(&local).await.unwrap(),
            std::slice::from_ref(&created)
        );
        let refused = locked.signer(&local, created.address).await.err().unwrap();
        assert!(matches!(refused, WalletError::Locked), "{refused}");
        let refused = locked.create(&local, "second").await.unwrap_err();
        assert!(matches!(refused, WalletError::Locked), "{refused}");
    }

    #[test]
    fn a_damaged_record_is_named() {
        for attributes in ["", "{}", r#"{"address":"0x12"}"#, r#"{"address":7}"#] {
            let error = wallet_key("main".to_owned(), attributes).unwrap_err();
            assert_eq!(
                error.to_string(),
                "the record of the wallet `main` is damaged"
            );
        }
    }
}
