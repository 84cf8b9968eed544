//! `lango workflow cancel | retry | approve | deny`.

use lango_app::capability::automation::APPROVAL_PREFIX;
use lango_app::capability::automation::workflow::steps_to_retry;
use lango_domain::automation::{RunStep, StepDecision, StepState};
use lango_text::sanitize::{one_line, truncated_line};
use lango_text::suggest;
use serde_json::json;

use super::status::{questions, run_steps, stored_definition};
use crate::commands::automation::AutomationView;
use crate::output::{CliError, CommandOutput};

pub async fn cancel(view: &AutomationView, run: &str) -> Result<CommandOutput, CliError> {
    let run = view.workflow_run(run).await?;
    let plain = view.cancel(&run, "run").await?;
    Ok(CommandOutput::new(
        plain,
        json!({ "run": run.id.to_string(), "cancelled": true }),
    ))
}

pub async fn retry(
    view: &AutomationView,
    run: &str,
    from: Option<&str>,
    skip: &[String],
) -> Result<CommandOutput, CliError> {
    let run = view.workflow_run(run).await?;
    let id = run.id;
    let not_over = || {
        CliError::usage(format!("run {id} is not over ({})", run.state))
            .with_hint(format!("`lango workflow status {id}` shows its steps"))
    };
    if !run.state.is_final() {
        return Err(not_over());
    }
    let workflow = stored_definition(&run).ok_or_else(|| {
        CliError::store(format!("the stored workflow of run {id} cannot be read"))
    })?;
    let rows = view.store().steps(&view.principal, id).await?;
    let steps = steps_to_retry(&workflow, &rows, from, skip).map_err(|error| {
        let ids: Vec<&str> = workflow.steps.iter().map(|step| step.id.as_str()).collect();
        let hint = suggest::did_you_mean(&error.step, ids.iter().copied());
        let message = format!("run {id} has no step `{}`", truncated_line(&error.step, 80));
        let known = format!("its steps are {}", ids.join(", "));
        CliError::usage(message).with_hint(hint.unwrap_or(known))
    })?;
    if steps.is_empty() {
        let error = CliError::usage(format!(
            "every step of run {id} is done; there is nothing to retry"
        ));
        return Err(error.with_hint("--from STEP runs a step again, with everything after it"));
    }
    let is_queued = view
        .store()
        .requeue_run(&view.principal, id, steps.clone())
        .await?;
    if !is_queued {
        return Err(not_over());
    }
    let again = names(&steps, StepState::Pending);
    let skipped = names(&steps, StepState::Skipped);
    let mut plain = format!("Queued run {id} again.\n");
    for (title, ids) in [("to run", &again), ("skipped", &skipped)] {
        if !ids.is_empty() {
            plain.push_str(&format!("  {title}: {}\n", ids.join(", ")));
        }
    }
    let notice = view.no_scheduler_notice().await?;
    let json = json!({ "run": id.to_string(), "again": again, "skipped": skipped });
    Ok(CommandOutput::new(plain, json).with_warnings(notice.into_iter().collect()))
}

fn names(steps: &[(String, StepState)], state: StepState) -> Vec<&str> {
    let named = steps.iter().filter(|(_, new)| *new == state);
    named.map(|(id, _)| id.as_str()).collect()
}

/// Answers a step that waits, or one whose effect is unknown.
pub async fn answer(
    view: &AutomationView,
    run: &str,
    step: &str,
    is_approved: bool,
) -> Result<CommandOutput, CliError> {
    let run = view.any_run(run).await?;
    let mut rows = run_steps(view, &run).await?;
    rows.extend(questions(view, &run).await?);
    let row = find_step(&rows, step, &run.id.to_string())?;
    let question = format!("{APPROVAL_PREFIX}{step}");
    // The name of a step also means the question of its turn.
    let row = match row.state {
        StepState::Waiting | StepState::Unknown => row,
        _ => {
            let mut open = rows.iter().filter(|row| row.is_open_question());
            open.find(|row| row.step == question).unwrap_or(row)
        }
    };
    let decision = match (row.state, is_approved) {
        (StepState::Unknown, true) => StepDecision::Repeat,
        (StepState::Unknown, false) => StepDecision::Skip,
        (_, true) => StepDecision::Approve,
        (_, false) => StepDecision::Deny,
    };
    let (store, id) = (view.store(), &row.step);
    let is_answered = store
        .answer_step(&view.principal, run.id, id, decision)
        .await?;
    if !is_answered {
        let (step, state) = (one_line(id), row.state.as_str());
        let message = format!(
            "step `{step}` of run {} does not wait for an answer ({state})",
            run.id
        );
        let hint = waiting_hint(&rows, &run.id.to_string());
        return Err(CliError::usage(message).with_hint(hint));
    }
    let done = match decision {
        StepDecision::Approve => "approved",
        StepDecision::Deny => "denied",
        StepDecision::Repeat => "it runs again",
        StepDecision::Skip => "the run goes on without it",
    };
    let plain = format!("Step {} of run {}: {done}.\n", one_line(id), run.id);
    let notice = view.no_scheduler_notice().await?;
    let json = json!({ "run": run.id.to_string(), "step": id, "decision": decision });
    Ok(CommandOutput::new(plain, json).with_warnings(notice.into_iter().collect()))
}

fn find_step<'a>(rows: &'a [RunStep], step: &str, run: &str) -> Result<&'a RunStep, CliError> {
    rows.iter().find(|row| row.step == step).ok_or_else(|| {
        let ids: Vec<&str> = rows.iter().map(|row| row.step.as_str()).collect();
        let message = format!("run {run} has no step `{}`", truncated_line(step, 80));
        let known = format!("its steps are {}", one_line(&ids.join(", ")));
        CliError::usage(message).with_hint(suggest::did_you_mean(step, ids).unwrap_or(known))
    })
}

fn waiting_hint(rows: &[RunStep], run: &str) -> String {
    let waits = |row: &&RunStep| matches!(row.state, StepState::Waiting | StepState::Unknown);
    let waiting: Vec<String> = rows
        .iter()
        .filter(waits)
        .map(|row| one_line(&row.step))
        .collect();
    match waiting.is_empty() {
        true => format!("no step of run {run} waits; see `lango workflow status {run}`"),
        false => format!("these steps wait: {}", waiting.join(", ")),
    }
}
