use super::*;
use serde_json::json;

const PAYEE: &str = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";

fn base() -> &'static Network {
    Network::find(8453, None).unwrap()
}

fn accepted() -> Value {
    json!({
        "scheme": "exact",
        "network": "eip155:8453",
        "amount": "10000",
        "asset": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
        "payTo": PAYEE,
        "maxTimeoutSeconds": 300,
        "extra": { "name": "Evil Coin", "version": "9" },
    })
}

fn offers(accepts: Value) -> Offers {
    let required = json!({ "x402Version": 2, "accepts": accepts, "resource": { "url": "u" } });
    let header = STANDARD.encode(required.to_string());
    read_offers(Some(&header), b"{}").unwrap()
}

fn choose(accepts: Value) -> Result<Offer, OfferError> {
    choose_offer(&offers(accepts), base(), UsdcAmount::from_cents(100))
}

#[test]
fn the_cheapest_fitting_offer_is_chosen() {
    let mut cheap = accepted();
    cheap["amount"] = json!("9999");
    let mut foreign = accepted();
    foreign["network"] = json!("eip155:1");
    let offer = choose(json!([foreign, accepted(), cheap])).unwrap();
    assert_eq!(offer.amount.units(), 9_999);
    assert_eq!(
        (offer.version, offer.valid_seconds),
        (X402Version::Two, 300)
    );
}

#[test]
fn version_1_has_its_offers_in_the_body() {
    let mut old = accepted();
    old["network"] = json!("base");
    old["maxAmountRequired"] = old["amount"].take();
    let body = json!({ "x402Version": 1, "accepts": [old] }).to_string();
    let offers = read_offers(None, body.as_bytes()).unwrap();
    let offer = choose_offer(&offers, base(), UsdcAmount::MAX).unwrap();
    assert_eq!(
        (offer.version, offer.amount.units()),
        (X402Version::One, 10_000)
    );
}

/// Every line is an attack or an accident; none of them is an offer that could be signed.
#[test]
fn hostile_offers_are_refused() {
    for (field, value) in [
        ("scheme", json!("upto")),
        ("scheme", json!(null)),
        ("network", json!("eip155:1")),
        ("network", json!("base-sepolia")),
        ("network", json!("solana:mainnet")),
        ("asset", json!("0x036CbD53842c5426634e7929541eC2318f3dCF7e")),
        ("asset", json!("USDC")),
        ("amount", json!("0.01")),
        ("amount", json!("1e4")),
        ("amount", json!("-1")),
        ("amount", json!("0")),
        ("amount", json!(10000)),
        ("amount", json!("1000001")),
        ("amount", json!("99999999999999999999999999")),
        ("payTo", json!("bob.eth")),
        ("payTo", json!("0x0000000000000000000000000000000000000000")),
        ("payTo", json!("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD")),
        ("extra", json!({ "assetTransferMethod": "permit2" })),
    ] {
        let mut hostile = accepted();
        hostile[field] = value.clone();
        assert!(choose(json!([hostile])).is_err(), "{field} {value}");
    }
    assert_eq!(choose(json!([])), Err(OfferError::Empty));
    for document in ["", "{", "[]", "{\"x402Version\":3,\"accepts\":[]}"] {
        assert!(
            read_offers(None, document.as_bytes()).is_err(),
            "{document}"
        );
    }
    assert!(read_offers(Some("%%%"), b"").is_err());
    let many = format!(
        "{{\"x402Version\":1,\"accepts\":[{}0]}}",
        "0,".repeat(10_000)
    );
    assert!(read_offers(None, many.as_bytes()).is_err());
}

#[test]
fn timeouts_are_capped() {
    for (wish, expected) in [
        (json!(1), 60),
        (json!(86_400 * 365), 600),
        (json!(null), 60),
    ] {
        let mut offer = accepted();
        offer["maxTimeoutSeconds"] = wish;
        assert_eq!(choose(json!([offer])).unwrap().valid_seconds, expected);
    }
}
