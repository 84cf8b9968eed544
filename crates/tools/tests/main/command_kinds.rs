//! Kinds of commands: an approval for a kind never allows to run anything else.

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
/// The git commands that read the most settings.
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

/// Creates a repository in the workspace, with a changed file.
fn repository(harness: &ShellHarness, folder: &str) {
    fs::create_dir_all(harness.at(folder)).unwrap();
    fs::write(harness.at(folder).join("a.txt"), "old\n").unwrap();
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
        git(harness, folder, &args);
    }
    fs::write(harness.at(folder).join("a.txt"), "new and longer\n").unwrap();
}

fn git(harness: &ShellHarness, folder: &str, args: &[&str]) {
    let mut command = Command::new("git");
    command.args(args).current_dir(harness.at(folder));
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null");
    let git_output = command.output().unwrap();
    assert!(
        git_output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&git_output.stderr)
    );
}

/// Creates a program in the workspace that creates the file `ran` when it runs.
fn trap(harness: &ShellHarness, path: &str) -> String {
    let path = harness.at(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(
        &path,
        format!(
            "#!/bin/sh\ntouch {}\ncat\n",
            harness.at("work/ran").display()
        ),
    )
    .unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

async fn pattern(harness: &ShellHarness, line: &str) -> Option<String> {
    let tools = tools(&harness.shell());
    let tool = tools.iter().find(|tool| tool.name == "exec_shell").unwrap();
    tool.intent(context(), json!({ "command": line }))
        .await
        .unwrap()
        .pattern
}

/// B102: only commands without side effects need no approval after reading untrusted content.
#[tokio::test]
async fn only_read_only_commands_have_no_side_effects() {
    let reads = |network: bool, args: serde_json::Value| {
        let mut harness = ShellHarness::new(SandboxChoice::On);
        harness.settings.network = network;
        let tools = tools(&harness.shell());
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
async fn read_only_commands_work() {
    for choice in ALL_MODES {
        let harness = ShellHarness::new(choice);
        repository(&harness, "work");
        for line in READ_ONLY_COMMANDS {
            assert!(pattern(&harness, line).await.is_some(), "{line}");
            let output = harness.run(line).await;
            assert!(
                output.starts_with("exit code 0"),
                "{choice:?} {line}: {output}"
            );
        }
        for line in [
            "ls -la",
            "grep -rn 'old' a.txt .git/HEAD",
            "echo a b",
            "cat a.txt",
            "which git",
        ] {
            let output = harness.run(line).await;
            assert!(pattern(&harness, line).await.is_some(), "{line}");
            assert!(
                !output.contains("fork") && !output.contains("not permitted"),
                "{choice:?} {line}: {output}"
            );
        }
    }
}

/// B102: settings and hooks of a hostile repository do not make read-only commands run anything.
#[tokio::test]
async fn hostile_repository_cannot_make_read_only_commands_run_programs() {
    for choice in ALL_MODES {
        let harness = ShellHarness::new(choice);
        repository(&harness, "work");
        let program = trap(&harness, "work/tools/trap");
        for hook in ["post-index-change", "pre-commit", "post-checkout"] {
            trap(&harness, &format!("work/.git/hooks/{hook}"));
        }
        fs::write(
            harness.at("work/.git/info/attributes"),
            "* filter=x diff=x\n",
        )
        .unwrap();
        for (key, value) in [
            ("core.fsmonitor", program.as_str()),
            ("core.pager", &program),
            ("pager.log", &program),
            ("alias.status", &format!("!{program}")),
            ("core.sshCommand", &program),
            ("core.editor", &program),
            // Settings in `config.worktree` are not inspected by the classification.
            ("extensions.worktreeConfig", "true"),
        ] {
            git(&harness, "work", &["config", key, value]);
        }
        let drivers = format!(
            "[filter \"x\"]\n\tclean = {program}\n[diff \"x\"]\n\ttextconv = {program}\n[diff]\n\texternal = {program}\n"
        );
        fs::write(harness.at("work/.git/config.worktree"), drivers).unwrap();
        for line in READ_ONLY_COMMANDS {
            assert!(pattern(&harness, line).await.is_some(), "{line}");
            harness.run(line).await;
            assert!(!harness.at("work/ran").exists(), "{choice:?} {line}");
        }
        // The same settings run the trap if the command may start programs.
        harness.run("git status; git diff").await;
        assert!(
            harness.at("work/ran").exists(),
            "{choice:?}: the trap works"
        );
    }
}

/// B102: the same for a repository inside the repository.
#[tokio::test]
async fn hostile_nested_repository_cannot_run_programs() {
    let harness = ShellHarness::new(SandboxChoice::On);
    repository(&harness, "work");
    repository(&harness, "work/inner");
    git(
        &harness,
        "work",
        &["-c", "advice.addEmbeddedRepo=false", "add", "inner"],
    );
    let program = trap(&harness, "work/tools/trap");
    git(
        &harness,
        "work/inner",
        &["config", "core.fsmonitor", &program],
    );
    for line in ["git status", "git diff"] {
        assert!(pattern(&harness, line).await.is_some(), "{line}");
        harness.run(line).await;
        assert!(!harness.at("work/ran").exists(), "{line}");
    }
    assert!(
        harness
            .run("git status")
            .await
            .contains("cannot start other programs")
    );
    harness.run("git status; true").await;
    assert!(harness.at("work/ran").exists(), "the trap works");
}

/// If git needs programs, they are started, and each command needs an approval.
#[tokio::test]
async fn repository_with_drivers_works_without_a_pattern() {
    let harness = ShellHarness::new(SandboxChoice::On);
    repository(&harness, "work");
    git(
        &harness,
        "work",
        &["config", "diff.upper.textconv", "tr a-z A-Z <"],
    );
    fs::write(
        harness.at("work/.git/info/attributes"),
        "*.txt diff=upper\n",
    )
    .unwrap();
    assert_eq!(pattern(&harness, "git diff").await, None);
    assert!(harness.run("git diff").await.contains("+NEW AND LONGER"));
}
