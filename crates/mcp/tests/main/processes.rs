//! No process of a server outlives Lango.

use std::path::Path;
use std::time::{Duration, Instant};

use lango_mcp::McpServerSettings;

use crate::harness::{FIXTURE, Harness};

/// Returns true if a process has this text in its command line.
fn is_running(mark: &str) -> bool {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.into_iter().any(|entry| {
        let line = std::fs::read(Path::new(&entry.path()).join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(mark)
    })
}

/// B150: a server behind a shell, as package runners start it, ends with its connection.
#[tokio::test]
async fn a_server_behind_a_shell_ends_with_the_connection() {
    let harness = Harness::new();
    let mark = format!(
        "mark-{}",
        harness.folder.path().file_name().unwrap().display()
    );
    // A shell gives its background jobs no input, so the pipe is handed on.
    let line = format!("exec 3<&0; sh -c '{FIXTURE} good {mark}; true' <&3 & wait");
    let mut settings = McpServerSettings {
        command: Some("sh".to_owned()),
        args: vec!["-c".to_owned(), line],
        ..McpServerSettings::default()
    };
    settings.read = vec![Path::new(FIXTURE).parent().unwrap().to_path_buf()];
    let server = harness.trusted(settings).await;
    assert!(is_running(&mark));
    drop(server);
    let limit = Instant::now() + Duration::from_secs(20);
    while is_running(&mark) {
        assert!(Instant::now() < limit, "a process is left");
        tokio::task::yield_now().await;
    }
}
