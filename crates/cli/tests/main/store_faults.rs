//! What is kept, where it is kept badly: in memory only, with damaged rows, where nothing can be written, on a full disk.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::setup::TestDir;

const OFFLINE: [&str; 2] = ["--provider", "offline"];

fn ask(desk: &TestDir, session: &str, request: &str) {
    let asked = desk.lango(&[&["ask", "--session", session], &OFFLINE[..], &[request]].concat());
    assert_eq!(asked.exit, 0, "{}{}", asked.stdout, asked.stderr);
}

/// B71: one database for all parts of a process, in memory too.
#[test]
fn in_memory_what_one_tool_keeps_another_finds() {
    let desk = TestDir::new();
    let said = b"save this fact: the office closes at six\nwhat do you know about the office?\nremember that I prefer tea\n\
        /new\nwhat do I like to drink?\nadd the fact that Ann knows Bob\nwhat do you know about Ann?\n";
    let args = [
        &["chat", "--yes", "--set", "store.path=:memory:"],
        &OFFLINE[..],
    ]
    .concat();
    let chat = desk.lango_with_input(&args, said);
    assert_eq!(chat.exit, 0, "{}{}", chat.stdout, chat.stderr);
    for told in ["fact, version 1", "I prefer tea [preference"] {
        assert!(chat.stdout.contains(told), "{told} in {}", chat.stdout);
    }
    assert!(!desk.path().join("home/lango.sqlite").exists());
}

/// B71
#[test]
fn damaged_rows_are_named_and_hide_nothing() {
    let desk = TestDir::new();
    ask(&desk, "good", "save this fact: the office closes at six");
    ask(&desk, "bad", "remember that I prefer tea");
    let file = desk.path().join("home/lango.sqlite");
    let sqlite = rusqlite::Connection::open(&file).unwrap();
    sqlite
        .execute_batch(
            "UPDATE events SET body = '{\"type\":\"dream\"}' WHERE session = (SELECT id FROM sessions WHERE name = 'bad');
            UPDATE sessions SET title = CAST(x'ff' AS TEXT) WHERE name = 'bad';
            UPDATE observations SET text = CAST(x'ff' AS TEXT);
            UPDATE knowledge SET content = CAST(x'ff' AS TEXT);",
        )
        .unwrap();
    drop(sqlite);
    for (args, named) in [
        (&["session", "list"][..], "session `bad`"),
        (&["session", "show", "bad"], "event 1 of session `bad`"),
        (&["session", "search", "office"], "event 1 of session `bad`"),
        (&["usage"], "event"),
        (&["audit"], "of session `bad`"),
        (&["memory", "observations"], "observation o1"),
        (&["knowledge", "list"], "version 1 of the knowledge"),
    ] {
        let run = desk.lango(args);
        assert_eq!(run.exit, 0, "{args:?}: {}", run.stderr);
        let is_named = run.stderr.contains(named) && run.stderr.contains("lango doctor");
        // The offline model takes nothing that could be counted.
        assert!(is_named || args == ["usage"], "{args:?}: {}", run.stderr);
    }
    assert!(desk.lango(&["session", "list"]).stdout.contains("good"));
    let doctor = desk.lango(&["doctor", "--json"]).json();
    let checks = doctor["checks"].as_array().unwrap();
    let rows = checks.iter().find(|check| check["id"] == "rows").unwrap();
    assert_eq!(rows["status"], "warn");
    assert!(
        rows["detail"].as_str().unwrap().contains("session `bad`"),
        "{rows}"
    );
    assert!(
        rows["remedy"]
            .as_str()
            .unwrap()
            .contains("lango session delete"),
        "{rows}"
    );
    assert_eq!(desk.lango(&["session", "delete", "bad"]).exit, 0);
    ask(&desk, "bad", "hello");
}

/// The binary where every user may run it: the build folder may lie in a private one.
fn public_binary() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let binary = folder.path().join("lango");
    // Another process writes it: a file that this one has open for writing could not be run.
    let copied = Command::new("cp")
        .arg(assert_cmd::cargo::cargo_bin!("lango"))
        .arg(&binary)
        .status()
        .unwrap();
    assert!(copied.success());
    std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
    (folder, binary)
}

/// Runs the binary as somebody whom file modes bind: root is not.
fn run_unprivileged(binary: &Path, desk: &TestDir, args: &[&str]) -> Output {
    let mut command = Command::new(binary);
    command
        .args(args)
        .current_dir(desk.path())
        .env_clear()
        .env("LANGO_HOME", desk.path().join("home"));
    if is_root(desk) {
        command.uid(65534).gid(65534);
    }
    command.output().unwrap()
}

fn is_root(desk: &TestDir) -> bool {
    std::fs::metadata(desk.path().join("home/lango.sqlite"))
        .unwrap()
        .uid()
        == 65534
}

/// Gives everything to nobody, if we may, and sets modes.
fn chown_recursive(path: &Path, folders: u32, files: u32) {
    let _ = std::os::unix::fs::chown(path, Some(65534), Some(65534));
    let is_folder = path.is_dir();
    if is_folder {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).unwrap();
        for entry in std::fs::read_dir(path).unwrap() {
            chown_recursive(&entry.unwrap().path(), folders, files);
        }
    }
    let mode = if is_folder { folders } else { files };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// B71: neither the file nor its folder can be written.
#[test]
fn what_cannot_be_written_can_be_looked_at() {
    let (_folder, binary) = public_binary();
    let desk = TestDir::new();
    ask(&desk, "s", "save this fact: the office closes at six");
    ask(&desk, "s", "remember that I prefer tea");
    for (folders, files) in [(0o500, 0o400), (0o700, 0o400)] {
        chown_recursive(desk.path(), folders, files);
        let text = |output: &Output| {
            String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
        };
        for (args, told) in [
            (&["session", "list"][..], "save this fact"),
            (&["session", "show", "s"], "the office closes at six"),
            (&["session", "search", "office"], "office"),
            (&["memory", "observations"], "I prefer tea"),
            (&["memory", "status"], "Observations: 1"),
            (&["knowledge", "list"], "the office closes at six"),
            (&["audit"], "save_knowledge"),
            (&["usage"], "All in all"),
            (&["inquiry", "list"], "No inquiry"),
        ] {
            let run = run_unprivileged(&binary, &desk, args);
            assert!(
                run.status.success() && text(&run).contains(told),
                "{args:?} {files:o}: {}",
                text(&run)
            );
        }
        for args in [
            &["session", "delete", "s"][..],
            &["memory", "forget", "o1", "--yes"],
            &["knowledge", "delete", "office closes six"],
            &["ask", "--provider", "offline", "--session", "s", "hello"],
        ] {
            let run = run_unprivileged(&binary, &desk, args);
            let said = text(&run);
            let is_clear = said.matches("cannot be written").count() == 1;
            assert!(
                !run.status.success() && is_clear,
                "{args:?} {folders:o} {files:o}: {said}"
            );
        }
        chown_recursive(desk.path(), 0o700, 0o600);
    }
    assert!(
        run_unprivileged(&binary, &desk, &["session", "delete", "s"])
            .status
            .success()
    );
}

/// A tmpfs of its own is filled to the last byte, and a session is deleted in it.
const FULL_DISK_SCRIPT: &str = r#"
mount -t tmpfs -o size=24m tmpfs "$LANGO_HOME" || exit 77
head -c 1500000 /dev/urandom | base64 > big.txt
for n in 1 2 3; do "$LANGO" ask --provider offline --session large hello - < big.txt > /dev/null || exit 78; done
"$LANGO" ask --provider offline --session small "remember that I prefer tea" > /dev/null || exit 79
dd if=/dev/zero of="$LANGO_HOME/ballast" bs=4096 > /dev/null 2>&1
echo x > "$LANGO_HOME/one-more" && exit 80
echo "looking"
"$LANGO" session list || exit 81
echo "deleting"
"$LANGO" session delete large || exit 82
echo "afterwards"
"$LANGO" session list || exit 83
"$LANGO" memory observations || exit 84
"$LANGO" session delete small || exit 85
echo "doctor"
"$LANGO" doctor --json
echo "files"
grep -c "$(head -c 60 big.txt)" "$LANGO_HOME"/lango.sqlite*
exit 0
"#;

/// B71: deleting frees room, and works when there is none.
#[test]
fn on_a_full_disk_a_session_can_be_deleted() {
    let desk = TestDir::new();
    std::fs::create_dir(desk.path().join("home")).unwrap();
    let run = Command::new("unshare")
        .args([
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            FULL_DISK_SCRIPT,
        ])
        .current_dir(desk.path())
        .env("LANGO_HOME", desk.path().join("home"))
        .env("LANGO", assert_cmd::cargo::cargo_bin!("lango"))
        .output();
    let mounted = run
        .ok()
        .filter(|run| !matches!(run.status.code(), Some(77 | 1) | None));
    let Some(run) = mounted else {
        // Where nothing can be mounted, the room is at least kept, and comes back after a session was deleted.
        ask(&desk, "s", "hello");
        assert!(
            desk.path()
                .join("home/lango.sqlite-reserve")
                .metadata()
                .unwrap()
                .len()
                > 1 << 20
        );
        assert_eq!(desk.lango(&["session", "delete", "s"]).exit, 0);
        return;
    };
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(
        run.status.success(),
        "{:?} {said}{}",
        run.status,
        String::from_utf8_lossy(&run.stderr)
    );
    let (looked, afterwards) = said.split_once("afterwards").unwrap();
    assert!(
        looked.contains("large") && looked.contains("Deleted: large"),
        "{said}"
    );
    assert!(
        !afterwards.contains("large") && afterwards.contains("I prefer tea"),
        "{said}"
    );
    let (doctor, files) = afterwards
        .split_once("doctor\n")
        .unwrap()
        .1
        .split_once("files\n")
        .unwrap();
    let doctor: Value = serde_json::from_str(doctor).unwrap();
    let checks = doctor["checks"].as_array().unwrap();
    for id in ["store", "rows", "disk"] {
        let check = checks.iter().find(|check| check["id"] == id).unwrap();
        assert_eq!(check["status"], json!("pass"), "{check}");
    }
    assert!(files.contains("lango.sqlite:0"), "{said}");
    assert!(
        files.lines().all(|line| line.ends_with(":0")),
        "what is deleted is in no file: {said}"
    );
}
