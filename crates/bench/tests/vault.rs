//! Runs `lango-bench vault` with thirty kills; its default is a thousand.

use assert_cmd::Command;
use serde_json::Value;

/// B131
#[test]
fn kills_double_and_lose_no_payment() {
    let output = Command::cargo_bin("lango-bench")
        .unwrap()
        .args(["vault", "--kills", "30"])
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stdout}{stderr}");
    let lines: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let [kills, lost_answer, hostile] = &lines[..] else {
        panic!("{stdout}")
    };
    assert_eq!(
        (&kills["doubled"], &kills["lost"]),
        (&0.into(), &0.into()),
        "{kills}"
    );
    assert_eq!(kills["ledger_equals_chain"], true, "{kills}");
    assert_eq!(
        lost_answer["lango_paid"], lost_answer["price"],
        "{lost_answer}"
    );
    assert_eq!(lost_answer["lango_signatures"], 1, "{lost_answer}");
    assert_eq!(hostile["signatures"], 0, "{hostile}");
    assert_eq!(hostile["refused"], hostile["offers"], "{hostile}");
}
