//! Decides what happens next with a payment, from what the ledger and the chain say. Pure.
//!
//! A payment is always decidable: its authorization was used, so it is paid; or it is void and was not used,
//! so it never will be; else it is open, and sending the stored bytes again is harmless (B131).

use jiff::Timestamp;
use lango_domain::payments::{Payment, PaymentPurpose, PaymentState};

use crate::chain::{AuthorizationUse, Receipt};

/// Seconds after the end of an authorization until it counts as void. A reorganization of the chain can
/// bring back a slightly earlier time.
pub const VOID_MARGIN: u64 = 60;

/// Everything that is known of a payment from the outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The time of this machine.
    pub now: Timestamp,
    /// The chain's time, in seconds.
    pub chain_time: u64,
    pub is_used: bool,
    /// The transaction that used the authorization, if it was found.
    pub used_by: Option<AuthorizationUse>,
    /// The end of the transaction that was sent last.
    pub receipt: Option<Receipt>,
    /// True if the node knows the transaction that was sent last.
    pub is_known: bool,
    /// The number of the sender's transactions in blocks.
    pub transaction_count: u64,
    /// True if a smaller counter of the account is used by no one, so that the transaction waits for ever.
    pub is_blocked: bool,
    /// True if the price of gas is above what the stored transaction pays.
    pub is_underpriced: bool,
}

/// The next step with a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerStep {
    /// Nothing to do now.
    Wait,
    /// Send the stored bytes once more.
    SendAgain,
    /// Make a new transaction for the same authorization: the account's counter is used or blocked, or the
    /// fee is too low.
    NewTransaction,
    /// The state changes.
    Become {
        state: PaymentState,
        reason: Option<&'static str>,
        transaction: Option<AuthorizationUse>,
    },
}

pub fn next_step(payment: &Payment, seen: &Observation) -> LedgerStep {
    use PaymentState::{Approved, Confirmed, Expired, Intended, Reverted, Sent, Signed};
    let become_state = |state, reason| LedgerStep::Become {
        state,
        reason,
        transaction: None,
    };
    if seen.is_used {
        return confirmed(payment, seen);
    }
    let is_void = seen.chain_time > payment.terms.valid_before.saturating_add(VOID_MARGIN);
    match payment.state {
        Expired => LedgerStep::Wait,
        Intended if is_void || seen.now > payment.terms.answer_by => {
            become_state(Expired, Some("it was not approved"))
        }
        Approved if is_void => become_state(Expired, Some("it was never signed")),
        Intended | Approved => LedgerStep::Wait,
        Signed | Sent | Confirmed if is_void => become_state(
            Expired,
            Some("it was not paid before the authorization ended"),
        ),
        // The chain dropped the block that the payment was in.
        Confirmed => become_state(
            Sent,
            Some("the chain took the payment back; it is sent again"),
        ),
        Reverted => LedgerStep::Wait,
        Signed | Sent => open_step(payment, seen),
    }
}

fn confirmed(payment: &Payment, seen: &Observation) -> LedgerStep {
    let own = payment
        .transaction
        .clone()
        .zip(seen.receipt)
        .filter(|(_, receipt)| receipt.has_succeeded)
        .map(|(transaction, receipt)| AuthorizationUse {
            transaction,
            block: receipt.block,
        });
    match payment.state {
        PaymentState::Confirmed => LedgerStep::Wait,
        _ => LedgerStep::Become {
            state: PaymentState::Confirmed,
            reason: None,
            transaction: seen.used_by.clone().or(own),
        },
    }
}

/// Decides about a payment that is signed, not used and not void.
fn open_step(payment: &Payment, seen: &Observation) -> LedgerStep {
    // The server of a resource submits its payment.
    if matches!(payment.terms.purpose, PaymentPurpose::Resource { .. }) {
        return LedgerStep::Wait;
    }
    match seen.receipt {
        Some(receipt) if !receipt.has_succeeded => LedgerStep::Become {
            state: PaymentState::Reverted,
            reason: Some("the token's contract refused it"),
            transaction: None,
        },
        // The node contradicts itself: done, but not used. Its next answer decides.
        Some(_) => LedgerStep::Wait,
        None => {
            let is_counter_used = payment
                .account_nonce
                .is_none_or(|nonce| seen.transaction_count > nonce);
            match (seen.is_known, is_counter_used) {
                _ if seen.is_underpriced || seen.is_blocked => LedgerStep::NewTransaction,
                (true, _) => LedgerStep::Wait,
                (false, true) => LedgerStep::NewTransaction,
                (false, false) => LedgerStep::SendAgain,
            }
        }
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
