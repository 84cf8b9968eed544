//! Desktop notifications, with a program that stands in for the real one.

use lango_automation::delivery::SendError;

use super::{DeliveryHarness, delivery, send};

fn harness() -> DeliveryHarness {
    DeliveryHarness {
        path: format!("relative:{}/tests/programs", env!("CARGO_MANIFEST_DIR")),
        ..DeliveryHarness::new()
    }
}

#[tokio::test]
async fn text_is_an_argument_and_nothing_else() {
    let harness = harness();
    let message = delivery(
        "notify",
        "--help\u{1b}]0;x\u{7}\n",
        "<a href=\"x\">$(reboot)</a> & more\u{202e}",
    );
    send(&harness.channels(), &message).await.unwrap();
    let notified = std::fs::read_to_string(harness.at("home/notified")).unwrap();
    assert_eq!(
        notified,
        "--app-name=Lango\n--\n--help]0;x\n&lt;a href=\"x\"&gt;$(reboot)&lt;/a&gt; &amp; more\n"
    );
    let huge = "x".repeat(1_000_000);
    harness.send("notify", &huge).await.unwrap();
    let notified = std::fs::read_to_string(harness.at("home/notified")).unwrap();
    assert!(notified.len() < 2_000 && notified.contains("bytes left out]"));
}

#[tokio::test]
async fn missing_and_failing_programs_are_reported() {
    let harness = harness();
    std::fs::write(harness.at("home/fail"), "").unwrap();
    let error = harness.send("notify", "x").await.unwrap_err();
    assert!(
        matches!(&error, SendError::Temporary(text) if text.ends_with("no desktop [31mhere")),
        "{error:?}"
    );
    let without = DeliveryHarness {
        path: "/nowhere".to_owned(),
        ..DeliveryHarness::new()
    };
    let error = without.send("notify", "x").await.unwrap_err();
    assert!(
        matches!(&error, SendError::Permanent(text) if text.contains("`notify-send` is not installed")),
        "{error:?}"
    );
}
