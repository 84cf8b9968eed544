//! The authorization of a payment: EIP-3009 `transferWithAuthorization`, signed as EIP-712.
//!
//! Its nonce is the hash of the payment's id. The token's contract accepts a nonce once, so the chain itself
//! refuses to pay an id twice (B131).

use alloy_primitives::{B256, U256, keccak256};
use alloy_sol_types::{SolCall, SolStruct, sol};
use lango_domain::payments::{ApprovedDigest, NewPayment, PaymentId};

use crate::address::from_account;
use crate::network::Network;
use crate::signing::PaymentSignature;

sol! {
    #[derive(Debug, PartialEq, Eq)]
    struct TransferWithAuthorization {
        address from;
        address to;
        uint256 value;
        uint256 validAfter;
        uint256 validBefore;
        bytes32 nonce;
    }

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external;
}

/// Returns the nonce of a payment's authorization.
pub fn authorization_nonce(id: &PaymentId) -> B256 {
    keccak256(id.as_str())
}

/// Returns the authorization of a payment. It is valid from the beginning of time, because clocks differ.
pub fn authorization(payment: &NewPayment) -> TransferWithAuthorization {
    TransferWithAuthorization {
        from: from_account(payment.from),
        to: from_account(payment.to),
        value: U256::from(payment.amount.units()),
        validAfter: U256::ZERO,
        validBefore: U256::from(payment.valid_before),
        nonce: authorization_nonce(&payment.id),
    }
}

/// Returns the digest that is approved and signed for a payment (B132).
pub fn payment_digest(payment: &NewPayment, network: &Network) -> ApprovedDigest {
    let digest = authorization(payment).eip712_signing_hash(&network.domain());
    ApprovedDigest(digest.0)
}

/// Returns the call of the token's contract that makes a payment.
pub(crate) fn payment_call(payment: &NewPayment, signature: &PaymentSignature) -> Vec<u8> {
    let signed = authorization(payment);
    transferWithAuthorizationCall {
        from: signed.from,
        to: signed.to,
        value: signed.value,
        validAfter: signed.validAfter,
        validBefore: signed.validBefore,
        nonce: signed.nonce,
        v: signature.v(),
        r: signature.r(),
        s: signature.s(),
    }
    .abi_encode()
}

/// Returns true if a call of the token's contract makes exactly this payment.
pub(crate) fn is_payment_call(call: &[u8], payment: &NewPayment) -> bool {
    let Ok(call) = transferWithAuthorizationCall::abi_decode(call) else {
        return false;
    };
    let called = TransferWithAuthorization {
        from: call.from,
        to: call.to,
        value: call.value,
        validAfter: call.validAfter,
        validBefore: call.validBefore,
        nonce: call.nonce,
    };
    called == authorization(payment)
}
