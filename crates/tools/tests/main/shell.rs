//! The command tools.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lango_domain::secret_reference::SecretRedactor;
use lango_domain::{Safety, SecretField, Tool, ToolContext, ToolError, ToolOutputSink};
use lango_tools::shell::{SandboxChoice, tools};
use serde_json::{Value, json};

use crate::harness::{ShellHarness, context, is_running, wait_for_exit};

async fn call(tools: &[Tool], name: &str, args: Value) -> Result<String, String> {
    call_as(context(), tools, name, args).await
}

async fn call_as(
    context: ToolContext,
    tools: &[Tool],
    name: &str,
    args: Value,
) -> Result<String, String> {
    let tool = tools.iter().find(|tool| tool.name == name).unwrap();
    tool.call(context, args)
        .await
        .map(|output| output.content.text)
        .map_err(|ToolError(reason)| reason)
}

/// Returns the id of a command from the output of a tool.
fn parse_id(output: &str) -> String {
    let after = output.split("id ").nth(1).unwrap();
    after.split([' ', '.']).next().unwrap().to_owned()
}

#[tokio::test]
async fn returns_exit_code_and_output() {
    let harness = ShellHarness::new(SandboxChoice::On);
    let tools = tools(&harness.shell());
    let output = call(
        &tools,
        "exec_shell",
        json!({ "command": "echo out; echo err >&2; pwd" }),
    )
    .await
    .unwrap();
    let (first, rest) = output.split_once('\n').unwrap();
    assert!(first.starts_with("exit code 0 after "), "{output}");
    assert_eq!(
        rest,
        format!("out\nerr\n{}\n", harness.at("work").display())
    );
    let output = call(&tools, "exec_shell", json!({ "command": "exit 3" }))
        .await
        .unwrap_err();
    assert!(
        output.starts_with("exit code 3") && output.contains("[sandbox: only"),
        "{output}"
    );
    let output = call(&tools, "exec_shell", json!({ "command": "exit 254" }))
        .await
        .unwrap_err();
    assert!(output.starts_with("exit code 254"), "{output}");
    let fed = json!({ "command": "tr a-z A-Z", "stdin": "given" });
    assert!(
        call(&tools, "exec_shell", fed)
            .await
            .unwrap()
            .ends_with("GIVEN")
    );
    std::fs::create_dir(harness.at("work/sub")).unwrap();
    assert!(
        call(
            &tools,
            "exec_shell",
            json!({ "command": "pwd", "cwd": "sub" })
        )
        .await
        .unwrap()
        .trim_end()
        .ends_with("/sub")
    );
}

#[tokio::test]
async fn rejects_invalid_arguments() {
    let harness = ShellHarness::new(SandboxChoice::On);
    let tools = tools(&harness.shell());
    for (args, expected) in [
        (json!({ "command": " " }), "`command`"),
        (
            json!({ "command": "touch x", "cwd": "../outside" }),
            "workspace",
        ),
        (json!({ "command": "touch x", "cwd": "nowhere" }), "nowhere"),
        (
            json!({ "command": "touch x", "timeout": 100_000 }),
            "`timeout`",
        ),
        (json!({ "command": ["touch", "x"] }), "argument `command`"),
        (
            json!({ "command": format!("touch x # {}", "y".repeat(200_000)) }),
            "too long",
        ),
    ] {
        let output = call(&tools, "exec_shell", args.clone()).await.unwrap_err();
        assert!(output.contains(expected), "{args}: {output}");
    }
    assert_eq!(std::fs::read_dir(harness.at("work")).unwrap().count(), 0);
}

#[tokio::test]
async fn truncates_long_output_and_stores_it() {
    let harness = ShellHarness::new(SandboxChoice::On);
    let tools = tools(&harness.shell());
    let output = call(&tools, "exec_shell", json!({ "command": "seq 200000" }))
        .await
        .unwrap();
    assert!(
        output.len() < 30_000
            && output.contains("\n1\n2\n")
            && output.trim_end().ends_with("200000"),
        "{}",
        output.len()
    );
    let id = parse_id(&output);
    let part = json!({ "id": id, "start_line": 100_000, "lines": 2 });
    assert!(
        call(&tools, "exec_output", part)
            .await
            .unwrap()
            .ends_with("100000: 100000\n100001: 100001")
    );
    let found = json!({ "id": id, "pattern": "^1234.6$" });
    assert_eq!(
        call(&tools, "exec_output", found)
            .await
            .unwrap()
            .lines()
            .count(),
        11
    );
    let mut other = context();
    other.session = lango_domain::event::SessionId::new("another");
    let foreign = call_as(other, &tools, "exec_output", json!({ "id": id })).await;
    assert!(
        foreign.unwrap_err().contains("no output"),
        "outputs belong to their session"
    );
    assert!(
        call(
            &tools,
            "exec_output",
            json!({ "id": "../../data/lango.sqlite" })
        )
        .await
        .is_err()
    );
    lango_tools::shell::delete_outputs(
        &harness.at("data"),
        &context().principal,
        &context().session,
    );
    assert!(
        call(&tools, "exec_output", json!({ "id": id }))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn streams_output() {
    let harness = ShellHarness::new(SandboxChoice::On);
    let tools = tools(&harness.shell());
    let streamed: Arc<Mutex<String>> = Arc::default();
    let sink_text = Arc::clone(&streamed);
    let mut watched = context();
    watched.output_sink = ToolOutputSink::new(move |text| sink_text.lock().unwrap().push_str(text));
    let waiting = "echo first; while [ ! -e go ]; do sleep 0.02; done; echo second";
    let running = call_as(watched, &tools, "exec_shell", json!({ "command": waiting }));
    let watching = async {
        while !streamed.lock().unwrap().contains("first") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        std::fs::write(harness.at("work/go"), "").unwrap();
    };
    let (output, ()) = tokio::join!(running, watching);
    assert!(output.unwrap().ends_with("first\nsecond\n"));
    assert_eq!(*streamed.lock().unwrap(), "first\nsecond\n");
}

#[tokio::test]
async fn runs_commands_in_the_background() {
    let harness = ShellHarness::new(SandboxChoice::On);
    let tools = tools(&harness.shell());
    let marker = format!("lango-test-job-{}", std::process::id());
    let line = format!("echo up; sleep 300; : {marker}");
    let output = call(&tools, "exec_start", json!({ "command": line }))
        .await
        .unwrap();
    let id = parse_id(&output);
    while !call(&tools, "exec_output", json!({ "id": id }))
        .await
        .unwrap()
        .contains("up")
    {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(is_running(&marker));
    assert!(
        call(&tools, "exec_status", json!({}))
            .await
            .unwrap()
            .contains(" has been running for ")
    );
    assert!(
        call(&tools, "exec_status", json!({ "id": "nope" }))
            .await
            .unwrap_err()
            .contains(&id)
    );
    assert!(
        call(&tools, "exec_stop", json!({ "id": id }))
            .await
            .unwrap()
            .ends_with("stopped")
    );
    assert!(wait_for_exit(&marker).await);
    assert!(
        call(&tools, "exec_status", json!({ "id": id }))
            .await
            .unwrap()
            .contains("was stopped")
    );
    let short = call(&tools, "exec_start", json!({ "command": "exit 4" }))
        .await
        .unwrap();
    let id = parse_id(&short);
    while !call(&tools, "exec_status", json!({ "id": id }))
        .await
        .unwrap()
        .contains("exit code 4")
    {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn intent_shows_command_and_folder() {
    let harness = ShellHarness::new(SandboxChoice::On);
    let tools = tools(&harness.shell());
    let tool = tools.iter().find(|tool| tool.name == "exec_shell").unwrap();
    let args = json!({ "command": "git status", "stdin": "typed" });
    let intent = tool.intent(context(), args).await.unwrap();
    assert_eq!(
        intent.shows,
        format!(
            "$ git status\nin {}\nwith this input:\ntyped",
            harness.at("work").display()
        )
    );
    assert_eq!(
        (intent.level, intent.subject.as_str()),
        (Safety::Dangerous, "git status\ntyped")
    );
    assert_eq!(intent.pattern, None, "input is part of what runs");
}

/// B122
#[tokio::test]
async fn variables_pass_values_without_making_them_part_of_the_line() {
    let harness = ShellHarness::new(SandboxChoice::On);
    let tools = tools(&harness.shell());
    let args = json!({ "command": "printf '%s' \"$NAME\"", "env": { "NAME": "a'; touch x; echo '$(id)" } });
    let output = call(&tools, "exec_shell", args.clone()).await.unwrap();
    assert!(output.contains("a'; touch x; echo '$(id)"), "{output}");
    assert_eq!(std::fs::read_dir(harness.at("work")).unwrap().count(), 0);
    let tool = tools.iter().find(|tool| tool.name == "exec_shell").unwrap();
    let intent = tool.intent(context(), args).await.unwrap();
    assert!(
        intent
            .shows
            .ends_with("\nwith NAME=a'; touch x; echo '$(id)")
    );
    assert!(intent.subject.starts_with("NAME=a'; touch x") && intent.pattern.is_none());

    let read = json!({ "command": "git status" });
    assert!(tool.is_read_only(&read));
    assert!(!tool.is_read_only(&json!({ "command": "git status", "env": { "A": "b" } })));
    for name in ["LD_PRELOAD", "PATH", "GIT_PAGER", "A B", "1A", "", "A=B"] {
        let args = json!({ "command": "true", "env": { name: "x" } });
        let error = call(&tools, "exec_shell", args).await.unwrap_err();
        assert!(error.contains("`env`"), "{name}: {error}");
    }
}

/// B130: a command receives the value, and its output is stored, shown and returned without it.
#[tokio::test]
async fn output_is_kept_without_secrets() {
    let value = "hunter22-Zq8/7=";
    let harness = ShellHarness::new(SandboxChoice::On);
    let tools = tools(&harness.shell());
    let shown = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&shown);
    let context = ToolContext {
        output_sink: ToolOutputSink::new(move |text| sink.lock().unwrap().push_str(text)),
        redactor: SecretRedactor::new([("TOKEN".to_owned(), value.to_owned())]),
        ..context()
    };
    // In parts, in other forms, and where a long output is cut.
    let command = "test \"$T\" = hunter22-Zq8/7= && printf 'a %s ' \"$T\"; printf %s \"$T\" | base64; printf %s \"user:$T\" | base64; \
        printf %s \"$T\" | od -An -tx1 | tr -d ' \\n'; for i in $(seq 4000); do printf 'line %s of %s\\n' $i \"$T\"; done";
    for (tool, args) in [
        (
            "exec_shell",
            json!({ "command": command, "env": { "T": value } }),
        ),
        (
            "exec_start",
            json!({ "command": command, "env": { "T": value } }),
        ),
    ] {
        let output = call_as(context.clone(), &tools, tool, args).await.unwrap();
        let id = parse_id(&output);
        for _ in 0..1_000 {
            let status = call_as(context.clone(), &tools, "exec_status", json!({})).await;
            if !status.unwrap().contains("has been running") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let all = json!({ "id": id, "start_line": 1, "lines": 2_000 });
        let stored = call_as(context.clone(), &tools, "exec_output", all).await;
        for text in [output, stored.unwrap(), shown.lock().unwrap().clone()] {
            assert!(
                !text.contains("hunter22") && !text.contains("68756e74"),
                "{tool}: {text}"
            );
            assert!(
                !text.contains("aHVudGVyMjI") && !text.contains("h1bnRlcjIy"),
                "{tool}: {text}"
            );
        }
    }
    assert!(
        shown
            .lock()
            .unwrap()
            .starts_with("a [secret TOKEN: set, hidden] [secret TOKEN: set, hidden]")
    );
    for file in walk(&harness.at("data")) {
        let bytes = std::fs::read(&file).unwrap();
        assert!(
            !String::from_utf8_lossy(&bytes).contains("hunter22"),
            "{}",
            file.display()
        );
    }
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let below = entries.flat_map(|entry| match entry.path() {
        path if path.is_dir() => walk(&path),
        path => vec![path],
    });
    below.collect()
}

/// B130
#[test]
fn commands_accept_secrets_in_variables_only() {
    let harness = ShellHarness::new(SandboxChoice::On);
    for tool in tools(&harness.shell()) {
        let expected: &[SecretField] = match tool.name.as_str() {
            "exec_shell" | "exec_start" => &[SecretField::Values("env")],
            _ => &[],
        };
        assert_eq!(tool.secret_fields, expected, "{}", tool.name);
    }
}

/// Without a sandbox, a command has all permissions of the user, but still ends with its call.
#[tokio::test]
async fn sandbox_can_be_disabled() {
    let harness = ShellHarness::new(SandboxChoice::Off);
    let output = harness
        .run("cat ../outside/secret; echo x > ../outside/new")
        .await;
    assert!(
        output.starts_with("exit code 0") && output.contains(crate::harness::SECRET),
        "{output}"
    );
    assert!(harness.at("outside/new").exists());
    let marker = format!("lango-test-off-{}", std::process::id());
    harness
        .run(&format!("setsid sh -c 'sleep 300; : {marker}' & exit 0"))
        .await;
    assert!(wait_for_exit(&marker).await);
}

#[tokio::test]
async fn ordinary_commands_work_in_the_sandbox() {
    let harness = ShellHarness::new(SandboxChoice::On);
    for line in [
        "mkdir -p a/b && echo x > a/b/c && chmod +x a/b/c && mv a/b/c a/d && cp -p a/d e && rm -r a",
        "mktemp | xargs test -f && echo x > $TMPDIR/y",
        "git init -q . && git -c user.name=x -c user.email=x@x commit -q --allow-empty -m x && git log --oneline",
        "perl -e 'print 1 + 1' | grep -q 2 && diff <(echo a) <(echo a)",
        "sleep 0.01 & wait; (exit 0) && ps ax > /dev/null",
    ] {
        let output = harness.run(line).await;
        assert!(output.starts_with("exit code 0"), "{line}: {output}");
    }
}
