//! Commands of one kind: a permission for them never becomes a permission to run something else.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use lango_tools::shell::{SandboxChoice, tools};
use serde_json::json;

use crate::harness::{ShellHarness, context};

const ALL_MODES: [SandboxChoice; 3] = [
    SandboxChoice::On,
    SandboxChoice::NoNamespaces,
    SandboxChoice::Off,
];
/// Those of git that read most.
const READ_ONLY_COMMANDS: [&str; 9] = [
    "git status",
    "git status -s --ignored",
    "git log -p",
    "git show HEAD",
    "git diff",
    "git diff HEAD --stat",
    "git blame a.txt",
    "git grep -n new",
    "git ls-files -m",
];

/// A repository in the workspace, with a change in a file.
fn repository(world: &ShellHarness, folder: &str) {
    fs::create_dir_all(world.at(folder)).unwrap();
    fs::write(world.at(folder).join("a.txt"), "old\n").unwrap();
    for args in [
        vec!["init", "-q", "-b", "main"],
        vec!["add", "."],
        vec![
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@x",
            "commit",
            "-q",
            "-m",
            "first",
        ],
    ] {
        git(world, folder, &args);
    }
    fs::write(world.at(folder).join("a.txt"), "new and longer\n").unwrap();
}

fn git(world: &ShellHarness, folder: &str, args: &[&str]) {
    let mut command = Command::new("git");
    command.args(args).current_dir(world.at(folder));
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null");
    let done = command.output().unwrap();
    assert!(
        done.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
}

/// A program in the workspace that leaves a mark when it runs.
fn trap(world: &ShellHarness, path: &str) -> String {
    let path = world.at(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(
        &path,
        format!("#!/bin/sh\ntouch {}\ncat\n", world.at("work/ran").display()),
    )
    .unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

async fn pattern(world: &ShellHarness, line: &str) -> Option<String> {
    let tools = tools(&world.shell());
    let tool = tools.iter().find(|tool| tool.name == "exec_shell").unwrap();
    tool.intent(context(), json!({ "command": line }))
        .await
        .unwrap()
        .pattern
}

/// B102: only commands without an effect are left alone after reading something untrusted.
#[tokio::test]
async fn only_commands_of_the_reading_kind_have_no_effect() {
    let reads = |network: bool, args: serde_json::Value| {
        let mut world = ShellHarness::new(SandboxChoice::On);
        world.settings.network = network;
        let tools = tools(&world.shell());
        tools
            .iter()
            .find(|tool| tool.name == "exec_shell")
            .unwrap()
            .is_read_only(&args)
    };
    assert!(reads(false, json!({ "command": "ls -la" })));
    assert!(
        !reads(true, json!({ "command": "ls -la" })),
        "with a network it may send something"
    );
    for args in [
        json!({ "command": "make" }),
        json!({ "command": "cargo build" }),
        json!({ "command": "ls > x" }),
        json!({ "command": "ls", "stdin": "x" }),
        json!({ "command": "ls", "cwd": "../.." }),
        json!({ "command": 7 }),
        json!({}),
    ] {
        assert!(!reads(false, args.clone()), "{args}");
    }
}

/// B102
#[tokio::test]
async fn reading_commands_read() {
    for choice in ALL_MODES {
        let world = ShellHarness::new(choice);
        repository(&world, "work");
        for line in READ_ONLY_COMMANDS {
            assert!(pattern(&world, line).await.is_some(), "{line}");
            let told = world.run(line).await;
            assert!(told.starts_with("exit code 0"), "{choice:?} {line}: {told}");
        }
        for line in [
            "ls -la",
            "grep -rn 'old' a.txt .git/HEAD",
            "echo a b",
            "cat a.txt",
            "which git",
        ] {
            let told = world.run(line).await;
            assert!(pattern(&world, line).await.is_some(), "{line}");
            assert!(
                !told.contains("fork") && !told.contains("not permitted"),
                "{choice:?} {line}: {told}"
            );
        }
    }
}

/// B102: settings and hooks of a hostile repository make no reading command run anything.
#[tokio::test]
async fn a_hostile_repository_runs_nothing_by_commands_that_read() {
    for choice in ALL_MODES {
        let world = ShellHarness::new(choice);
        repository(&world, "work");
        let program = trap(&world, "work/tools/trap");
        for hook in ["post-index-change", "pre-commit", "post-checkout"] {
            trap(&world, &format!("work/.git/hooks/{hook}"));
        }
        fs::write(world.at("work/.git/info/attributes"), "* filter=x diff=x\n").unwrap();
        for (key, value) in [
            ("core.fsmonitor", program.as_str()),
            ("core.pager", &program),
            ("pager.log", &program),
            ("alias.status", &format!("!{program}")),
            ("core.sshCommand", &program),
            ("core.editor", &program),
            // Settings that are looked for in another file are not seen before.
            ("extensions.worktreeConfig", "true"),
        ] {
            git(&world, "work", &["config", key, value]);
        }
        let drivers = format!(
            "[filter \"x\"]\n\tclean = {program}\n[diff \"x\"]\n\ttextconv = {program}\n[diff]\n\texternal = {program}\n"
        );
        fs::write(world.at("work/.git/config.worktree"), drivers).unwrap();
        for line in READ_ONLY_COMMANDS {
            assert!(pattern(&world, line).await.is_some(), "{line}");
            world.run(line).await;
            assert!(!world.at("work/ran").exists(), "{choice:?} {line}");
        }
        // The same settings do run it where a command may start programs.
        world.run("git status; git diff").await;
        assert!(world.at("work/ran").exists(), "{choice:?}: the trap works");
    }
}

/// B102: nor does a repository inside the repository.
#[tokio::test]
async fn a_hostile_repository_inside_runs_nothing() {
    let world = ShellHarness::new(SandboxChoice::On);
    repository(&world, "work");
    repository(&world, "work/inner");
    git(
        &world,
        "work",
        &["-c", "advice.addEmbeddedRepo=false", "add", "inner"],
    );
    let program = trap(&world, "work/tools/trap");
    git(
        &world,
        "work/inner",
        &["config", "core.fsmonitor", &program],
    );
    for line in ["git status", "git diff"] {
        assert!(pattern(&world, line).await.is_some(), "{line}");
        world.run(line).await;
        assert!(!world.at("work/ran").exists(), "{line}");
    }
    assert!(
        world
            .run("git status")
            .await
            .contains("can start no other program")
    );
    world.run("git status; true").await;
    assert!(world.at("work/ran").exists(), "the trap works");
}

/// Where git needs programs for its work they are started, and each command is asked about.
#[tokio::test]
async fn a_repository_with_drivers_works_and_is_asked_about() {
    let world = ShellHarness::new(SandboxChoice::On);
    repository(&world, "work");
    git(
        &world,
        "work",
        &["config", "diff.upper.textconv", "tr a-z A-Z <"],
    );
    fs::write(world.at("work/.git/info/attributes"), "*.txt diff=upper\n").unwrap();
    assert_eq!(pattern(&world, "git diff").await, None);
    assert!(world.run("git diff").await.contains("+NEW AND LONGER"));
}
