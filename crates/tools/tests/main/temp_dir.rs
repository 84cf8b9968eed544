//! The temporary folder of a command is removed with it, even if processes are killed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use lango_tools::shell::{SandboxChoice, Shell, tools};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::harness::{ShellHarness, context};

/// Creates a shell that creates its temporary folders in a separate folder.
fn shell(harness: &ShellHarness, helper: Option<PathBuf>) -> Shell {
    let mut parts = harness.parts("work");
    fs::create_dir_all(harness.at("temporary")).unwrap();
    parts.variables.insert(
        "TMPDIR".to_owned(),
        harness.at("temporary").display().to_string(),
    );
    parts.helper = helper.unwrap_or(parts.helper);
    Shell::new(parts)
}

fn folders(harness: &ShellHarness) -> Vec<PathBuf> {
    fs::read_dir(harness.at("temporary"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}

async fn wait_until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn removes_the_folder_when_a_command_ends_or_is_cancelled() {
    for choice in [SandboxChoice::On, SandboxChoice::NoNamespaces] {
        let harness = ShellHarness::new(choice);
        let shell = shell(&harness, None);
        let messy = "mkdir -p $TMPDIR/a/b && touch $TMPDIR/a/b/c && chmod 0 $TMPDIR/a";
        harness.run_in(&shell, messy, "work").await.unwrap();
        assert_eq!(folders(&harness), [] as [PathBuf; 0]);
        let waiting = harness.run_in(&shell, "touch started; sleep 300", "work");
        let started = wait_until(|| harness.at("work/started").exists());
        tokio::select! { _ = waiting => panic!("it waits"), () = started => {} }
        wait_until(|| folders(&harness).is_empty()).await;
        fs::remove_file(harness.at("work/started")).unwrap();
    }
}

/// If Lango is killed before the helper has its spec, no folder exists yet.
#[tokio::test]
async fn the_sandbox_creates_the_folder() {
    let harness = ShellHarness::new(SandboxChoice::On);
    let silent = harness.at("silent");
    fs::write(
        &silent,
        format!(
            "#!/bin/sh\ntouch {}\nexec cat\n",
            harness.at("started").display()
        ),
    )
    .unwrap();
    fs::set_permissions(&silent, fs::Permissions::from_mode(0o755)).unwrap();
    let shell = shell(&harness, Some(silent));
    let running = harness.run_in(&shell, "true", "work");
    let started = wait_until(|| harness.at("started").exists());
    tokio::join!(
        async {
            let _ = running.await;
        },
        async {
            started.await;
            assert_eq!(folders(&harness), [] as [PathBuf; 0]);
        }
    );
}

#[tokio::test]
async fn removes_the_folder_when_the_sandbox_is_killed() {
    let harness = ShellHarness::new(SandboxChoice::On);
    let shell = shell(&harness, None);
    let tools = tools(&shell);
    let start = tools.iter().find(|tool| tool.name == "exec_start").unwrap();
    start
        .call(
            context(),
            json!({ "command": "touch $TMPDIR/x; sleep 300" }),
        )
        .await
        .unwrap();
    wait_until(|| {
        folders(&harness)
            .iter()
            .any(|folder| folder.join("x").exists())
    })
    .await;
    let folder = folders(&harness).remove(0);
    kill_process(holding_process(&folder), Signal::KILL).unwrap();
    wait_until(|| folders(&harness).is_empty()).await;
}

#[tokio::test]
async fn next_command_removes_stale_folders() {
    let harness = ShellHarness::new(SandboxChoice::On);
    let left = harness.at("temporary/lango-command-0123");
    fs::create_dir_all(left.join("inside")).unwrap();
    fs::create_dir_all(harness.at("temporary/other")).unwrap();
    let other = shell(&harness, None);
    let used = tools(&other);
    let start = used.iter().find(|tool| tool.name == "exec_start").unwrap();
    start
        .call(
            context(),
            json!({ "command": "touch $TMPDIR/x; sleep 300" }),
        )
        .await
        .unwrap();
    assert!(!left.exists());
    wait_until(|| {
        folders(&harness)
            .iter()
            .any(|folder| folder.join("x").exists())
    })
    .await;
    let next = shell(&harness, None);
    harness.run_in(&next, "true", "work").await.unwrap();
    let names = folders(&harness);
    assert!(
        names.len() == 2 && names.contains(&harness.at("temporary/other")),
        "{names:?}"
    );
    assert!(
        names.iter().any(|folder| folder.join("x").exists()),
        "folders in use are kept"
    );
}

/// Returns the helper, which is the process that has the folder open.
fn holding_process(folder: &std::path::Path) -> Pid {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let has_open = |process: &fs::DirEntry| {
        let open = fs::read_dir(process.path().join("fd"))
            .into_iter()
            .flatten()
            .flatten();
        open.filter_map(|entry| fs::read_link(entry.path()).ok())
            .any(|target| target == folder)
    };
    let found = processes
        .filter(has_open)
        .filter_map(|process| process.file_name().to_str()?.parse().ok());
    found.filter_map(Pid::from_raw).next().unwrap()
}
