//! The temporary folder of a command goes with it, whoever is killed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use lango_tools::shell::{SandboxChoice, Shell, tools};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::harness::{ShellHarness, context};

/// A shell whose temporary folders are made in a place of its own.
fn shell(world: &ShellHarness, helper: Option<PathBuf>) -> Shell {
    let mut parts = world.parts("work");
    fs::create_dir_all(world.at("temporary")).unwrap();
    parts.variables.insert(
        "TMPDIR".to_owned(),
        world.at("temporary").display().to_string(),
    );
    parts.helper = helper.unwrap_or(parts.helper);
    Shell::new(parts)
}

fn folders(world: &ShellHarness) -> Vec<PathBuf> {
    fs::read_dir(world.at("temporary"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}

async fn wait_until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn nothing_is_left_when_a_command_ends_or_is_given_up() {
    for choice in [SandboxChoice::On, SandboxChoice::NoNamespaces] {
        let world = ShellHarness::new(choice);
        let shell = shell(&world, None);
        let messy = "mkdir -p $TMPDIR/a/b && touch $TMPDIR/a/b/c && chmod 0 $TMPDIR/a";
        world.run_in(&shell, messy, "work").await.unwrap();
        assert_eq!(folders(&world), [] as [PathBuf; 0]);
        let waiting = world.run_in(&shell, "touch started; sleep 300", "work");
        let started = wait_until(|| world.at("work/started").exists());
        tokio::select! { _ = waiting => panic!("it waits"), () = started => {} }
        wait_until(|| folders(&world).is_empty()).await;
        fs::remove_file(world.at("work/started")).unwrap();
    }
}

/// A Lango that is killed before its helper knows what to do has made nothing that could be left.
#[tokio::test]
async fn the_folder_is_made_by_whoever_removes_it() {
    let world = ShellHarness::new(SandboxChoice::On);
    let silent = world.at("silent");
    fs::write(
        &silent,
        format!(
            "#!/bin/sh\ntouch {}\nexec cat\n",
            world.at("started").display()
        ),
    )
    .unwrap();
    fs::set_permissions(&silent, fs::Permissions::from_mode(0o755)).unwrap();
    let shell = shell(&world, Some(silent));
    let running = world.run_in(&shell, "true", "work");
    let started = wait_until(|| world.at("started").exists());
    tokio::join!(
        async {
            let _ = running.await;
        },
        async {
            started.await;
            assert_eq!(folders(&world), [] as [PathBuf; 0]);
        }
    );
}

#[tokio::test]
async fn nothing_is_left_when_the_sandbox_is_killed() {
    let world = ShellHarness::new(SandboxChoice::On);
    let shell = shell(&world, None);
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
        folders(&world)
            .iter()
            .any(|folder| folder.join("x").exists())
    })
    .await;
    let folder = folders(&world).remove(0);
    kill_process(holding_process(&folder), Signal::KILL).unwrap();
    wait_until(|| folders(&world).is_empty()).await;
}

#[tokio::test]
async fn what_killed_processes_left_goes_with_the_next_command() {
    let world = ShellHarness::new(SandboxChoice::On);
    let left = world.at("temporary/lango-command-0123");
    fs::create_dir_all(left.join("inside")).unwrap();
    fs::create_dir_all(world.at("temporary/other")).unwrap();
    let other = shell(&world, None);
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
        folders(&world)
            .iter()
            .any(|folder| folder.join("x").exists())
    })
    .await;
    let next = shell(&world, None);
    world.run_in(&next, "true", "work").await.unwrap();
    let names = folders(&world);
    assert!(
        names.len() == 2 && names.contains(&world.at("temporary/other")),
        "{names:?}"
    );
    assert!(
        names.iter().any(|folder| folder.join("x").exists()),
        "what is in use stays"
    );
}

/// The helper: the process that has the folder open.
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
