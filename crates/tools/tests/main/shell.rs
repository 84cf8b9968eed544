//! Commands, as an agent runs them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lango_domain::{Safety, Tool, ToolContext, ToolError, ToolOutputSink};
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
        .map(|output| output.text)
        .map_err(|ToolError(why)| why)
}

#[tokio::test]
async fn a_command_gives_its_exit_code_and_what_it_printed() {
    let world = ShellHarness::new(SandboxChoice::On);
    let tools = tools(&world.shell());
    let told = call(
        &tools,
        "exec_shell",
        json!({ "command": "echo out; echo err >&2; pwd" }),
    )
    .await
    .unwrap();
    let (first, rest) = told.split_once('\n').unwrap();
    assert!(first.starts_with("exit code 0 after "), "{told}");
    assert_eq!(rest, format!("out\nerr\n{}\n", world.at("work").display()));
    let told = call(&tools, "exec_shell", json!({ "command": "exit 3" }))
        .await
        .unwrap_err();
    assert!(
        told.starts_with("exit code 3") && told.contains("[sandbox: only"),
        "{told}"
    );
    let told = call(&tools, "exec_shell", json!({ "command": "exit 254" }))
        .await
        .unwrap_err();
    assert!(told.starts_with("exit code 254"), "{told}");
    let fed = json!({ "command": "tr a-z A-Z", "stdin": "given" });
    assert!(
        call(&tools, "exec_shell", fed)
            .await
            .unwrap()
            .ends_with("GIVEN")
    );
    std::fs::create_dir(world.at("work/sub")).unwrap();
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
async fn bad_arguments_are_said_and_nothing_runs() {
    let world = ShellHarness::new(SandboxChoice::On);
    let tools = tools(&world.shell());
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
        let told = call(&tools, "exec_shell", args.clone()).await.unwrap_err();
        assert!(told.contains(expected), "{args}: {told}");
    }
    assert_eq!(std::fs::read_dir(world.at("work")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_long_output_is_cut_for_the_model_and_stays_readable() {
    let world = ShellHarness::new(SandboxChoice::On);
    let tools = tools(&world.shell());
    let told = call(&tools, "exec_shell", json!({ "command": "seq 200000" }))
        .await
        .unwrap();
    assert!(
        told.len() < 30_000 && told.contains("\n1\n2\n") && told.trim_end().ends_with("200000"),
        "{}",
        told.len()
    );
    let id = told
        .split("id ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .to_owned();
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
    lango_tools::shell::delete_outputs(&world.at("data"), &context().principal, &context().session);
    assert!(
        call(&tools, "exec_output", json!({ "id": id }))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn output_is_shown_while_it_comes() {
    let world = ShellHarness::new(SandboxChoice::On);
    let tools = tools(&world.shell());
    let shown: Arc<Mutex<String>> = Arc::default();
    let seen = Arc::clone(&shown);
    let mut watched = context();
    watched.output_sink = ToolOutputSink::new(move |text| seen.lock().unwrap().push_str(text));
    let waiting = "echo first; while [ ! -e go ]; do sleep 0.02; done; echo second";
    let running = call_as(watched, &tools, "exec_shell", json!({ "command": waiting }));
    let watching = async {
        while !shown.lock().unwrap().contains("first") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        std::fs::write(world.at("work/go"), "").unwrap();
    };
    let (told, ()) = tokio::join!(running, watching);
    assert!(told.unwrap().ends_with("first\nsecond\n"));
    assert_eq!(*shown.lock().unwrap(), "first\nsecond\n");
}

#[tokio::test]
async fn a_command_can_run_beside_the_conversation() {
    let world = ShellHarness::new(SandboxChoice::On);
    let tools = tools(&world.shell());
    let mark = format!("lango-test-job-{}", std::process::id());
    let line = format!("echo up; sleep 300; : {mark}");
    let told = call(&tools, "exec_start", json!({ "command": line }))
        .await
        .unwrap();
    let id = told
        .split("id ")
        .nth(1)
        .unwrap()
        .split('.')
        .next()
        .unwrap()
        .to_owned();
    while !call(&tools, "exec_output", json!({ "id": id }))
        .await
        .unwrap()
        .contains("up")
    {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(is_running(&mark));
    assert!(
        call(&tools, "exec_status", json!({}))
            .await
            .unwrap()
            .contains(" runs since ")
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
    assert!(wait_for_exit(&mark).await);
    assert!(
        call(&tools, "exec_status", json!({ "id": id }))
            .await
            .unwrap()
            .contains("was stopped")
    );
    let short = call(&tools, "exec_start", json!({ "command": "exit 4" }))
        .await
        .unwrap();
    let id = short
        .split("id ")
        .nth(1)
        .unwrap()
        .split('.')
        .next()
        .unwrap()
        .to_owned();
    while !call(&tools, "exec_status", json!({ "id": id }))
        .await
        .unwrap()
        .contains("exit code 4")
    {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn the_question_shows_the_command_and_where_it_runs() {
    let world = ShellHarness::new(SandboxChoice::On);
    let tools = tools(&world.shell());
    let tool = tools.iter().find(|tool| tool.name == "exec_shell").unwrap();
    let args = json!({ "command": "git status", "stdin": "typed" });
    let intent = tool.intent(context(), args).await.unwrap();
    assert_eq!(
        intent.shows,
        format!(
            "$ git status\nin {}\nwith this input:\ntyped",
            world.at("work").display()
        )
    );
    assert_eq!(
        (intent.level, intent.subject.as_str()),
        (Safety::Dangerous, "git status\ntyped")
    );
    assert_eq!(intent.pattern, None, "input is part of what runs");
}

/// Without a sandbox a command may do what the user may, and still ends with its call.
#[tokio::test]
async fn the_sandbox_can_be_switched_off() {
    let world = ShellHarness::new(SandboxChoice::Off);
    let told = world
        .run("cat ../outside/secret; echo x > ../outside/new")
        .await;
    assert!(
        told.starts_with("exit code 0") && told.contains(crate::harness::SECRET),
        "{told}"
    );
    assert!(world.at("outside/new").exists());
    let mark = format!("lango-test-off-{}", std::process::id());
    world
        .run(&format!("setsid sh -c 'sleep 300; : {mark}' & exit 0"))
        .await;
    assert!(wait_for_exit(&mark).await);
}

#[tokio::test]
async fn commands_work_as_usual_inside() {
    let world = ShellHarness::new(SandboxChoice::On);
    for line in [
        "mkdir -p a/b && echo x > a/b/c && chmod +x a/b/c && mv a/b/c a/d && cp -p a/d e && rm -r a",
        "mktemp | xargs test -f && echo x > $TMPDIR/y",
        "git init -q . && git -c user.name=x -c user.email=x@x commit -q --allow-empty -m x && git log --oneline",
        "perl -e 'print 1 + 1' | grep -q 2 && diff <(echo a) <(echo a)",
        "sleep 0.01 & wait; (exit 0) && ps ax > /dev/null",
    ] {
        let told = world.run(line).await;
        assert!(told.starts_with("exit code 0"), "{line}: {told}");
    }
}
