//! B121: permission is asked when work is created, and no run widens its own.

use lango_automation::CronSettings;
use lango_automation::delivery::DeliverySettings;
use lango_automation::planning::{
    Requester, RunOptions, StepPermissions, WorkPlanner, WorkflowRequest, WorkflowSource,
};
use lango_domain::{Label, Safety};
use lango_engine::{ApprovalPolicy, Verdict};
use serde_json::{Value, json};

use super::setup::{ToolFixture, USER_SESSION, context, deliverable, owner, team_tools};

/// B121
#[tokio::test]
async fn the_question_says_everything() {
    let fixture = ToolFixture::with_settings(CronSettings::default(), deliverable()).with_team();
    let args = json!({
        "name": "disk", "schedule_type": "cron", "schedule": "0 8 * * MON", "agent": "operator",
        "prompt": "Check the disk.\nwithout asking: nothing",
        "deliver_to": ["inbox", "webhook:https://hooks.example/T1"], "failure_deliver_to": ["command:logger -t disk"],
        "budget": { "tokens": 5000, "usd": 0.5 }, "timeout": "10m",
        "allow": ["exec_shell df*", "fs_write"],
    });
    let intent = fixture.intent("cron_add", args).await.unwrap();
    assert_eq!(intent.level, Safety::Dangerous);
    assert_eq!(
        intent.shows,
        "adds the job `disk`\n\
         asks the operator: Check the disk.\n    without asking: nothing\n\
         when: cron `0 8 * * MON` in Europe/Berlin\n  \
           next: Mon 23 Nov 2026 08:00 Europe/Berlin, in 5 days 7 h\n  \
           then: Mon 30 Nov 2026 08:00 Europe/Berlin\n  \
           then: Mon 7 Dec 2026 08:00 Europe/Berlin\n\
         without asking, also when nobody is there:\n  \
           exec_shell: df*\n  \
           fs_write: every call\n\
         results: puts each result into the inbox\n\
         results: sends each result to https://hooks.example/T1\n\
         failures: runs `logger -t disk` in the sandbox, without network, with each result as input\n\
         budget of each run: 5000 tokens and 0.5 USD\n\
         stops after 10 min"
    );
}

const STEPS: &str = "name: flow
params: {target: all}
steps:
  - {id: read, tool: fs_read, with: {}}
  - {id: build, tool: exec_shell, with: {command: make, env: {TARGET: '{{params.target}}'}}}
  - {id: report, tool: fs_write, with: {text: '{{build.result}}'}, depends_on: [build]}
  - {id: look, prompt: look around}
";

/// B121: the steps that would wait are found, with what is known of their arguments, and asked about.
#[tokio::test]
async fn the_question_of_a_workflow_lists_the_steps_that_would_wait() {
    let fixture = ToolFixture::new();
    let team = team_tools();
    let limits = &fixture.parts.limits;
    let planner = WorkPlanner {
        store: &*fixture.store,
        now: fixture.now(),
        time_zone: &fixture.parts.time_zone,
        workspace: None,
        limits,
        catalog: None,
    };
    let request = WorkflowRequest {
        source: WorkflowSource::Text {
            file: "flow".to_owned(),
            text: STEPS.to_owned(),
        },
        params: serde_json::Map::new(),
    };
    let ask = ApprovalPolicy::default();
    let permit = ApprovalPolicy {
        dangerous: Verdict::Auto,
        ..ApprovalPolicy::default()
    };
    let rule = |target: &str| {
        format!(
            "exec_shell {}",
            json!({ "command": "make", "env": { "TARGET": target } })
        )
    };
    let whole_tool = || "exec_shell".to_owned();
    for (policy, allow, expected) in [
        (&ask, vec![], vec!["build", "report"]),
        (&ask, vec![whole_tool()], vec!["report"]),
        (&ask, vec![rule("all")], vec!["report"]),
        (&ask, vec![rule("none")], vec!["build", "report"]),
        (&permit, vec![], vec![]),
    ] {
        let options = RunOptions {
            allow: allow.clone(),
            ..RunOptions::default()
        };
        let user = Requester::user(owner());
        let planned = planner.plan_workflow(&user, &request, &options).await;
        let mut planned = planned.unwrap();
        let permissions = StepPermissions {
            tools: team.iter().collect(),
            policy,
        };
        permissions.allow_in_run(&mut planned).await;
        assert_eq!(planned.run.spec.allowed_steps, expected, "{allow:?}");
        let question = planned.question();
        for step in expected {
            let line = format!("\n  the call of the step {step}, as above\n");
            assert!(question.contains(&line), "{question}");
        }
    }
}

/// B121
#[tokio::test]
async fn the_level_follows_from_what_the_work_may_do() {
    let fixture = ToolFixture::with_settings(CronSettings::default(), deliverable()).with_team();
    let with = |key: &str, value: Value| {
        let mut args = json!({ "when": "every day at 8", "prompt": "x" });
        args[key] = value;
        args
    };
    for (args, level) in [
        (with("agent", json!("operator")), Safety::Moderate),
        (
            with("deliver_to", json!(["session:notes"])),
            Safety::Moderate,
        ),
        (
            with("deliver_to", json!(["file:log.txt"])),
            Safety::Moderate,
        ),
        (
            with("deliver_to", json!(["webhook:https://x.example"])),
            Safety::Dangerous,
        ),
        (
            with("failure_deliver_to", json!(["email:a@x.example"])),
            Safety::Dangerous,
        ),
        (
            with("deliver_to", json!(["command:true"])),
            Safety::Dangerous,
        ),
        (with("allow", json!(["fs_read"])), Safety::Dangerous),
    ] {
        let intent = fixture.intent("cron_add", args.clone()).await.unwrap();
        assert_eq!(intent.level, level, "{args}");
    }
    let args = json!({ "prompt": "x", "allow": ["*"] });
    let intent = fixture.intent("bg_submit", args).await.unwrap();
    assert_eq!(intent.level, Safety::Dangerous);
    assert!(
        intent.shows.contains("every call of every tool"),
        "{}",
        intent.shows
    );
    let args = json!({ "prompt": "x" });
    let intent = fixture.intent("bg_submit", args).await.unwrap();
    assert_eq!(intent.level, Safety::Moderate);
    assert_eq!(
        intent.shows,
        "runs a background task now\n\
         asks the team: x\n\
         without asking: only what the settings allow; everything else waits for approval\n\
         results: puts each result into the inbox\n\
         budget of each run: the limits of a turn"
    );
}

/// B121: workflows that call dangerous tools or send something out are asked about.
#[tokio::test]
async fn the_level_of_a_workflow_is_that_of_its_steps() {
    let fixture = ToolFixture::with_settings(CronSettings::default(), deliverable()).with_team();
    let flow = |step: &str| json!({ "yaml_content": format!("name: flow\nsteps:\n  - id: a\n    {step}\n") });
    for (step, level) in [
        ("prompt: look around", Safety::Moderate),
        ("tool: fs_read", Safety::Moderate),
        (
            "tool: exec_shell\n    with: {command: make}",
            Safety::Dangerous,
        ),
        (
            "prompt: look\n    deliver_to: [\"webhook:https://x.example\"]",
            Safety::Dangerous,
        ),
    ] {
        let intent = fixture.intent("workflow_run", flow(step)).await.unwrap();
        assert_eq!(intent.level, level, "{step}: {}", intent.shows);
    }
    let intent = fixture
        .intent(
            "workflow_run",
            flow("tool: exec_shell\n    with: {command: make}"),
        )
        .await
        .unwrap();
    assert!(
        intent
            .shows
            .contains("  a: calls exec_shell: {\"command\":\"make\"}"),
        "{}",
        intent.shows
    );
}

/// Runs a job with this permission, and returns the session of its run.
async fn running_job(fixture: &ToolFixture, allow: Value) -> &'static str {
    let args = json!({ "name": "outer", "when": "every day at 8", "prompt": "x", "allow": allow });
    fixture.call("cron_add", args).await;
    fixture.call("cron_run", json!({ "job": "outer" })).await;
    let lease = fixture.start_scheduler().await;
    fixture.start_run(lease, "outer-session").await;
    "outer-session"
}

/// B121
#[tokio::test]
async fn a_run_cannot_give_more_permission_than_it_has() {
    let fixture = ToolFixture::new();
    let session = running_job(&fixture, json!(["exec_shell git *"])).await;
    let add = |allow: Value| {
        let args = json!({ "when": "every day at 9", "prompt": "y", "allow": allow });
        fixture.call_as(context(session), "cron_add", args)
    };
    for allow in [
        json!(["exec_shell"]),
        json!(["*"]),
        json!(["fs_write"]),
        json!(["exec_shell git status; rm -rf *"]),
    ] {
        let error = add(allow.clone()).await.unwrap_err().0;
        assert!(
            error.contains(
                "a job cannot give more permission than it has itself; it has exec_shell git *"
            ),
            "{allow}: {error}"
        );
    }
    add(json!(["exec_shell git status*"])).await.unwrap();
    add(json!([])).await.unwrap();
    let task = json!({ "prompt": "z", "allow": ["fs_write"] });
    let error = fixture.call_as(context(session), "bg_submit", task).await;
    assert!(error.unwrap_err().0.contains("more permission"));
}

/// B121: a target can run a command, so a run delivers only where it may deliver itself.
#[tokio::test]
async fn a_run_cannot_deliver_to_more_targets_than_it_has() {
    let fixture = ToolFixture::with_settings(CronSettings::default(), deliverable());
    let args = json!({
        "name": "outer", "when": "every day at 8", "prompt": "x", "deliver_to": ["file:log.txt"],
        "allow": ["cron_add", "workflow_run"],
    });
    fixture.call("cron_add", args).await;
    fixture.call("cron_run", json!({ "job": "outer" })).await;
    let lease = fixture.start_scheduler().await;
    fixture.start_run(lease, "outer-session").await;
    let add = |key: &str, target: &str| {
        let args = json!({ "when": "every day at 9", "prompt": "y", key: [target] });
        fixture.call_as(context("outer-session"), "cron_add", args)
    };
    for (key, target) in [
        ("deliver_to", "command:touch x"),
        ("failure_deliver_to", "command:touch x"),
        ("deliver_to", "webhook:https://x.example"),
        ("deliver_to", "file:other.txt"),
        ("deliver_to", "session:chat"),
    ] {
        let error = add(key, target).await.unwrap_err().0;
        assert!(
            error.contains("it has no such target itself"),
            "{target}: {error}"
        );
    }
    for target in ["inbox", "file:log.txt", "session:outer-session"] {
        add("deliver_to", target).await.unwrap();
    }
    let flow = "name: f\nsteps: [{id: a, prompt: b, deliver_to: [\"command:touch x\"]}]";
    let run = json!({ "yaml_content": flow });
    let error = fixture
        .call_as(context("outer-session"), "workflow_run", run)
        .await;
    assert!(
        error
            .unwrap_err()
            .0
            .contains("it has no such target itself")
    );
}

/// B121: the folder of the work is part of the question.
#[tokio::test]
async fn work_belongs_to_the_folder_that_it_was_added_in() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = ToolFixture::new().with_workspace(folder.path());
    let args = json!({ "name": "disk", "when": "every day at 8", "prompt": "x" });
    let root = folder.path().canonicalize().unwrap();
    let intent = fixture.intent("cron_add", args.clone()).await.unwrap();
    let line = format!("works in {}\n", root.display());
    assert!(intent.shows.contains(&line), "{}", intent.shows);
    fixture.call("cron_add", args).await;
    assert_eq!(fixture.job("disk").await.spec.workspace, Some(root));
    let reminder = json!({ "when": "remind me every day at 8 to stretch" });
    let intent = fixture.intent("cron_add", reminder).await.unwrap();
    assert!(!intent.shows.contains("works in"), "{}", intent.shows);
}

/// B121: a job of a job is at depth 1, which is the limit.
#[tokio::test]
async fn jobs_are_not_nested_without_end() {
    let fixture = ToolFixture::new();
    let session = running_job(&fixture, json!([])).await;
    let args = json!({ "name": "inner", "when": "every day at 9", "prompt": "y" });
    fixture
        .call_as(context(session), "cron_add", args)
        .await
        .unwrap();
    assert_eq!(fixture.job("inner").await.spec.depth, 1);
    fixture.call("cron_run", json!({ "job": "inner" })).await;
    let lease = fixture.store.lease().await.unwrap().unwrap().number;
    fixture.start_run(lease, "inner-session").await;
    for (name, args) in [
        (
            "cron_add",
            json!({ "when": "in two hours look", "name": "third" }),
        ),
        ("bg_submit", json!({ "prompt": "y" })),
        (
            "workflow_run",
            json!({ "yaml_content": "name: f\nsteps: [{id: a, prompt: b}]" }),
        ),
    ] {
        let error = fixture
            .call_as(context("inner-session"), name, args)
            .await
            .unwrap_err();
        assert!(error.0.contains("nested 1 deep at most"), "{name}: {error}");
    }
}

/// B121
#[tokio::test]
async fn the_number_of_jobs_of_jobs_is_limited() {
    let fixture = ToolFixture::new();
    let session = running_job(&fixture, json!([])).await;
    let args = json!({ "when": "every day at 9", "prompt": "y" });
    for _ in 0..20 {
        let added = fixture.call_as(context(session), "cron_add", args.clone());
        added.await.unwrap();
    }
    let error = fixture
        .call_as(context(session), "cron_add", args.clone())
        .await
        .unwrap_err();
    assert!(
        error.0.contains("jobs have already made 20 jobs"),
        "{error}"
    );
    fixture.call("cron_add", args).await;
}

/// B121: what waits for a user is not answered by a run, and a run starts no other out of turn.
#[tokio::test]
async fn a_run_does_not_decide_for_the_user() {
    let fixture = ToolFixture::new();
    let session = running_job(&fixture, json!([])).await;
    fixture.call("cron_pause", json!({ "job": "outer" })).await;
    for (name, args) in [
        ("cron_run", json!({ "job": "outer" })),
        ("cron_resume", json!({ "job": "outer" })),
        ("workflow_approve", json!({ "run_id": 1 })),
        ("workflow_retry", json!({ "run_id": 1 })),
    ] {
        let error = fixture
            .call_as(context(session), name, args)
            .await
            .unwrap_err();
        assert!(
            error
                .0
                .starts_with("`outer` runs without a user, and only a user can"),
            "{name}: {error}"
        );
    }
}

/// B121: after its run, a session is the user's again.
#[tokio::test]
async fn a_session_without_a_running_run_is_not_limited() {
    let fixture = ToolFixture::new();
    let session = running_job(&fixture, json!([])).await;
    let lease = fixture.store.lease().await.unwrap().unwrap().number;
    let run = fixture.run(1).await;
    fixture
        .end_run(lease, run.id, "done", Label::default())
        .await;
    let args =
        json!({ "name": "new", "when": "every day at 9", "prompt": "y", "allow": ["fs_write"] });
    fixture
        .call_as(context(session), "cron_add", args)
        .await
        .unwrap();
    assert_eq!(fixture.job("new").await.spec.depth, 0);
}

/// B101, B121: a job keeps the label of what it was made from.
#[tokio::test]
async fn the_label_of_the_request_stays_with_the_work() {
    let fixture = ToolFixture::new();
    let mut from_page = context(USER_SESSION);
    from_page.label = Label::untrusted("a page").joined(&Label::private("a file"));
    let label = from_page.label.clone();
    fixture
        .call_as(from_page, "bg_submit", json!({ "prompt": "x" }))
        .await
        .unwrap();
    assert_eq!(fixture.run(1).await.spec.label, label);
}

/// B103: the hosts that results go to are known before the call.
#[tokio::test]
async fn targets_that_leave_the_machine_are_outgoing() {
    let fixture = ToolFixture::with_settings(CronSettings::default(), DeliverySettings::default());
    let args = json!({
        "prompt": "the secret plan",
        "deliver_to": ["inbox", "webhook:https://hooks.example/x", "email:a@mail.example"],
    });
    let outgoing = fixture
        .tool("bg_submit")
        .outgoing(&context(USER_SESSION), &args)
        .unwrap();
    assert_eq!(outgoing.to.to_string(), "hooks.example, mail.example");
    assert_eq!(outgoing.data, "the secret plan");
    let outgoing = fixture
        .tool("cron_add")
        .outgoing(&context(USER_SESSION), &json!({ "reminder": "x" }));
    assert_eq!(outgoing.unwrap().to.to_string(), "");
}

/// B121: each principal has jobs of its own.
#[tokio::test]
async fn principals_do_not_see_each_others_work() {
    let fixture = ToolFixture::new();
    fixture
        .call(
            "cron_add",
            json!({ "name": "mine", "when": "every day", "prompt": "x" }),
        )
        .await;
    fixture.call("bg_submit", json!({ "prompt": "x" })).await;
    let other = || {
        let mut other = context(USER_SESSION);
        other.principal = lango_domain::event::Principal::new("other");
        assert_ne!(other.principal, owner());
        other
    };
    let list = fixture.call_as(other(), "cron_list", json!({})).await;
    assert_eq!(list.unwrap().content.text, "Nothing is scheduled.");
    for (name, args) in [
        ("cron_remove", json!({ "job": "mine" })),
        ("cron_remove", json!({ "job": "#1" })),
        ("bg_result", json!({ "task_id": 1 })),
        ("bg_cancel", json!({ "task_id": 1 })),
    ] {
        let error = fixture.call_as(other(), name, args).await.unwrap_err();
        assert!(error.0.starts_with("there is no"), "{name}: {error}");
    }
}
