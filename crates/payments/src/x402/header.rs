//! The header of a paid request.

use alloy_primitives::hex;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lango_domain::payments::NewPayment;
use serde_json::{Value, json};

use super::offer::{Offer, X402Version};
use crate::authorization::authorization;
use crate::network::Network;
use crate::signing::PaymentSignature;

impl X402Version {
    /// Returns the name of the header that carries a payment.
    pub(crate) fn payment_header(self) -> &'static str {
        match self {
            Self::One => "x-payment",
            Self::Two => "payment-signature",
        }
    }

    /// Returns the version whose header a stored message is for.
    pub(crate) fn of_message(message: &str) -> Option<Self> {
        let decoded = STANDARD.decode(message).ok()?;
        let value: Value = serde_json::from_slice(&decoded).ok()?;
        match value["x402Version"].as_u64()? {
            1 => Some(Self::One),
            2 => Some(Self::Two),
            _ => None,
        }
    }
}

/// Returns the value of the header. Everything that is money in it comes from the ledger.
pub(crate) fn payment_header(
    offer: &Offer,
    payment: &NewPayment,
    network: &Network,
    signature: &PaymentSignature,
) -> String {
    let signed = authorization(payment);
    let payload = json!({
        "signature": hex::encode_prefixed(signature.to_bytes()),
        "authorization": {
            "from": signed.from.to_checksum(None),
            "to": signed.to.to_checksum(None),
            "value": signed.value.to_string(),
            "validAfter": signed.validAfter.to_string(),
            "validBefore": signed.validBefore.to_string(),
            "nonce": signed.nonce,
        },
    });
    let message = match offer.version {
        X402Version::One => json!({
            "x402Version": 1,
            "scheme": "exact",
            "network": network.x402_name,
            "payload": payload,
        }),
        X402Version::Two => {
            let mut message = json!({
                "x402Version": 2,
                "accepted": offer.accepted,
                "payload": payload,
            });
            if let Some(resource) = &offer.resource {
                message["resource"] = resource.clone();
            }
            message
        }
    };
    STANDARD.encode(message.to_string())
}
