//! Carries out an approved payment: signs it, stores the bytes, sends them, and waits for the chain.

use std::sync::Arc;
use std::time::Duration;

use jiff::{Timestamp, ToSpan};
use lango_domain::event::Principal;
use lango_domain::payments::{
    AccountNonceClaim, Payment, PaymentBytes, PaymentChange, PaymentState,
};
use tokio::time::Instant;

use super::Payments;
use crate::address::from_account;
use crate::authorization::payment_call;
use crate::chain::GAS_LIMIT;
use crate::error::PaymentError;
use crate::signing::{
    PaymentSignature, SignedTransaction, SigningError, sign_payment, sign_transaction,
};
use crate::transaction::{FeeTransaction, encoded_max_fee};
use crate::wallet::{WalletError, WalletSigner};

/// Seconds that an authorization must still be valid when it is signed.
const LEAST_SECONDS: u64 = 30;
const CLAIM_SECONDS: i64 = 20;
const POLL: Duration = Duration::from_millis(400);

impl Payments {
    /// Carries out the prepared payment of a request that the user approved. Returns the payment as far as it
    /// came; an error means that nothing was signed.
    pub async fn pay(&self, principal: &Principal, request: &str) -> Result<Payment, PaymentError> {
        let approved = self.approve(principal, request).await?;
        let signed = match self.sign_and_store(&approved).await {
            Ok(signed) => signed,
            Err(error) => {
                self.give_up(&approved, error.to_string()).await;
                return Err(error);
            }
        };
        let sent = self.send_stored(signed).await;
        Ok(self.settle(sent, self.settle_time).await)
    }

    /// Signs an approved payment and stores the bytes. From then on it may be made, whatever happens.
    async fn sign_and_store(&self, approved: &Payment) -> Result<Payment, PaymentError> {
        let signer = self.signer(approved).await?;
        let signature = self.sign(approved, &*signer).await?;
        let (transaction, nonce) = self
            .transaction(approved, &signature, &*signer, None)
            .await?;
        let bytes = PaymentBytes {
            signature: signature.to_bytes().to_vec(),
            message: transaction.bytes.clone(),
        };
        self.change(PaymentChange {
            bytes: Some(bytes),
            account_nonce: Some(nonce),
            transaction: Some(transaction.hash.to_string()),
            ..PaymentChange::new(approved, PaymentState::Signed, self.now())
        })
        .await
    }

    /// Ends a payment of which no signature left this process, so that it reserves nothing. Applies only if
    /// the signed bytes are not stored.
    pub(crate) async fn give_up(&self, payment: &Payment, reason: String) {
        let change = PaymentChange {
            reason: Some(reason),
            ..PaymentChange::new(payment, PaymentState::Expired, self.now())
        };
        if let Err(error) = self.change(change).await {
            let id = payment.terms.id.as_str();
            tracing::warn!(payment = id, %error, "the failed payment could not be noted");
        }
    }

    /// Ends the prepared payment of a request that was not approved, so that it reserves nothing. A payment
    /// that went further stays as it is.
    pub async fn withdraw(&self, principal: &Principal, request: &str) -> Result<(), PaymentError> {
        let store = self.store().await?;
        let found = store.payment_for_request(principal, request).await?;
        if let Some(payment) = found.filter(|found| found.state == PaymentState::Intended) {
            self.give_up(&payment, "it was not approved".to_owned())
                .await;
        }
        Ok(())
    }

    /// Records the approval. Of two calls at the same time, one succeeds.
    pub(crate) async fn approve(
        &self,
        principal: &Principal,
        request: &str,
    ) -> Result<Payment, PaymentError> {
        let store = self.store().await?;
        let found = store.payment_for_request(principal, request).await?;
        let payment = found.ok_or_else(|| PaymentError::UnknownPayment(request.to_owned()))?;
        if payment.state == PaymentState::Intended && self.now() > payment.terms.answer_by {
            let change = PaymentChange {
                reason: Some("it was not approved in time".to_owned()),
                ..PaymentChange::new(&payment, PaymentState::Expired, self.now())
            };
            store.change_payment(change).await?;
            return Err(PaymentError::AnsweredTooLate);
        }
        if payment.state != PaymentState::Intended {
            return Err(PaymentError::NotPending {
                id: payment.terms.id,
                state: payment.state.name(),
            });
        }
        self.change(PaymentChange::new(
            &payment,
            PaymentState::Approved,
            self.now(),
        ))
        .await
    }

    pub(crate) async fn signer(
        &self,
        payment: &Payment,
    ) -> Result<Arc<dyn WalletSigner>, PaymentError> {
        let keys = self.keys.as_ref().ok_or(WalletError::Missing)?;
        let (principal, from) = (&payment.terms.principal, payment.terms.from);
        Ok(keys.signer(principal, from).await?)
    }

    /// Signs the authorization. The node must still be on the right chain, and enough time must be left.
    pub(crate) async fn sign(
        &self,
        approved: &Payment,
        signer: &dyn WalletSigner,
    ) -> Result<PaymentSignature, PaymentError> {
        self.chain.check_chain().await?;
        let time = self.chain.time().await?;
        if time.saturating_add(LEAST_SECONDS) > approved.terms.valid_before {
            return Err(PaymentError::AnsweredTooLate);
        }
        Ok(sign_payment(approved, self.chain.network, signer).await?)
    }

    /// Makes the transaction that carries the authorization. With a price to exceed, it replaces an earlier
    /// one.
    async fn transaction(
        &self,
        payment: &Payment,
        signature: &PaymentSignature,
        signer: &dyn WalletSigner,
        replaced_price: Option<u128>,
    ) -> Result<(SignedTransaction, u64), PaymentError> {
        let from = from_account(payment.terms.from);
        let (used, fees) = tokio::try_join!(self.chain.transaction_count(from), self.chain.fees())?;
        // Nodes replace a waiting transaction only for a price that is a tenth higher.
        let least = replaced_price.map_or(0, |price| price + price / 8 + 1);
        let most = u128::from(payment.terms.fee_limit) / u128::from(GAS_LIMIT);
        let max_fee = fees.max_fee().max(least);
        if least > most {
            return Err(SigningError::FeeTooHigh.into());
        }
        let claim = AccountNonceClaim {
            id: payment.terms.id.clone(),
            chain: self.chain.network.chain_id,
            from: payment.terms.from,
            used,
            at: self.now(),
            held_since: self.claims_held_since(),
        };
        let nonce = self.store().await?.claim_account_nonce(claim).await?;
        let max_fee = max_fee.min(most);
        let priority = match replaced_price {
            None => fees.priority,
            Some(_) => fees.priority.saturating_mul(2),
        };
        let transaction = FeeTransaction {
            chain_id: self.chain.network.chain_id,
            nonce,
            max_priority_fee: priority.min(max_fee),
            max_fee,
            gas_limit: GAS_LIMIT,
            to: self.chain.network.usdc,
            input: payment_call(&payment.terms, signature),
        };
        let signed = sign_transaction(payment, self.chain.network, &transaction, signer).await?;
        Ok((signed, nonce))
    }

    /// Returns the time since which an unsigned payment holds the account's counter that it claimed. Signing
    /// follows at once, so an older one will not be signed any more.
    pub(super) fn claims_held_since(&self) -> Timestamp {
        let now = self.now();
        now.checked_sub(CLAIM_SECONDS.seconds()).unwrap_or(now)
    }

    /// Replaces the transaction of a signed payment. The authorization stays the same, so the payment can
    /// still be made only once.
    pub(super) async fn replace_transaction(
        &self,
        payment: &Payment,
        is_counter_free: bool,
    ) -> Result<Payment, PaymentError> {
        let bytes = payment.bytes.as_ref().ok_or(SigningError::WrongSignature)?;
        let signature = PaymentSignature::from_bytes(&bytes.signature);
        let signature = signature.ok_or(SigningError::WrongSignature)?;
        let signer = self.signer(payment).await?;
        self.chain.check_chain().await?;
        let price = encoded_max_fee(&bytes.message).filter(|_| is_counter_free);
        let (transaction, nonce) = self
            .transaction(payment, &signature, &*signer, price)
            .await?;
        let bytes = PaymentBytes {
            signature: bytes.signature.clone(),
            message: transaction.bytes,
        };
        self.change(PaymentChange {
            bytes: Some(bytes),
            account_nonce: Some(nonce),
            transaction: Some(transaction.hash.to_string()),
            ..PaymentChange::new(payment, payment.state, self.now())
        })
        .await
    }

    /// Sends the stored bytes. A failure changes nothing: the chain is asked what became of them.
    pub(super) async fn send_stored(&self, payment: Payment) -> Payment {
        let Some(bytes) = &payment.bytes else {
            return payment;
        };
        let id = payment.terms.id.as_str();
        if let Err(error) = self.chain.send(&bytes.message).await {
            tracing::warn!(payment = id, %error, "the node did not take the payment");
            return payment;
        }
        if payment.state != PaymentState::Signed {
            return payment;
        }
        let change = PaymentChange::new(&payment, PaymentState::Sent, self.now());
        match self.change(change).await {
            Ok(sent) => sent,
            Err(error) => {
                tracing::warn!(payment = id, %error, "the sent payment could not be noted");
                payment
            }
        }
    }

    /// Follows a signed payment until its end, or for some time. Never fails: what was signed stays in the
    /// ledger and is followed later.
    pub(crate) async fn settle(&self, mut payment: Payment, time: Duration) -> Payment {
        let until = Instant::now() + time;
        loop {
            match self.advance(&payment).await {
                Ok(next) => payment = next,
                Err(error) => {
                    let id = payment.terms.id.as_str();
                    tracing::warn!(payment = id, %error, "the payment could not be followed");
                }
            }
            let is_open = matches!(payment.state, PaymentState::Signed | PaymentState::Sent);
            if !is_open || Instant::now() + POLL > until {
                return payment;
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Applies a change. If the payment left the state in the meantime, another process was first.
    pub(crate) async fn change(&self, change: PaymentChange) -> Result<Payment, PaymentError> {
        let (id, state) = (change.id.clone(), change.from.name());
        let changed = self.store().await?.change_payment(change).await?;
        changed.ok_or(PaymentError::NotPending { id, state })
    }
}
