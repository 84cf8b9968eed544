//! The question before a payment (B132).

use lango_domain::event::Principal;
use lango_domain::payments::{PaymentChange, PaymentState};
use lango_payments::{SigningError, sign_payment};

use crate::setup::{BOB, Payer, funded_chain, request, wallet};

/// B132
#[tokio::test]
async fn the_question_shows_everything_that_is_signed() {
    let chain = funded_chain();
    let payer = Payer::new(&chain.url());
    payer.add_payee("bob", BOB).await;
    let payments = payer.payments();
    let mut asked = request("r1", "bob", "1.50");
    asked.origin = "untrusted: web_fetch example.org".to_owned();
    let prepared = payments.prepare(asked).await.unwrap();
    let text = &prepared.question;
    for part in [
        "Pays 1.50 USDC (one USDC and fifty cents)",
        "bob, 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed (first payment to this address)",
        "Base (chain 8453)",
        "at most 0.000",
        "48.50 of 50.00 for 24 hours",
        "at most 10.00 in one payment",
        "lunch",
        "untrusted: web_fetch example.org",
        &wallet().to_checksum(None),
        &prepared.payment.terms.digest.to_string(),
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    payments.pay(&Principal::local(), "r1").await.unwrap();
    let second = payments.prepare(request("r2", "bob", "1")).await.unwrap();
    assert!(
        !second.question.contains("first payment"),
        "{}",
        second.question
    );
    assert!(
        second.question.contains("47.50 of 50.00"),
        "{}",
        second.question
    );
    let unknown = "0x1111111111111111111111111111111111111111";
    let third = payments.prepare(request("r3", unknown, "1")).await.unwrap();
    assert!(
        third.question.contains("unknown: first payment"),
        "{}",
        third.question
    );
    let similar = "0x5aae1111111111111111111111111111111beaed";
    payer.add_payee("rob", similar).await;
    let fourth = payments.prepare(request("r4", "rob", "1")).await.unwrap();
    assert!(fourth.question.contains("WARNING"), "{}", fourth.question);
}

/// B132: nothing but the approved digest is signed, and only in the state `approved`.
#[tokio::test]
async fn a_signature_needs_the_approved_digest() {
    let chain = funded_chain();
    let payer = Payer::new(&chain.url());
    let payments = payer.payments();
    let prepared = payments.prepare(request("r1", BOB, "1.50")).await.unwrap();
    let intended = prepared.payment;
    use lango_payments::WalletKeys as _;
    let signer = payer
        .keys
        .signer(&Principal::local(), intended.terms.from)
        .await
        .unwrap();
    let sign = async |payment: &_| sign_payment(payment, payments.network(), &*signer).await;
    assert_eq!(
        sign(&intended).await,
        Err(SigningError::NotApproved("intended"))
    );
    let change = PaymentChange::new(&intended, PaymentState::Approved, intended.updated);
    let approved = payer
        .ledger()
        .change_payment(change)
        .await
        .unwrap()
        .unwrap();
    let mut larger = approved.clone();
    larger.terms.amount = "9".parse().unwrap();
    let mut redirected = approved.clone();
    redirected.terms.to.0[0] ^= 1;
    let mut longer = approved.clone();
    longer.terms.valid_before += 1;
    for changed in [larger, redirected, longer] {
        assert_eq!(sign(&changed).await, Err(SigningError::OtherDigest));
    }
    let mut foreign = approved.clone();
    foreign.terms.from.0[0] ^= 1;
    foreign.terms.digest = lango_payments::payment_digest(&foreign.terms, payments.network());
    assert_eq!(sign(&foreign).await, Err(SigningError::OtherWallet));
    assert_eq!(payer.signatures(), 0);
    assert!(sign(&approved).await.is_ok());
}
