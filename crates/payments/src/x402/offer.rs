//! Prices that a server asks for, and the check whether we would pay them. Pure.

use alloy_primitives::Address;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lango_domain::payments::UsdcAmount;
use lango_net::json;
use lango_text::sanitize::truncated_line;
use serde::Deserialize;
use serde_json::Value;

use crate::address::parse_address;
use crate::network::Network;

const MAX_VALUES: usize = 2_000;
/// The most offers of one answer that are looked at.
const MAX_OFFERS: usize = 16;
/// Seconds. The server's wish is raised and capped to these.
const TIMEOUTS: std::ops::RangeInclusive<u64> = 60..=600;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum X402Version {
    One,
    Two,
}

/// A price that we would pay.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    pub version: X402Version,
    pub amount: UsdcAmount,
    pub pay_to: Address,
    /// Seconds for which the authorization is valid.
    pub valid_seconds: u64,
    /// The server's own words, which version 2 wants back.
    pub accepted: Value,
    pub resource: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OfferError {
    #[error("the server wants to be paid, but its offer cannot be read")]
    Unreadable,
    #[error("version {0} of x402 is not supported")]
    Version(u64),
    #[error("the server offers no way to pay")]
    Empty,
    #[error("the payment scheme `{0}` is not supported; only `exact` is")]
    Scheme(String),
    #[error("the server wants to be paid on `{found}`; payments are made on {expected} only")]
    Network {
        found: String,
        expected: &'static str,
    },
    #[error("the server wants another token than USDC: {0}")]
    Asset(String),
    #[error("the amount `{0}` is not a whole number of millionths of a USDC")]
    Amount(String),
    #[error("the payee of the offer is wrong: {0}")]
    Payee(String),
    #[error("the price of {price} USDC is above the limit of {limit}")]
    TooExpensive {
        price: UsdcAmount,
        limit: UsdcAmount,
    },
}

/// All offers of one answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Offers {
    version: X402Version,
    accepts: Vec<Value>,
    resource: Option<Value>,
}

#[derive(Deserialize)]
struct PaymentRequired {
    #[serde(rename = "x402Version")]
    version: u64,
    #[serde(default)]
    accepts: Vec<Value>,
    #[serde(default)]
    resource: Option<Value>,
}

/// Reads the offers of an answer with status 402: from its header in version 2, from its body in version 1.
pub fn read_offers(header: Option<&str>, body: &[u8]) -> Result<Offers, OfferError> {
    let decoded = header
        .map(|text| STANDARD.decode(text.trim()))
        .transpose()
        .map_err(|_| OfferError::Unreadable)?;
    let document = decoded.as_deref().unwrap_or(body);
    let required: PaymentRequired =
        json::parse(document, MAX_VALUES).map_err(|_| OfferError::Unreadable)?;
    let version = match required.version {
        1 => X402Version::One,
        2 => X402Version::Two,
        other => return Err(OfferError::Version(other)),
    };
    Ok(Offers {
        version,
        accepts: required.accepts,
        resource: required.resource.filter(Value::is_object),
    })
}

/// Returns the cheapest offer that fits our network, token and limit; else why the first one does not.
pub fn choose_offer(
    offers: &Offers,
    network: &'static Network,
    limit: UsdcAmount,
) -> Result<Offer, OfferError> {
    let checked = offers.accepts.iter().take(MAX_OFFERS);
    let checked: Vec<_> = checked
        .map(|accepted| check_offer(offers, accepted, network, limit))
        .collect();
    let cheapest = checked.iter().flatten().min_by_key(|offer| offer.amount);
    if let Some(offer) = cheapest {
        return Ok(offer.clone());
    }
    Err(checked
        .into_iter()
        .find_map(Result::err)
        .unwrap_or(OfferError::Empty))
}

fn check_offer(
    offers: &Offers,
    accepted: &Value,
    network: &'static Network,
    limit: UsdcAmount,
) -> Result<Offer, OfferError> {
    let text = |name: &str| accepted[name].as_str().unwrap_or_default();
    let shown = |name: &str| truncated_line(text(name), 80);
    if text("scheme") != "exact" {
        return Err(OfferError::Scheme(shown("scheme")));
    }
    // A server may ask for another kind of signature, which would be another kind of payment.
    let method = accepted["extra"]["assetTransferMethod"].as_str();
    if method.is_some_and(|method| method != "eip3009") {
        return Err(OfferError::Scheme(truncated_line(
            method.unwrap_or_default(),
            80,
        )));
    }
    if !network.is_named(text("network")) {
        return Err(OfferError::Network {
            found: shown("network"),
            expected: network.name,
        });
    }
    if parse_address(text("asset")) != Ok(network.usdc) {
        return Err(OfferError::Asset(shown("asset")));
    }
    let amount_name = match offers.version {
        X402Version::One => "maxAmountRequired",
        X402Version::Two => "amount",
    };
    let amount = read_units(text(amount_name));
    let amount = amount.ok_or_else(|| OfferError::Amount(shown(amount_name)))?;
    if amount > limit {
        return Err(OfferError::TooExpensive {
            price: amount,
            limit,
        });
    }
    let pay_to =
        parse_address(text("payTo")).map_err(|error| OfferError::Payee(error.to_string()))?;
    let wish = accepted["maxTimeoutSeconds"].as_u64().unwrap_or_default();
    Ok(Offer {
        version: offers.version,
        amount,
        pay_to,
        valid_seconds: wish.clamp(*TIMEOUTS.start(), *TIMEOUTS.end()),
        accepted: accepted.clone(),
        resource: offers.resource.clone(),
    })
}

/// Reads an amount in millionths. Anything but digits is refused: a point would mean other units.
fn read_units(text: &str) -> Option<UsdcAmount> {
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let units = is_digits.then(|| text.parse().ok())??;
    UsdcAmount::from_units(units).filter(|amount| !amount.is_zero())
}

#[cfg(test)]
#[path = "offer_tests.rs"]
mod tests;
