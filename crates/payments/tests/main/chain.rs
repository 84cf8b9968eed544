//! Payments on a real chain.

use lango_domain::event::Principal;
use lango_domain::payments::{LimitKind, PaymentState};
use lango_payments::{ChainError, PaymentError, UnknownNetwork, WalletError};

use crate::setup::{BOB, Payer, bob, funded_chain, request, wallet};

/// B131, B132: question, signature, transaction, receipt; then the same request again.
#[tokio::test]
async fn a_payment_is_made_once() {
    let chain = funded_chain();
    let payer = Payer::new(&chain.url());
    payer.add_payee("bob", BOB).await;
    let payments = payer.payments();
    let prepared = payments
        .prepare(request("r1", "Bob", "1.50"))
        .await
        .unwrap();
    assert_eq!(
        payer.signatures(),
        0,
        "nothing is signed before the approval"
    );
    let paid = payments.pay(&Principal::local(), "r1").await.unwrap();
    assert_eq!(paid.state, PaymentState::Confirmed, "{paid:?}");
    assert_eq!(paid.terms.digest, prepared.payment.terms.digest);
    assert!(paid.block.is_some() && paid.is_delivered);
    assert_eq!(chain.balance(bob()), 1_500_000);
    assert_eq!(chain.balance(wallet()), 98_500_000);
    let again = payments.pay(&Principal::local(), "r1").await.unwrap_err();
    assert!(matches!(again, PaymentError::NotPending { .. }), "{again}");
    let again = payments
        .prepare(request("r1", "bob", "1.50"))
        .await
        .unwrap_err();
    assert!(matches!(again, PaymentError::NotPending { .. }), "{again}");
    let other = payments
        .prepare(request("r1", "bob", "2"))
        .await
        .unwrap_err();
    assert!(matches!(other, PaymentError::RequestTaken(_)), "{other}");
    assert_eq!(chain.balance(bob()), 1_500_000);
    let hash = paid.transaction.unwrap();
    let receipt = payments.chain().receipt(&hash).await.unwrap().unwrap();
    assert!(receipt.has_succeeded && receipt.fee <= u128::from(paid.terms.fee_limit));
}

/// B131: 64 parallel sends with a limit for ten of them.
#[tokio::test]
async fn parallel_payments_stay_below_the_limit() {
    let chain = funded_chain();
    let mut payer = Payer::new(&chain.url());
    payer.settings.limits.max_daily = "10".parse().unwrap();
    let payments = payer.payments();
    let sends = (0..64).map(|number| {
        let payments = payments.clone();
        async move {
            let name = format!("r{number}");
            payments.prepare(request(&name, BOB, "1")).await?;
            payments.pay(&Principal::local(), &name).await
        }
    });
    let outcomes = futures::future::join_all(sends).await;
    let (mut paid, mut refused) = (0, 0);
    for outcome in outcomes {
        match outcome {
            Ok(payment) => {
                assert_eq!(payment.state, PaymentState::Confirmed, "{payment:?}");
                paid += 1;
            }
            Err(PaymentError::OverLimit {
                kind: LimitKind::PerDay,
                ..
            }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!((paid, refused), (10, 54));
    assert_eq!(chain.balance(bob()), 10_000_000);
}

#[tokio::test]
async fn what_cannot_be_paid_is_refused_before_the_question() {
    let chain = funded_chain();
    let payer = Payer::new(&chain.url());
    payer.add_payee("bob", BOB).await;
    let payments = payer.payments();
    let refuse = async |to: &str, amount: &str| {
        let error = payments
            .prepare(request("r", to, amount))
            .await
            .unwrap_err();
        error.to_string()
    };
    assert!(refuse("bob", "0").await.contains("zero"));
    assert!(refuse("bob", "10.01").await.contains("maxPerTx"));
    assert!(refuse("bobb", "1").await.contains("did you mean `bob`"));
    assert!(
        refuse("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD", "1")
            .await
            .contains("checksum")
    );
    let fake = "0x5aae11111111111111111111111111111111eaed";
    assert!(refuse(fake, "1").await.contains("`bob`"), "a look-alike");
    let own = wallet().to_checksum(None);
    assert!(refuse(&own, "1").await.contains("itself"));
    chain.block_account(bob());
    assert!(refuse("bob", "1").await.contains("blacklisted"));
    assert_eq!(payer.signatures(), 0);
}

#[tokio::test]
async fn empty_and_foreign_wallets_do_not_pay() {
    let chain = lango_testkit::usdc_chain::UsdcChain::start();
    let mut payer = Payer::new(&chain.url());
    let poor = payer.payments().prepare(request("r", BOB, "1")).await;
    assert!(matches!(poor, Err(PaymentError::Funds { .. })), "{poor:?}");
    chain.fund(wallet(), 5_000_000);
    chain.rpc("anvil_setBalance", serde_json::json!([wallet(), "0x1"]));
    let poor = payer.payments().prepare(request("r", BOB, "1")).await;
    assert!(matches!(poor, Err(PaymentError::Fee { .. })), "{poor:?}");
    let principal = Principal::local();
    let cold = lango_domain::payments::WatchedWallet {
        name: "cold".to_owned(),
        address: lango_domain::payments::AccountAddress([8; 20]),
        added: jiff::Timestamp::now(),
    };
    assert!(payer.ledger().watch_wallet(&principal, cold).await.unwrap());
    payer.settings.wallet = Some("cold".to_owned());
    let watched = payer.payments().prepare(request("r", BOB, "1")).await;
    assert_eq!(
        watched.unwrap_err(),
        PaymentError::WatchOnly("cold".to_owned())
    );
    let taken = payer.payments().create_wallet(&principal, "cold").await;
    assert_eq!(
        taken.unwrap_err(),
        WalletError::Exists("cold".to_owned()).into()
    );
    let made = payer
        .payments()
        .create_wallet(&principal, "second")
        .await
        .unwrap();
    assert_eq!(payer.payments().wallets(&principal).await.unwrap().len(), 3);
    let balance = payer.payments().balance(made).await.unwrap();
    assert!(balance.usdc.is_zero() && balance.ether == 0);
}

#[tokio::test]
async fn another_chain_or_token_is_refused() {
    let chain = funded_chain();
    let mut payer = Payer::new(&chain.url());
    payer.settings.network.chain_id = 84532;
    let error = payer
        .payments()
        .prepare(request("r", BOB, "1"))
        .await
        .unwrap_err();
    let expected = ChainError::OtherChain {
        expected: 84532,
        found: 8453,
    };
    assert_eq!(error, expected.into());
    payer.settings.network.chain_id = 1;
    assert_eq!(payer.settings.network(), Err(UnknownNetwork::Chain(1)));
    payer.settings.network.chain_id = 8453;
    // The contract at the known address is another one.
    let usdc = lango_testkit::usdc_chain::USDC;
    chain.rpc("anvil_setCode", serde_json::json!([usdc, "0x"]));
    let error = payer
        .payments()
        .prepare(request("r", BOB, "1"))
        .await
        .unwrap_err();
    assert!(
        matches!(error, PaymentError::Chain(ChainError::OtherToken { .. })),
        "{error}"
    );
    assert_eq!(payer.signatures(), 0);
}
