//! The vault in a folder that cannot be written, and on a full disk.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::setup::TestDir;

/// Stores a secret, fills a tmpfs to the last byte, and tries to store more.
const FULL_DISK_SCRIPT: &str = r#"
mount -t tmpfs -o size=24m tmpfs "$LANGO_HOME" || exit 77
fill() { rm -f "$LANGO_HOME/lango.sqlite-reserve"; dd if=/dev/zero of="$LANGO_HOME/ballast" bs=4096 > /dev/null 2>&1; echo x > "$LANGO_HOME/one-more" && exit 80; }
"$LANGO" session list > /dev/null || exit 78
fill
echo "no vault yet"
head -c 60000 /dev/zero | tr '\0' x | "$LANGO" secret set FIRST && exit 81
ls "$LANGO_HOME" | grep vault
rm "$LANGO_HOME/ballast"
printf old-value | "$LANGO" secret set TOKEN > /dev/null || exit 82
fill
echo "replacing"
head -c 60000 /dev/zero | tr '\0' x | "$LANGO" secret set TOKEN && exit 83
rm "$LANGO_HOME/ballast"
echo "afterwards"
"$LANGO" secret list || exit 84
"$LANGO" vault status || exit 85
printf 'export passphrase\n' | "$LANGO" vault export "$LANGO_HOME/x" || exit 86
exit 0
"#;

#[test]
fn a_full_disk_loses_nothing() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path().join("home")).unwrap();
    let run = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c"])
        .arg(FULL_DISK_SCRIPT)
        .current_dir(dir.path())
        .env("LANGO_HOME", dir.path().join("home"))
        .env("LANGO", assert_cmd::cargo::cargo_bin!("lango"))
        .output();
    // Where mounting is not allowed, there is nothing to test.
    let Some(run) = run
        .ok()
        .filter(|run| !matches!(run.status.code(), Some(77 | 1) | None))
    else {
        return;
    };
    let (stdout, stderr) = (
        String::from_utf8_lossy(&run.stdout),
        String::from_utf8_lossy(&run.stderr),
    );
    assert!(run.status.success(), "{:?} {stdout}{stderr}", run.status);
    let afterwards = stdout.split_once("afterwards").unwrap().1;
    assert!(
        afterwards.contains("TOKEN") && afterwards.contains("secrets: 1"),
        "{stdout}"
    );
    let is_clear = |line: &str| line.contains("disk is full") || line.contains("No space left");
    assert_eq!(
        stderr.lines().filter(|line| is_clear(line)).count(),
        2,
        "{stderr}"
    );
}

/// Runs the binary as an unprivileged user, since file modes do not apply to root.
#[test]
fn a_folder_that_cannot_be_written_is_a_clear_error() {
    use std::os::unix::process::CommandExt as _;
    let dir = TestDir::new();
    let home = dir.path().join("home");
    let store = dir.path().join("store.sqlite");
    std::fs::create_dir(&home).unwrap();
    std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o555)).unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let binary = dir.path().join("lango");
    let copied = Command::new("cp")
        .arg(assert_cmd::cargo::cargo_bin!("lango"))
        .arg(&binary)
        .status();
    assert!(copied.unwrap().success());
    dir.write("value", "value-1");
    let mut command = Command::new(&binary);
    let setting = format!("store.path={}", store.display());
    command
        .args([
            "secret",
            "set",
            "TOKEN",
            "--from-file",
            "value",
            "--set",
            &setting,
        ])
        .current_dir(dir.path())
        .env_clear()
        .env("LANGO_HOME", &home);
    if rustix::process::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    let run = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("vault.key cannot be created"), "{stderr}");
    assert!(stderr.contains("nothing was changed"), "{stderr}");
    let set = ["--set", &setting];
    let listed = dir.lango(&[&["secret", "list", "--json"], &set[..]].concat());
    assert_eq!(listed.json()["items"], serde_json::json!([]));
}
