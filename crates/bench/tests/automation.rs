//! Runs the kills of `lango-bench automation` with forty kills; the default is a thousand.

use assert_cmd::Command;
use serde_json::Value;

/// B120, B122
#[test]
fn kills_of_the_scheduler_miss_double_and_lose_nothing() {
    let output = Command::cargo_bin("lango-bench")
        .unwrap()
        .args(["automation", "--only", "kill", "--kills", "40"])
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{stdout}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let counts: Value = serde_json::from_str(&stdout).unwrap();
    let at_least = |name: &str, expected: u64| {
        assert!(counts[name].as_u64().unwrap() >= expected, "{counts}");
    };
    at_least("due", 40);
    at_least("steps", 20);
    at_least("effects", 20);
    at_least("taken_over", 1);
}
