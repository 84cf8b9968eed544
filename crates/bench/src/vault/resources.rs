//! Paid resources: a lost answer, with the stock client next to ours, and hostile offers.

use std::process::Command;
use std::sync::Arc;

use alloy_primitives::hex;
use anyhow::{Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lango_domain::event::Principal;
use lango_payments::Payments;
use lango_payments::x402::{FetchOutcome, ResourceRequest};
use lango_store::{SqliteStore, StoreLocation};
use lango_testkit::paid_servers::{LossyProxy, PaperShop, StaticServer};
use lango_testkit::usdc_chain::{UsdcChain, payment_peers};
use serde_json::{Value, json};

use super::wallet::{BenchKeys, KEY};
use super::{PAYEE, payments};

/// Buys a resource for 0.01 USDC through a proxy that drops the first paid answer, and asks once more.
pub async fn lost_answer() -> Result<Value> {
    let chain = UsdcChain::start();
    let keys = Arc::new(BenchKeys::default());
    chain.fund(keys.address(), 100_000_000);
    let shop = PaperShop::start(&chain, PAYEE);
    let stock = stock_client(&shop, &chain)?;
    let before = chain.balance(PAYEE);
    let proxy = LossyProxy::start(shop.port, 1);
    let store = SqliteStore::open(StoreLocation::Memory)?;
    let payments = payments(store, &chain.url(), &keys)?;
    for _ in 0..2 {
        // The second time asks for the same resource again, as a user would.
        if buy(&payments, proxy.port).await.is_ok() {
            break;
        }
    }
    Ok(json!({
        "bench": "vault-lost-answer",
        "price": 10_000,
        "stock_client_paid": stock,
        "lango_paid": chain.balance(PAYEE) - before,
        "lango_signatures": keys.signatures(),
        "lango_headers_sent": proxy.payment_headers().len(),
    }))
}

/// Returns what the stock client paid for the same.
fn stock_client(shop: &PaperShop, chain: &UsdcChain) -> Result<u64> {
    let proxy = LossyProxy::start(shop.port, 1);
    let output = Command::new("node")
        .arg("x402_client.mjs")
        .arg(format!("http://127.0.0.1:{}/paper", proxy.port))
        .arg(hex::encode_prefixed(KEY))
        .current_dir(payment_peers())
        .output()?;
    if !output.status.success() {
        bail!(
            "the stock client fails: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(chain.balance(PAYEE))
}

async fn buy(payments: &Payments, port: u16) -> Result<()> {
    match request(payments, port).await? {
        FetchOutcome::Content(_) => Ok(()),
        FetchOutcome::Priced(quote) => {
            payments.prepare_quote(&quote, String::new()).await?;
            payments.pay_quote(&quote).await?;
            Ok(())
        }
    }
}

async fn request(payments: &Payments, port: u16) -> Result<FetchOutcome> {
    let request = ResourceRequest {
        url: format!("http://127.0.0.1:{port}/paper"),
        method: "GET".to_owned(),
        headers: Vec::new(),
        body: None,
    };
    let limit = "0.05".parse()?;
    Ok(payments
        .request_resource(&Principal::local(), request, limit)
        .await?)
}

/// Fields of an offer, and values that must not be paid.
const HOSTILE: [(&str, &str); 9] = [
    ("asset", "0x4200000000000000000000000000000000000006"),
    ("asset", "0x036CbD53842c5426634e7929541eC2318f3dCF7e"),
    ("network", "eip155:1"),
    ("network", "base-sepolia"),
    ("amount", "0.01"),
    ("amount", "10000000000000000"),
    ("amount", "50001"),
    ("scheme", "upto"),
    ("payTo", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD"),
];

/// Offers prices that must not be paid, redirects, and 402 without end.
pub async fn hostile_offers() -> Result<Value> {
    let chain = UsdcChain::start();
    let keys = Arc::new(BenchKeys::default());
    chain.fund(keys.address(), 100_000_000);
    let store = SqliteStore::open(StoreLocation::Memory)?;
    let payments = payments(store, &chain.url(), &keys)?;
    let mut answers: Vec<String> = HOSTILE
        .iter()
        .map(|(field, value)| offer(field, value))
        .collect();
    answers.push("HTTP/1.1 402 x\r\nContent-Length: 0\r\n\r\n".to_owned());
    answers
        .push("HTTP/1.1 402 x\r\nPAYMENT-REQUIRED: e30=\r\nContent-Length: 0\r\n\r\n".to_owned());
    answers.push("HTTP/1.1 302 x\r\nLocation: /paper\r\nContent-Length: 0\r\n\r\n".to_owned());
    let (offered, mut refused) = (answers.len(), 0);
    for answer in answers {
        let server = StaticServer::start(vec![answer]);
        match request(&payments, server.port).await {
            Ok(FetchOutcome::Priced(_)) => {}
            Ok(FetchOutcome::Content(_)) | Err(_) => refused += 1,
        }
    }
    Ok(json!({
        "bench": "vault-hostile-402",
        "offers": offered,
        "refused": refused,
        "signatures": keys.signatures(),
        "paid": chain.balance(PAYEE),
    }))
}

fn offer(field: &str, value: &str) -> String {
    let mut offer = json!({
        "scheme": "exact",
        "network": "eip155:8453",
        "amount": "10000",
        "payTo": PAYEE.to_checksum(None),
        "asset": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
        "maxTimeoutSeconds": 60,
    });
    offer[field] = json!(value);
    let required = json!({ "x402Version": 2, "accepts": [offer] });
    let header = STANDARD.encode(required.to_string());
    format!("HTTP/1.1 402 x\r\nPAYMENT-REQUIRED: {header}\r\nContent-Length: 2\r\n\r\n{{}}")
}
