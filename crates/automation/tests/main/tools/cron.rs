//! `cron_*`.

use std::num::NonZeroU32;
use std::sync::atomic::Ordering;

use lango_automation::CronSettings;
use lango_automation::delivery::DeliverySettings;
use lango_domain::automation::{CatchUp, JobAction, OverlapRule, ScheduleKind, SessionMode};
use lango_domain::{Label, Safety, Trust};
use serde_json::{Value, json};

use super::setup::{ToolFixture, USER_SESSION, context};

/// S87, B120
#[tokio::test]
async fn a_reminder_says_its_time_and_that_nobody_runs_it() {
    let fixture = ToolFixture::new();
    let when = "remind me in one minute to stretch";
    let answer = fixture.call("cron_add", json!({ "when": when })).await;
    assert_eq!(
        answer,
        "Added the job `stretch` (#1): reminds of: stretch\n\
         Next: today, Wed 18 Nov 2026 01:29 Europe/Berlin, in 1 min.\n\
         Results go to: inbox.\n\
         Nothing runs it at the moment: start `lango automate run` or `lango serve`, or keep a chat open."
    );
    let job = fixture.job("stretch").await;
    let text = "stretch".to_owned();
    assert_eq!(job.spec.action, JobAction::Reminder { text });
    assert_eq!(job.schedule.kind, ScheduleKind::At);
    assert_eq!(fixture.wakes.load(Ordering::Relaxed), 1);
    fixture.start_scheduler().await;
    let when = "tomorrow at 9 check the disk";
    let answer = fixture.call("cron_add", json!({ "when": when })).await;
    assert_eq!(
        answer,
        "Added the job `check the disk` (#2): asks the team: check the disk\n\
         Next: tomorrow, Thu 19 Nov 2026 09:00 Europe/Berlin, in 1 day 8 h.\n\
         Results go to: inbox.\n\
         Calls that need an approval, such as commands, will wait for it; `--allow` of `lango cron add` permits them in advance."
    );
}

/// S87
#[tokio::test]
async fn a_job_has_everything_that_was_asked_for() {
    let fixture = ToolFixture::new().with_team();
    let args = json!({
        "name": "disk", "schedule_type": "cron", "schedule": "0 8 * * MON", "prompt": "Check the disk.",
        "agent": "operator", "timezone": "Asia/Tokyo", "session_mode": "main",
        "deliver_to": ["inbox", "file:disk.log"], "failure_deliver_to": ["session:ops"], "timeout": "10m",
        "catch_up": "all", "overlap": "queue", "budget": { "tokens": 5000, "usd": 0.5 },
        "allow": ["exec_shell df*"],
    });
    let answer = fixture.call("cron_add", args).await;
    assert!(
        answer.contains("Next: Mon 23 Nov 2026 08:00 Asia/Tokyo, in 4 days 23 h."),
        "{answer}"
    );
    assert_eq!(answer.matches("Then: ").count(), 2, "{answer}");
    let job = fixture.job("disk").await;
    assert_eq!(
        (job.catch_up, job.overlap),
        (CatchUp::All, OverlapRule::Queue)
    );
    let spec = job.spec;
    assert_eq!(spec.session_mode, SessionMode::Main);
    assert_eq!(spec.deliver_to, ["inbox", "file:disk.log"]);
    assert_eq!(spec.failure_deliver_to, ["session:ops"]);
    assert_eq!(spec.timeout.unwrap().as_mins(), 10);
    assert_eq!(
        (spec.budget.tokens, spec.budget.usd),
        (Some(5000), Some(0.5))
    );
    assert_eq!(spec.allow[0].to_string(), "exec_shell df*");
    let list = fixture.call("cron_list", json!({})).await;
    assert!(
        list.contains("- disk (#1): next Mon 23 Nov 2026 08:00 Asia/Tokyo"),
        "{list}"
    );
    assert!(list.contains("without asking: `exec_shell df*`"), "{list}");
    assert!(
        list.contains("cron `0 8 * * MON` in Asia/Tokyo; asks the operator: Check the disk."),
        "{list}"
    );
}

/// Arguments of `cron_add`, and what the error says.
const REFUSED: [(&str, &str); 22] = [
    (r#"{}"#, "say what to do"),
    (r#"{ "prompt": "x" }"#, "the time is missing"),
    (
        r#"{ "prompt": "x", "reminder": "y", "when": "tomorrow" }"#,
        "not several",
    ),
    (
        r#"{ "prompt": "x", "schedule": "1h" }"#,
        "`schedule_type` is missing",
    ),
    (
        r#"{ "prompt": "x", "schedule": "1h", "schedule_type": "every", "when": "tomorrow" }"#,
        "not both",
    ),
    (
        r#"{ "when": "remind me to call Ann" }"#,
        "There is no time in `remind me to call Ann`",
    ),
    (r#"{ "when": "tomorrow at 9" }"#, "not what to do"),
    (
        r#"{ "prompt": "x", "schedule": "61 * * * *", "schedule_type": "cron" }"#,
        "is not a cron schedule",
    ),
    (
        r#"{ "prompt": "x", "schedule": "0 0 30 2 *", "schedule_type": "cron" }"#,
        "never happens",
    ),
    (
        r#"{ "prompt": "x", "schedule": "5s", "schedule_type": "every" }"#,
        "too often",
    ),
    (
        r#"{ "prompt": "x", "schedule": "2020-01-01 09:00", "schedule_type": "at" }"#,
        "is in the past",
    ),
    (
        r#"{ "prompt": "x", "when": "tomorrow", "timezone": "Europe/Berln" }"#,
        "Europe/Berlin",
    ),
    (
        r#"{ "prompt": "x", "when": "tomorrow", "agent": "operatr" }"#,
        "did you mean `operator`",
    ),
    (
        r#"{ "prompt": "x", "when": "tomorrow", "allow": ["exec_shel ls"] }"#,
        "did you mean `exec_shell`",
    ),
    (
        r#"{ "prompt": "x", "when": "tomorrow", "allow": ["a;b"] }"#,
        "is not a rule",
    ),
    (
        r#"{ "prompt": "x", "when": "tomorrow", "deliver_to": ["https://x.example"] }"#,
        "webhook:https://x.example",
    ),
    (
        r#"{ "prompt": "x", "when": "tomorrow", "deliver_to": ["webhook:https://x.example"] }"#,
        "automation.webhook.secret",
    ),
    (
        r#"{ "prompt": "x", "when": "tomorrow", "deliver_to": ["email:a@x.example"] }"#,
        "automation.smtp.host",
    ),
    (
        r#"{ "prompt": "x", "when": "tomorrow", "timeout": "10" }"#,
        "has no unit",
    ),
    (
        r#"{ "prompt": "x", "when": "tomorrow", "budget": { "usd": -1.0 } }"#,
        "must be positive",
    ),
    (
        r#"{ "workflow": "nightly", "when": "tomorrow" }"#,
        "there is no saved workflow `nightly`",
    ),
    (
        r#"{ "prompt": " ", "when": "tomorrow", "reminder": "" }"#,
        "not what to do",
    ),
];

#[tokio::test]
async fn errors_say_what_would_work() {
    let fixture = ToolFixture::new().with_team();
    for (args, expected) in REFUSED {
        let args: Value = serde_json::from_str(args).unwrap();
        let error = fixture.error("cron_add", args.clone()).await;
        assert!(error.contains(expected), "{args}: {error}");
        // The question fails the same way, so that no one approves what cannot work.
        let asked = fixture.intent("cron_add", args).await.unwrap_err();
        assert_eq!(asked.0, error);
    }
    assert_eq!(
        fixture.call("cron_list", json!({})).await,
        "Nothing is scheduled."
    );
}

/// B120: names are unique, the name of a job that is over can be used again.
#[tokio::test]
async fn names_are_unique() {
    let fixture = ToolFixture::new();
    let args = |name: &str| json!({ "name": name, "when": "every day at 8", "prompt": "x" });
    fixture.call("cron_add", args("daily")).await;
    let error = fixture.error("cron_add", args("daily")).await;
    assert_eq!(
        error,
        "a job named `daily` exists already; choose another name, or remove it first"
    );
    for _ in 0..3 {
        let when = "every day at 7 water the plants";
        fixture.call("cron_add", json!({ "when": when })).await;
    }
    for name in [
        "water the plants",
        "water the plants 2",
        "water the plants 3",
    ] {
        fixture.job(name).await;
    }
}

#[tokio::test]
async fn the_number_of_jobs_is_limited() {
    let cron = CronSettings {
        max_jobs: NonZeroU32::new(2).unwrap(),
        ..CronSettings::default()
    };
    let fixture = ToolFixture::with_settings(cron, DeliverySettings::default());
    let when = json!({ "when": "every day at 7 water the plants" });
    fixture.call("cron_add", when.clone()).await;
    fixture.call("cron_add", when.clone()).await;
    let error = fixture.error("cron_add", when).await;
    assert!(
        error.contains("already 2 jobs") && error.contains("cron.maxJobs"),
        "{error}"
    );
}

/// B120: a paused job has no next run, and what was due meanwhile is not made up for.
#[tokio::test]
async fn jobs_are_paused_resumed_run_and_removed() {
    let fixture = ToolFixture::new();
    fixture.start_scheduler().await;
    let when = "every day at 8 check the disk";
    fixture.call("cron_add", json!({ "when": when })).await;
    let job = json!({ "job": "check the disk" });
    assert_eq!(
        fixture.call("cron_pause", job.clone()).await,
        "Paused the job `check the disk` (#1)."
    );
    assert!(
        fixture
            .call("cron_list", json!({}))
            .await
            .contains("(#1): paused")
    );
    fixture.advance(2 * 24 * 60 * 60);
    let answer = fixture.call("cron_resume", json!({ "job": "#1" })).await;
    assert!(
        answer.contains("Next: today, Fri 20 Nov 2026 08:00 Europe/Berlin, in 6 h 32 min."),
        "{answer}"
    );
    let resumed = fixture.job("check the disk").await;
    assert_eq!(resumed.decided_until, fixture.now());
    let answer = fixture.call("cron_run", json!({ "job": "disk" })).await;
    assert!(
        answer.contains("The job `check the disk` runs now, as run 1."),
        "{answer}"
    );
    let history = fixture.call("cron_history", job.clone()).await;
    assert!(
        history.contains("- run 1 (check the disk): queued"),
        "{history}"
    );
    assert_eq!(
        fixture.call("cron_remove", job.clone()).await,
        "Removed the job `check the disk` (#1)."
    );
    let error = fixture.error("cron_pause", job).await;
    assert_eq!(error, "there is no job `check the disk`; there are no jobs");
}

#[tokio::test]
async fn jobs_are_found_by_a_part_of_their_name() {
    let fixture = ToolFixture::new();
    for name in ["backup notes", "backup photos", "Water"] {
        let args = json!({ "name": name, "when": "every day at 8", "prompt": "x" });
        fixture.call("cron_add", args).await;
    }
    fixture.call("cron_pause", json!({ "job": "photos" })).await;
    fixture.call("cron_pause", json!({ "job": "water" })).await;
    for (job, expected) in [
        (
            "backup",
            "`backup` may be one of these jobs: `backup notes` (#1), `backup photos` (#2)",
        ),
        ("back up", "did you mean"),
        ("", "there is no job ``"),
        ("9", "there is no job `9`"),
    ] {
        let error = fixture.error("cron_pause", json!({ "job": job })).await;
        assert!(error.contains(expected), "{error}");
    }
}

/// B101: what jobs were made from and what their runs read stays with what is read back.
#[tokio::test]
async fn lists_have_the_labels_of_what_they_show() {
    let fixture = ToolFixture::new();
    let lease = fixture.start_scheduler().await;
    let mut from_page = context(USER_SESSION);
    from_page.label = Label::untrusted("a page");
    let args = json!({ "name": "news", "when": "every day at 8", "prompt": "Read the news." });
    fixture.call_as(from_page, "cron_add", args).await.unwrap();
    assert!(fixture.job("news").await.spec.label.is_untrusted());
    let call = |name: &'static str| fixture.call_as(context(USER_SESSION), name, json!({}));
    let list = call("cron_list").await.unwrap();
    assert_eq!(list.label, Some(Label::untrusted("a page")));
    fixture.call("cron_run", json!({ "job": "news" })).await;
    let run = fixture.start_run(lease, "job-session").await;
    fixture
        .end_run(lease, run.id, "All quiet.", Label::private("fs_read notes"))
        .await;
    let history = call("cron_history").await.unwrap();
    assert!(
        history.content.text.contains("result: All quiet."),
        "{}",
        history.content.text
    );
    let label = history.label.unwrap();
    assert!(label.is_private() && label.is_untrusted());
    for name in ["cron_list", "cron_history"] {
        let tool = fixture.tool(name);
        assert_eq!(
            (tool.trust, tool.is_private, tool.safety),
            (Trust::Untrusted, true, Safety::Safe)
        );
    }
}

/// S87: the levels of the tools.
#[test]
fn tools_have_their_levels() {
    let fixture = ToolFixture::new();
    let names = |level: Safety| {
        let tools = lango_automation::tools(fixture.parts.clone());
        let names = tools.iter().filter(|tool| tool.safety == level);
        names.map(|tool| tool.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(Safety::Dangerous), ["cron_remove"]);
    assert_eq!(
        names(Safety::Safe),
        [
            "cron_list",
            "cron_history",
            "bg_status",
            "bg_result",
            "bg_list",
            "workflow_status",
            "workflow_list",
            "workflow_validate"
        ]
    );
    assert_eq!(names(Safety::Moderate).len(), 11);
}

/// S87: a group of tools exists only if it is enabled.
#[test]
fn groups_can_be_disabled() {
    let fixture = ToolFixture::new();
    let mut parts = fixture.parts.clone();
    parts.groups.cron = false;
    parts.groups.workflow = false;
    let names: Vec<String> = lango_automation::tools(parts)
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    assert!(
        names.len() == 5 && names.iter().all(|name| name.starts_with("bg_")),
        "{names:?}"
    );
}
