//! The only place where something that is a payment is signed.
//!
//! A signature of an authorization is money. It is made for a payment of the ledger in the state `approved`,
//! for the digest that was shown (B132), and for the sender's own key. A transaction is signed only if it
//! carries such an authorization, to the known contract, within the approved fee.

use std::fmt;

use alloy_primitives::{Address, B256, Signature, U256, keccak256};
use lango_domain::payments::{Payment, PaymentState};

use crate::address::{from_account, to_account};
use crate::authorization::{is_payment_call, payment_digest};
use crate::network::Network;
use crate::transaction::FeeTransaction;
use crate::wallet::{WalletError, WalletSigner};

/// A checked signature of a payment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PaymentSignature(Signature);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SigningError {
    #[error("the payment is {0}, not approved; nothing was signed")]
    NotApproved(&'static str),
    #[error("what would be signed is not what was approved; nothing was signed")]
    OtherDigest,
    #[error("the wallet is another than the one that was approved; nothing was signed")]
    OtherWallet,
    #[error("the transaction is not the approved payment; nothing was signed")]
    OtherTransaction,
    #[error("the network fee is higher than approved; nothing was signed")]
    FeeTooHigh,
    #[error("the wallet returned a signature of another key")]
    WrongSignature,
    #[error(transparent)]
    Wallet(#[from] WalletError),
}

/// Signs the authorization of an approved payment.
pub async fn sign_payment(
    payment: &Payment,
    network: &Network,
    signer: &dyn WalletSigner,
) -> Result<PaymentSignature, SigningError> {
    if payment.state != PaymentState::Approved {
        return Err(SigningError::NotApproved(payment.state.name()));
    }
    let digest = payment_digest(&payment.terms, network);
    if digest != payment.terms.digest || payment.terms.chain != network.chain_id {
        return Err(SigningError::OtherDigest);
    }
    sign_checked(
        from_account(payment.terms.from),
        B256::from(digest.0),
        signer,
    )
    .await
}

/// Signs the transaction that carries the signed authorization of a payment.
pub async fn sign_transaction(
    payment: &Payment,
    network: &Network,
    transaction: &FeeTransaction,
    signer: &dyn WalletSigner,
) -> Result<SignedTransaction, SigningError> {
    let is_payment = transaction.chain_id == network.chain_id
        && payment.terms.chain == network.chain_id
        && transaction.to == network.usdc
        && is_payment_call(&transaction.input, &payment.terms);
    if !is_payment {
        return Err(SigningError::OtherTransaction);
    }
    if transaction.highest_fee() > u128::from(payment.terms.fee_limit) {
        return Err(SigningError::FeeTooHigh);
    }
    let sender = from_account(payment.terms.from);
    let signature = sign_checked(sender, transaction.signing_hash(), signer).await?;
    let bytes = transaction.encode_signed(&signature.0);
    Ok(SignedTransaction {
        hash: keccak256(&bytes),
        bytes,
    })
}

/// A transaction that is ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedTransaction {
    pub hash: B256,
    pub bytes: Vec<u8>,
}

async fn sign_checked(
    sender: Address,
    digest: B256,
    signer: &dyn WalletSigner,
) -> Result<PaymentSignature, SigningError> {
    if signer.address() != to_account(sender) {
        return Err(SigningError::OtherWallet);
    }
    let bytes = signer.sign(&digest.0).await?;
    let signature = PaymentSignature::from_bytes(&bytes).ok_or(SigningError::WrongSignature)?;
    match signature.0.recover_address_from_prehash(&digest) {
        Ok(found) if found == sender => Ok(signature),
        _ => Err(SigningError::WrongSignature),
    }
}

impl PaymentSignature {
    /// Reads r, s and v (0, 1, 27 or 28). A signature with a large `s` is refused, as the contract does.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let [head @ .., v] = bytes else { return None };
        let (r, s) = (head.len() == 64).then(|| head.split_at(32))?;
        let parity = match v {
            0 | 27 => false,
            1 | 28 => true,
            _ => return None,
        };
        let signature = Signature::new(U256::from_be_slice(r), U256::from_be_slice(s), parity);
        signature.normalize_s().is_none().then_some(Self(signature))
    }

    pub(crate) fn v(&self) -> u8 {
        27 + u8::from(self.0.v())
    }

    pub(crate) fn r(&self) -> B256 {
        B256::from(self.0.r())
    }

    pub(crate) fn s(&self) -> B256 {
        B256::from(self.0.s())
    }

    /// Returns r, s and v (27 or 28).
    pub fn to_bytes(self) -> [u8; 65] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for PaymentSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PaymentSignature(..)")
    }
}
