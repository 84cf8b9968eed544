//! `lango payment` without a key: the address book, watched wallets, limits and refusals.

use lango_testkit::usdc_chain::UsdcChain;
use serde_json::json;

use crate::setup::TestDir;

const BOB: &str = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";

/// B132: wrong checksums and look-alikes are refused, and nothing is stored.
#[test]
fn the_address_book_refuses_wrong_and_similar_addresses() {
    let dir = TestDir::new();
    let added = dir.lango(&["payment", "payees", "add", "bob", BOB, "--json"]);
    assert_eq!(
        (added.exit, &added.json()["address"]),
        (0, &json!(BOB)),
        "{}",
        added.stderr
    );
    for (name, address, expected) in [
        (
            "eve",
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD",
            "checksum",
        ),
        ("eve", "0x5aae11111111111111111111111111111111eaed", "`bob`"),
        (
            "bob",
            "0x1111111111111111111111111111111111111111",
            "in the address book",
        ),
        (
            "0xbob",
            "0x1111111111111111111111111111111111111111",
            "not a name",
        ),
        ("eve", "bob.eth", "not an address"),
    ] {
        let run = dir.lango(&["payment", "payees", "add", name, address]);
        assert_eq!(run.exit, 2, "{address}");
        assert!(run.stderr.contains(expected), "{expected}: {}", run.stderr);
    }
    let listed = dir.lango(&["payment", "payees", "list", "--json"]).json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    assert_eq!(dir.lango(&["payment", "payees", "remove", "bobb"]).exit, 2);
    assert_eq!(dir.lango(&["payment", "payees", "remove", "bob"]).exit, 0);
}

#[test]
fn limits_and_history_need_no_node() {
    let dir = TestDir::new();
    let limits = dir.lango(&["payment", "limits", "--json"]).json();
    assert_eq!(
        (&limits["max_daily"], &limits["left"]),
        (&json!("50.00"), &json!("50.00"))
    );
    let history = dir.lango(&["payment", "history", "--json"]);
    assert_eq!(history.json(), json!({ "items": [] }));
    let state = dir.lango(&["payment", "history", "--state", "lost"]);
    assert_eq!(state.exit, 2, "{}", state.stderr);
    let balance = dir.lango(&["payment", "balance"]);
    assert_eq!(balance.exit, 2);
    assert!(balance.stderr.contains("rpcUrl"), "{}", balance.stderr);
    let network = dir.lango(&["payment", "info", "--set", "payment.network.chainId=1"]);
    assert!(
        network.stderr.contains("chain 1 is not supported"),
        "{}",
        network.stderr
    );
    let decimal = dir.lango(&["payment", "limits", "--set", "payment.limits.maxPerTx=1.5x"]);
    assert_eq!(decimal.exit, 2, "{}", decimal.stderr);
}

/// S86: the tools appear with `payment.enabled` and a node.
#[test]
fn the_tools_appear_with_a_node() {
    let dir = TestDir::new();
    let has_tool = |set: &[&str]| {
        let mut args = vec!["agent", "tree", "--json"];
        args.extend(set.iter().flat_map(|set| ["--set", set]));
        let run = dir.lango(&args);
        assert_eq!(run.exit, 0, "{}", run.stderr);
        run.stdout.contains("payment_send")
    };
    let node = "payment.network.rpcUrl=http://127.0.0.1:1";
    assert!(!has_tool(&[]));
    assert!(!has_tool(&["payment.enabled=true"]));
    assert!(!has_tool(&[node]));
    assert!(has_tool(&["payment.enabled=true", node]));
}

#[test]
fn watched_wallets_show_their_balance_and_do_not_pay() {
    let chain = UsdcChain::start();
    let address: [u8; 20] = [7; 20];
    chain.fund(address.into(), 2_500_000);
    let dir = TestDir::new();
    let node = format!("payment.network.rpcUrl={}", chain.url());
    let lango = |args: &[&str]| {
        let chain = [
            "--set",
            "payment.enabled=true",
            "--set",
            "payment.network.chainId=8453",
        ];
        let all = [args, &chain[..], &["--set", &node][..]].concat();
        dir.lango(&all)
    };
    let cold = "0x0707070707070707070707070707070707070707";
    assert_eq!(lango(&["payment", "wallet", "watch", "cold", cold]).exit, 0);
    let balance = lango(&["payment", "balance", "--json"]);
    assert_eq!(balance.json()["usdc"], "2.50", "{}", balance.stderr);
    let refused = lango(&["payment", "send", BOB, "1", "--yes"]);
    assert_eq!(refused.exit, 2);
    assert!(refused.stderr.contains("watch-only"), "{}", refused.stderr);
    let asked = lango(&["ask", "--provider", "offline", "my balance"]);
    assert!(
        asked.stdout.contains("2.50 USDC"),
        "{}{}",
        asked.stdout,
        asked.stderr
    );
    let checks = lango(&["doctor", "--json"]).json();
    let checks = checks["checks"].as_array().unwrap();
    let payments = checks
        .iter()
        .find(|check| check["id"] == "payments")
        .unwrap();
    assert_eq!(payments["status"], "pass", "{payments}");
}
