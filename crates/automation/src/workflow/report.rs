//! The texts of a run: its result, the results of steps, and questions.

use std::fmt::Write as _;

use jiff::Timestamp;
use lango_domain::Label;
use lango_domain::automation::{
    DeliveryMessage, DeliveryOccasion, INBOX_TARGET, NewDelivery, Run, RunStep, StepState,
};

use super::definition::{Workflow, WorkflowStep};
use super::planner::{Plan, StepRows};
use super::step_executor::limit_result;

/// Returns the result of a run: the results of the steps that no other step depends on, and the failures
/// that did not stop it.
pub(super) fn run_result(workflow: &Workflow, rows: &StepRows) -> (String, Label) {
    let is_needed = |id: &str| {
        let mut steps = workflow.steps.iter();
        steps.any(|step| step.depends_on.iter().any(|dependency| dependency == id))
    };
    let mut label = Label::default();
    let mut parts: Vec<(&str, String)> = Vec::new();
    for step in &workflow.steps {
        let Some(row) = rows.get(&step.id) else {
            continue;
        };
        let text = match row.state {
            StepState::Done if !is_needed(&step.id) => row.result.clone().unwrap_or_default(),
            StepState::Failed => {
                format!("failed: {}", row.error.as_deref().unwrap_or("no reason"))
            }
            _ => continue,
        };
        label.join(&row.label);
        parts.push((&step.id, text));
    }
    let text = match parts.as_slice() {
        [(_, only)] => only.clone(),
        parts => {
            let mut text = String::new();
            for (id, part) in parts {
                let _ = writeln!(text, "{id}:\n{}\n", part.trim_end());
            }
            text.trim_end().to_owned()
        }
    };
    (limit_result(&text), label)
}

/// Returns the deliveries of a step's result.
pub(super) fn step_deliveries(
    run: &Run,
    step: &WorkflowStep,
    row: &RunStep,
    at: Timestamp,
) -> Vec<NewDelivery> {
    let message = DeliveryMessage {
        from: run.name.clone(),
        title: format!("{}: {}", run.name, step.id),
        text: row.result.clone().unwrap_or_default(),
        session: row.session.clone(),
        label: row.label.clone(),
        workspace: run.spec.workspace.clone(),
    };
    deliveries(run, &step.deliver_to, DeliveryOccasion::Result, message, at)
}

/// Returns deliveries of something the user should know. They go where failures go.
pub(super) fn notices(run: &Run, text: &str, at: Timestamp) -> Vec<NewDelivery> {
    let message = DeliveryMessage {
        from: run.name.clone(),
        title: format!("{} (run {}) needs an answer", run.name, run.id),
        text: text.to_owned(),
        session: None,
        label: Label::default(),
        workspace: run.spec.workspace.clone(),
    };
    let inbox = [INBOX_TARGET.to_owned()];
    let targets = match run.spec.failure_deliver_to.as_slice() {
        [] => &inbox,
        targets => targets,
    };
    deliveries(run, targets, DeliveryOccasion::Notice, message, at)
}

fn deliveries(
    run: &Run,
    targets: &[String],
    occasion: DeliveryOccasion,
    message: DeliveryMessage,
    at: Timestamp,
) -> Vec<NewDelivery> {
    let delivery = |target: &String| NewDelivery {
        run: Some(run.id),
        principal: run.principal.clone(),
        occasion,
        target: target.clone(),
        message: message.clone(),
        created: at,
    };
    targets.iter().map(delivery).collect()
}

/// Says what a run waits for.
pub(super) fn waiting_reason(plan: &Plan) -> String {
    match plan.questions.as_slice() {
        [] => "a step waits for its next attempt".to_owned(),
        questions => questions.join("; "),
    }
}
