//! The tools, called as the engine does.

use lango_domain::{Label, Safety, Tool, ToolContext};
use lango_payments::tools;
use lango_testkit::tool_context_for;
use serde_json::{Value, json};

use crate::setup::{BOB, Payer, bob, funded_chain};

fn named(all: &[Tool], name: &str) -> usize {
    all.iter().position(|tool| tool.name == name).unwrap()
}

/// S86
#[tokio::test]
async fn every_tool_answers() {
    let chain = funded_chain();
    let payer = Payer::new(&chain.url());
    payer.add_payee("bob", BOB).await;
    let all = tools(&payer.payments());
    let call = async |name: &str, args: Value| {
        let tool = &all[named(&all, name)];
        let context = tool_context_for("vault");
        if tool.has_intent() {
            tool.intent(context.clone(), args.clone())
                .await
                .map_err(|error| error.0)?;
        }
        let output = tool.call(context, args).await.map_err(|error| error.0)?;
        Ok::<_, String>(output.content.text)
    };
    assert_eq!(
        call("payment_balance", json!({})).await.unwrap(),
        "Wallet main: 100.00 USDC on Base; 1 ETH for network fees."
    );
    let info = call("payment_wallet_info", json!({})).await.unwrap();
    assert!(
        info.contains("main") && info.contains("chain 8453"),
        "{info}"
    );
    assert_eq!(
        call("payment_history", json!({})).await.unwrap(),
        "There are no payments."
    );
    let args = json!({ "to": "bob", "amount": "1.50", "purpose": "lunch" });
    let paid = call("payment_send", args.clone()).await.unwrap();
    assert!(paid.starts_with("Paid 1.50 USDC to bob (0x5aAe"), "{paid}");
    let again = call("payment_send", args).await.unwrap_err();
    assert!(
        again.contains("nothing was paid twice"),
        "the same call: {again}"
    );
    assert_eq!(chain.balance(bob()), 1_500_000);
    let history = call("payment_history", json!({ "state": "confirmed" }))
        .await
        .unwrap();
    assert!(
        history.contains("1.50 USDC to bob") && history.contains("lunch"),
        "{history}"
    );
    assert!(
        call("payment_history", json!({ "state": "lost" }))
            .await
            .is_err()
    );
    let limits = call("payment_limits", json!({})).await.unwrap();
    assert!(limits.contains("48.50 of 50.00 left"), "{limits}");
    let made = call("payment_create_wallet", json!({ "name": "second" }))
        .await
        .unwrap();
    assert!(made.contains("second") && made.contains("0x"), "{made}");
    for bad in ["1,50", "-1", "1e3", "0"] {
        let error = call("payment_send", json!({ "to": "bob", "amount": bad })).await;
        assert!(error.is_err(), "{bad}");
    }
}

/// A request id is paid once, in whatever call it comes.
#[tokio::test]
async fn a_request_id_is_paid_once() {
    let chain = funded_chain();
    let payer = Payer::new(&chain.url());
    let all = tools(&payer.payments());
    let send = &all[named(&all, "payment_send")];
    for (call, is_paid) in [("c1", true), ("c2", false), ("c3", false)] {
        let context = ToolContext {
            call: lango_domain::event::CallId::new(call),
            ..tool_context_for("vault")
        };
        let args = json!({ "to": BOB, "amount": "1", "request_id": "invoice 7" });
        let asked = send.intent(context.clone(), args.clone()).await;
        assert_eq!(asked.is_ok(), is_paid, "{asked:?}");
        if is_paid {
            send.call(context, args).await.unwrap();
        }
    }
    assert_eq!(chain.balance(bob()), 1_000_000);
}

/// B132: small payments to known payees may run without a question, but never for untrusted content.
#[tokio::test]
async fn small_payments_run_without_a_question_only_if_allowed() {
    let chain = funded_chain();
    let mut payer = Payer::new(&chain.url());
    payer.add_payee("bob", BOB).await;
    payer.settings.limits.auto_approve_below = "0.50".parse().unwrap();
    let all = tools(&payer.payments());
    let send = &all[named(&all, "payment_send")];
    assert!(
        send.needs_single_approval,
        "no approval covers a second payment"
    );
    let stranger = "0x1111111111111111111111111111111111111111";
    for (number, (to, amount, label, expected)) in [
        ("bob", "0.49", Label::default(), Safety::Moderate),
        ("bob", "0.50", Label::default(), Safety::Dangerous),
        (stranger, "0.49", Label::default(), Safety::Dangerous),
        ("bob", "0.49", Label::untrusted("a page"), Safety::Dangerous),
    ]
    .into_iter()
    .enumerate()
    {
        let context = ToolContext {
            call: lango_domain::event::CallId::new(format!("c{number}")),
            label,
            typed_addresses: Vec::new(),
            ..tool_context_for("vault")
        };
        let args = json!({ "to": to, "amount": amount });
        let intent = send.intent(context, args).await.unwrap();
        assert_eq!(intent.level, expected, "{to} {amount}");
        assert_eq!(intent.pattern, None);
    }
}
