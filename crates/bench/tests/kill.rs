//! Runs `lango-bench kill` with fifty kills; its default is a thousand.

use assert_cmd::Command;
use serde_json::Value;

/// B73
#[test]
fn kills_lose_and_duplicate_nothing() {
    let output = Command::cargo_bin("lango-bench")
        .unwrap()
        .args(["kill", "--kills", "50"])
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{stdout}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let counts: Value = serde_json::from_str(&stdout).unwrap();
    for (count, expected) in [
        ("kills", 50),
        ("lost", 0),
        ("doubled", 0),
        ("unopened", 0),
        ("open_calls", 0),
    ] {
        assert_eq!(counts[count], expected, "{count}: {counts}");
    }
    assert!(
        counts["acknowledged"].as_u64().unwrap() > 100 && counts["effects"].as_u64().unwrap() > 0,
        "{counts}"
    );
    assert!(counts["resumed"].as_u64().unwrap() > 0, "{counts}");
}
