use super::*;
use lango_domain::event::Principal;
use lango_domain::payments::{AccountAddress, ApprovedDigest, NewPayment, PaymentId, UsdcAmount};
use proptest::prelude::*;

const VALID_BEFORE: u64 = 2_000;

fn payment(state: PaymentState, purpose: PaymentPurpose) -> Payment {
    let at = Timestamp::from_second(1_000).unwrap();
    Payment {
        terms: NewPayment {
            id: PaymentId::new("p"),
            principal: Principal::local(),
            request: "r".to_owned(),
            created: at,
            chain: 8453,
            from: AccountAddress([1; 20]),
            to: AccountAddress([2; 20]),
            payee: None,
            amount: UsdcAmount::from_cents(100),
            purpose,
            origin: String::new(),
            valid_before: VALID_BEFORE,
            digest: ApprovedDigest([3; 32]),
            fee_limit: 1,
            answer_by: Timestamp::from_second(1_300).unwrap(),
            start_block: 1,
        },
        state,
        updated: at,
        bytes: None,
        account_nonce: Some(7),
        transaction: Some("0x01".to_owned()),
        block: None,
        reason: None,
        is_delivered: false,
    }
}

fn transfer(state: PaymentState) -> Payment {
    let text = "lunch".to_owned();
    payment(state, PaymentPurpose::Transfer { text })
}

fn seen() -> Observation {
    Observation {
        now: Timestamp::from_second(1_100).unwrap(),
        chain_time: 1_100,
        is_used: false,
        used_by: None,
        receipt: None,
        is_known: false,
        transaction_count: 7,
        is_blocked: false,
        is_underpriced: false,
    }
}

fn receipt(has_succeeded: bool) -> Option<Receipt> {
    Some(Receipt {
        has_succeeded,
        block: 9,
        fee: 1,
    })
}

fn target(step: &LedgerStep) -> Option<PaymentState> {
    match step {
        LedgerStep::Become { state, .. } => Some(*state),
        _ => None,
    }
}

/// B131: one line per fault.
#[test]
fn every_fault_has_one_answer() {
    use LedgerStep::{NewTransaction, SendAgain, Wait};
    use PaymentState::{Reverted, Sent, Signed};
    let cases = [
        ("killed before sending", Signed, seen(), SendAgain),
        ("dropped by the node", Sent, seen(), SendAgain),
        (
            "waiting in the node",
            Sent,
            Observation {
                is_known: true,
                ..seen()
            },
            Wait,
        ),
        (
            "the fee rose",
            Sent,
            Observation {
                is_known: true,
                is_underpriced: true,
                ..seen()
            },
            NewTransaction,
        ),
        (
            "a smaller counter was given up",
            Sent,
            Observation {
                is_known: true,
                is_blocked: true,
                ..seen()
            },
            NewTransaction,
        ),
        (
            "another program used the counter",
            Sent,
            Observation {
                transaction_count: 8,
                ..seen()
            },
            NewTransaction,
        ),
        (
            "a node that contradicts itself",
            Sent,
            Observation {
                receipt: receipt(true),
                ..seen()
            },
            Wait,
        ),
        ("reverted, but still valid", Reverted, seen(), Wait),
    ];
    for (name, state, seen, expected) in cases {
        assert_eq!(next_step(&transfer(state), &seen), expected, "{name}");
    }
}

#[test]
fn states_follow_the_chain() {
    use PaymentState::{Approved, Confirmed, Expired, Intended, Reverted, Sent, Signed};
    let void = Observation {
        chain_time: VALID_BEFORE + VOID_MARGIN + 1,
        ..seen()
    };
    let late = Observation {
        now: Timestamp::from_second(1_301).unwrap(),
        ..seen()
    };
    let used = Observation {
        is_used: true,
        ..void.clone()
    };
    let refused = Observation {
        receipt: receipt(false),
        ..seen()
    };
    for (state, seen, expected) in [
        (Intended, &late, Some(Expired)),
        (Intended, &seen(), None),
        (Approved, &late, None),
        (Approved, &void, Some(Expired)),
        (Signed, &void, Some(Expired)),
        (Sent, &void, Some(Expired)),
        (Sent, &refused, Some(Reverted)),
        (Reverted, &void, None),
        (Sent, &used, Some(Confirmed)),
        (Reverted, &used, Some(Confirmed)),
        // A lying node said that it expired.
        (Expired, &used, Some(Confirmed)),
        (Confirmed, &used, None),
        (Confirmed, &seen(), Some(Sent)),
        (Confirmed, &void, Some(Expired)),
    ] {
        assert_eq!(
            target(&next_step(&transfer(state), seen)),
            expected,
            "{state:?}"
        );
    }
}

/// A wrong clock of this machine ends no signed payment: only the chain's time does.
#[test]
fn clock_skew_decides_nothing_about_signed_payments() {
    for now in [0, 1_000_000_000] {
        let now = Timestamp::from_second(now).unwrap();
        let step = next_step(
            &transfer(PaymentState::Sent),
            &Observation { now, ..seen() },
        );
        assert_eq!(step, LedgerStep::SendAgain);
    }
}

#[test]
fn payments_for_resources_are_never_submitted_by_us() {
    let url = "https://example.org".to_owned();
    let payment = payment(PaymentState::Sent, PaymentPurpose::Resource { url });
    assert_eq!(next_step(&payment, &seen()), LedgerStep::Wait);
}

fn any_state() -> impl Strategy<Value = PaymentState> {
    proptest::sample::select(PaymentState::ALL.to_vec())
}

fn any_observation() -> impl Strategy<Value = Observation> {
    (
        0..4_000u64,
        0..4_000i64,
        any::<bool>(),
        proptest::option::of(any::<bool>()),
        any::<bool>(),
        5..9u64,
        any::<bool>(),
    )
        .prop_map(
            |(chain_time, now, is_used, receipt_status, is_known, count, is_underpriced)| {
                Observation {
                    now: Timestamp::from_second(now).unwrap(),
                    chain_time,
                    is_used,
                    used_by: None,
                    receipt: receipt_status.and_then(receipt),
                    is_known,
                    transaction_count: count,
                    is_blocked: is_underpriced && is_known,
                    is_underpriced,
                }
            },
        )
}

proptest! {
    /// B131: a payment that the chain has used is confirmed and never sent; one that was not used is never
    /// confirmed; what was not signed is never sent.
    #[test]
    fn the_chain_decides(state in any_state(), seen in any_observation()) {
        let step = next_step(&transfer(state), &seen);
        if seen.is_used {
            let expected = (state != PaymentState::Confirmed).then_some(PaymentState::Confirmed);
            prop_assert_eq!(target(&step), expected);
            prop_assert!(!matches!(step, LedgerStep::SendAgain | LedgerStep::NewTransaction));
        } else {
            prop_assert_ne!(target(&step), Some(PaymentState::Confirmed));
        }
        if matches!(step, LedgerStep::SendAgain | LedgerStep::NewTransaction) {
            prop_assert!(matches!(state, PaymentState::Signed | PaymentState::Sent));
            prop_assert!(seen.chain_time <= VALID_BEFORE + VOID_MARGIN);
        }
    }
}
