//! Commands in the sandbox.

use std::net::TcpListener;
use std::num::NonZeroU64;

use lango_automation::delivery::SendError;
use serde_json::Value;

use super::{DeliveryHarness, delivery, send};

#[tokio::test]
async fn message_is_input_that_no_shell_reads() {
    let harness = DeliveryHarness::new();
    let hostile = "$(touch pwned) `touch pwned`; touch pwned\n' \" && touch pwned";
    let message = delivery("command:cat > got.json", hostile, hostile);
    send(&harness.channels(), &message).await.unwrap();
    let got = std::fs::read_to_string(harness.at("work/got.json")).unwrap();
    let got: Value = serde_json::from_str(&got).unwrap();
    assert_eq!(got["text"], hostile);
    assert!(got["id"].as_str().unwrap().starts_with("7-"));
    assert!(!harness.at("work/pwned").exists());
    let words = "command:env > variables; tr '\\0' ' ' < /proc/self/cmdline > words";
    send(&harness.channels(), &delivery(words, "needle", "needle"))
        .await
        .unwrap();
    for file in ["variables", "words"] {
        let text = std::fs::read_to_string(harness.at("work").join(file)).unwrap();
        assert!(!text.contains("needle"), "{text}");
    }
}

#[tokio::test]
async fn command_has_no_network_and_no_files_of_the_user() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut harness = DeliveryHarness::new();
    // Allowed for commands of agents, but never for deliveries.
    harness.exec.network = true;
    let connect = format!("command:bash -c 'echo x > /dev/tcp/127.0.0.1/{port}'");
    let error = harness.send(&connect, "x").await.unwrap_err();
    assert!(matches!(error, SendError::Temporary(_)), "{error:?}");
    assert!(listener.accept().is_err(), "unexpected connection");
    std::fs::write(harness.at("home/key"), "private").unwrap();
    let read = format!("command:cat {}", harness.at("home/key").display());
    assert!(harness.send(&read, "x").await.is_err());
}

#[tokio::test]
async fn failing_and_slow_commands_are_tried_again_later() {
    let mut harness = DeliveryHarness::new();
    let error = harness
        .send("command:echo broken >&2; exit 75", "x")
        .await
        .unwrap_err();
    assert!(
        matches!(&error, SendError::Temporary(text) if text.starts_with("exit code 75") && text.contains("broken")),
        "{error:?}"
    );
    harness.exec.seconds = NonZeroU64::MIN;
    let error = harness.send("command:sleep 60", "x").await.unwrap_err();
    assert!(
        matches!(&error, SendError::Temporary(text) if text.contains("timed out")),
        "{error:?}"
    );
}
