//! Errors of payments, by who can act on them.

use lango_domain::StoreError;
use lango_domain::ToolError;
use lango_domain::payments::{LimitKind, ParseAmountError, PaymentId, UsdcAmount};

use crate::address::AddressError;
use crate::chain::ChainError;
use crate::network::UnknownNetwork;
use crate::signing::SigningError;
use crate::wallet::WalletError;

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PaymentError {
    // The caller can correct these.
    #[error("{0}")]
    Amount(#[from] ParseAmountError),
    #[error("the amount is zero")]
    ZeroAmount,
    #[error("{0}")]
    Address(#[from] AddressError),
    #[error(
        "there is no payee `{name}` in the address book{}",
        suggestion(similar)
    )]
    UnknownPayee {
        name: String,
        similar: Option<String>,
    },
    #[error(
        "{address} begins and ends like the address of {known} ({known_address}), but is another one; such addresses \
        are made to be mistaken. Compare all digits; if it is right, the user can add it with `lango payment payees add`"
    )]
    LookAlike {
        address: String,
        known: String,
        known_address: String,
    },
    #[error("this is the address of the paying wallet itself")]
    OwnAddress,
    #[error("there is no wallet `{name}`{}", suggestion(similar))]
    UnknownWallet {
        name: String,
        similar: Option<String>,
    },
    #[error("there is no payment {0}")]
    UnknownPayment(String),
    #[error("the request id `{0}` was used for another payment")]
    RequestTaken(String),
    #[error("{0}")]
    Invalid(String),

    // The user can change these.
    #[error(
        "over the limit: {amount} USDC, but {} are left{}",
        left,
        limit_name(*kind)
    )]
    OverLimit {
        kind: LimitKind,
        amount: UsdcAmount,
        left: UsdcAmount,
    },
    #[error("there is no wallet; make one with `lango payment wallet create`")]
    NoWallet,
    #[error("there are several wallets ({0}); name one in the setting payment.wallet")]
    SeveralWallets(String),
    #[error("the wallet `{0}` is watch-only: its key is somewhere else, so it cannot pay")]
    WatchOnly(String),
    #[error("the wallet has {has} USDC, which is less than {needs}")]
    Funds { has: UsdcAmount, needs: UsdcAmount },
    #[error("the wallet has {has} ETH for the network fee, which can be up to {needs}")]
    Fee { has: String, needs: String },
    #[error(transparent)]
    Wallet(#[from] WalletError),
    #[error(transparent)]
    Network(#[from] UnknownNetwork),
    #[error("payments need the setting payment.network.rpcUrl, the address of a node")]
    NoNode,

    // The chain or the node.
    #[error("the token's contract refuses this payment: {0}")]
    Refused(String),
    #[error(
        "the clocks of this machine and of the chain differ by more than two days; nothing was signed"
    )]
    ClockDifference,
    #[error(transparent)]
    Chain(#[from] ChainError),

    // The state of the payment.
    #[error("payment {id} is not waiting for approval: it is {state}; nothing was paid twice")]
    NotPending { id: PaymentId, state: &'static str },
    #[error("the question was open too long; nothing was paid. Ask again")]
    AnsweredTooLate,
    #[error(transparent)]
    Signing(#[from] SigningError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl PaymentError {
    /// Returns true if the network or the node is at fault, and the same request may work later.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Chain(error) if error.is_temporary())
    }

    pub fn is_limit(&self) -> bool {
        matches!(self, Self::OverLimit { .. })
    }
}

impl From<PaymentError> for ToolError {
    fn from(error: PaymentError) -> Self {
        match error {
            PaymentError::Store(error) => Self(format!("{error}; {}", error.hint())),
            error => Self(error.to_string()),
        }
    }
}

fn suggestion(similar: &Option<String>) -> String {
    match similar {
        Some(text) => format!("; {text}"),
        None => String::new(),
    }
}

fn limit_name(kind: LimitKind) -> &'static str {
    match kind {
        LimitKind::PerPayment => " for one payment (payment.limits.maxPerTx)",
        LimitKind::PerDay => " for 24 hours (payment.limits.maxDaily)",
        LimitKind::PerPayee => " for this payee in 24 hours (payment.limits.maxPerPayee)",
    }
}
