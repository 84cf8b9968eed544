//! Asks the chain about payments whose end is not known, and does what the ledger says next.

use std::collections::BTreeSet;

use jiff::ToSpan;
use lango_domain::payments::{Payment, PaymentChange, PaymentPurpose, PaymentState};

use super::Payments;
use crate::address::from_account;
use crate::authorization::authorization_nonce;
use crate::error::PaymentError;
use crate::ledger::{LedgerStep, Observation, next_step};
use crate::transaction::encoded_max_fee;

/// Hours for which a payment that ended is asked about again, because the chain can take it back.
const RECHECKED_HOURS: i64 = 1;

/// The outcome of comparing the ledger with the chain.
#[derive(Clone, Debug, Default)]
pub struct Reconciliation {
    /// The payments whose state changed.
    pub changed: Vec<Payment>,
    /// The payments that are still open.
    pub open: usize,
    /// The number of payments that could not be followed.
    pub failed: usize,
}

impl Payments {
    /// Brings the ledger up to date once in the life of this process. Errors are logged, and the next call
    /// tries again.
    pub async fn reconcile_once(&self) {
        let outcome = self.is_reconciled.get_or_try_init(|| async {
            let done = self.reconcile().await?;
            match done.failed {
                0 => Ok(()),
                _ => Err(PaymentError::Invalid(
                    "some payments are unclear".to_owned(),
                )),
            }
        });
        if let Err(error) = outcome.await {
            tracing::warn!(%error, "the ledger of payments could not be compared with the chain");
        }
    }

    /// Compares the ledger with the chain: sends what was signed and not sent, and ends what is decided.
    pub async fn reconcile(&self) -> Result<Reconciliation, PaymentError> {
        let since = self.now().checked_sub(RECHECKED_HOURS.hours());
        let since = since.unwrap_or(jiff::Timestamp::MIN);
        let chain_id = self.chain.network.chain_id;
        let undecided = self
            .store()
            .await?
            .undecided_payments(chain_id, since)
            .await?;
        let mut report = Reconciliation::default();
        if undecided.is_empty() {
            return Ok(report);
        }
        self.chain.verify().await?;
        for payment in undecided {
            let before = payment.state;
            match self.advance_twice(&payment).await {
                Ok(after) => {
                    let is_open = matches!(after.state, PaymentState::Signed | PaymentState::Sent);
                    report.open += usize::from(is_open);
                    if after.state != before {
                        report.changed.push(after);
                    }
                }
                Err(error) => {
                    let id = payment.terms.id.as_str();
                    tracing::warn!(payment = id, %error, "the payment could not be followed");
                    report.failed += 1;
                }
            }
        }
        Ok(report)
    }

    /// Sends if that is next, then looks once more.
    async fn advance_twice(&self, payment: &Payment) -> Result<Payment, PaymentError> {
        let after = self.advance(payment).await?;
        match after.state {
            PaymentState::Signed | PaymentState::Sent => self.advance(&after).await,
            _ => Ok(after),
        }
    }

    /// Does the next step with a payment, and returns it as it is then.
    pub(crate) async fn advance(&self, payment: &Payment) -> Result<Payment, PaymentError> {
        let seen = self.observe(payment).await?;
        match next_step(payment, &seen) {
            LedgerStep::Wait => Ok(payment.clone()),
            LedgerStep::SendAgain => Ok(self.send_stored(payment.clone()).await),
            LedgerStep::NewTransaction => {
                let nonce = payment.account_nonce;
                let is_free = nonce.is_some_and(|nonce| seen.transaction_count <= nonce);
                let replaced = self.replace_transaction(payment, is_free).await?;
                Ok(self.send_stored(replaced).await)
            }
            LedgerStep::Become {
                state,
                reason,
                transaction,
            } => {
                let is_transfer = matches!(payment.terms.purpose, PaymentPurpose::Transfer { .. });
                let is_paid_transfer = state == PaymentState::Confirmed && is_transfer;
                let found = transaction.as_ref();
                let change = PaymentChange {
                    reason: reason.map(str::to_owned),
                    block: found.map(|found| found.block),
                    transaction: found.map(|found| found.transaction.clone()),
                    is_delivered: is_paid_transfer.then_some(true),
                    ..PaymentChange::new(payment, state, self.now())
                };
                self.change(change).await
            }
        }
    }

    async fn observe(&self, payment: &Payment) -> Result<Observation, PaymentError> {
        let from = from_account(payment.terms.from);
        let nonce = authorization_nonce(&payment.terms.id);
        let (chain_time, is_used) = tokio::try_join!(
            self.chain.time(),
            self.chain.is_authorization_used(from, nonce)
        )?;
        let mut seen = Observation {
            now: self.now(),
            chain_time,
            is_used,
            used_by: None,
            receipt: None,
            is_known: false,
            transaction_count: 0,
            is_blocked: false,
            is_underpriced: false,
        };
        if payment.state == PaymentState::Confirmed && is_used {
            return Ok(seen);
        }
        if let Some(hash) = &payment.transaction {
            seen.receipt = self.chain.receipt(hash).await?;
        }
        let is_own = seen.receipt.is_some_and(|receipt| receipt.has_succeeded);
        if is_used && !is_own {
            let first_block = payment.terms.start_block;
            // Without the log, the payment is known to be paid, but not by which transaction.
            let found = self.chain.find_authorization(from, nonce, first_block);
            seen.used_by = found.await.unwrap_or_default();
        }
        let is_open = matches!(payment.state, PaymentState::Signed | PaymentState::Sent);
        if is_open && !is_used && seen.receipt.is_none() {
            self.observe_waiting(payment, &mut seen).await?;
        }
        Ok(seen)
    }

    /// Looks at a transaction that is in no block.
    async fn observe_waiting(
        &self,
        payment: &Payment,
        seen: &mut Observation,
    ) -> Result<(), PaymentError> {
        if let Some(hash) = &payment.transaction {
            seen.is_known = self.chain.knows_transaction(hash).await?;
        }
        let from = from_account(payment.terms.from);
        seen.transaction_count = self.chain.transaction_count(from).await?;
        seen.is_blocked = self.is_blocked(payment, seen.transaction_count).await?;
        let bytes = payment.bytes.as_ref();
        if let Some(price) = bytes.and_then(|bytes| encoded_max_fee(&bytes.message)) {
            seen.is_underpriced = price < self.chain.fees().await?.base;
        }
        Ok(())
    }

    /// Returns true if a smaller counter of the account than the payment's is used by no open payment.
    async fn is_blocked(&self, payment: &Payment, used: u64) -> Result<bool, PaymentError> {
        let Some(own) = payment.account_nonce.filter(|own| *own > used) else {
            return Ok(false);
        };
        let (chain_id, held_since) = (payment.terms.chain, self.claims_held_since());
        let store = self.store().await?;
        let open = store.undecided_payments(chain_id, self.now()).await?;
        let holds = |other: &Payment| match other.state {
            PaymentState::Signed | PaymentState::Sent => true,
            PaymentState::Approved => other.updated > held_since,
            _ => false,
        };
        let held: BTreeSet<u64> = open
            .iter()
            .filter(|other| other.terms.from == payment.terms.from && holds(other))
            .filter_map(|other| other.account_nonce)
            .collect();
        Ok((used..own).any(|nonce| !held.contains(&nonce)))
    }
}
