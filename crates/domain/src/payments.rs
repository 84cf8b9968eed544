//! Payments in USDC: amounts, the ledger of payments, payees, and their storage.

mod amount;
mod ledger;
mod store;

pub use amount::{ParseAmountError, UsdcAmount};
pub use ledger::{
    AccountAddress, ApprovedDigest, NewPayment, ParseAddressError, Payment, PaymentBytes,
    PaymentChange, PaymentId, PaymentPurpose, PaymentState,
};
pub use store::{
    AccountNonceClaim, LimitKind, LimitUse, NewPayee, Payee, PaymentLimits, PaymentQuery,
    PaymentStore, Reservation, WatchedWallet,
};
