//! Storage of payments and payees.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::amount::UsdcAmount;
use super::ledger::{AccountAddress, NewPayment, Payment, PaymentChange, PaymentId, PaymentState};
use crate::event::Principal;
use crate::session::StoreFuture;

/// The limits that a payment is checked against in the transaction that stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaymentLimits {
    pub per_payment: UsdcAmount,
    /// Of all payments in the 24 hours before.
    pub per_day: UsdcAmount,
    /// To one address in the 24 hours before.
    pub per_payee: UsdcAmount,
}

/// A limit, as it is named to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKind {
    PerPayment,
    PerDay,
    PerPayee,
}

/// The used part of a principal's limits at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitUse {
    /// Paid, or reserved by payments that can still be paid.
    pub day: UsdcAmount,
    /// The part of it for one payee.
    pub payee: UsdcAmount,
}

/// The outcome of storing a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reservation {
    /// The payment is stored, and its amount is reserved.
    Reserved(Box<Payment>),
    /// There is a payment for the same request already. Nothing was stored.
    Exists(Box<Payment>),
    /// The payment would exceed a limit. Nothing was stored.
    OverLimit { kind: LimitKind, left: UsdcAmount },
}

/// A request for the next counter of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountNonceClaim {
    pub id: PaymentId,
    pub chain: u64,
    pub from: AccountAddress,
    /// The number of transactions of the account that the chain has.
    pub used: u64,
    pub at: Timestamp,
    /// A payment that is not signed holds its counter only if it claimed it after this time: its process
    /// may have died.
    pub held_since: Timestamp,
}

/// A selection of payments, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentQuery {
    pub principal: Principal,
    /// Any state if `None`.
    pub state: Option<PaymentState>,
    pub limit: usize,
}

/// A payee of the address book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payee {
    pub name: String,
    pub address: AccountAddress,
    pub added: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPayee {
    pub principal: Principal,
    pub payee: Payee,
}

/// A wallet whose key is somewhere else. It can be looked at, but not paid from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedWallet {
    pub name: String,
    pub address: AccountAddress,
    pub added: Timestamp,
}

/// Stores payments, the payees of the address book, and watched wallets.
pub trait PaymentStore: Send + Sync {
    /// Stores an intended payment and reserves its amount, in one transaction (B131). It takes the request
    /// over from a payment that was given up.
    fn reserve_payment(
        &self,
        payment: NewPayment,
        limits: PaymentLimits,
    ) -> StoreFuture<'_, Reservation>;

    /// Applies a change and returns the payment, or `None` if it does not exist or left the state in the
    /// meantime: of two that decide at the same time, one is first.
    fn change_payment(&self, change: PaymentChange) -> StoreFuture<'_, Option<Payment>>;

    /// Returns the smallest counter of the account that neither the chain nor an open payment uses, and
    /// stores it with the payment.
    fn claim_account_nonce(&self, claim: AccountNonceClaim) -> StoreFuture<'_, u64>;

    fn payment<'a>(
        &'a self,
        principal: &'a Principal,
        id: &'a PaymentId,
    ) -> StoreFuture<'a, Option<Payment>>;

    /// Returns the payment for a request.
    fn payment_for_request<'a>(
        &'a self,
        principal: &'a Principal,
        request: &'a str,
    ) -> StoreFuture<'a, Option<Payment>>;

    fn payments(&self, query: PaymentQuery) -> StoreFuture<'_, Vec<Payment>>;

    /// Returns the payments of all principals on a chain whose end is not known for sure: those without a
    /// final state, and those that ended after `since`. Oldest first.
    fn undecided_payments(&self, chain: u64, since: Timestamp) -> StoreFuture<'_, Vec<Payment>>;

    /// Returns the use of the limits by payments to `to` and to all.
    fn limit_use<'a>(
        &'a self,
        principal: &'a Principal,
        to: Option<AccountAddress>,
        now: Timestamp,
    ) -> StoreFuture<'a, LimitUse>;

    /// Returns the addresses that the principal paid, each once.
    fn paid_addresses<'a>(
        &'a self,
        principal: &'a Principal,
    ) -> StoreFuture<'a, Vec<AccountAddress>>;

    /// Returns false if the name or the address is taken; then nothing changes.
    fn add_payee(&self, payee: NewPayee) -> StoreFuture<'_, bool>;

    /// Returns false if there is no such payee.
    fn remove_payee<'a>(&'a self, principal: &'a Principal, name: &'a str)
    -> StoreFuture<'a, bool>;

    /// Returns all payees, ordered by name.
    fn payees<'a>(&'a self, principal: &'a Principal) -> StoreFuture<'a, Vec<Payee>>;

    /// Returns false if the name is taken; then nothing changes.
    fn watch_wallet<'a>(
        &'a self,
        principal: &'a Principal,
        wallet: WatchedWallet,
    ) -> StoreFuture<'a, bool>;

    /// Returns false if there is no such wallet.
    fn unwatch_wallet<'a>(
        &'a self,
        principal: &'a Principal,
        name: &'a str,
    ) -> StoreFuture<'a, bool>;

    fn watched_wallets<'a>(
        &'a self,
        principal: &'a Principal,
    ) -> StoreFuture<'a, Vec<WatchedWallet>>;
}
