//! `lango bg …`: background tasks.

mod submit;

use std::fmt::Write as _;
use std::process::ExitCode;

use lango_domain::automation::{JobAction, Run, RunKind, RunQuery, RunState};
use lango_text::sanitize::{one_line, strip_control_chars, truncated_line};
use serde_json::{Value, json};

use super::automation::{AutomationView, items_json, rows, run_reason, state_with_time};
use super::{runtime, with_damage_warnings};
use crate::args::{BackgroundCommand, GlobalArgs};
use crate::output::{CliError, CommandOutput, NAME, OutputFormat, styled};

pub fn run(
    global: &GlobalArgs,
    command: &BackgroundCommand,
    format: OutputFormat,
) -> Result<ExitCode, CliError> {
    let view = AutomationView::load(global)?;
    let output = runtime()?.block_on(async {
        match command {
            BackgroundCommand::Submit {
                text,
                agent,
                delivery,
            } => submit::submit(&view, &text.join(" "), agent.as_deref(), delivery).await,
            BackgroundCommand::List { limit } => list(&view, limit.get()).await,
            BackgroundCommand::Status { id } => status(&view, id).await,
            BackgroundCommand::Cancel { id } => cancel(&view, id).await,
            BackgroundCommand::Result { id } => result(&view, id, format).await,
        }
    })?;
    Ok(with_damage_warnings(output, &view.stores).print(format))
}

async fn list(view: &AutomationView, limit: usize) -> Result<CommandOutput, CliError> {
    let query = RunQuery {
        kinds: vec![RunKind::Background],
        ..RunQuery::newest(view.principal.clone(), limit)
    };
    let runs = view.store().runs(query).await?;
    let mut plain = String::new();
    for run in &runs {
        let (prompt, _) = request(run);
        let id = styled(NAME, run.id);
        let state = state_with_time(run, &view.times);
        let _ = writeln!(plain, "{id}  {state}  {}", truncated_line(&prompt, 80));
    }
    if runs.is_empty() {
        plain.push_str("There are no background tasks. Submit one with `lango bg submit TEXT`.\n");
    }
    let items = runs.iter().map(task_json).collect();
    Ok(CommandOutput::new(plain, items_json(items)))
}

/// Returns the request of a task and its agent.
fn request(run: &Run) -> (String, Option<String>) {
    match &run.spec.action {
        JobAction::Prompt { text, agent } => {
            let agent = agent.as_ref().map(|agent| agent.as_str().to_owned());
            (text.clone(), agent)
        }
        JobAction::Reminder { text } => (text.clone(), None),
        JobAction::Workflow { name, .. } => (name.clone(), None),
    }
}

fn task_json(run: &Run) -> Value {
    let (prompt, agent) = request(run);
    json!({
        "id": run.id,
        "prompt": prompt,
        "agent": agent,
        "state": run.state,
        "started": run.started,
        "ended": run.ended,
        "session": run.session,
    })
}

async fn status(view: &AutomationView, id: &str) -> Result<CommandOutput, CliError> {
    let run = view.task(id).await?;
    let (prompt, agent) = request(&run);
    let mut shown = vec![
        ("state", state_with_time(&run, &view.times)),
        ("request", truncated_line(&prompt, 300)),
    ];
    if let Some(agent) = agent {
        shown.push(("agent", one_line(&agent)));
    }
    if let Some(reason) = run_reason(&run) {
        shown.push(("reason", truncated_line(reason, 500)));
    }
    if run.attempt > 1 {
        shown.push(("attempt", run.attempt.to_string()));
    }
    if let Some(session) = &run.session {
        shown.push(("session", one_line(session.as_str())));
    }
    if let Some(delivery) = run.delivery {
        shown.push(("delivery", delivery.to_string()));
    }
    if run.state == RunState::Done {
        shown.push(("result", format!("`lango bg result {}` prints it", run.id)));
    }
    let plain = format!(
        "{}\n{}",
        styled(NAME, format!("Task {}", run.id)),
        rows(&shown)
    );
    let notice = match run.state {
        RunState::Queued => view.no_scheduler_notice().await?,
        _ => None,
    };
    Ok(CommandOutput::new(plain, task_json(&run)).with_warnings(notice.into_iter().collect()))
}

async fn result(
    view: &AutomationView,
    id: &str,
    format: OutputFormat,
) -> Result<CommandOutput, CliError> {
    let run = view.task(id).await?;
    let json =
        json!({ "id": run.id, "state": run.state, "result": run.result, "error": run.error });
    let text = run.result.as_deref().map(strip_control_chars);
    if run.state == RunState::Done {
        let plain = text.filter(|text| !text.trim().is_empty());
        let plain = plain.unwrap_or_else(|| "The task has no result.\n".to_owned());
        return Ok(CommandOutput::new(plain, json));
    }
    if !run.state.is_final() {
        let hint = format!("`lango bg status {}` shows its progress", run.id);
        let error = CliError::run_failed(format!(
            "task {} is {}; it has no result yet",
            run.id, run.state
        ));
        return Err(error.with_hint(hint));
    }
    // A failed task may have achieved something.
    if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
        CommandOutput::new(text, json).print(format);
    }
    let reason = run_reason(&run).map_or(String::new(), |reason| format!(": {}", one_line(reason)));
    let message = format!("task {} is {}{reason}", run.id, run.state);
    Err(match run.state {
        RunState::Cancelled => CliError::cancelled(message),
        _ => CliError::run_failed(message),
    })
}

async fn cancel(view: &AutomationView, id: &str) -> Result<CommandOutput, CliError> {
    let run = view.task(id).await?;
    let plain = view.cancel(&run, "task").await?;
    Ok(CommandOutput::new(
        plain,
        json!({ "id": run.id, "cancelled": true }),
    ))
}
