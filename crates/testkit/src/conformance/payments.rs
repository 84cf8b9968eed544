//! The conformance suite for payments, payees and watched wallets.

use futures::future::join_all;
use jiff::{Timestamp, ToSpan};
use lango_domain::Stores;
use lango_domain::event::Principal;
use lango_domain::payments::{
    AccountAddress, AccountNonceClaim, ApprovedDigest, LimitKind, NewPayee, NewPayment, Payee,
    Payment, PaymentBytes, PaymentChange, PaymentId, PaymentLimits, PaymentPurpose, PaymentQuery,
    PaymentState, PaymentStore, Reservation, UsdcAmount, WatchedWallet,
};

use super::{ok, seconds};

/// Runs the whole suite on empty stores.
///
/// # Panics
/// If the store violates the contract of [`PaymentStore`].
pub async fn check(stores: &Stores) {
    let store = &*stores.payments;
    a_request_has_one_payment(store).await;
    a_given_up_request_is_free(store).await;
    payments_round_trip(store).await;
    a_change_needs_the_expected_state(store).await;
    limits_are_reserved_with_the_row(store).await;
    parallel_reservations_stay_below_the_limit(store).await;
    what_can_no_longer_be_paid_does_not_count(store).await;
    account_nonces_are_never_shared(store).await;
    undecided_payments_are_found(store).await;
    payees_belong_to_their_principal(store).await;
    wallets_are_watched(store).await;
}

const LIMITS: PaymentLimits = PaymentLimits {
    per_payment: UsdcAmount::from_cents(500),
    per_day: UsdcAmount::from_cents(1_000),
    per_payee: UsdcAmount::from_cents(600),
};

const NOW: i64 = 1_000_000;

fn address(byte: u8) -> AccountAddress {
    AccountAddress([byte; 20])
}

/// Returns an intended payment of a principal, named after its request.
fn intended(principal: &str, request: &str, to: u8, cents: u32) -> NewPayment {
    NewPayment {
        id: PaymentId::new(format!("{principal}-{request}")),
        principal: Principal::new(principal),
        request: request.to_owned(),
        created: seconds(NOW),
        chain: 8453,
        from: address(1),
        to: address(to),
        payee: Some("bob".to_owned()),
        amount: UsdcAmount::from_cents(cents),
        purpose: PaymentPurpose::Transfer {
            text: "lunch".to_owned(),
        },
        origin: String::new(),
        valid_before: NOW as u64 + 600,
        digest: ApprovedDigest([7; 32]),
        fee_limit: 1_000,
        answer_by: seconds(NOW + 300),
        start_block: 5,
    }
}

async fn reserve(store: &dyn PaymentStore, payment: NewPayment) -> Payment {
    match ok(store.reserve_payment(payment, LIMITS).await) {
        Reservation::Reserved(payment) => *payment,
        other => unreachable!("the payment is not reserved: {other:?}"),
    }
}

async fn set_state(store: &dyn PaymentStore, payment: &Payment, to: PaymentState) -> Payment {
    let change = PaymentChange::new(payment, to, seconds(NOW + 1));
    let changed = ok(store.change_payment(change).await);
    changed.unwrap_or_else(|| unreachable!("the payment exists"))
}

/// B131
async fn a_request_has_one_payment(store: &dyn PaymentStore) {
    let first = reserve(store, intended("once", "r", 2, 100)).await;
    let again = NewPayment {
        id: PaymentId::new("another"),
        ..intended("once", "r", 3, 200)
    };
    let found = ok(store.reserve_payment(again, LIMITS).await);
    assert_eq!(found, Reservation::Exists(Box::new(first.clone())));
    let principal = Principal::new("once");
    let found = ok(store.payment_for_request(&principal, "r").await);
    assert_eq!(found, Some(first));
    let other = ok(store
        .payment_for_request(&Principal::new("else"), "r")
        .await);
    assert_eq!(other, None, "of another principal");
}

/// B131: only a payment that was never signed leaves its request to another one.
async fn a_given_up_request_is_free(store: &dyn PaymentStore) {
    let principal = Principal::new("free");
    let first = reserve(store, intended("free", "r", 2, 100)).await;
    let ended = set_state(store, &first, PaymentState::Expired).await;
    let next = |id: &str| NewPayment {
        id: PaymentId::new(id),
        ..intended("free", "r", 3, 200)
    };
    let second = reserve(store, next("second")).await;
    let found = ok(store.payment_for_request(&principal, "r").await);
    assert_eq!(found.as_ref(), Some(&second));
    let old = ok(store.payment(&principal, &ended.terms.id).await);
    assert_eq!(old.map(|old| old.state), Some(PaymentState::Expired));
    let approved = set_state(store, &second, PaymentState::Approved).await;
    let signed = PaymentChange {
        bytes: Some(PaymentBytes {
            signature: vec![1],
            message: vec![2],
        }),
        ..PaymentChange::new(&approved, PaymentState::Signed, seconds(NOW + 2))
    };
    let signed = ok(store.change_payment(signed).await);
    let signed = signed.unwrap_or_else(|| unreachable!("the payment exists"));
    let expired = set_state(store, &signed, PaymentState::Expired).await;
    let found = ok(store.reserve_payment(next("third"), LIMITS).await);
    assert_eq!(found, Reservation::Exists(Box::new(expired)));
}

async fn payments_round_trip(store: &dyn PaymentStore) {
    let principal = Principal::new("trip");
    let mut new = intended("trip", "r", 2, 100);
    new.payee = None;
    new.purpose = PaymentPurpose::Resource {
        url: "https://example.org/a".to_owned(),
    };
    new.origin = "the page é".to_owned();
    let stored = reserve(store, new.clone()).await;
    assert_eq!(
        (&stored.terms, stored.state),
        (&new, PaymentState::Intended)
    );
    let change = PaymentChange {
        bytes: Some(PaymentBytes {
            signature: vec![1; 65],
            message: vec![2, 0, 3],
        }),
        account_nonce: Some(4),
        transaction: Some("0xab".to_owned()),
        block: Some(9),
        reason: Some("why".to_owned()),
        is_delivered: Some(true),
        ..PaymentChange::new(&stored, PaymentState::Approved, seconds(NOW + 2))
    };
    let changed = ok(store.change_payment(change.clone()).await);
    let read = ok(store.payment(&principal, &new.id).await);
    assert_eq!(changed, read);
    let Some(read) = read else {
        unreachable!("the payment exists")
    };
    assert_eq!((read.bytes, read.updated), (change.bytes, seconds(NOW + 2)));
    assert_eq!((read.account_nonce, read.block), (Some(4), Some(9)));
    assert!(read.is_delivered && read.reason.as_deref() == Some("why"));
    let stranger = Principal::new("stranger");
    assert_eq!(ok(store.payment(&stranger, &new.id).await), None);
    let query = |principal: &Principal, state| PaymentQuery {
        principal: principal.clone(),
        state,
        limit: 10,
    };
    assert_eq!(ok(store.payments(query(&principal, None)).await).len(), 1);
    let expired = query(&principal, Some(PaymentState::Expired));
    assert_eq!(ok(store.payments(expired).await), []);
    assert_eq!(ok(store.payments(query(&stranger, None)).await), []);
}

async fn a_change_needs_the_expected_state(store: &dyn PaymentStore) {
    let payment = reserve(store, intended("states", "r", 2, 100)).await;
    let approved = set_state(store, &payment, PaymentState::Approved).await;
    // Decided for the state before.
    let late = PaymentChange::new(&payment, PaymentState::Expired, seconds(NOW));
    assert_eq!(ok(store.change_payment(late).await), None);
    let principal = Principal::new("states");
    let read = ok(store.payment(&principal, &payment.terms.id).await);
    assert_eq!(read, Some(approved));
    let missing = PaymentChange {
        id: PaymentId::new("none"),
        ..PaymentChange::new(&payment, PaymentState::Approved, seconds(NOW))
    };
    assert_eq!(ok(store.change_payment(missing).await), None);
}

/// B131
async fn limits_are_reserved_with_the_row(store: &dyn PaymentStore) {
    let over = async |new: NewPayment| match ok(store.reserve_payment(new, LIMITS).await) {
        Reservation::OverLimit { kind, left } => (kind, left),
        other => unreachable!("the payment is within the limits: {other:?}"),
    };
    let large = over(intended("limits", "a", 2, 501)).await;
    assert_eq!(large, (LimitKind::PerPayment, UsdcAmount::from_cents(500)));
    reserve(store, intended("limits", "b", 2, 500)).await;
    let payee = over(intended("limits", "c", 2, 101)).await;
    assert_eq!(payee, (LimitKind::PerPayee, UsdcAmount::from_cents(100)));
    reserve(store, intended("limits", "d", 3, 400)).await;
    let day = over(intended("limits", "e", 4, 101)).await;
    assert_eq!(day, (LimitKind::PerDay, UsdcAmount::from_cents(100)));
    reserve(store, intended("limits", "f", 4, 100)).await;
    let principal = Principal::new("limits");
    let used = ok(store
        .limit_use(&principal, Some(address(2)), seconds(NOW))
        .await);
    assert_eq!(used.day, UsdcAmount::from_cents(1_000));
    assert_eq!(used.payee, UsdcAmount::from_cents(500));
    let tomorrow = seconds(NOW)
        .checked_add(24.hours())
        .unwrap_or(Timestamp::MAX);
    let used = ok(store.limit_use(&principal, None, tomorrow).await);
    assert_eq!((used.day, used.payee), (UsdcAmount::ZERO, UsdcAmount::ZERO));
    let new = NewPayment {
        created: tomorrow,
        ..intended("limits", "g", 2, 500)
    };
    reserve(store, new).await;
}

/// B131: 64 parallel payments of 1.00 with a limit of 10.00 for the day.
async fn parallel_reservations_stay_below_the_limit(store: &dyn PaymentStore) {
    let sends = (0..64u8).map(|number| {
        let new = intended("parallel", &format!("r{number}"), number % 4 + 2, 100);
        store.reserve_payment(new, LIMITS)
    });
    let outcomes = join_all(sends).await;
    let reserved = outcomes
        .into_iter()
        .filter(|outcome| matches!(outcome, Ok(Reservation::Reserved(_))));
    assert_eq!(reserved.count(), 10);
    let principal = Principal::new("parallel");
    let used = ok(store.limit_use(&principal, None, seconds(NOW)).await);
    assert_eq!(used.day, LIMITS.per_day);
}

async fn what_can_no_longer_be_paid_does_not_count(store: &dyn PaymentStore) {
    let principal = Principal::new("open");
    let used_at = async |second| ok(store.limit_use(&principal, None, seconds(second)).await).day;
    let hundred = UsdcAmount::from_cents(100);
    let payment = reserve(store, intended("open", "r", 2, 100)).await;
    assert_eq!(used_at(NOW + 299).await, hundred, "the question is open");
    assert_eq!(used_at(NOW + 300).await, UsdcAmount::ZERO, "not answered");
    let approved = set_state(store, &payment, PaymentState::Approved).await;
    let signed = set_state(store, &approved, PaymentState::Signed).await;
    let sent = set_state(store, &signed, PaymentState::Sent).await;
    assert_eq!(
        used_at(NOW + 10_000).await,
        hundred,
        "the chain was not asked"
    );
    let reverted = set_state(store, &sent, PaymentState::Reverted).await;
    assert_eq!(
        used_at(NOW + 600).await,
        hundred,
        "the authorization is valid"
    );
    assert_eq!(used_at(NOW + 720).await, UsdcAmount::ZERO, "it is void");
    set_state(store, &reverted, PaymentState::Expired).await;
    assert_eq!(used_at(NOW + 2).await, UsdcAmount::ZERO);
}

async fn account_nonces_are_never_shared(store: &dyn PaymentStore) {
    let mut payments = Vec::new();
    for number in 0..4 {
        let request = format!("n{number}");
        let mut new = intended("nonces", &request, 2, 100);
        new.from = address(0x77);
        let payment = reserve(store, new).await;
        payments.push(set_state(store, &payment, PaymentState::Approved).await);
    }
    let claim_since = async |payment: &Payment, used, held_since| {
        let claim = AccountNonceClaim {
            id: payment.terms.id.clone(),
            chain: 8453,
            from: payment.terms.from,
            used,
            at: seconds(NOW + 5),
            held_since: seconds(held_since),
        };
        ok(store.claim_account_nonce(claim).await)
    };
    let claim = async |payment: &Payment, used| claim_since(payment, used, NOW).await;
    assert_eq!(claim(&payments[0], 7).await, 7);
    assert_eq!(claim(&payments[1], 7).await, 8);
    assert_eq!(claim(&payments[0], 7).await, 7, "its own");
    // The first one can no longer be paid: its counter is free for the next.
    set_state(store, &payments[0], PaymentState::Expired).await;
    assert_eq!(claim(&payments[2], 7).await, 7);
    assert_eq!(claim(&payments[3], 7).await, 9);
    assert_eq!(claim(&payments[3], 20).await, 20, "used by others");
    // The others never signed, and claimed long ago: their process is dead.
    assert_eq!(claim_since(&payments[3], 7, NOW + 60).await, 7);
}

async fn undecided_payments_are_found(store: &dyn PaymentStore) {
    let on_chain = |request: &str| NewPayment {
        chain: 999,
        ..intended("undecided", request, 2, 100)
    };
    let open = reserve(store, on_chain("a")).await;
    let paid = reserve(store, on_chain("b")).await;
    let paid = set_state(store, &paid, PaymentState::Confirmed).await;
    let find = async |since| ok(store.undecided_payments(999, seconds(since)).await);
    assert_eq!(find(NOW).await, [open.clone(), paid]);
    assert_eq!(find(NOW + 1).await, [open]);
    assert_eq!(ok(store.undecided_payments(998, seconds(0)).await), []);
    let principal = Principal::new("undecided");
    let paid = ok(store.paid_addresses(&principal).await);
    assert_eq!(paid, [address(2)]);
}

async fn payees_belong_to_their_principal(store: &dyn PaymentStore) {
    let payee = |name: &str, byte| Payee {
        name: name.to_owned(),
        address: address(byte),
        added: seconds(3),
    };
    let add = async |principal: &str, payee| {
        let principal = Principal::new(principal);
        ok(store.add_payee(NewPayee { principal, payee }).await)
    };
    assert!(add("ann", payee("bob", 2)).await);
    assert!(!add("ann", payee("bob", 3)).await, "the name is taken");
    assert!(!add("ann", payee("rob", 2)).await, "the address is taken");
    assert!(add("ann", payee("al", 4)).await);
    assert!(add("ben", payee("bob", 5)).await);
    let (ann, ben) = (Principal::new("ann"), Principal::new("ben"));
    assert_eq!(
        ok(store.payees(&ann).await),
        [payee("al", 4), payee("bob", 2)]
    );
    assert!(ok(store.remove_payee(&ann, "bob").await));
    assert!(!ok(store.remove_payee(&ann, "bob").await));
    assert_eq!(ok(store.payees(&ben).await), [payee("bob", 5)]);
}

async fn wallets_are_watched(store: &dyn PaymentStore) {
    let (ann, ben) = (Principal::new("ann"), Principal::new("ben"));
    let wallet = WatchedWallet {
        name: "cold".to_owned(),
        address: address(9),
        added: seconds(3),
    };
    assert!(ok(store.watch_wallet(&ann, wallet.clone()).await));
    assert!(!ok(store.watch_wallet(&ann, wallet.clone()).await));
    assert_eq!(ok(store.watched_wallets(&ann).await), [wallet]);
    assert_eq!(ok(store.watched_wallets(&ben).await), []);
    assert!(!ok(store.unwatch_wallet(&ben, "cold").await));
    assert!(ok(store.unwatch_wallet(&ann, "cold").await));
}
