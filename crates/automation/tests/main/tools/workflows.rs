//! `workflow_*`.

use lango_domain::automation::{JobAction, RunId, RunState, RunStep, StepDecision, StepState};
use lango_domain::{Label, Safety};
use serde_json::json;

use super::setup::{ToolFixture, USER_SESSION, context, owner};

const REVIEW: &str = "name: review
params: {branch: main}
schedule: \"0 7 * * MON-FRI\"
timezone: Europe/Berlin
steps:
  - id: diff
    tool: fs_read
    with: {path: \"{{params.branch}}\"}
  - id: look
    agent: librarian
    prompt: Review the change.
    input: [\"{{diff.result}}\"]
    depends_on: [diff]
  - id: publish
    agent: operator
    prompt: Write review.md
    depends_on: [look]
    approval: true
";

/// S87
#[tokio::test]
async fn a_workflow_is_saved_run_and_scheduled() {
    let fixture = ToolFixture::new().with_team();
    let saved = fixture
        .call(
            "workflow_save",
            json!({ "name": "review", "yaml_content": REVIEW }),
        )
        .await;
    assert_eq!(
        saved,
        "Saved the workflow `review`, version 1.\n\
         review (3 steps)\n  \
           diff: fs_read\n  \
           look: librarian, after diff\n  \
           publish: operator, after look\n\
         It has the schedule `0 7 * * MON-FRI`; it starts with a job: cron_add with this workflow."
    );
    let args = json!({ "name": "review", "params": { "branch": "dev" } });
    let answer = fixture.call("workflow_run", args).await;
    assert!(
        answer.starts_with("Run 1: runs the workflow `review`\nResults go to: inbox."),
        "{answer}"
    );
    let JobAction::Workflow {
        params, definition, ..
    } = fixture.run(1).await.spec.action
    else {
        panic!("a workflow");
    };
    assert_eq!(
        (params["branch"].as_str(), definition.as_str()),
        (Some("dev"), REVIEW)
    );
    let answer = fixture
        .call("cron_add", json!({ "workflow": "review" }))
        .await;
    assert!(
        answer.contains("Next: today, Wed 18 Nov 2026 07:00 Europe/Berlin, in 5 h 32 min."),
        "{answer}"
    );
    let list = fixture.call("workflow_list", json!({})).await;
    assert!(
        list.contains("- review, version 1, saved today")
            && list.contains("workflow run 1 (review): queued"),
        "{list}"
    );
}

#[tokio::test]
async fn errors_in_workflows_have_lines_and_suggestions() {
    let fixture = ToolFixture::new().with_team();
    let bad =
        "name: bad\nsteps:\n  - id: a\n    agent: operatr\n    prompt: x\n    depends_on: [b]\n";
    let text = fixture
        .call("workflow_validate", json!({ "yaml_content": bad }))
        .await;
    assert!(
        text.contains("The workflow has 2 errors:")
            && text.contains("workflow:4:12")
            && text.contains("`operator`"),
        "{text}"
    );
    for name in ["workflow_run", "workflow_save"] {
        let error = fixture.error(name, json!({ "yaml_content": bad })).await;
        assert!(error.contains("workflow:4:12"), "{name}: {error}");
    }
    let good = fixture
        .call("workflow_validate", json!({ "yaml_content": REVIEW }))
        .await;
    assert!(good.starts_with("The workflow is correct."), "{good}");
    for (args, expected) in [
        (json!({}), "say which workflow"),
        (json!({ "name": "a", "file_path": "b" }), "not several"),
        (json!({ "name": "reviw" }), "none is saved"),
        (json!({ "file_path": "a.flow.yaml" }), "no workspace"),
        (
            json!({ "yaml_content": REVIEW, "params": { "brnch": 1 } }),
            "did you mean `branch`",
        ),
    ] {
        let error = fixture.error("workflow_run", args).await;
        assert!(error.contains(expected), "{error}");
    }
}

/// B101: the content of a file is not the user's own words.
#[tokio::test]
async fn workflow_files_are_read_in_the_workspace_only() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("work");
    std::fs::create_dir(&workspace).unwrap();
    std::fs::write(workspace.join("review.flow.yaml"), REVIEW).unwrap();
    std::fs::write(folder.path().join("outside.flow.yaml"), REVIEW).unwrap();
    let fixture = ToolFixture::new().with_team().with_workspace(&workspace);
    fixture
        .call("workflow_run", json!({ "file_path": "review.flow.yaml" }))
        .await;
    let label = fixture.run(1).await.spec.label;
    assert!(label.is_untrusted() && label.is_private());
    for path in ["../outside.flow.yaml", "missing.flow.yaml", "."] {
        let error = fixture.error("workflow_run", json!({ "file_path": path }));
        assert!(error.await.contains(path));
    }
    let text = fixture
        .call(
            "workflow_validate",
            json!({ "file_path": "review.flow.yaml" }),
        )
        .await;
    assert!(text.starts_with("The workflow is correct."), "{text}");
}

/// B121: content of others is not saved under a name without asking, because it counts as the user's later.
#[tokio::test]
async fn saving_content_of_others_is_dangerous() {
    let fixture = ToolFixture::new();
    let args = json!({ "yaml_content": REVIEW });
    let tool = fixture.tool("workflow_save");
    let intent = tool.intent(context(USER_SESSION), args.clone()).await;
    assert_eq!(intent.unwrap().level, Safety::Moderate);
    let mut from_page = context(USER_SESSION);
    from_page.label = Label::untrusted("a page");
    let intent = tool.intent(from_page, args).await.unwrap();
    assert_eq!(intent.level, Safety::Dangerous);
    assert!(intent.shows.contains("Review the change."));
}

/// Records the steps of a run as the scheduler would.
async fn record(fixture: &ToolFixture, steps: &[(&str, StepState)]) -> RunId {
    fixture
        .call("workflow_run", json!({ "yaml_content": REVIEW }))
        .await;
    let lease = fixture.start_scheduler().await;
    let run = fixture.start_run(lease, "flow").await;
    let rows = steps.iter().map(|(id, state)| RunStep {
        state: *state,
        attempt: 1,
        result: (*state == StepState::Done).then(|| format!("result of {id}")),
        label: Label::untrusted("fs_read"),
        ..RunStep::pending(run.id, *id)
    });
    let stored = fixture
        .store
        .record_steps(lease, rows.collect(), Vec::new());
    stored.await.unwrap();
    run.id
}

/// B121, B122: an answer is the user's, and says what it starts.
#[tokio::test]
async fn waiting_steps_are_answered() {
    let fixture = ToolFixture::new();
    let run = record(
        &fixture,
        &[
            ("diff", StepState::Done),
            ("look", StepState::Unknown),
            ("publish", StepState::Waiting),
        ],
    )
    .await;
    let status = fixture.call_as(context(USER_SESSION), "workflow_status", json!({}));
    let status = status.await.unwrap();
    let text = status.content.text;
    assert!(text.contains("  diff: done: result of diff"), "{text}");
    assert!(
        text.contains("look: unknown; it can be answered with repeat, skip"),
        "{text}"
    );
    assert!(
        text.contains("publish: waiting; it can be answered with approve, deny, skip"),
        "{text}"
    );
    assert!(status.label.unwrap().is_untrusted());
    let id = run.get();
    let error = fixture
        .error("workflow_approve", json!({ "run_id": id }))
        .await;
    assert!(error.contains("say which: look, publish"), "{error}");
    let error = fixture
        .error("workflow_approve", json!({ "run_id": id, "step": "diff" }))
        .await;
    assert!(error.contains("does not wait"), "{error}");
    for (decision, level) in [
        ("approve", Safety::Dangerous),
        ("repeat", Safety::Dangerous),
        ("deny", Safety::Moderate),
        ("skip", Safety::Moderate),
    ] {
        let args = json!({ "run_id": id, "step": "publish", "decision": decision });
        let intent = fixture.intent("workflow_approve", args).await.unwrap();
        assert_eq!(intent.level, level);
        assert!(
            intent
                .shows
                .contains("asks operator, after approval: Write review.md"),
            "{}",
            intent.shows
        );
    }
    let args = json!({ "run_id": id, "step": "publish" });
    fixture.call("workflow_approve", args).await;
    let args = json!({ "run_id": id, "step": "look", "decision": "skip" });
    fixture.call("workflow_approve", args).await;
    let rows = fixture.store.steps(&owner(), run).await.unwrap();
    let decisions: Vec<_> = rows.iter().map(|row| row.decision).collect();
    assert_eq!(
        decisions,
        [None, Some(StepDecision::Skip), Some(StepDecision::Approve)]
    );
}

/// B122: done steps are not repeated.
#[tokio::test]
async fn a_run_is_tried_again() {
    let fixture = ToolFixture::new();
    let run = record(
        &fixture,
        &[("diff", StepState::Done), ("look", StepState::Failed)],
    )
    .await;
    let id = run.get();
    let error = fixture
        .error("workflow_retry", json!({ "run_id": id }))
        .await;
    assert!(error.contains("is not over"), "{error}");
    let lease = fixture.store.lease().await.unwrap().unwrap().number;
    fixture.end_run(lease, run, "", Label::default()).await;
    let error = fixture
        .error("workflow_retry", json!({ "run_id": id, "from": "lok" }))
        .await;
    assert!(error.contains("did you mean `look`"), "{error}");
    let answer = fixture
        .call("workflow_retry", json!({ "run_id": id }))
        .await;
    assert!(
        answer.contains(
            "`look` runs again, `publish` runs again. All other steps keep their results."
        ),
        "{answer}"
    );
    assert_eq!(fixture.run(id).await.state, RunState::Queued);
    let answer = fixture
        .call("workflow_cancel", json!({ "run_id": id }))
        .await;
    assert_eq!(answer, format!("Run {id} is cancelled."));
    fixture.call("bg_submit", json!({ "prompt": "x" })).await;
    let error = fixture
        .error("workflow_cancel", json!({ "run_id": 2 }))
        .await;
    assert_eq!(
        error,
        "run 2 is no run of a workflow, but a background task"
    );
}
