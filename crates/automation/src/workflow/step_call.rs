//! Puts values into the work of a step.

use jiff::Timestamp;
use lango_domain::automation::RunId;
use lango_domain::event::SessionId;
use lango_domain::{Label, LabeledText};
use serde_json::Value;

use super::definition::{StepAction, WorkflowStep};
use super::planner::PlanInput;
use super::reference::{MissingValue, ReferenceValues, ValueTemplate, resolve};
use super::step_executor::{StepCall, StepInput};

/// The work of a step, and the label of what it was made from.
#[derive(Clone, Debug, PartialEq)]
pub struct StepWork {
    pub call: StepCall,
    pub label: Label,
}

/// Returns the work of a step with its values.
pub fn step_work(step: &WorkflowStep, input: &PlanInput<'_>) -> Result<StepWork, MissingValue> {
    let mut label = Label::default();
    for reference in step.action_references() {
        if let Some(row) = reference.step().and_then(|id| input.rows.get(id)) {
            label.join(&row.label);
        }
    }
    let call = match &step.action {
        StepAction::Tool { tool, arguments } => StepCall::Tool {
            tool: tool.clone(),
            arguments: arguments.fill(input)?,
        },
        StepAction::Agent {
            agent,
            prompt,
            input: items,
        } => StepCall::Agent {
            agent: agent.clone(),
            prompt: prompt.clone(),
            input: items
                .iter()
                .filter_map(|item| step_input(item, input))
                .collect(),
        },
    };
    Ok(StepWork { call, label })
}

/// Returns an item of `input`. What has no value, such as the result of a skipped step, is left out.
fn step_input(item: &ValueTemplate, input: &PlanInput<'_>) -> Option<StepInput> {
    match item {
        ValueTemplate::Reference(reference) => {
            let row = reference.step().and_then(|id| input.rows.get(id));
            let label = row.map(|row| row.label.clone()).unwrap_or_default();
            let values: &dyn ReferenceValues = input;
            let text = text_of(resolve(reference, values)?);
            Some(StepInput {
                source: reference.to_string(),
                content: LabeledText { text, label },
            })
        }
        other => {
            let text = text_of(other.fill(input).ok()?);
            Some(StepInput {
                source: "the workflow".to_owned(),
                content: LabeledText::plain(text),
            })
        }
    }
}

fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        value => value.to_string(),
    }
}

/// Names the session of an attempt. The time keeps attempts of a repeated step apart.
pub fn step_session(run: RunId, step: &str, attempt: u32, at: Timestamp) -> SessionId {
    SessionId::new(format!(
        "workflow-{run}-{step}-{}-{attempt}",
        at.as_second()
    ))
}
