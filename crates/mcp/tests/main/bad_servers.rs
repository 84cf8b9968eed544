//! Servers that lie, die, stay silent or never stop.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use lango_mcp::McpError;
use serde_json::json;

use crate::harness::{Harness, call, tool_names};

fn seconds(number: u64) -> NonZeroU64 {
    NonZeroU64::new(number).unwrap()
}

/// Names of other servers, of Lango's own tools and of files stay harmless; definitions that cannot be right
/// are left out.
#[tokio::test]
async fn lying_definitions() {
    let harness = Harness::new();
    let server = harness.trusted(Harness::settings(&["lying"])).await;
    let names = tool_names(&server);
    assert_eq!(names.len(), 6, "{names:?}");
    for name in &names {
        assert!(
            name.starts_with("mcp_fixture_") && !name.contains(['/', '.']),
            "{name}"
        );
    }
    assert!(names.contains(&"mcp_fixture_payment_send".to_owned()));
    assert!(
        !names.contains(&"mcp_fixture_find".to_owned()),
        "the name is Lango's own"
    );
    let left_out = server.manifest().unwrap().left_out;
    let left: Vec<&str> = left_out.iter().map(|left| left.name.as_str()).collect();
    assert_eq!(left, ["echo", "not_object", "foreign", "large"]);
    let odd = names
        .iter()
        .find(|name| name.contains("etc_passwd"))
        .unwrap();
    let output = call(&server, odd, json!({})).await.unwrap();
    assert_eq!(output.content.text, "../../etc/passwd {}");
}

#[tokio::test]
async fn a_silent_server_is_given_up() {
    let harness = Harness::new();
    let mut settings = Harness::settings(&["silent"]);
    settings.start_seconds = seconds(1);
    let started = Instant::now();
    let error = harness.server(settings).refresh().await.unwrap_err();
    assert!(matches!(error, McpError::Unavailable { .. }), "{error}");
    assert!(started.elapsed() < Duration::from_secs(8));
}

#[tokio::test]
async fn endless_pages_are_refused() {
    let harness = Harness::new();
    let error = harness
        .server(Harness::settings(&["endless"]))
        .refresh()
        .await
        .unwrap_err();
    assert!(error.to_string().contains("no end"), "{error}");
}

/// A server that dies in a call is not called again for that call, but started for the next one.
#[tokio::test]
async fn dying_in_a_call_is_a_typed_failure() {
    let harness = Harness::new();
    let server = harness.trusted(Harness::settings(&["dies"])).await;
    for _ in 0..3 {
        let error = call(&server, "mcp_fixture_echo", json!({}))
            .await
            .unwrap_err();
        assert!(
            error.0.contains("may have taken effect") && error.0.contains("code 3"),
            "{error}"
        );
    }
    let error = call(&server, "mcp_fixture_echo", json!({}))
        .await
        .unwrap_err();
    assert!(
        error.0.contains("failed 3 times in a row"),
        "the circuit is open: {error}"
    );
    let log = std::fs::read_to_string(server.files().log(&server.key)).unwrap();
    assert_eq!(
        log.matches("started").count(),
        3,
        "once for the list and the first call: {log}"
    );
}

#[tokio::test]
async fn a_huge_result_ends_the_connection() {
    let harness = Harness::new();
    let server = harness.trusted(Harness::settings(&["huge"])).await;
    let error = call(&server, "mcp_fixture_echo", json!({}))
        .await
        .unwrap_err();
    assert!(error.0.contains("more than 16 MiB"), "{error}");
}

#[tokio::test]
async fn a_slow_call_is_cancelled() {
    let harness = Harness::new();
    let mut settings = Harness::settings(&["slow"]);
    settings.seconds = seconds(1);
    let server = harness.trusted(settings).await;
    let error = call(&server, "mcp_fixture_echo", json!({}))
        .await
        .unwrap_err();
    assert!(error.0.contains("within 1 s"), "{error}");
}

#[tokio::test]
async fn errors_of_tools_are_not_failures_of_the_server() {
    let harness = Harness::new();
    let server = harness.trusted(Harness::settings(&["fails"])).await;
    for _ in 0..5 {
        let error = call(&server, "mcp_fixture_echo", json!({}))
            .await
            .unwrap_err();
        assert_eq!(error.0, "it is broken");
    }
}

#[tokio::test]
async fn missing_programs_and_wrong_settings_are_reported() {
    let harness = Harness::new();
    let mut settings = Harness::settings(&[]);
    settings.command = Some("no-such-program".to_owned());
    let error = harness.server(settings).refresh().await.unwrap_err();
    assert!(error.to_string().contains("no-such-program"), "{error}");
    let mut settings = Harness::settings(&[]);
    settings.command = Some("false".to_owned());
    let error = harness.server(settings).refresh().await.unwrap_err();
    assert!(error.to_string().contains("code 1"), "{error}");
    let address = |command: Option<&str>, url: Option<&str>| {
        let mut settings = Harness::settings(&[]);
        settings.command = command.map(str::to_owned);
        settings.url = url.map(str::to_owned);
        lango_mcp::ServerAddress::new(&settings, std::path::Path::to_path_buf)
    };
    assert!(address(None, None).is_err() && address(Some("a"), Some("http://b")).is_err());
    assert!(address(None, Some("file:///etc/passwd")).is_err());
    assert!(address(None, Some("not a url")).is_err());
}
