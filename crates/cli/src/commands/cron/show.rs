//! `lango cron show`: everything about a job.

use std::fmt::Write as _;

use lango_app::capability::automation::planning::{describe_budget, needs_folder};
use lango_app::capability::automation::time_text::format_span;
use lango_domain::automation::{
    CatchUp, Job, JobAction, OverlapRule, Run, RunBudget, RunQuery, ScheduleKind, SessionMode,
};
use lango_text::sanitize::{one_line, strip_control_chars};
use serde_json::{Value, json};

use super::{history_line, job_json, job_rows, last_run, schedule_text, upcoming};
use crate::commands::automation::{AutomationView, rows, texts};
use crate::output::{CliError, CommandOutput, NAME, styled};

/// The runs that are shown with a job.
const SHOWN_RUNS: usize = 5;

pub async fn show(view: &AutomationView, name: &str) -> Result<CommandOutput, CliError> {
    let job = view.job(name).await?;
    let last = last_run(view, &job).await?;
    let query = RunQuery {
        job: Some(job.id),
        ..RunQuery::newest(view.principal.clone(), SHOWN_RUNS)
    };
    let runs = view.store().runs(query).await?;
    let title = styled(NAME, one_line(&job.name));
    let mut plain = format!("{title}  {}\n", schedule_text(&job));
    let mut shown = job_rows(view, &job, last.as_ref());
    let later = upcoming(view, &job).into_iter().skip(1);
    let later: Vec<String> = later.map(|at| view.times.absolute(at)).collect();
    if !later.is_empty() {
        shown.insert(1, ("then", later.join(", ")));
    }
    shown.extend(detail_rows(view, &job));
    plain.push_str(&rows(&shown));
    for line in work_text(&job.spec.action).lines() {
        let _ = writeln!(plain, "    {line}");
    }
    if !runs.is_empty() {
        plain.push_str("Last runs:\n");
        for run in &runs {
            let _ = write!(plain, "  {}", history_line(view, run));
        }
    }
    Ok(CommandOutput::new(
        plain,
        show_json(view, &job, last.as_ref()),
    ))
}

fn show_json(view: &AutomationView, job: &Job, last: Option<&Run>) -> Value {
    let mut json = job_json(view, job, last);
    json["schedule_type"] = json!(job.schedule.kind);
    json["action"] = json!(job.spec.action);
    json["session_mode"] = json!(job.spec.session_mode);
    json["allowed_steps"] = json!(job.spec.allowed_steps);
    json["failure_deliver_to"] = json!(job.spec.failure_deliver_to);
    json["timeout"] = json!(job.spec.timeout.map(|timeout| format!("{timeout:#}")));
    json["catch_up"] = json!(job.catch_up);
    json["overlap"] = json!(job.overlap);
    json["budget"] = json!(job.spec.budget);
    json["created"] = json!(job.created);
    json["workspace"] = json!(job.spec.workspace);
    json["last_run"] = json!(last.map(|run| run.id));
    json
}

fn detail_rows(view: &AutomationView, job: &Job) -> Vec<(&'static str, String)> {
    let spec = &job.spec;
    let mut rows = Vec::new();
    let failures = match spec.failure_deliver_to.as_slice() {
        [] => "inbox".to_owned(),
        targets => one_line(&targets.join(", ")),
    };
    rows.push(("failures to", failures));
    if let Some(timeout) = spec.timeout {
        rows.push(("timeout", format_span(timeout)));
    }
    if spec.budget != RunBudget::default() {
        rows.push(("budget", describe_budget(&spec.budget)));
    }
    if job.schedule.kind != ScheduleKind::At {
        rows.push(("missed", catch_up_text(job.catch_up).to_owned()));
        rows.push(("overlap", overlap_text(job.overlap).to_owned()));
    }
    let session = match spec.session_mode {
        SessionMode::Isolated => "a new one for every run",
        SessionMode::Main => "one for all runs",
    };
    rows.push(("session", session.to_owned()));
    if let Some(folder) = spec.workspace.as_ref().filter(|_| needs_folder(spec)) {
        rows.push(("folder", one_line(&folder.display().to_string())));
    }
    if spec.permissions().is_empty() {
        rows.push((
            "may",
            "only what needs no approval; everything else waits".to_owned(),
        ));
    }
    if !spec.label.is_plain() {
        rows.push(("made from", "content that is not the user's own".to_owned()));
    }
    rows.push(("created", view.times.both(job.created)));
    rows.push((work_kind(&spec.action), String::new()));
    rows
}

fn catch_up_text(rule: CatchUp) -> &'static str {
    match rule {
        CatchUp::Once => "the last occurrence is caught up",
        CatchUp::Skip => "occurrences are not caught up",
        CatchUp::All => "all occurrences are caught up",
    }
}

fn overlap_text(rule: OverlapRule) -> &'static str {
    match rule {
        OverlapRule::Skip => "an occurrence is skipped while the run before it is not over",
        OverlapRule::Queue => "an occurrence waits for the run before it",
        OverlapRule::Replace => "an occurrence cancels the run before it",
    }
}

fn work_kind(action: &JobAction) -> &'static str {
    match action {
        JobAction::Reminder { .. } => "reminder",
        JobAction::Prompt { .. } => "request",
        JobAction::Workflow { .. } => "workflow",
    }
}

fn work_text(action: &JobAction) -> String {
    match action {
        JobAction::Reminder { text } | JobAction::Prompt { text, agent: None } => {
            strip_control_chars(text)
        }
        JobAction::Prompt {
            text,
            agent: Some(agent),
        } => format!(
            "{}: {}",
            one_line(agent.as_str()),
            strip_control_chars(text)
        ),
        JobAction::Workflow { name, params, .. } => {
            let params = params.iter().map(|(name, value)| format!("{name}={value}"));
            let params: Vec<String> = params.collect();
            one_line(&texts(&[vec![name.clone()], params].concat()).join(" "))
        }
    }
}
