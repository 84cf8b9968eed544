//! A payer on a real chain: anvil with Circle's USDC, and keys in memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use alloy_primitives::Address;
use futures::future::{FutureExt, ready};
use jiff::Timestamp;
use k256::ecdsa::SigningKey;
use lango_domain::Clock;
use lango_domain::event::Principal;
use lango_domain::payments::{
    AccountAddress, NewPayee, Payee, PaymentId, PaymentStore, UsdcAmount,
};
use lango_net::AddressPolicy;
use lango_payments::{
    LazyPaymentStore, PaymentParts, PaymentRequest, PaymentSettings, Payments, WalletError,
    WalletFuture, WalletKey, WalletKeys, WalletSigner, parse_address,
};
use lango_store::{SqliteStore, StoreLocation};
use lango_testkit::usdc_chain::UsdcChain;

pub const BOB: &str = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";

/// Keys in memory, by name. Counts its signatures.
#[derive(Default)]
pub struct TestKeys {
    keys: Mutex<BTreeMap<String, SigningKey>>,
    pub signatures: Arc<AtomicU64>,
}

pub struct TestSigner {
    key: SigningKey,
    signatures: Arc<AtomicU64>,
}

impl TestKeys {
    pub fn with_wallet(name: &str) -> Self {
        let keys = Self::default();
        keys.add(name);
        keys
    }

    pub fn add(&self, name: &str) -> AccountAddress {
        let mut keys = self.keys.lock().unwrap();
        let number = keys.len() as u8 + 1;
        let key = SigningKey::from_slice(&[number; 32]).unwrap();
        let address = address_of(&key);
        keys.insert(name.to_owned(), key);
        address
    }
}

pub fn address_of(key: &SigningKey) -> AccountAddress {
    AccountAddress(Address::from_private_key(key).into_array())
}

impl WalletSigner for TestSigner {
    fn address(&self) -> AccountAddress {
        address_of(&self.key)
    }

    fn sign<'a>(&'a self, digest: &'a [u8; 32]) -> WalletFuture<'a, [u8; 65]> {
        self.signatures.fetch_add(1, Ordering::Relaxed);
        let (signature, recovery) = self.key.sign_prehash_recoverable(digest).unwrap();
        let mut bytes = [0; 65];
        bytes[..64].copy_from_slice(&signature.to_bytes());
        bytes[64] = recovery.to_byte();
        ready(Ok(bytes)).boxed()
    }
}

impl WalletKeys for TestKeys {
    fn create<'a>(&'a self, _: &'a Principal, name: &'a str) -> WalletFuture<'a, WalletKey> {
        let address = self.add(name);
        let name = name.to_owned();
        ready(Ok(WalletKey { name, address })).boxed()
    }

    fn list<'a>(&'a self, _: &'a Principal) -> WalletFuture<'a, Vec<WalletKey>> {
        let keys = self.keys.lock().unwrap();
        let key = |(name, key): (&String, &SigningKey)| WalletKey {
            name: name.clone(),
            address: address_of(key),
        };
        ready(Ok(keys.iter().map(key).collect())).boxed()
    }

    fn signer<'a>(
        &'a self,
        _: &'a Principal,
        address: AccountAddress,
    ) -> WalletFuture<'a, Arc<dyn WalletSigner>> {
        let keys = self.keys.lock().unwrap();
        let key = keys
            .values()
            .find(|key| address_of(key) == address)
            .cloned();
        let signatures = Arc::clone(&self.signatures);
        let signer =
            key.map(|key| Arc::new(TestSigner { key, signatures }) as Arc<dyn WalletSigner>);
        ready(signer.ok_or(WalletError::Missing)).boxed()
    }
}

/// Everything of one payer.
pub struct Payer {
    pub store: SqliteStore,
    pub keys: Arc<TestKeys>,
    pub settings: PaymentSettings,
    pub clock: Clock,
    pub url: String,
    /// The time to wait for the chain.
    pub settle: Duration,
}

impl Payer {
    pub fn new(url: &str) -> Self {
        let mut settings = PaymentSettings {
            enabled: true,
            ..PaymentSettings::default()
        };
        settings.network.chain_id = 8453;
        Self {
            store: SqliteStore::open(StoreLocation::Memory).unwrap(),
            keys: Arc::new(TestKeys::with_wallet("main")),
            settings,
            clock: Arc::new(Timestamp::now),
            url: url.to_owned(),
            settle: Duration::from_secs(10),
        }
    }

    /// Starts a process, so to say: new state in memory, the same ledger.
    pub fn payments(&self) -> Arc<Payments> {
        let mut settings = self.settings.clone();
        settings.network.rpc_url = Some(self.url.clone());
        let payments = Payments::new(PaymentParts {
            store: LazyPaymentStore::ready(self.store.stores().payments),
            keys: Some(self.keys.clone()),
            settings,
            clock: self.clock.clone(),
            new_id: Arc::new(|| PaymentId::new(uuid::Uuid::now_v7().to_string())),
            resource_policy: AddressPolicy::Anywhere,
        });
        Arc::new(
            payments
                .unwrap()
                .with_times(Duration::from_secs(3), self.settle),
        )
    }

    pub fn ledger(&self) -> Arc<dyn PaymentStore> {
        self.store.stores().payments
    }

    pub fn signatures(&self) -> u64 {
        self.keys.signatures.load(Ordering::Relaxed)
    }

    pub async fn add_payee(&self, name: &str, address: &str) {
        let payee = Payee {
            name: name.to_owned(),
            address: AccountAddress(parse_address(address).unwrap().into_array()),
            added: Timestamp::now(),
        };
        let principal = Principal::local();
        assert!(
            self.ledger()
                .add_payee(NewPayee { principal, payee })
                .await
                .unwrap()
        );
    }
}

/// The address of the wallet of every payer.
pub fn wallet() -> Address {
    Address::from_private_key(&SigningKey::from_slice(&[1; 32]).unwrap())
}

pub fn bob() -> Address {
    parse_address(BOB).unwrap()
}

/// Starts a chain with 100 USDC in the wallet.
pub fn funded_chain() -> UsdcChain {
    let chain = UsdcChain::start();
    chain.fund(wallet(), 100_000_000);
    chain
}

pub fn request(name: &str, to: &str, amount: &str) -> PaymentRequest {
    PaymentRequest {
        principal: Principal::local(),
        request: name.to_owned(),
        to: to.to_owned(),
        amount: amount.parse::<UsdcAmount>().unwrap(),
        purpose: "lunch".to_owned(),
        origin: String::new(),
    }
}
