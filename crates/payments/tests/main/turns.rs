//! Whole turns with the offline model: the phrases, the question, and approvals that cover one payment.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt, ready};
use jiff::Timestamp;
use lango_domain::approval::{ApprovalDecision, ApprovalQuestion, ApprovalScope, Approver};
use lango_domain::event::{Decider, EventBody, Principal, SessionId, TurnId, Update};
use lango_engine::{
    ApprovalPolicy, ClockAndIds, InMemorySessionStore, Models, Runner, RunnerParts, TurnHooks,
    TurnLimits, TurnRequest,
};
use lango_models::offline::OfflineModel;
use lango_payments::tools;
use lango_team::{Config, build_agent_tree};

use crate::setup::{BOB, Payer, bob, funded_chain, request};

/// Approves everything for the whole session, and keeps the questions.
#[derive(Default)]
struct GenerousApprover(Mutex<Vec<String>>);

impl Approver for GenerousApprover {
    fn ask(&self, question: ApprovalQuestion) -> BoxFuture<'static, ApprovalDecision> {
        self.0.lock().unwrap().push(question.intent.shows);
        ready(ApprovalDecision::Approved {
            scope: ApprovalScope::SameCall,
            by: Decider::User,
        })
        .boxed()
    }
}

/// Refuses everything.
struct RefusingApprover(ApprovalDecision);

impl Approver for RefusingApprover {
    fn ask(&self, _: ApprovalQuestion) -> BoxFuture<'static, ApprovalDecision> {
        ready(self.0).boxed()
    }
}

fn runner(payer: &Payer, approver: Arc<dyn Approver>) -> Runner {
    let config = Config {
        tools: tools(&payer.payments()),
        ..Config::default()
    };
    let turns = Mutex::new(0);
    let store = Arc::new(InMemorySessionStore::default());
    Runner::new(RunnerParts {
        secrets: None,
        tree: build_agent_tree(config).unwrap(),
        models: Models {
            default: Arc::new(OfflineModel),
            per_agent: BTreeMap::new(),
        },
        store: store.clone(),
        blobs: store,
        approver: Some(approver),
        approval_policy: ApprovalPolicy::default(),
        hooks: TurnHooks::default(),
        remotes: BTreeMap::new(),
        limits: TurnLimits::default(),
        clock_and_ids: ClockAndIds {
            now: Arc::new(Timestamp::now),
            new_turn_id: Arc::new(move || {
                let mut number = turns.lock().unwrap();
                *number += 1;
                TurnId::new(format!("turn-{number}"))
            }),
        },
    })
}

/// Returns the results of the tools of one turn.
async fn ask(runner: &Runner, text: &str) -> Vec<String> {
    let request = TurnRequest::from_user(SessionId::new("s"), Principal::local(), text);
    let updates: Vec<Update> = runner.run(request).collect().await;
    let results = updates.into_iter().filter_map(|update| match update {
        Update::Event(event) => match &event.body {
            EventBody::ToolResult { content, error, .. } => {
                Some(error.clone().unwrap_or_else(|| content.clone()))
            }
            _ => None,
        },
        _ => None,
    });
    results.collect()
}

/// S86, B132: every phrase finds its tool, and every payment is asked about, also the same one again.
#[tokio::test]
async fn the_offline_model_pays_after_a_question() {
    let chain = funded_chain();
    let payer = Payer::new(&chain.url());
    payer.add_payee("bob", BOB).await;
    let approver = Arc::new(GenerousApprover::default());
    let runner = runner(&payer, approver.clone());
    for (number, text) in [
        "pay 1.50 USDC to bob",
        "pay 1.50 USDC to bob",
        "send 1.50 USDC to bob for lunch",
    ]
    .into_iter()
    .enumerate()
    {
        let results = ask(&runner, text).await;
        assert!(
            results[0].starts_with("Paid 1.50 USDC to bob"),
            "{text}: {results:?}"
        );
        let questions = approver.0.lock().unwrap().clone();
        assert_eq!(
            questions.len(),
            number + 1,
            "each payment has its own question"
        );
        assert!(
            questions[number].contains("one USDC and fifty cents"),
            "{questions:?}"
        );
        assert_eq!(chain.balance(bob()), (number as u64 + 1) * 1_500_000);
    }
    for (text, expected) in [
        ("what is my balance", "95.50 USDC"),
        ("my balance", "95.50 USDC"),
        ("how much usdc do I have", "95.50 USDC"),
        ("show my payment history", "1.50 USDC to bob"),
        ("what are my spending limits", "45.50 of 50.00"),
        ("show my wallet address", "main"),
        ("pay 11 USDC to bob", "over the limit"),
        ("pay 1 USDC to alice", "no payee `alice`"),
        (
            "pay 1 USDC to 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD",
            "checksum",
        ),
        ("create a wallet named spare", "Made the wallet spare"),
    ] {
        let results = ask(&runner, text).await;
        assert!(
            results.iter().any(|result| result.contains(expected)),
            "{text}: {results:?}"
        );
    }
}

/// B131: a payment that is not approved holds no share of the limits, and its request may be paid later.
#[tokio::test]
async fn a_refused_payment_reserves_nothing() {
    let chain = funded_chain();
    let payer = Payer::new(&chain.url());
    payer.add_payee("bob", BOB).await;
    let (store, principal) = (payer.payments(), Principal::local());
    for decision in [
        ApprovalDecision::Denied,
        ApprovalDecision::TimedOut,
        ApprovalDecision::NobodyThere,
    ] {
        let runner = runner(&payer, Arc::new(RefusingApprover(decision)));
        ask(&runner, "pay 9 USDC to bob").await;
        let used = store.limit_use(&principal).await.unwrap();
        assert!(used.day.is_zero(), "{decision:?}: {used:?}");
    }
    let request = request("invoice 7", "bob", "2");
    for _ in 0..2 {
        store.prepare(request.clone()).await.unwrap();
        store.withdraw(&principal, &request.request).await.unwrap();
    }
    store.prepare(request.clone()).await.unwrap();
    let paid = store.pay(&principal, &request.request).await.unwrap();
    assert_eq!(chain.balance(bob()), 2_000_000);
    store.withdraw(&principal, &request.request).await.unwrap();
    assert!(store.prepare(request).await.is_err(), "paid once: {paid:?}");
}
