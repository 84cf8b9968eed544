//! The store under faults: in memory only, damaged rows, read-only files and a full disk.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::setup::TestDir;

const OFFLINE: [&str; 2] = ["--provider", "offline"];

fn ask(dir: &TestDir, session: &str, request: &str) {
    let run = dir.lango(&[&["ask", "--session", session], &OFFLINE[..], &[request]].concat());
    assert_eq!(run.exit, 0, "{}{}", run.stdout, run.stderr);
}

/// B71: all parts of a process share one database, even in memory.
#[test]
fn tools_share_one_in_memory_store() {
    let dir = TestDir::new();
    let input = b"save this fact: the office closes at six\nwhat do you know about the office?\nremember that I prefer tea\n\
        /new\nwhat do I like to drink?\nadd the fact that Ann knows Bob\nwhat do you know about Ann?\n";
    let args = [
        &["chat", "--yes", "--set", "store.path=:memory:"],
        &OFFLINE[..],
    ]
    .concat();
    let chat = dir.lango_with_input(&args, input);
    assert_eq!(chat.exit, 0, "{}{}", chat.stdout, chat.stderr);
    for expected in ["fact, version 1", "I prefer tea [preference"] {
        assert!(
            chat.stdout.contains(expected),
            "{expected} in {}",
            chat.stdout
        );
    }
    assert!(!dir.path().join("home/lango.sqlite").exists());
}

/// B71
#[test]
fn damaged_rows_are_reported_and_skipped() {
    let dir = TestDir::new();
    ask(&dir, "good", "save this fact: the office closes at six");
    ask(&dir, "bad", "remember that I prefer tea");
    let file = dir.path().join("home/lango.sqlite");
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
    for (args, row_name) in [
        (&["session", "list"][..], "session `bad`"),
        (&["session", "show", "bad"], "event 1 of session `bad`"),
        (&["session", "search", "office"], "event 1 of session `bad`"),
        (&["usage"], "event"),
        (&["audit"], "of session `bad`"),
        (&["memory", "observations"], "observation o1"),
        (&["knowledge", "list"], "version 1 of the knowledge"),
    ] {
        let run = dir.lango(args);
        assert_eq!(run.exit, 0, "{args:?}: {}", run.stderr);
        let names_row = run.stderr.contains(row_name) && run.stderr.contains("lango doctor");
        // The offline model has no usage.
        assert!(names_row || args == ["usage"], "{args:?}: {}", run.stderr);
    }
    assert!(dir.lango(&["session", "list"]).stdout.contains("good"));
    let doctor = dir.lango(&["doctor", "--json"]).json();
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
    assert_eq!(dir.lango(&["session", "delete", "bad"]).exit, 0);
    ask(&dir, "bad", "hello");
}

/// Copies the binary to a place where every user may run it, since the build folder may be private.
fn public_binary() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let binary = folder.path().join("lango");
    // Use another process, since a file that this one has open for writing cannot be run.
    let copied = Command::new("cp")
        .arg(assert_cmd::cargo::cargo_bin!("lango"))
        .arg(&binary)
        .status()
        .unwrap();
    assert!(copied.success());
    std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
    (folder, binary)
}

/// Runs the binary as an unprivileged user, since file modes do not apply to root.
fn run_unprivileged(binary: &Path, dir: &TestDir, args: &[&str]) -> Output {
    let mut command = Command::new(binary);
    command
        .args(args)
        .current_dir(dir.path())
        .env_clear()
        .env("LANGO_HOME", dir.path().join("home"));
    if is_root(dir) {
        command.uid(65534).gid(65534);
    }
    command.output().unwrap()
}

fn is_root(dir: &TestDir) -> bool {
    std::fs::metadata(dir.path().join("home/lango.sqlite"))
        .unwrap()
        .uid()
        == 65534
}

/// Changes the owner to an unprivileged user if permitted, and sets modes.
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

/// B71: neither the file nor its folder is writable.
#[test]
fn read_only_store_can_be_read() {
    let (_folder, binary) = public_binary();
    let dir = TestDir::new();
    ask(&dir, "s", "save this fact: the office closes at six");
    ask(&dir, "s", "remember that I prefer tea");
    for (folders, files) in [(0o500, 0o400), (0o700, 0o400)] {
        chown_recursive(dir.path(), folders, files);
        let text = |output: &Output| {
            String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
        };
        for (args, expected) in [
            (&["session", "list"][..], "save this fact"),
            (&["session", "show", "s"], "the office closes at six"),
            (&["session", "search", "office"], "office"),
            (&["memory", "observations"], "I prefer tea"),
            (&["memory", "status"], "Observations: 1"),
            (&["knowledge", "list"], "the office closes at six"),
            (&["audit"], "save_knowledge"),
            (&["usage"], "Total"),
            (&["inquiry", "list"], "No inquiry"),
        ] {
            let run = run_unprivileged(&binary, &dir, args);
            assert!(
                run.status.success() && text(&run).contains(expected),
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
            let run = run_unprivileged(&binary, &dir, args);
            let output_text = text(&run);
            let is_clear = output_text.matches("cannot be written").count() == 1;
            assert!(
                !run.status.success() && is_clear,
                "{args:?} {folders:o} {files:o}: {output_text}"
            );
        }
        chown_recursive(dir.path(), 0o700, 0o600);
    }
    assert!(
        run_unprivileged(&binary, &dir, &["session", "delete", "s"])
            .status
            .success()
    );
}

/// Fills a tmpfs to the last byte and deletes sessions on it.
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

/// B71: deleting frees space, and works when there is none.
#[test]
fn deletes_session_on_full_disk() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path().join("home")).unwrap();
    let run = Command::new("unshare")
        .args([
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            FULL_DISK_SCRIPT,
        ])
        .current_dir(dir.path())
        .env("LANGO_HOME", dir.path().join("home"))
        .env("LANGO", assert_cmd::cargo::cargo_bin!("lango"))
        .output();
    let mounted = run
        .ok()
        .filter(|run| !matches!(run.status.code(), Some(77 | 1) | None));
    let Some(run) = mounted else {
        // Without mounts, check at least that the reserve file exists and sessions can be deleted.
        ask(&dir, "s", "hello");
        assert!(
            dir.path()
                .join("home/lango.sqlite-reserve")
                .metadata()
                .unwrap()
                .len()
                > 1 << 20
        );
        assert_eq!(dir.lango(&["session", "delete", "s"]).exit, 0);
        return;
    };
    let output_text = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(
        run.status.success(),
        "{:?} {output_text}{}",
        run.status,
        String::from_utf8_lossy(&run.stderr)
    );
    check_script_output(&output_text);
}

/// Checks the output of [`FULL_DISK_SCRIPT`].
fn check_script_output(output_text: &str) {
    let (before, afterwards) = output_text.split_once("afterwards").unwrap();
    assert!(
        before.contains("large") && before.contains("Deleted: large"),
        "{output_text}"
    );
    assert!(
        !afterwards.contains("large") && afterwards.contains("I prefer tea"),
        "{output_text}"
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
    assert!(files.contains("lango.sqlite:0"), "{output_text}");
    assert!(
        files.lines().all(|line| line.ends_with(":0")),
        "deleted text is in no file: {output_text}"
    );
}
