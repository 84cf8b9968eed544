//! Payments in USDC on Base (S86).
//!
//! Invariant: an intended payment is paid at most once, whatever crashes, times out or is sent again (B131),
//! and only as it was shown (B132). The chain enforces the first: the nonce of an authorization is the hash
//! of the payment's id. `signing` enforces the second: it is the only place that signs.

mod address;
mod amount_words;
mod authorization;
mod chain;
mod error;
mod http;
mod key_signer;
mod ledger;
mod network;
mod payees;
mod payments;
mod question;
mod rpc;
mod settings;
mod signing;
mod tools;
mod transaction;
mod wallet;
pub mod x402;

pub use address::{AddressError, Likeness, likeness, parse_address, shown_address};
pub use amount_words::amount_in_words;
pub use authorization::{authorization_nonce, payment_digest};
pub use chain::{AuthorizationUse, Chain, ChainError, Receipt, shown_ether};
pub use error::PaymentError;
pub use key_signer::KeySigner;
pub use ledger::{LedgerStep, Observation, next_step};
pub use network::{Network, UnknownNetwork};
pub use payees::{FoundPayee, KnownAddresses, check_name};
pub use payments::{
    LazyPaymentStore, NewPaymentId, PaymentParts, PaymentRequest, Payments, PreparedPayment,
    Reconciliation, WalletBalance,
};
pub use rpc::RpcError;
pub use settings::{LimitSettings, NetworkSettings, PaymentSettings, WalletProvider, X402Settings};
pub use signing::{PaymentSignature, SigningError, sign_payment, sign_transaction};
pub use tools::tools;
pub use transaction::FeeTransaction;
pub use wallet::{
    Wallet, WalletError, WalletFuture, WalletKey, WalletKeys, WalletKind, WalletSigner,
};
