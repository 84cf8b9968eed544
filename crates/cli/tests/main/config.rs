use serde_json::{Value, json};

use crate::setup::{TestDir, lango};

#[test]
fn unknown_setting_gets_a_suggestion() {
    let run = lango(&["--set", "agent.multiAgnet=true", "agent", "list"]);
    assert_eq!(run.exit, 2);
    assert!(run.stderr.contains("did you mean `agent.multiAgent`?") && run.stdout.is_empty());
    let run = lango(&["--set", "agent.multiAgnet=true", "agent", "list", "--json"]);
    assert_eq!(run.error()["code"], "config");
    assert_eq!(run.error()["hint"], "did you mean `agent.multiAgent`?");
}

#[test]
fn usage_errors_are_json() {
    let run = lango(&["agnt", "--json"]);
    assert_eq!(run.exit, 2);
    assert_eq!(run.error()["code"], "usage");
    assert_eq!(run.error()["hint"], "did you mean agent?");
    let missing = lango(&["agent", "partition", "--json"]).error();
    assert!(
        missing["message"].as_str().unwrap().contains("<NAME>"),
        "{missing}"
    );
    let run = lango(&["agent", "partition"]);
    assert_eq!(run.exit, 2);
    assert!(run.stderr.contains("Usage:"));
}

#[test]
fn init_writes_only_defaults() {
    let dir = TestDir::new();
    let before = dir.lango(&["config", "show", "--json"]).json();
    assert_eq!(dir.lango(&["init"]).exit, 0);
    assert_eq!(dir.lango(&["config", "show", "--json"]).json(), before);
    assert!(
        dir.lango(&["config", "check"])
            .stdout
            .contains("lango.toml")
    );
    std::fs::write(dir.path().join("lango.toml"), "# mine\n").unwrap();
    let again = dir.lango(&["init"]);
    assert_eq!(again.exit, 2);
    assert!(again.stderr.contains("--force"));
    assert_eq!(
        std::fs::read_to_string(dir.path().join("lango.toml")).unwrap(),
        "# mine\n",
        "the file is not overwritten"
    );
    assert_eq!(dir.lango(&["init", "--force"]).exit, 0);
    assert_eq!(dir.lango(&["init", "--user"]).exit, 0);
    assert!(
        dir.path().join("home/lango.toml").exists(),
        "LANGO_HOME moves it"
    );
}

#[test]
fn config_show_prints_origins() {
    let dir = TestDir::new();
    dir.write(
        "lango.toml",
        "[agent]\n\nmaxDelegationRounds = 3\nroutes.vault = [\"x_\"]\n",
    );
    assert_eq!(dir.lango(&["config", "trust"]).exit, 0);
    let run = dir.lango_with(
        &["config", "show"],
        &[("LANGO_AGENT__MULTI_AGENT", "false")],
    );
    for part in [
        "lango.toml:3",
        "lango.toml:4",
        "LANGO_AGENT__MULTI_AGENT",
        "agent.maxDelegationRounds = 3",
        "(not set)",
    ] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
}

#[test]
fn config_schema_is_a_json_schema() {
    let schema = lango(&["config", "schema"]).json();
    assert!(schema["properties"]["agent"].is_object());
}

#[test]
fn completions_exist_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = lango(&["completions", shell]);
        assert!(run.exit == 0 && run.stdout.contains("partition"), "{shell}");
    }
    assert_eq!(lango(&["completions", "tcsh"]).exit, 2);
}

#[test]
fn prints_version_and_help() {
    assert!(lango(&["--version"]).stdout.starts_with("lango "));
    assert!(lango(&["--help"]).stdout.contains("Usage:"));
    assert_eq!(lango(&[]).exit, 0, "the chat needs no setup");
    let json: Value = lango(&["config", "check", "--json"]).json();
    assert_eq!(json, json!({ "ok": true, "files": [], "warnings": [] }));
}

#[test]
fn closed_pipe_is_not_an_error() {
    let lango = assert_cmd::cargo::cargo_bin("lango");
    let script = format!(
        "{} agent prompt --tools all | head -c 1; echo ${{PIPESTATUS[0]}}",
        lango.display()
    );
    let output = std::process::Command::new("bash")
        .args(["-c", &script])
        .output()
        .unwrap();
    assert!(
        String::from_utf8_lossy(&output.stdout).ends_with("Y0\n"),
        "{output:?}"
    );
}

#[test]
fn init_follows_no_links_and_keeps_other_configurations() {
    let dir = TestDir::new();
    dir.write("victim", "precious");
    std::os::unix::fs::symlink("victim", dir.path().join("lango.toml")).unwrap();
    assert_eq!(dir.lango(&["init"]).exit, 2);
    assert_eq!(dir.lango(&["init", "--force"]).exit, 0);
    assert_eq!(
        std::fs::read_to_string(dir.path().join("victim")).unwrap(),
        "precious"
    );
    let dir = TestDir::new();
    dir.write("lango.yaml", "agent: {}");
    for args in [&["init"][..], &["init", "--force"]] {
        let run = dir.lango(args);
        assert!(
            run.exit == 2 && run.stderr.contains("lango.yaml"),
            "{}",
            run.stderr
        );
    }
    assert_eq!(dir.lango(&["init", "--config", "other.toml"]).exit, 0);
    assert!(dir.path().join("other.toml").exists());
}

#[test]
fn rejects_fifo_as_agent_file() {
    let dir = TestDir::new();
    dir.write("a/x.txt", "");
    let status = std::process::Command::new("mkfifo")
        .arg(dir.path().join("a/x.md"))
        .status()
        .unwrap();
    assert!(status.success());
    let run = dir.lango(&["agent", "list", "--set", "agent.agentsDir=a"]);
    assert!(
        run.stderr.contains("it is not a regular file"),
        "{}",
        run.stderr
    );
}

#[test]
fn config_show_redacts_secrets() {
    let dir = TestDir::new();
    dir.write("home/lango.toml", "[providers.x]\ntype = \"openai\"\napiKey = 12345678901\nbaseUrl = \"http://u:pwpwpwpw@h/v1\"\n[prices.\"gpt-4.1\"]\ninput = 1\noutput = 2\n");
    let shown = dir.lango(&["config", "show"]).stdout;
    for part in [
        "providers.x.apiKey = \"***\"",
        "lango.toml:3",
        "prices.gpt-4.1.input = 1",
        "http://***@h/v1",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let both = format!("{shown}{}", dir.lango(&["config", "show", "--json"]).stdout);
    assert!(
        !both.contains("12345678901") && !both.contains("pwpwpwpw") && !both.contains('<'),
        "{both}"
    );
    let invalid = dir.lango(&[
        "config",
        "check",
        "--set",
        "providers.x.headers=Bearer sk-topsecret",
    ]);
    assert!(
        invalid.exit == 2 && !invalid.stderr.contains("topsecret"),
        "{}",
        invalid.stderr
    );
    assert_eq!(
        dir.lango(&["config", "check", "--set", "prices.\"gpt-4.1\".input=3"])
            .exit,
        0
    );
}

#[test]
fn config_check_rejects_invalid_settings() {
    for invalid in [
        &["--provider", "nope"][..],
        &["--set", "agent.models.nobody=x"],
        &["--set", "providers.x.retries=1"],
        &["--set", "providers.openai.baseUrl=nowhere"],
        &["--set", "providers.openai.baseUrl=http://h/v1?key=abc"],
        &["--set", "providers.openai.headers={\"Bad Name\":\"v\"}"],
        &["--set", "prices.m={\"input\":-1,\"output\":1}"],
        &["--set", "agent.limits.usd=0"],
    ] {
        let run = lango(&[&["config", "check"][..], invalid].concat());
        assert_eq!(run.exit, 2, "{invalid:?}: {}{}", run.stdout, run.stderr);
    }
}

#[test]
fn set_works_before_and_after_the_command() {
    let args = [
        "--set",
        "agent.multiAgent=false",
        "config",
        "show",
        "--set=agent.maxDelegationRounds=3",
        "--json",
    ];
    let shown = TestDir::new().lango(&args).json();
    assert_eq!(
        (
            &shown["agent"]["multiAgent"],
            &shown["agent"]["maxDelegationRounds"]
        ),
        (&json!(false), &json!(3))
    );
}
