//! One payment in the ledger.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::amount::UsdcAmount;
use crate::event::Principal;

/// The id of a payment. The chain knows its hash as the nonce of the authorization, so an id is paid at
/// most once (B131).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PaymentId(String);

impl PaymentId {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PaymentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The address of an account on the chain: 20 bytes. Shown and stored in lower case; checksums are the
/// matter of those who read and show addresses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountAddress(pub [u8; 20]);

/// The hash that is approved and signed for a payment (B132).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ApprovedDigest(pub [u8; 32]);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an address; expected 0x and 40 hexadecimal digits")]
pub struct ParseAddressError(pub String);

impl FromStr for AccountAddress {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, ParseAddressError> {
        let invalid = || ParseAddressError(lango_text::sanitize::truncated_line(text, 80));
        let digits = text.strip_prefix("0x").ok_or_else(invalid)?;
        from_hex(digits).map(Self).ok_or_else(invalid)
    }
}

impl fmt::Display for AccountAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Debug for AccountAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Display for ApprovedDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Debug for ApprovedDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl FromStr for ApprovedDigest {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, ParseAddressError> {
        let invalid = || ParseAddressError(lango_text::sanitize::truncated_line(text, 80));
        let digits = text.strip_prefix("0x").ok_or_else(invalid)?;
        from_hex(digits).map(Self).ok_or_else(invalid)
    }
}

fn from_hex<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let digits = digits.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let [high, low] = [pair[0], pair[1]].map(|digit| char::from(digit).to_digit(16));
        *byte = u8::try_from(high? * 16 + low?).ok()?;
    }
    Some(bytes)
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    f.write_str("0x")?;
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// The state of a payment. Money moves only in `Sent`, and whether it moved is asked of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PaymentState {
    /// Asked for, with its share of the limits reserved. Nothing is signed.
    Intended,
    /// Approved as shown. Nothing is signed.
    Approved,
    /// Signed; the signed bytes are stored, and may or may not have left.
    Signed,
    /// Handed to the network at least once.
    Sent,
    /// Paid: the chain has used the authorization.
    Confirmed,
    /// Refused by the token's contract. Can still become paid until the authorization expires.
    Reverted,
    /// Never paid, and it cannot be paid any more.
    Expired,
}

impl PaymentState {
    pub const ALL: [Self; 7] = [
        Self::Intended,
        Self::Approved,
        Self::Signed,
        Self::Sent,
        Self::Confirmed,
        Self::Reverted,
        Self::Expired,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Intended => "intended",
            Self::Approved => "approved",
            Self::Signed => "signed",
            Self::Sent => "sent",
            Self::Confirmed => "confirmed",
            Self::Reverted => "reverted",
            Self::Expired => "expired",
        }
    }
}

/// The reason for a payment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum PaymentPurpose {
    /// A transfer that this wallet submits itself.
    Transfer { text: String },
    /// A resource that asks for payment (x402). The server submits it.
    Resource { url: String },
}

impl PaymentPurpose {
    pub fn text(&self) -> &str {
        match self {
            Self::Transfer { text } => text,
            Self::Resource { url } => url,
        }
    }
}

/// A payment to store. Everything that is signed is fixed here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPayment {
    pub id: PaymentId,
    pub principal: Principal,
    /// Names the request of which this is the payment. A second payment for the same request is refused.
    pub request: String,
    pub created: Timestamp,
    pub chain: u64,
    pub from: AccountAddress,
    pub to: AccountAddress,
    /// The name of the payee in the address book.
    pub payee: Option<String>,
    pub amount: UsdcAmount,
    pub purpose: PaymentPurpose,
    /// The sources that the request came from, for people; empty if the user typed it.
    pub origin: String,
    /// Seconds since the epoch, in the chain's time, after which the authorization is void.
    pub valid_before: u64,
    pub digest: ApprovedDigest,
    /// The highest network fee that was shown, in wei; 0 if another party pays it.
    pub fee_limit: u64,
    /// The question is void after this time.
    pub answer_by: Timestamp,
    /// The newest block when the payment was made, from which on its traces are searched.
    pub start_block: u64,
}

/// The signed bytes of a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentBytes {
    /// The signature of the digest.
    pub signature: Vec<u8>,
    /// The whole signed transaction, or the whole header of a paid request.
    pub message: Vec<u8>,
}

/// A stored payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payment {
    pub terms: NewPayment,
    pub state: PaymentState,
    pub updated: Timestamp,
    pub bytes: Option<PaymentBytes>,
    /// The account's own counter that the transaction uses.
    pub account_nonce: Option<u64>,
    /// The hash of the transaction that paid, or that was sent last.
    pub transaction: Option<String>,
    pub block: Option<u64>,
    /// Explains a state, for people.
    pub reason: Option<String>,
    /// True if what was paid for arrived; always true for transfers that are confirmed.
    pub is_delivered: bool,
}

impl Payment {
    /// Returns true if it ended before anything was signed, so that its request may be paid by another one.
    pub fn was_given_up(&self) -> bool {
        self.state == PaymentState::Expired && self.bytes.is_none()
    }
}

/// A change of a payment's state. It applies only if the payment is still in the state it was decided for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentChange {
    pub id: PaymentId,
    pub from: PaymentState,
    pub to: PaymentState,
    pub at: Timestamp,
    /// New signed bytes; `None` keeps the stored ones.
    pub bytes: Option<PaymentBytes>,
    /// `None` keeps the stored value, here and below.
    pub account_nonce: Option<u64>,
    pub transaction: Option<String>,
    pub block: Option<u64>,
    pub reason: Option<String>,
    pub is_delivered: Option<bool>,
}

impl PaymentChange {
    /// Returns a change of the state alone.
    pub fn new(payment: &Payment, to: PaymentState, at: Timestamp) -> Self {
        Self {
            id: payment.terms.id.clone(),
            from: payment.state,
            to,
            at,
            bytes: None,
            account_nonce: None,
            transaction: None,
            block: None,
            reason: None,
            is_delivered: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip_and_bad_ones_are_refused() {
        let text = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913";
        assert_eq!(text.parse::<AccountAddress>().unwrap().to_string(), text);
        for bad in [
            "",
            "0x",
            "833589fcd6edb6e08f4c7c32d4f71b54bda02913",
            "0x12",
            &text[..41],
        ] {
            assert!(bad.parse::<AccountAddress>().is_err(), "{bad}");
        }
        assert!(
            format!("0x{}", "é".repeat(20))
                .parse::<AccountAddress>()
                .is_err()
        );
    }
}
