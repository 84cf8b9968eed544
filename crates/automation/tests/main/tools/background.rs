//! `bg_*`.

use lango_domain::Label;
use lango_domain::automation::{JobAction, RunState};
use serde_json::json;

use super::setup::{ToolFixture, USER_SESSION, context};

/// S87
#[tokio::test]
async fn a_task_is_submitted_watched_and_read() {
    let fixture = ToolFixture::new().with_team();
    let args = json!({ "prompt": "Run the tests.", "agent": "operator", "timeout": "30m" });
    let answer = fixture.call("bg_submit", args).await;
    assert_eq!(
        answer,
        "Background task 1: asks the operator: Run the tests.\n\
         Results go to: inbox.\n\
         Nothing runs it at the moment: start `lango automate run` or `lango serve`, or keep a chat open."
    );
    let task = json!({ "task_id": 1 });
    let status = fixture.call("bg_status", task.clone()).await;
    assert!(
        status.starts_with("- task 1 (Run the tests.): queued"),
        "{status}"
    );
    assert_eq!(
        fixture.call("bg_result", task.clone()).await,
        "There is no result yet: it is queued."
    );
    let lease = fixture.start_scheduler().await;
    let run = fixture.start_run(lease, "task-session").await;
    assert!(matches!(run.spec.action, JobAction::Prompt { .. }));
    fixture.advance(65);
    fixture
        .end_run(
            lease,
            run.id,
            "All passed.\x1b[31m",
            Label::untrusted("exec_shell"),
        )
        .await;
    let result = fixture.call_as(context(USER_SESSION), "bg_result", task.clone());
    let result = result.await.unwrap();
    assert_eq!(result.content.text, "All passed.[31m");
    assert_eq!(result.label, Some(Label::untrusted("exec_shell")));
    let list = fixture.call("bg_list", json!({})).await;
    assert!(
        list.contains("done") && list.contains("took 1 min 5 s"),
        "{list}"
    );
    let error = fixture.error("bg_cancel", task).await;
    assert_eq!(error, "run 1 is done already");
}

#[tokio::test]
async fn tasks_are_cancelled() {
    let fixture = ToolFixture::new();
    fixture.call("bg_submit", json!({ "prompt": "x" })).await;
    let answer = fixture.call("bg_cancel", json!({ "task_id": 1 })).await;
    assert_eq!(answer, "Background task 1 is cancelled.");
    assert_eq!(fixture.run(1).await.state, RunState::Cancelled);
    fixture.call("bg_submit", json!({ "prompt": "y" })).await;
    let lease = fixture.start_scheduler().await;
    fixture.start_run(lease, "s").await;
    let answer = fixture.call("bg_cancel", json!({ "task_id": 2 })).await;
    assert_eq!(answer, "Background task 2 was asked to stop.");
    assert!(fixture.run(2).await.is_cancel_requested);
}

#[tokio::test]
async fn other_runs_are_no_tasks() {
    let fixture = ToolFixture::new();
    let when = "every day at 8 check the disk";
    fixture.call("cron_add", json!({ "when": when })).await;
    fixture.call("cron_run", json!({ "job": "1" })).await;
    for (args, expected) in [
        (
            json!({ "task_id": 1 }),
            "run 1 is no background task, but a run of the job `check the disk`",
        ),
        (json!({ "task_id": 77 }), "there is no run 77"),
    ] {
        assert_eq!(fixture.error("bg_result", args).await, expected);
    }
    let error = fixture.error("bg_result", json!({ "task_id": "x" })).await;
    assert!(error.starts_with("argument `task_id`"), "{error}");
}

#[tokio::test]
async fn open_tasks_are_limited() {
    let fixture = ToolFixture::new();
    for _ in 0..20 {
        fixture.call("bg_submit", json!({ "prompt": "x" })).await;
    }
    let error = fixture.error("bg_submit", json!({ "prompt": "x" })).await;
    assert!(
        error.contains("already 20 background tasks") && error.contains("background.maxOpen"),
        "{error}"
    );
    fixture.call("bg_cancel", json!({ "task_id": 1 })).await;
    fixture.call("bg_submit", json!({ "prompt": "x" })).await;
}
