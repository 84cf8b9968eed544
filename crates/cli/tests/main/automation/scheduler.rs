//! `lango automate`.

use serde_json::{Value, json};

use super::{AutomationFixture, DISK_JOB};
use crate::setup::TestDir;

/// B120
#[test]
fn the_status_names_the_process_that_runs_the_scheduler() {
    let fixture = AutomationFixture::new();
    fixture.ok(DISK_JOB);
    let idle = fixture.ok("automate status --json").json();
    assert_eq!(
        (&idle["running"], &idle["owner"]),
        (&json!(false), &Value::Null)
    );
    assert_eq!(idle["jobs"][0]["name"], "disk-check");
    assert_eq!(idle["next"], idle["jobs"][0]["due"]);
    let plain = fixture.ok("automate status");
    assert!(
        plain.stdout.contains("No process runs") && plain.stderr.contains("lango automate run")
    );
    fixture.acquire_lease();
    let status = fixture.ok("automate status");
    assert!(status.stdout.contains("lango serve (process 1)") && status.stdout.contains("since"));
    assert_eq!(status.stderr, "");
    assert_eq!(fixture.ok("automate status --json").json()["running"], true);
}

const INSTALL: [&str; 6] = [
    "automate",
    "install",
    "--config",
    "my config/lango.toml",
    "--set",
    "agent.model=\"50% $x\"",
];

#[test]
fn the_unit_runs_this_binary_with_this_configuration() {
    let dir = TestDir::new();
    dir.write("my config/lango.toml", "[agent]\nprovider = \"offline\"\n");
    let printed = dir.lango(&[&INSTALL[..], &["--print"]].concat());
    assert_eq!(printed.exit, 0, "{}", printed.stderr);
    let unit = printed.stdout;
    let folder = dir.path().display();
    for part in [
        "Restart=on-failure",
        "NoNewPrivileges=yes",
        &format!("\"--config\" \"{folder}/my config/lango.toml\""),
        r#""agent.model=\"50%% $$x\"" automate run"#,
        &format!("Environment=\"LANGO_HOME={folder}/home\""),
        &format!("WorkingDirectory={folder}"),
    ] {
        assert!(unit.contains(part), "{part}: {unit}");
    }
}

#[test]
fn only_an_own_unit_is_replaced() {
    let dir = TestDir::new();
    dir.write("my config/lango.toml", "[agent]\nprovider = \"offline\"\n");
    let homeless = dir.lango(&["automate", "install"]);
    assert!(homeless.exit == 2 && homeless.stderr.contains("--print"));
    let user = dir.path().join("user");
    let home = [("HOME", user.to_str().unwrap())];
    let installed = dir.lango_with(&INSTALL, &home);
    assert!(
        installed
            .stdout
            .contains("systemctl --user enable --now lango-automate.service")
    );
    let file = user.join(".config/systemd/user/lango-automate.service");
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.contains("ExecStart="));
    assert_eq!(dir.lango_with(&INSTALL, &home).exit, 0, "its own file");
    std::fs::write(&file, "[Unit]\n").unwrap();
    let refused = dir.lango_with(&INSTALL, &home);
    assert!(refused.exit == 2 && refused.stderr.contains("was not written by this command"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "[Unit]\n");
    let broken = dir.lango_with(&["automate", "install", "--set", "x"], &home);
    assert_eq!(broken.exit, 2, "the configuration must load");
}

/// The result of a tool step is what the tool printed: it can be empty, and it can be JSON.
#[test]
fn results_of_commands_are_their_output() {
    let fixture = AutomationFixture::new();
    fixture.dir.write("a.rs", "fn main() {}");
    let flow = "name: results
steps:
  - id: quiet
    tool: exec_shell
    with: {command: 'true'}
  - id: never
    tool: exec_shell
    with: {command: echo never}
    depends_on: [quiet]
    if: \"quiet.result != ''\"
  - id: list
    tool: exec_shell
    with: {command: 'echo ''{\"files\": [\"a.rs\"]}'''}
  - id: stat
    tool: fs_stat
    with: {path: '{{list.result.files.0}}'}
    depends_on: [list]
";
    fixture.dir.write("results.flow.yaml", flow);
    fixture.ok("workflow run results.flow.yaml --allow exec_shell --yes --wait");
    let status = fixture.ok("workflow status 1 --json").json();
    let state = |step: usize| status["steps"][step]["state"].clone();
    assert_eq!(state(0), "done", "{status}");
    assert_eq!(status["steps"][0]["result"], "", "{status}");
    assert_eq!(state(1), "skipped", "{status}");
    assert_eq!(state(3), "done", "{status}");
}
