//! Crashes, lost answers, reorganizations and lying nodes.

use std::time::Duration;

use jiff::ToSpan;
use lango_domain::event::Principal;
use lango_domain::payments::{Payment, PaymentState};
use lango_payments::{ChainError, PaymentError};
use lango_testkit::usdc_chain::UsdcChain;
use serde_json::json;

use crate::setup::{BOB, Payer, bob, funded_chain, request};

mod proxy;

use proxy::{Fault, FaultyNode};

async fn pay(payer: &Payer, name: &str, amount: &str) -> Result<Payment, PaymentError> {
    let payments = payer.payments();
    payments.prepare(request(name, BOB, amount)).await?;
    payments.pay(&Principal::local(), name).await
}

async fn reconciled(payer: &Payer, name: &str) -> Payment {
    payer.payments().reconcile().await.unwrap();
    let ledger = payer.ledger();
    let found = ledger.payment_for_request(&Principal::local(), name).await;
    found.unwrap().unwrap()
}

/// Lets a payment wait only shortly for the chain.
fn impatient(chain: &UsdcChain) -> Payer {
    let mut payer = Payer::new(&chain.url());
    payer.settle = Duration::ZERO;
    payer
}

/// B131: the answer to every request to the node is lost once, in turn, before or after the node acted.
#[tokio::test]
async fn a_lost_answer_at_any_step_pays_at_most_once() {
    let chain = funded_chain();
    let mut expected = 0;
    for fault in [Fault::BeforeTheNode, Fault::AfterTheNode] {
        for step in 0..40 {
            let node = FaultyNode::start(chain.port, fault, step);
            let mut payer = Payer::new(&node.url());
            payer.settle = Duration::from_secs(2);
            payer.settings.limits.max_daily = "100".parse().unwrap();
            let name = format!("{fault:?}-{step}");
            let before = chain.balance(bob());
            let outcome = pay(&payer, &name, "0.01").await;
            let is_hit = node.is_hit();
            // Started again, with a node that answers.
            payer.url = chain.url();
            let payment = payer
                .ledger()
                .payment_for_request(&Principal::local(), &name)
                .await
                .unwrap();
            if let Some(payment) = &payment {
                let state = reconciled(&payer, &name).await.state;
                let is_signed = payment.bytes.is_some();
                assert_eq!(
                    state == PaymentState::Confirmed,
                    is_signed,
                    "{name}: {payment:?} {outcome:?}"
                );
                expected += u64::from(is_signed) * 10_000;
            }
            let paid = chain.balance(bob()) - before;
            assert!(paid <= 10_000, "{name}: paid twice");
            assert_eq!(
                chain.balance(bob()),
                expected,
                "{name}: the ledger equals the chain"
            );
            if !is_hit {
                assert!(outcome.is_ok(), "{outcome:?}");
                break;
            }
        }
    }
    assert!(expected > 0);
}

/// B131
#[tokio::test]
async fn a_dropped_transaction_is_sent_again() {
    let chain = funded_chain();
    chain.set_automine(false);
    let payer = impatient(&chain);
    let sent = pay(&payer, "r1", "1").await.unwrap();
    assert_eq!(sent.state, PaymentState::Sent);
    chain.rpc("anvil_dropTransaction", json!([sent.transaction]));
    assert_eq!(
        chain.rpc("eth_getTransactionByHash", json!([sent.transaction])),
        json!(null)
    );
    let again = reconciled(&payer, "r1").await;
    assert_eq!(again.transaction, sent.transaction, "the same bytes");
    chain.mine();
    assert_eq!(
        reconciled(&payer, "r1").await.state,
        PaymentState::Confirmed
    );
    assert_eq!(chain.balance(bob()), 1_000_000);
}

/// B131
#[tokio::test]
async fn a_payment_that_a_reorganization_takes_back_is_made_again() {
    let chain = funded_chain();
    let payer = impatient(&chain);
    let paid = pay(&payer, "r1", "1").await.unwrap();
    assert_eq!(paid.state, PaymentState::Confirmed);
    chain.rpc("anvil_reorg", json!([1, []]));
    assert_eq!(chain.balance(bob()), 0);
    let open = reconciled(&payer, "r1").await;
    let after = reconciled(&payer, "r1").await;
    assert_eq!(after.state, PaymentState::Confirmed, "{open:?}");
    assert_eq!(chain.balance(bob()), 1_000_000);
}

/// B131: the fee rises above what the transaction pays; a new one with the same authorization replaces it.
#[tokio::test]
async fn a_fee_that_is_too_low_is_replaced() {
    let chain = funded_chain();
    chain.set_automine(false);
    let payer = impatient(&chain);
    let sent = pay(&payer, "r1", "1").await.unwrap();
    let block = chain.rpc("eth_getBlockByNumber", json!(["latest", false]));
    let base = block["baseFeePerGas"].as_str().unwrap();
    let base = u64::from_str_radix(&base[2..], 16).unwrap();
    // Above what the transaction pays, which is twice the base fee and a tip, and below the approved limit.
    let paid = 2 * base + 1_000_000_000;
    chain.rpc(
        "anvil_setNextBlockBaseFeePerGas",
        json!([format!("{:#x}", paid * 5 / 4)]),
    );
    chain.mine();
    assert_eq!(chain.balance(bob()), 0, "the transaction waits");
    let replaced = reconciled(&payer, "r1").await;
    assert_ne!(replaced.transaction, sent.transaction);
    assert_eq!(
        replaced.account_nonce, sent.account_nonce,
        "it replaces the other"
    );
    chain.mine();
    assert_eq!(
        reconciled(&payer, "r1").await.state,
        PaymentState::Confirmed
    );
    assert_eq!(chain.balance(bob()), 1_000_000);
}

/// B131: another program used the account's counter.
#[tokio::test]
async fn a_used_counter_gets_a_new_transaction() {
    let chain = funded_chain();
    chain.set_automine(false);
    let payer = impatient(&chain);
    let sent = pay(&payer, "r1", "1").await.unwrap();
    chain.rpc("anvil_dropTransaction", json!([sent.transaction]));
    chain.rpc("anvil_setNonce", json!([crate::setup::wallet(), "0x5"]));
    let again = reconciled(&payer, "r1").await;
    assert_eq!(again.account_nonce, Some(5));
    chain.mine();
    assert_eq!(
        reconciled(&payer, "r1").await.state,
        PaymentState::Confirmed
    );
    assert_eq!(chain.balance(bob()), 1_000_000);
}

/// B131: what is not paid in time is never paid, and its share of the limits is free again.
#[tokio::test]
async fn an_authorization_that_ends_unused_is_never_paid() {
    let chain = funded_chain();
    chain.set_automine(false);
    let payer = impatient(&chain);
    let sent = pay(&payer, "r1", "1").await.unwrap();
    chain.rpc("anvil_dropTransaction", json!([sent.transaction]));
    let payments = payer.payments();
    let used = payments.limit_use(&Principal::local()).await.unwrap();
    assert_eq!(used.day.to_string(), "1.00", "it can still be paid");
    chain.pass_time(Duration::from_secs(700));
    let ended = reconciled(&payer, "r1").await;
    assert_eq!(ended.state, PaymentState::Expired);
    assert!(
        payments
            .limit_use(&Principal::local())
            .await
            .unwrap()
            .day
            .is_zero()
    );
    // The bytes are void: the chain refuses them for ever.
    let bytes = alloy_primitives::hex::encode_prefixed(&sent.bytes.unwrap().message);
    chain.set_automine(true);
    chain.try_rpc("eth_sendRawTransaction", json!([bytes]));
    assert_eq!(chain.balance(bob()), 0);
}

/// B131: a wrong clock of this machine, by a day in either direction.
#[tokio::test]
async fn clock_skew_changes_nothing() {
    let chain = funded_chain();
    for (name, hours) in [("behind", -24), ("ahead", 24)] {
        let mut payer = Payer::new(&chain.url());
        payer.clock =
            std::sync::Arc::new(move || jiff::Timestamp::now().checked_add(hours.hours()).unwrap());
        let before = chain.balance(bob());
        let paid = pay(&payer, name, "1").await.unwrap();
        assert_eq!(paid.state, PaymentState::Confirmed, "{name}");
        assert_eq!(chain.balance(bob()) - before, 1_000_000, "{name}");
    }
    let mut payer = Payer::new(&chain.url());
    payer.clock = std::sync::Arc::new(|| jiff::Timestamp::now().checked_sub(49.hours()).unwrap());
    let error = pay(&payer, "far", "1").await.unwrap_err();
    assert_eq!(error, PaymentError::ClockDifference);
}

/// A node that changes to another chain after the question is noticed before the signature.
#[tokio::test]
async fn a_node_that_lies_about_its_chain_gets_no_signature() {
    let chain = funded_chain();
    let node = FaultyNode::start(chain.port, Fault::OtherChainId, 1);
    let payer = Payer::new(&node.url());
    let payments = payer.payments();
    payments.prepare(request("r1", BOB, "1")).await.unwrap();
    let error = payments.pay(&Principal::local(), "r1").await.unwrap_err();
    assert!(
        matches!(error, PaymentError::Chain(ChainError::OtherChain { .. })),
        "{error}"
    );
    assert_eq!((payer.signatures(), chain.balance(bob())), (0, 0));
    let used = payments.limit_use(&Principal::local()).await.unwrap();
    assert!(used.day.is_zero(), "what was not signed reserves nothing");
}

/// A node that claims that nothing was paid cannot make us pay twice: the nonce is used.
#[tokio::test]
async fn a_node_that_denies_a_payment_cannot_double_it() {
    let chain = funded_chain();
    let payer = Payer::new(&chain.url());
    pay(&payer, "r1", "1").await.unwrap();
    let node = FaultyNode::start(chain.port, Fault::NothingIsUsed, 0);
    let liar = Payer {
        url: node.url(),
        ..payer
    };
    for _ in 0..3 {
        reconciled(&liar, "r1").await;
    }
    assert_eq!(chain.balance(bob()), 1_000_000);
    let honest = Payer {
        url: chain.url(),
        ..liar
    };
    assert_eq!(
        reconciled(&honest, "r1").await.state,
        PaymentState::Confirmed
    );
}

#[tokio::test]
async fn bad_answers_of_a_node_are_clear_errors() {
    let chain = funded_chain();
    for fault in [Fault::Garbage, Fault::HugeAnswer, Fault::ServerError] {
        let node = FaultyNode::start(chain.port, fault, 0);
        let payer = Payer::new(&node.url());
        let error = pay(&payer, "r1", "1").await.unwrap_err();
        assert!(
            matches!(error, PaymentError::Chain(ChainError::Node(_))),
            "{fault:?}: {error}"
        );
        assert!(
            !error.to_string().contains("127.0.0.1"),
            "the address may contain a key"
        );
        assert_eq!(payer.signatures(), 0);
    }
}
