//! `lango payment`: the address book, wallets, limits and refusals, and payments at a terminal.

use lango_testkit::usdc_chain::UsdcChain;
use serde_json::json;

use crate::setup::{CommandRun, TestDir};

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

/// A machine with a wallet that has 20 USDC, and a payee.
struct Payer {
    chain: UsdcChain,
    dir: TestDir,
}

impl Payer {
    fn new() -> Self {
        let (chain, dir) = (UsdcChain::start(), TestDir::new());
        let payer = Self { chain, dir };
        let created = payer.lango(&["payment", "wallet", "create", "--json"]);
        let address = created.json()["address"].as_str().unwrap().parse();
        payer.chain.fund(address.unwrap(), 20_000_000);
        let added = payer.lango(&["payment", "payees", "add", "bob", BOB]);
        assert_eq!(added.exit, 0, "{}", added.stderr);
        payer
    }

    fn with_chain<T>(&self, args: &[&str], run: impl FnOnce(&[&str]) -> T) -> T {
        let node = format!("payment.network.rpcUrl={}", self.chain.url());
        let set = [
            "payment.enabled=true",
            "payment.network.chainId=8453",
            &node,
        ];
        let set = set.iter().flat_map(|set| ["--set", set]);
        run(&args.iter().copied().chain(set).collect::<Vec<_>>())
    }

    fn lango(&self, args: &[&str]) -> CommandRun {
        self.with_chain(args, |args| self.dir.lango(args))
    }

    fn at_terminal(&self, args: &[&str], answer: &str) -> CommandRun {
        self.with_chain(args, |args| self.dir.lango_at_terminal(args, answer))
    }

    fn paid_to_bob(&self) -> u64 {
        self.chain.balance(BOB.parse().unwrap())
    }
}

/// B131, B132: the question has everything, a no pays nothing, and a yes pays once.
#[test]
fn a_payment_is_asked_about_and_made_once() {
    let payer = Payer::new();
    let ask = ["ask", "--provider", "offline", "pay 1.50 USDC to bob"];
    let denied = payer.at_terminal(&ask, "n");
    assert_eq!(payer.paid_to_bob(), 0, "{}", denied.stderr);
    let limits = payer.lango(&["payment", "limits", "--json"]).json();
    assert_eq!(limits["left"], "50.00", "a denied payment holds nothing");
    let paid = payer.at_terminal(&ask, "y");
    for part in [
        "Pays 1.50 USDC (one USDC and fifty cents)",
        &format!("to       bob, {BOB} (first payment to this address)"),
        "network  Base (chain 8453)",
        "from     wallet main, 0x",
        "fee      at most 0.",
        "left afterwards: 48.50 of 50.00 for 24 hours, 48.50 of 50.00 for this payee",
        "at most 10.00 in one payment",
        "purpose  ",
        "origin   ",
        "digest   0x",
    ] {
        assert!(paid.stderr.contains(part), "{part}: {}", paid.stderr);
    }
    assert_eq!(
        payer.paid_to_bob(),
        1_500_000,
        "{}{}",
        paid.stdout,
        paid.stderr
    );
    assert!(paid.stdout.contains("1.50 USDC"), "{}", paid.stdout);
    let history = payer.lango(&["payment", "history", "--json"]).json();
    let states: Vec<_> = history["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["state"].clone())
        .collect();
    assert!(states.contains(&json!("confirmed")), "{history}");
    let send = ["payment", "send", "bob", "0.50", "--purpose", "lunch"];
    let refused = payer.at_terminal(&send, "");
    assert_eq!(refused.exit, 5, "{}", refused.stderr);
    let sent = payer.at_terminal(&send, "y");
    assert_eq!(sent.exit, 0, "{}", sent.stderr);
    assert!(!sent.stderr.contains("first payment"), "{}", sent.stderr);
    assert_eq!(payer.paid_to_bob(), 2_000_000);
}

/// B131: a process that is killed after it sent a payment leaves one that is confirmed later, once.
#[test]
fn a_killed_payment_is_confirmed_and_not_repeated() {
    let payer = Payer::new();
    payer.chain.set_automine(false);
    let send = ["payment", "send", "bob", "1", "--yes"];
    let mut child = payer.with_chain(&send, |args| payer.dir.spawn(args));
    let is_sent = || {
        let pending = payer.chain.rpc("txpool_status", json!([]));
        pending["pending"] != "0x0"
    };
    while !is_sent() {
        assert!(
            child.try_wait().unwrap().is_none(),
            "it ended without paying"
        );
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(payer.paid_to_bob(), 0);
    payer.chain.set_automine(true);
    payer.chain.mine();
    for _ in 0..2 {
        let history = payer.lango(&["payment", "history", "--json"]).json();
        let items = history["items"].as_array().unwrap();
        assert_eq!((items.len(), &items[0]["state"]), (1, &json!("confirmed")));
        assert_eq!(payer.paid_to_bob(), 1_000_000);
    }
}

/// B132: what cannot be right is refused before anyone is asked.
#[test]
fn wrong_payments_are_refused_without_a_question() {
    let payer = Payer::new();
    let similar = "0x5aae11111111111111111111111111111111eaed";
    let wrong = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD";
    for (to, amount, expected) in [
        ("bob", "10.01", "10.00"),
        ("bob", "0", "amount"),
        ("bob", "1,5", "amount"),
        ("bob", "1e3", "amount"),
        ("bob", "-1", ""),
        ("bob", "1.0000000000000000001", "decimal"),
        ("bob", "\u{661}", "amount"),
        ("bob", "", "amount"),
        ("carol", "1", "carol"),
        (wrong, "1", "checksum"),
        (similar, "1", "bob"),
    ] {
        let run = payer.lango(&["payment", "send", to, amount, "--yes"]);
        assert_ne!(run.exit, 0, "{to} {amount}: {}", run.stdout);
        assert!(
            run.stderr.contains(expected),
            "{to} {amount}: {}",
            run.stderr
        );
    }
    let chain = [
        "payment",
        "send",
        "bob",
        "1",
        "--yes",
        "--set",
        "payment.network.chainId=84532",
    ];
    let node = format!("payment.network.rpcUrl={}", payer.chain.url());
    let other = payer.dir.lango(
        &[
            &chain[..],
            &["--set", "payment.enabled=true", "--set", &node],
        ]
        .concat(),
    );
    assert_ne!(other.exit, 0);
    assert!(other.stderr.contains("8453"), "{}", other.stderr);
    assert_eq!(payer.paid_to_bob(), 0);
    let limits = payer.lango(&["payment", "limits", "--json"]).json();
    assert_eq!(limits["left"], "50.00");
}
