//! Wallets: who holds the keys, and which wallet pays.

use std::sync::Arc;

use futures::future::BoxFuture;
use lango_domain::event::Principal;
use lango_domain::payments::{AccountAddress, PaymentStore};
use lango_text::suggest;

use crate::address::shown_address;
use crate::error::PaymentError;

pub type WalletFuture<'a, T> = BoxFuture<'a, Result<T, WalletError>>;

/// Signs with the key of one wallet. The key itself stays where it is.
pub trait WalletSigner: Send + Sync {
    fn address(&self) -> AccountAddress;

    /// Returns r, s and v of a signature of the digest.
    fn sign<'a>(&'a self, digest: &'a [u8; 32]) -> WalletFuture<'a, [u8; 65]>;
}

/// The keys of wallets, such as those in a vault.
pub trait WalletKeys: Send + Sync {
    /// Makes a new key under a name that is not taken.
    fn create<'a>(&'a self, principal: &'a Principal, name: &'a str)
    -> WalletFuture<'a, WalletKey>;

    fn list<'a>(&'a self, principal: &'a Principal) -> WalletFuture<'a, Vec<WalletKey>>;

    fn signer<'a>(
        &'a self,
        principal: &'a Principal,
        address: AccountAddress,
    ) -> WalletFuture<'a, Arc<dyn WalletSigner>>;
}

/// The public part of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalletKey {
    pub name: String,
    pub address: AccountAddress,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WalletError {
    #[error("the vault is locked; unlock it with `lango vault unlock`")]
    Locked,
    #[error("there is already a wallet `{0}`")]
    Exists(String),
    #[error("there is no key for this wallet")]
    Missing,
    #[error("{0}")]
    Other(String),
}

/// A wallet that can be looked at, and perhaps paid from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wallet {
    pub name: String,
    pub address: AccountAddress,
    pub kind: WalletKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalletKind {
    /// Its key is in the vault.
    Key,
    /// Its key is somewhere else.
    WatchOnly,
}

impl WalletKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::WatchOnly => "watch-only",
        }
    }
}

/// Returns all wallets of a principal: first those with keys.
pub async fn wallets(
    keys: Option<&dyn WalletKeys>,
    store: &dyn PaymentStore,
    principal: &Principal,
) -> Result<Vec<Wallet>, PaymentError> {
    let with_key = match keys {
        Some(keys) => keys.list(principal).await?,
        None => Vec::new(),
    };
    let with_key = with_key.into_iter().map(|key| Wallet {
        name: key.name,
        address: key.address,
        kind: WalletKind::Key,
    });
    let watched = store.watched_wallets(principal).await?;
    let watched = watched.into_iter().map(|wallet| Wallet {
        name: wallet.name,
        address: wallet.address,
        kind: WalletKind::WatchOnly,
    });
    Ok(with_key.chain(watched).collect())
}

/// Returns the wallet with this name or address; without one, the only wallet, or the only one with a key.
pub fn choose_wallet(wallets: &[Wallet], wanted: Option<&str>) -> Result<Wallet, PaymentError> {
    if let Some(wanted) = wanted {
        let is_wanted = |wallet: &&Wallet| {
            wallet.name == wanted || shown_address(wallet.address).eq_ignore_ascii_case(wanted)
        };
        return wallets.iter().find(is_wanted).cloned().ok_or_else(|| {
            let names = wallets.iter().map(|wallet| wallet.name.as_str());
            PaymentError::UnknownWallet {
                name: lango_text::sanitize::truncated_line(wanted, 80),
                similar: suggest::did_you_mean(wanted, names),
            }
        });
    }
    let with_key: Vec<&Wallet> = wallets
        .iter()
        .filter(|wallet| wallet.kind == WalletKind::Key)
        .collect();
    match (with_key.as_slice(), wallets) {
        ([wallet], _) => Ok((*wallet).clone()),
        ([], [wallet]) => Ok(wallet.clone()),
        ([], []) => Err(PaymentError::NoWallet),
        _ => {
            let names: Vec<&str> = wallets.iter().map(|wallet| wallet.name.as_str()).collect();
            Err(PaymentError::SeveralWallets(names.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wallet(name: &str, byte: u8, kind: WalletKind) -> Wallet {
        Wallet {
            name: name.to_owned(),
            address: AccountAddress([byte; 20]),
            kind,
        }
    }

    #[test]
    fn the_wallet_is_chosen_only_if_there_is_no_doubt() {
        let main = wallet("main", 1, WalletKind::Key);
        let second = wallet("second", 2, WalletKind::Key);
        let cold = wallet("cold", 3, WalletKind::WatchOnly);
        let all = [main.clone(), second.clone(), cold.clone()];
        assert_eq!(choose_wallet(&all[..1], None).unwrap(), main);
        assert_eq!(
            choose_wallet(&[main.clone(), cold.clone()], None).unwrap(),
            main
        );
        assert_eq!(choose_wallet(&all[2..], None).unwrap(), cold);
        assert!(matches!(
            choose_wallet(&all, None),
            Err(PaymentError::SeveralWallets(_))
        ));
        assert!(matches!(
            choose_wallet(&[], None),
            Err(PaymentError::NoWallet)
        ));
        assert_eq!(choose_wallet(&all, Some("second")).unwrap(), second);
        let address = shown_address(cold.address);
        assert_eq!(choose_wallet(&all, Some(&address)).unwrap(), cold);
        let error = choose_wallet(&all, Some("secnd")).unwrap_err().to_string();
        assert!(error.contains("second"), "{error}");
    }
}
