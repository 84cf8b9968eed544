//! Sentences that the offline model understands, from the request to the answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use lango_automation::tools;
use lango_domain::TeamMode;
use lango_domain::automation::{Job, JobAction, ScheduleKind};
use lango_domain::event::{EventBody, SessionId, TurnId, Update};
use lango_engine::{
    ApprovalPolicy, ClockAndIds, InMemorySessionStore, Models, Runner, RunnerParts, TurnHooks,
    TurnLimits, TurnRequest,
};
use lango_models::offline::OfflineModel;
use lango_team::{Config, build_agent_tree, sample_tool_names};
use serde_json::Value;

use super::setup::{ApproveAll, ToolFixture, owner};

/// The effect of a request.
#[derive(Debug)]
struct Reaction {
    calls: Vec<(String, Value)>,
    answer: String,
}

/// Asks a team of all agents, in which only the automator's tools do something.
async fn ask_in(fixture: &ToolFixture, mode: TeamMode, text: &str) -> Reaction {
    let mut all = tools(fixture.parts.clone());
    let others = sample_tool_names();
    let is_other = |name: &&String| {
        !["cron_", "bg_", "workflow_"]
            .iter()
            .any(|p| name.starts_with(p))
    };
    let others: Vec<&str> = others.iter().filter(is_other).map(String::as_str).collect();
    all.extend(lango_testkit::stub_tools(&others));
    let config = Config {
        mode,
        tools: all,
        ..Config::default()
    };
    let runner = Runner::new(RunnerParts {
        tree: build_agent_tree(config).unwrap(),
        models: Models {
            default: Arc::new(OfflineModel),
            per_agent: BTreeMap::new(),
        },
        store: Arc::new(InMemorySessionStore::default()),
        blobs: Arc::new(InMemorySessionStore::default()),
        approver: Some(Arc::new(ApproveAll::default())),
        approval_policy: ApprovalPolicy::default(),
        hooks: TurnHooks::default(),
        secrets: None,
        remotes: BTreeMap::new(),
        limits: TurnLimits::default(),
        clock_and_ids: ClockAndIds {
            now: Arc::clone(&fixture.parts.clock),
            new_turn_id: Arc::new(|| TurnId::new("turn-1")),
        },
    });
    let request = TurnRequest::from_user(SessionId::new("demo"), owner(), text);
    let updates: Vec<Update> = runner.run(request).collect().await;
    let mut reaction = Reaction {
        calls: Vec::new(),
        answer: String::new(),
    };
    for update in updates {
        let Update::Event(event) = update else {
            continue;
        };
        match &event.body {
            EventBody::ToolCall { tool, args, .. } => {
                reaction.calls.push((tool.clone(), args.clone()));
            }
            EventBody::Answer(content) => reaction.answer = content.text.clone(),
            _ => {}
        }
    }
    reaction
}

async fn ask(fixture: &ToolFixture, text: &str) -> Reaction {
    ask_in(fixture, TeamMode::Multi, text).await
}

fn action_text(job: &Job) -> String {
    match &job.spec.action {
        JobAction::Reminder { text } => format!("reminder: {text}"),
        JobAction::Prompt { text, .. } => format!("prompt: {text}"),
        JobAction::Workflow { name, .. } => format!("workflow: {name}"),
    }
}

fn time_text(job: &Job) -> String {
    match job.schedule.kind {
        ScheduleKind::Cron => job.schedule.text.clone(),
        ScheduleKind::Every => format!("every {}", job.schedule.text),
        ScheduleKind::At => {
            let at = lango_automation::time_text::in_zone(job.next_due.unwrap(), "Europe/Berlin");
            at.strftime("%m-%d %H:%M").to_string()
        }
    }
}

/// Checks the jobs that requests lead to: time and work.
async fn assert_jobs(mode: TeamMode, cases: &[(&str, &str, &str)]) {
    let mut wrong = Vec::new();
    for (text, time, action) in cases {
        let fixture = ToolFixture::new();
        let reaction = ask_in(&fixture, mode, text).await;
        let jobs = fixture.store.jobs(&owner()).await.unwrap();
        let found = jobs.first().map(|job| (time_text(job), action_text(job)));
        let expected = Some(((*time).to_owned(), (*action).to_owned()));
        if jobs.len() != 1 || found != expected || !reaction.answer.contains("Next: ") {
            wrong.push(format!("{text}: {found:?} {reaction:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Requests, with the time and the work of their jobs.
const SENTENCES: [(&str, &str, &str); 19] = [
    (
        "remind me in one minute to stretch",
        "11-18 01:29",
        "reminder: stretch",
    ),
    (
        "remind me tomorrow at 9 to call Ann",
        "11-19 09:00",
        "reminder: call Ann",
    ),
    (
        "please remind me to call Ann and Bob tomorrow at 9",
        "11-19 09:00",
        "reminder: call Ann and Bob",
    ),
    (
        "set a reminder for tomorrow at 9 to water the plants",
        "11-19 09:00",
        "reminder: water the plants",
    ),
    (
        "remind me every day at 8 to drink water",
        "0 8 * * *",
        "reminder: drink water",
    ),
    (
        "every Monday at 8 check the disk",
        "0 8 * * MON",
        "prompt: check the disk",
    ),
    (
        "check the disk every Monday at 8",
        "0 8 * * MON",
        "prompt: check the disk",
    ),
    (
        "in two hours check the build",
        "11-18 03:28",
        "prompt: check the build",
    ),
    (
        "run the backup every 6 hours",
        "every 6h",
        "prompt: run the backup",
    ),
    (
        "tomorrow at 9 summarise the news",
        "11-19 09:00",
        "prompt: summarise the news",
    ),
    (
        "schedule a backup every day at 2",
        "0 2 * * *",
        "prompt: a backup",
    ),
    (
        "every day at 8 run df in the background",
        "0 8 * * *",
        "prompt: run df in the background",
    ),
    (
        "Erinnere mich morgen um 9 Uhr daran, Ann anzurufen",
        "11-19 09:00",
        "reminder: Ann anzurufen",
    ),
    (
        "jeden Montag um 8 Uhr prüfe die Festplatte",
        "0 8 * * MON",
        "prompt: prüfe die Festplatte",
    ),
    (
        "erinnere mich in zwei Stunden an den Kuchen",
        "11-18 03:28",
        "reminder: den Kuchen",
    ),
    (
        "recuérdame mañana a las 9 llamar a Ana",
        "11-19 09:00",
        "reminder: llamar a Ana",
    ),
    (
        "todos los días a las 8 revisa el disco",
        "0 8 * * *",
        "prompt: revisa el disco",
    ),
    (
        "rappelle-moi demain à 9h d'appeler Anne",
        "11-19 09:00",
        "reminder: appeler Anne",
    ),
    (
        "tous les jours à 8h vérifie le disque",
        "0 8 * * *",
        "prompt: vérifie le disque",
    ),
];

/// S87
#[tokio::test]
async fn sentences_become_jobs() {
    assert_jobs(TeamMode::Multi, &SENTENCES).await;
}

/// S87
#[tokio::test]
async fn sentences_in_other_languages_become_jobs() {
    assert_jobs(
        TeamMode::Multi,
        &[
            (
                "ricordami domani alle 9 di chiamare Anna",
                "11-19 09:00",
                "reminder: chiamare Anna",
            ),
            (
                "ogni lunedì alle 8 controlla il disco",
                "0 8 * * MON",
                "prompt: controlla il disco",
            ),
            (
                "lembra-me amanhã às 9 de ligar à Ana",
                "11-19 09:00",
                "reminder: ligar à Ana",
            ),
            (
                "todos os dias às 8 verifica o disco",
                "0 8 * * *",
                "prompt: verifica o disco",
            ),
        ],
    )
    .await;
}

/// S87: the answer has the exact time.
#[tokio::test]
async fn the_answer_repeats_the_time() {
    let fixture = ToolFixture::new();
    let reaction = ask(&fixture, "remind me in one minute to stretch").await;
    assert!(
        reaction
            .answer
            .contains("Next: today, Wed 18 Nov 2026 01:29 Europe/Berlin, in 1 min."),
        "{}",
        reaction.answer
    );
    assert!(reaction.answer.contains("lango automate run"));
}

/// Checks the calls that requests lead to, whether they succeed or not.
async fn assert_calls(mode: TeamMode, cases: &[(&str, &str, &str)]) {
    let fixture = ToolFixture::new();
    let mut wrong = Vec::new();
    for (text, tool, args) in cases {
        let reaction = ask_in(&fixture, mode, text).await;
        let args: Value = serde_json::from_str(args).unwrap();
        if reaction.calls != [((*tool).to_owned(), args)] {
            wrong.push(format!("{text}: {reaction:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const LISTS: [(&str, &str, &str); 5] = [
    ("was ist geplant?", "cron_list", r#"{}"#),
    ("qu'est-ce qui est prévu ?", "cron_list", r#"{}"#),
    ("cosa è programmato?", "cron_list", r#"{}"#),
    ("o que está agendado?", "cron_list", r#"{}"#),
    (
        "what did the job news do",
        "cron_history",
        r#"{ "job": "news" }"#,
    ),
];

/// S87
#[tokio::test]
async fn jobs_are_listed_in_other_languages() {
    assert_calls(TeamMode::Multi, &LISTS).await;
}

const JOB_CALLS: [(&str, &str, &str); 19] = [
    ("cancel my reminder", "cron_remove", r#"{}"#),
    ("stop all reminders", "cron_remove", r#"{ "job": "all" }"#),
    ("what is scheduled?", "cron_list", r#"{}"#),
    ("show my jobs", "cron_list", r#"{}"#),
    ("list my reminders", "cron_list", r#"{}"#),
    ("¿qué está programado?", "cron_list", r#"{}"#),
    (
        "what did the job water the plants do?",
        "cron_history",
        r#"{ "job": "water the plants" }"#,
    ),
    (
        "what did the job check the disk do",
        "cron_history",
        r#"{ "job": "check the disk" }"#,
    ),
    ("remove the job disk", "cron_remove", r#"{ "job": "disk" }"#),
    ("run the job disk now", "cron_run", r#"{ "job": "disk" }"#),
    ("lösche den Job disk", "cron_remove", r#"{ "job": "disk" }"#),
    ("pause the job news", "cron_pause", r#"{ "job": "news" }"#),
    ("resume the job news", "cron_resume", r#"{ "job": "news" }"#),
    ("run the job news now", "cron_run", r#"{ "job": "news" }"#),
    ("cancel the job news", "cron_remove", r#"{ "job": "news" }"#),
    (
        "remove the job \"news\"",
        "cron_remove",
        r#"{ "job": "news" }"#,
    ),
    (
        "delete the reminder to water the plants",
        "cron_remove",
        r#"{ "job": "water the plants" }"#,
    ),
    ("lösche den Job news", "cron_remove", r#"{ "job": "news" }"#),
    (
        "supprime le rappel news",
        "cron_remove",
        r#"{ "job": "news" }"#,
    ),
];

/// S87
#[tokio::test]
async fn jobs_are_listed_and_changed() {
    assert_calls(TeamMode::Multi, &JOB_CALLS).await;
}

const TASK_CALLS: [(&str, &str, &str); 18] = [
    (
        "run the tests in the background",
        "bg_submit",
        r#"{ "prompt": "run the tests" }"#,
    ),
    (
        "summarise notes.txt in the background",
        "bg_submit",
        r#"{ "prompt": "summarise notes.txt" }"#,
    ),
    (
        "lies notes.txt im Hintergrund",
        "bg_submit",
        r#"{ "prompt": "lies notes.txt" }"#,
    ),
    (
        "ejecuta las pruebas en segundo plano",
        "bg_submit",
        r#"{ "prompt": "ejecuta las pruebas" }"#,
    ),
    (
        "lance les tests en arrière-plan",
        "bg_submit",
        r#"{ "prompt": "lance les tests" }"#,
    ),
    ("background tasks", "bg_list", r#"{}"#),
    ("show the background tasks", "bg_list", r#"{}"#),
    ("what is running in the background?", "bg_list", r#"{}"#),
    (
        "show the result of background task 3",
        "bg_result",
        r#"{ "task_id": 3 }"#,
    ),
    (
        "cancel background task 3",
        "bg_cancel",
        r#"{ "task_id": 3 }"#,
    ),
    (
        "run the workflow nightly",
        "workflow_run",
        r#"{ "name": "nightly" }"#,
    ),
    (
        "run the nightly workflow",
        "workflow_run",
        r#"{ "name": "nightly" }"#,
    ),
    (
        "starte den Workflow nightly",
        "workflow_run",
        r#"{ "name": "nightly" }"#,
    ),
    ("list my workflows", "workflow_list", r#"{}"#),
    (
        "status of workflow run 4",
        "workflow_status",
        r#"{ "run_id": 4 }"#,
    ),
    (
        "retry workflow run 4 from step publish",
        "workflow_retry",
        r#"{ "run_id": 4, "from": "publish" }"#,
    ),
    (
        "approve step publish of workflow run 4",
        "workflow_approve",
        r#"{ "run_id": 4, "step": "publish", "decision": "approve" }"#,
    ),
    (
        "validate the workflow file a.flow.yaml",
        "workflow_validate",
        r#"{ "file_path": "a.flow.yaml" }"#,
    ),
];

/// S87
#[tokio::test]
async fn tasks_and_workflows_are_started_and_listed() {
    assert_calls(TeamMode::Multi, &TASK_CALLS).await;
}

/// In a team of one agent, other requests are not taken for jobs.
#[tokio::test]
async fn other_requests_are_no_jobs() {
    let fixture = ToolFixture::new();
    for text in [
        "in which folder am I",
        "read every file",
        "what can you do",
        "hello",
        "search for a good restaurant in Rome",
    ] {
        let reaction = ask_in(&fixture, TeamMode::Single, text).await;
        let calls = reaction
            .calls
            .iter()
            .filter(|(tool, _)| tool.starts_with("cron_"));
        assert_eq!(calls.count(), 0, "{text}: {reaction:?}");
    }
    let reaction = ask_in(
        &fixture,
        TeamMode::Single,
        "remind me in one minute to stretch",
    )
    .await;
    assert!(reaction.answer.contains("01:29"), "{}", reaction.answer);
}

/// A sentence without a time says what is missing.
#[tokio::test]
async fn a_reminder_without_a_time_is_explained() {
    let fixture = ToolFixture::new();
    let reaction = ask(&fixture, "remind me to call Ann").await;
    assert!(
        reaction.answer.contains("There is no time in"),
        "{}",
        reaction.answer
    );
}
