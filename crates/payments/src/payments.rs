//! Payments from the question to the receipt. Decides nothing about states: `ledger` does.

pub(crate) mod prepare;
mod reconcile;
mod send;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use lango_domain::Clock;
use lango_domain::event::Principal;
use lango_domain::lazy::Lazy;
use lango_domain::payments::{
    LimitUse, Payment, PaymentId, PaymentQuery, PaymentStore, UsdcAmount,
};
use lango_domain::secret::Secret;
use lango_net::AddressPolicy;
use tokio::sync::OnceCell;

pub use prepare::{PaymentRequest, PreparedPayment};
pub use reconcile::Reconciliation;

use crate::address::from_account;
use crate::chain::Chain;
use crate::error::PaymentError;
use crate::network::Network;
use crate::settings::{PaymentSettings, WalletProvider};
use crate::wallet::{Wallet, WalletKeys, choose_wallet, wallets};
use crate::x402::QuoteBook;

pub type LazyPaymentStore = Lazy<dyn PaymentStore>;

/// Returns new payment ids.
pub type NewPaymentId = Arc<dyn Fn() -> PaymentId + Send + Sync>;

/// The parts from which [`Payments`] are made.
pub struct PaymentParts {
    pub store: LazyPaymentStore,
    /// The keys of wallets; `None` if there is no vault.
    pub keys: Option<Arc<dyn WalletKeys>>,
    pub settings: PaymentSettings,
    pub clock: Clock,
    pub new_id: NewPaymentId,
    /// Where paid resources may be.
    pub resource_policy: AddressPolicy,
}

/// Makes payments on one chain. Shared by tools and commands.
pub struct Payments {
    pub(crate) store: LazyPaymentStore,
    pub(crate) keys: Option<Arc<dyn WalletKeys>>,
    pub(crate) settings: PaymentSettings,
    pub(crate) clock: Clock,
    pub(crate) new_id: NewPaymentId,
    pub(crate) resource_policy: AddressPolicy,
    pub(crate) chain: Chain,
    pub(crate) quotes: QuoteBook,
    is_reconciled: OnceCell<()>,
    /// The time to wait for the chain before a payment is reported as sent.
    pub(crate) settle_time: Duration,
}

/// The content of a wallet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalletBalance {
    pub wallet: Wallet,
    pub usdc: UsdcAmount,
    /// For network fees, in wei.
    pub ether: u128,
}

const SETTLE_TIME: Duration = Duration::from_secs(25);

impl Payments {
    /// Fails if the settings name an unknown network or no node.
    pub fn new(parts: PaymentParts) -> Result<Self, PaymentError> {
        let network = parts.settings.network()?;
        let url = parts.settings.network.rpc_url.clone();
        let chain = Chain::new(network, Secret::new(url.ok_or(PaymentError::NoNode)?));
        let has_keys = parts.settings.wallet_provider == WalletProvider::Local;
        Ok(Self {
            store: parts.store,
            keys: parts.keys.filter(|_| has_keys),
            settings: parts.settings,
            clock: parts.clock,
            new_id: parts.new_id,
            resource_policy: parts.resource_policy,
            chain,
            quotes: QuoteBook::default(),
            is_reconciled: OnceCell::new(),
            settle_time: SETTLE_TIME,
        })
    }

    /// Sets how long one request to the node may take, and how long a payment is waited for.
    #[must_use]
    pub fn with_times(mut self, request: Duration, settle: Duration) -> Self {
        self.chain = self.chain.with_timeout(request);
        self.settle_time = settle;
        self
    }

    pub fn network(&self) -> &'static Network {
        self.chain.network
    }

    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    pub fn settings(&self) -> &PaymentSettings {
        &self.settings
    }

    pub async fn store(&self) -> Result<&dyn PaymentStore, PaymentError> {
        Ok(&**self.store.get().await?)
    }

    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    pub async fn wallets(&self, principal: &Principal) -> Result<Vec<Wallet>, PaymentError> {
        wallets(self.keys.as_deref(), self.store().await?, principal).await
    }

    /// Returns the wallet that pays.
    pub async fn wallet(&self, principal: &Principal) -> Result<Wallet, PaymentError> {
        let all = self.wallets(principal).await?;
        choose_wallet(&all, self.settings.wallet.as_deref())
    }

    pub async fn balance(&self, wallet: Wallet) -> Result<WalletBalance, PaymentError> {
        self.chain.verify().await?;
        let owner = from_account(wallet.address);
        let (usdc, ether) = tokio::try_join!(
            self.chain.usdc_balance(owner),
            self.chain.ether_balance(owner)
        )?;
        Ok(WalletBalance {
            wallet,
            usdc,
            ether,
        })
    }

    /// Makes a wallet with a new key.
    pub async fn create_wallet(
        &self,
        principal: &Principal,
        name: &str,
    ) -> Result<Wallet, PaymentError> {
        let name = crate::payees::check_name(name)?;
        let keys = self.keys.as_ref().ok_or(PaymentError::Invalid(
            "keys are not kept here (payment.walletProvider is not `local`)".to_owned(),
        ))?;
        let taken = self.wallets(principal).await?;
        if taken.iter().any(|wallet| wallet.name == name) {
            return Err(crate::wallet::WalletError::Exists(name).into());
        }
        let key = keys.create(principal, &name).await?;
        Ok(Wallet {
            name: key.name,
            address: key.address,
            kind: crate::wallet::WalletKind::Key,
        })
    }

    pub async fn limit_use(&self, principal: &Principal) -> Result<LimitUse, PaymentError> {
        let store = self.store().await?;
        Ok(store.limit_use(principal, None, self.now()).await?)
    }

    pub async fn history(&self, query: PaymentQuery) -> Result<Vec<Payment>, PaymentError> {
        Ok(self.store().await?.payments(query).await?)
    }
}
