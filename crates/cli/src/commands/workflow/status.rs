//! `lango workflow status`: the steps of a run.

use std::fmt::Write as _;

use lango_app::capability::automation::time_text::format_span;
use lango_app::capability::automation::workflow::{Workflow, WorkflowStatus, parse_workflow};
use lango_domain::automation::{JobAction, Run, RunStep, StepState};
use lango_text::sanitize::{one_line, truncated_line};
use serde_json::{Value, json};

use crate::commands::automation::{AutomationView, run_reason, state_with_time};
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

/// The longest result that is shown of a step, in characters.
const SHOWN_RESULT_CHARS: usize = 160;

pub async fn status(view: &AutomationView, run: &str) -> Result<CommandOutput, CliError> {
    let run = view.workflow_run(run).await?;
    let steps = run_steps(view, &run).await?;
    let mut questions = questions(view, &run).await?;
    questions.retain(RunStep::is_open_question);
    let mut plain = format_status(view, &run, &steps);
    for row in &questions {
        plain.push_str(&question_text(view, &run, row));
    }
    let mut json = status_json(&run, &steps);
    json["questions"] = questions.iter().map(question_json).collect();
    Ok(CommandOutput::new(plain, json))
}

/// Returns all steps of a run in the order of its file, including those that have not started.
pub async fn run_steps(view: &AutomationView, run: &Run) -> Result<Vec<RunStep>, CliError> {
    let stored = view.store().steps(&view.principal, run.id).await?;
    let stored: Vec<RunStep> = stored
        .into_iter()
        .filter(|row| row.question.is_none())
        .collect();
    Ok(match stored_definition(run) {
        None => stored,
        Some(workflow) => {
            let row = |id: &str| stored.iter().find(|row| row.step == id).cloned();
            let ids = workflow.steps.iter().map(|step| step.id.as_str());
            ids.map(|id| row(id).unwrap_or_else(|| RunStep::pending(run.id, id)))
                .collect()
        }
    })
}

/// Returns the questions of the run's turns, which are rows of their own.
pub async fn questions(view: &AutomationView, run: &Run) -> Result<Vec<RunStep>, CliError> {
    let stored = view.store().steps(&view.principal, run.id).await?;
    Ok(stored
        .into_iter()
        .filter(|row| row.question.is_some())
        .collect())
}

/// Returns a question of a turn, with how and until when it can be answered.
fn question_text(view: &AutomationView, run: &Run, row: &RunStep) -> String {
    let mut text = format!("{}\n", step_line(row, 0));
    let shown = row.reason.as_deref().unwrap_or_default();
    let _ = writeln!(text, "      {}", truncated_line(shown, 500));
    if let Some(question) = question(run, row) {
        let _ = writeln!(text, "      {}", styled(DIM, question));
    }
    if let Some(deadline) = row.deadline {
        let _ = writeln!(
            text,
            "      {}",
            styled(DIM, format!("until {}", view.times.both(deadline)))
        );
    }
    text
}

fn question_json(row: &RunStep) -> Value {
    json!({ "id": row.step, "question": row.reason, "asked": row.started, "deadline": row.deadline })
}

/// Returns the workflow as it was when the run was made.
pub fn stored_definition(run: &Run) -> Option<Workflow> {
    let JobAction::Workflow {
        name, definition, ..
    } = &run.spec.action
    else {
        return None;
    };
    parse_workflow(name, definition, None).ok()
}

/// Returns the JSON of a run. Without its definition, the steps are those that the store knows.
pub fn status_json(run: &Run, steps: &[RunStep]) -> Value {
    match stored_definition(run) {
        Some(workflow) => json!(WorkflowStatus::new(run, &workflow, steps)),
        None => {
            json!({ "run": run.id.to_string(), "workflow": run.name, "state": run.state, "steps": [] })
        }
    }
}

pub fn format_status(view: &AutomationView, run: &Run, steps: &[RunStep]) -> String {
    let title = format!("{} (run {})", one_line(&run.name), run.id);
    let state = state_with_time(run, &view.times);
    let mut text = format!("{}  {state}\n", styled(NAME, title));
    if let Some(reason) = run_reason(run) {
        let _ = writeln!(text, "  {}", truncated_line(reason, 500));
    }
    let width = steps.iter().map(|row| row.step.chars().count()).max();
    for row in steps {
        let _ = writeln!(text, "{}", step_line(row, width.unwrap_or(0)));
        let detail = row.error.as_deref().or(row.reason.as_deref());
        let detail = detail.or(row.result.as_deref()).unwrap_or_default();
        let detail = truncated_line(detail, SHOWN_RESULT_CHARS);
        if !detail.is_empty() {
            let _ = writeln!(text, "      {detail}");
        }
        if let Some(question) = question(run, row) {
            let _ = writeln!(text, "      {}", styled(DIM, question));
        }
    }
    text
}

/// Returns a step with its state on one line.
pub fn step_line(row: &RunStep, width: usize) -> String {
    let mut details = vec![row.state.as_str().to_owned()];
    if let (Some(started), Some(ended)) = (row.started, row.ended) {
        details.push(format!(
            "took {}",
            format_span(ended.duration_since(started))
        ));
    }
    if row.attempt > 1 {
        details.push(format!("attempt {}", row.attempt));
    }
    if row.is_repeated {
        details.push("repeated although an earlier attempt may have had its effect".to_owned());
    }
    let id = one_line(&row.step);
    let gap = " ".repeat(width.saturating_sub(id.chars().count()));
    format!(
        "  {} {}{gap}  {}",
        mark(row.state),
        styled(NAME, id),
        details.join(", ")
    )
}

fn mark(state: StepState) -> &'static str {
    match state {
        StepState::Pending => "·",
        StepState::Running => "▸",
        StepState::Waiting | StepState::Unknown => "?",
        StepState::Done => "✓",
        StepState::Failed => "✗",
        StepState::Skipped | StepState::Cancelled => "-",
    }
}

/// Returns how to answer a step that needs an answer.
pub fn question(run: &Run, row: &RunStep) -> Option<String> {
    let (id, step) = (run.id, one_line(&row.step));
    if row.decision.is_some() || run.state.is_final() {
        return None;
    }
    match row.state {
        StepState::Waiting => Some(format!(
            "answer with `lango workflow approve {id} {step}` or `lango workflow deny {id} {step}`"
        )),
        StepState::Unknown => Some(format!(
            "the process ended during this step; `lango workflow approve {id} {step}` runs it again, \
             `lango workflow deny {id} {step}` goes on without it"
        )),
        _ => None,
    }
}
