//! Runs `lango-bench browser` on pages that it makes, without the peers.

use assert_cmd::Command;
use serde_json::Value;

#[test]
fn outlines_of_made_pages_are_short_and_never_empty() {
    let output = bench(&["--json", "--alone", "--clicks", "3"]);
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stdout}{stderr}");
    let lines: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let summary = lines.last().unwrap();
    assert_eq!(summary["pages"], summary["pages_read"], "{stdout}");
    assert!(
        summary["tokens_max"].as_f64().unwrap() <= 2_000.0,
        "{stdout}"
    );
}

#[test]
fn a_folder_without_pages_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display().to_string();
    let output = bench(&["--pages", &path]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        stderr.contains("expected NAME.html or NAME/source.html"),
        "{stderr}"
    );
}

fn bench(args: &[&str]) -> std::process::Output {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("lango-bench"));
    let output = command.arg("browser").args(args).output();
    output.unwrap_or_else(|error| unreachable!("the benchmark does not start: {error}"))
}
