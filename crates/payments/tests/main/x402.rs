//! Paid resources: a real shop (`@x402/express`), a proxy that loses answers, and hostile servers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lango_domain::event::Principal;
use lango_domain::payments::PaymentState;
use lango_payments::x402::{FetchOutcome, PaidContent, Quote, ResourceRequest};
use lango_payments::{PaymentError, Payments};
use lango_testkit::paid_servers::{LossyProxy, PaperShop, StaticServer};
use serde_json::{Value, json};

use crate::setup::{BOB, Payer, bob, funded_chain};

fn get(port: u16, path: &str) -> ResourceRequest {
    ResourceRequest {
        url: format!("http://127.0.0.1:{port}{path}"),
        method: "GET".to_owned(),
        headers: Vec::new(),
        body: None,
    }
}

async fn quote(payments: &Payments, request: ResourceRequest) -> Result<Quote, PaymentError> {
    let limit = "0.05".parse().unwrap();
    match payments
        .request_resource(&Principal::local(), request, limit)
        .await?
    {
        FetchOutcome::Priced(quote) => Ok(*quote),
        FetchOutcome::Content(content) => panic!("it was free: {content:?}"),
    }
}

async fn buy(payments: &Payments, request: ResourceRequest) -> Result<PaidContent, PaymentError> {
    let quote = quote(payments, request).await?;
    payments.prepare_quote(&quote, String::new()).await?;
    payments.pay_quote(&quote).await
}

/// B131: both versions, paid once, with the real server.
#[tokio::test]
async fn a_resource_is_bought_in_both_versions() {
    let chain = funded_chain();
    let shop = PaperShop::start(&chain, bob());
    let payer = Payer::new(&chain.url());
    let payments = payer.payments();
    for (path, total) in [("/paper", 10_000), ("/old-paper", 20_000)] {
        let bought = buy(&payments, get(shop.port, path)).await.unwrap();
        assert_eq!(bought.status, 200);
        assert!(String::from_utf8_lossy(&bought.body).contains("paper"));
        let payment = bought.payment.unwrap();
        assert_eq!(payment.state, PaymentState::Confirmed, "{payment:?}");
        assert!(payment.is_delivered && payment.transaction.is_some());
        assert_eq!(chain.balance(bob()), total, "{path}");
    }
    assert_eq!(payer.signatures(), 2);
    let limit = "1".parse().unwrap();
    let free = get(shop.port, "/free");
    let free = payments
        .request_resource(&Principal::local(), free, limit)
        .await
        .unwrap();
    assert!(matches!(free, FetchOutcome::Content(content) if content.payment.is_none()));
}

/// B131: the proxy drops the first paid answer, after the shop was paid. The same header goes out again.
#[tokio::test]
async fn a_lost_answer_is_not_paid_twice() {
    let chain = funded_chain();
    let shop = PaperShop::start(&chain, bob());
    let proxy = LossyProxy::start(shop.port, 1);
    let payer = Payer::new(&chain.url());
    let payments = payer.payments();
    let first = buy(&payments, get(proxy.port, "/paper")).await;
    // Whatever the shop says to a header that it has seen, nothing more is signed.
    assert_eq!(payer.signatures(), 1, "{first:?}");
    assert_eq!(chain.balance(bob()), 10_000, "{first:?}");
    let headers = proxy.payment_headers();
    assert!(headers.len() >= 2, "the header was sent again");
    assert!(
        headers.iter().all(|header| *header == headers[0]),
        "always the same"
    );
    // A new process asks for the same URL: the old header again, and no new signature.
    if first.is_err() {
        let again = payer.payments();
        let limit = "0.05".parse().unwrap();
        let request = get(proxy.port, "/paper");
        let _ = again
            .request_resource(&Principal::local(), request, limit)
            .await;
        assert_eq!((payer.signatures(), chain.balance(bob())), (1, 10_000));
    }
}

/// B131: hostile servers get no signature.
#[tokio::test]
async fn hostile_offers_get_no_signature() {
    let chain = funded_chain();
    let payer = Payer::new(&chain.url());
    let payments = payer.payments();
    let offer = json!({
        "scheme": "exact", "network": "eip155:8453", "amount": "10000", "payTo": BOB,
        "asset": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "maxTimeoutSeconds": 60,
        "extra": { "name": "USD Coin", "version": "2" },
    });
    for (field, value) in [
        ("asset", json!("0x4200000000000000000000000000000000000006")),
        ("network", json!("eip155:1")),
        ("amount", json!("0.01")),
        ("amount", json!("50001")),
        ("scheme", json!("upto")),
        ("payTo", json!("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD")),
    ] {
        let mut hostile = offer.clone();
        hostile[field] = value;
        let server = StaticServer::start(vec![required(&hostile)]);
        assert!(
            quote(&payments, get(server.port, "/")).await.is_err(),
            "{field}"
        );
    }
    for answer in [
        "HTTP/1.1 402 x\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "HTTP/1.1 402 x\r\nPAYMENT-REQUIRED: !!\r\nContent-Length: 0\r\n\r\n".to_owned(),
    ] {
        let server = StaticServer::start(vec![answer]);
        assert!(quote(&payments, get(server.port, "/")).await.is_err());
    }
    assert_eq!(payer.signatures(), 0);
    assert_eq!(chain.balance(bob()), 0);
}

/// B132: a payee that changes after the question is not paid; endless 402 ends; redirects are not followed.
#[tokio::test]
async fn a_server_that_changes_its_mind_gets_the_approved_payment_only() {
    let chain = funded_chain();
    let payer = Payer::new(&chain.url());
    let payments = payer.payments();
    let offer = |to: &str| {
        json!({
            "scheme": "exact", "network": "eip155:8453", "amount": "10000", "payTo": to,
            "asset": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "maxTimeoutSeconds": 60,
        })
    };
    let other = "0x1111111111111111111111111111111111111111";
    // First the price, then for ever another payee.
    let server = StaticServer::start(vec![required(&offer(BOB)), required(&offer(other))]);
    let error = buy(&payments, get(server.port, "/a")).await.unwrap_err();
    assert!(
        error.to_string().contains("did not accept the payment"),
        "{error}"
    );
    assert_eq!(
        payer.signatures(),
        1,
        "one signature, for the approved payee"
    );
    assert!(server.requests() <= 5, "no endless loop");
    let redirect = "HTTP/1.1 302 x\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";
    let server = StaticServer::start(vec![required(&offer(BOB)), redirect.to_owned()]);
    let error = buy(&payments, get(server.port, "/b")).await.unwrap_err();
    assert!(error.to_string().contains("not followed"), "{error}");
    assert_eq!((payer.signatures(), chain.balance(bob())), (2, 0));
    // What was signed counts until it is void.
    let used = payments.limit_use(&Principal::local()).await.unwrap();
    assert_eq!(used.day.to_string(), "0.02");
    let mut bad = get(server.port, "/c");
    bad.headers
        .push(("PAYMENT-SIGNATURE".to_owned(), "x".to_owned()));
    assert!(
        quote(&payments, bad)
            .await
            .unwrap_err()
            .to_string()
            .contains("Lango itself")
    );
}

fn required(offer: &Value) -> String {
    let required = json!({ "x402Version": 2, "accepts": [offer], "resource": { "url": "x" } });
    let header = STANDARD.encode(required.to_string());
    format!("HTTP/1.1 402 x\r\nPAYMENT-REQUIRED: {header}\r\nContent-Length: 2\r\n\r\n{{}}")
}
