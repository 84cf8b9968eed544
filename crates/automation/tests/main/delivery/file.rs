//! Files of the workspace.

use lango_automation::delivery::SendError;

use super::{DeliveryHarness, delivery, send};

#[tokio::test]
async fn each_message_is_in_the_file_exactly_once() {
    let harness = DeliveryHarness::new();
    let mut message = delivery("file:out/log.txt", "Title\r\n---", "one\u{1b}[1m\ntwo\n\n");
    for attempt in 1..4 {
        message.attempts = attempt;
        send(&harness.channels(), &message).await.unwrap();
    }
    message.created += jiff::SignedDuration::from_secs(60);
    send(&harness.channels(), &message).await.unwrap();
    let text = std::fs::read_to_string(harness.at("work/out/log.txt")).unwrap();
    let entries: Vec<&str> = text.split("--- 2027").skip(1).collect();
    assert_eq!(entries.len(), 2, "{text}");
    assert!(
        entries[0].starts_with("-01-15T08:00:00Z Title --- [7-"),
        "{text}"
    );
    assert!(entries[0].ends_with("]\none[1m\ntwo\n\n"), "{text}");
}

#[tokio::test]
async fn paths_outside_and_sensitive_paths_fail_at_once() {
    let harness = DeliveryHarness::new();
    std::os::unix::fs::symlink(harness.at("home"), harness.at("work/link")).unwrap();
    let outside = format!("file:{}", harness.at("home/x").display());
    for target in [
        outside.as_str(),
        "file:link/x",
        "file:.git/config",
        "file:/etc/passwd",
    ] {
        let error = harness.send(target, "x").await.unwrap_err();
        assert!(
            matches!(error, SendError::Permanent(_)),
            "{target}: {error:?}"
        );
    }
    assert!(!harness.at("home/x").exists());
}
