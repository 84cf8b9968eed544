//! Prepares a payment: checks everything, reserves its share of the limits, and words the question.

use jiff::ToSpan;
use lango_domain::event::Principal;
use lango_domain::payments::{
    ApprovedDigest, NewPayment, Payment, PaymentPurpose, PaymentState, Reservation, UsdcAmount,
};

use super::Payments;
use crate::address::from_account;
use crate::authorization::payment_digest;
use crate::chain::{ChainError, shown_ether};
use crate::error::PaymentError;
use crate::payees::{FoundPayee, KnownAddresses};
use crate::question::PaymentQuestion;
use crate::wallet::{Wallet, WalletKind};

/// Seconds for which an authorization is valid.
pub(crate) const VALID_SECONDS: u64 = 600;
/// Seconds for which the question may be open. The rest is left for sending.
const ANSWER_SECONDS: i64 = 420;

/// Seconds between this machine's clock and the chain's.
const MAX_CLOCK_DIFFERENCE: u64 = 48 * 60 * 60;

/// A payment that someone asks for.
#[derive(Clone, Debug)]
pub struct PaymentRequest {
    pub principal: Principal,
    /// Names the request. The same request is paid at most once.
    pub request: String,
    /// A name of the address book, or an address.
    pub to: String,
    pub amount: UsdcAmount,
    pub purpose: String,
    /// The sources that the request came from; empty for the user's own words.
    pub origin: String,
}

/// A payment that waits for approval.
#[derive(Clone, Debug)]
pub struct PreparedPayment {
    pub payment: Payment,
    /// The text that the user approves.
    pub question: String,
    /// The text that rules are matched against.
    pub subject: String,
    pub payee: FoundPayee,
}

/// The checked parts of a payment that is about to be reserved.
pub(crate) struct PaymentDraft {
    pub principal: Principal,
    pub request: String,
    pub wallet: Wallet,
    pub payee: FoundPayee,
    pub amount: UsdcAmount,
    pub purpose: PaymentPurpose,
    pub origin: String,
    pub valid_seconds: u64,
    pub fee_limit: u64,
}

impl Payments {
    /// Checks a payment and reserves it. Nothing is signed.
    pub async fn prepare(&self, request: PaymentRequest) -> Result<PreparedPayment, PaymentError> {
        if request.amount.is_zero() {
            return Err(PaymentError::ZeroAmount);
        }
        let (wallet, known) = self.paying_wallet(&request.principal).await?;
        let payee = known.find(&request.to)?;
        if let Some(prepared) = self.prepared_before(&request, &wallet, &payee).await? {
            return Ok(prepared);
        }
        let fee_limit = self.check_payable(&wallet, &payee, request.amount).await?;
        let draft = PaymentDraft {
            principal: request.principal,
            request: request.request,
            wallet,
            payee,
            amount: request.amount,
            purpose: PaymentPurpose::Transfer {
                text: request.purpose,
            },
            origin: request.origin,
            valid_seconds: VALID_SECONDS,
            fee_limit,
        };
        self.reserve(draft).await
    }

    /// Returns the paying wallet, which must have a key, and the known addresses.
    pub(crate) async fn paying_wallet(
        &self,
        principal: &Principal,
    ) -> Result<(Wallet, KnownAddresses), PaymentError> {
        let all = self.wallets(principal).await?;
        let wallet = crate::wallet::choose_wallet(&all, self.settings.wallet.as_deref())?;
        if wallet.kind == WalletKind::WatchOnly {
            return Err(PaymentError::WatchOnly(wallet.name));
        }
        let own = all.iter().map(|wallet| wallet.address).collect();
        let known = KnownAddresses::load(self.store().await?, principal, own).await?;
        Ok((wallet, known))
    }

    /// Returns the question of an earlier, equal request that is still open. A request that was signed is an
    /// error: it is never paid a second time.
    async fn prepared_before(
        &self,
        request: &PaymentRequest,
        wallet: &Wallet,
        payee: &FoundPayee,
    ) -> Result<Option<PreparedPayment>, PaymentError> {
        let store = self.store().await?;
        let found = store.payment_for_request(&request.principal, &request.request);
        let Some(payment) = found.await? else {
            return Ok(None);
        };
        if payment.was_given_up() {
            return Ok(None);
        }
        let terms = &payment.terms;
        if (terms.to, terms.amount) != (payee.address, request.amount) {
            return Err(PaymentError::RequestTaken(request.request.clone()));
        }
        if payment.state != PaymentState::Intended {
            return Err(PaymentError::NotPending {
                id: terms.id.clone(),
                state: payment.state.name(),
            });
        }
        if self.now() > terms.answer_by {
            return Err(PaymentError::AnsweredTooLate);
        }
        self.worded(payment, wallet, payee.clone()).await.map(Some)
    }

    /// Checks funds and fee, and tries the transfer. Returns the highest fee.
    async fn check_payable(
        &self,
        wallet: &Wallet,
        payee: &FoundPayee,
        amount: UsdcAmount,
    ) -> Result<u64, PaymentError> {
        if payee.address == wallet.address {
            return Err(PaymentError::OwnAddress);
        }
        self.check_funds(wallet, payee, amount).await?;
        let (fees, ether) = tokio::try_join!(
            self.chain.fees(),
            self.chain.ether_balance(from_account(wallet.address))
        )?;
        if ether < fees.needed() {
            return Err(PaymentError::Fee {
                has: shown_ether(ether),
                needs: shown_ether(fees.needed()),
            });
        }
        let limit = fees
            .limit()
            .saturating_add(fees.first_layer.saturating_mul(2));
        Ok(u64::try_from(limit).unwrap_or(u64::MAX).max(1))
    }

    /// Checks that the wallet has the amount and that the contract would move it.
    pub(crate) async fn check_funds(
        &self,
        wallet: &Wallet,
        payee: &FoundPayee,
        amount: UsdcAmount,
    ) -> Result<(), PaymentError> {
        self.chain.verify().await?;
        let from = from_account(wallet.address);
        let has = self.chain.usdc_balance(from).await?;
        if has < amount {
            return Err(PaymentError::Funds { has, needs: amount });
        }
        let to = from_account(payee.address);
        match self.chain.simulate_transfer(from, to, amount).await {
            Err(ChainError::Reverted(reason)) => Err(PaymentError::Refused(reason)),
            tried => Ok(tried?),
        }
    }

    /// Stores an intended payment with its share of the limits.
    pub(crate) async fn reserve(
        &self,
        draft: PaymentDraft,
    ) -> Result<PreparedPayment, PaymentError> {
        let (time, start_block) = tokio::try_join!(self.chain.time(), self.chain.block_number())?;
        let now = self.now();
        let own = u64::try_from(now.as_second()).unwrap_or_default();
        // An authorization ends by the chain's time, so a node must not choose that time freely.
        if time.abs_diff(own) > MAX_CLOCK_DIFFERENCE {
            return Err(PaymentError::ClockDifference);
        }
        let mut new = NewPayment {
            id: (self.new_id)(),
            principal: draft.principal,
            request: draft.request,
            created: now,
            chain: self.chain.network.chain_id,
            from: draft.wallet.address,
            to: draft.payee.address,
            payee: draft.payee.name.clone(),
            amount: draft.amount,
            purpose: draft.purpose,
            origin: draft.origin,
            valid_before: time.saturating_add(draft.valid_seconds),
            digest: ApprovedDigest([0; 32]),
            fee_limit: draft.fee_limit,
            answer_by: now.checked_add(ANSWER_SECONDS.seconds()).unwrap_or(now),
            start_block,
        };
        new.digest = payment_digest(&new, self.chain.network);
        let amount = new.amount;
        let store = self.store().await?;
        match store.reserve_payment(new, self.settings.limits()).await? {
            Reservation::Reserved(payment) => {
                self.worded(*payment, &draft.wallet, draft.payee).await
            }
            Reservation::Exists(payment) => Err(PaymentError::NotPending {
                id: payment.terms.id.clone(),
                state: payment.state.name(),
            }),
            Reservation::OverLimit { kind, left } => {
                Err(PaymentError::OverLimit { kind, amount, left })
            }
        }
    }

    async fn worded(
        &self,
        payment: Payment,
        wallet: &Wallet,
        payee: FoundPayee,
    ) -> Result<PreparedPayment, PaymentError> {
        let store = self.store().await?;
        let terms = &payment.terms;
        let used = store
            .limit_use(&terms.principal, Some(terms.to), self.now())
            .await?;
        let question = PaymentQuestion {
            payment: terms,
            payee: &payee,
            network: self.chain.network,
            wallet: &wallet.name,
            limits: self.settings.limits(),
            used,
        };
        let (question, subject) = (question.text(), question.subject());
        Ok(PreparedPayment {
            payment,
            question,
            subject,
            payee,
        })
    }
}
