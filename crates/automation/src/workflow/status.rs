//! The output of commands and tools about workflows. Scripts depend on these shapes.

use jiff::Timestamp;
use lango_domain::automation::{Run, RunState, RunStep, StepState};
use serde::Serialize;

use super::definition::Workflow;
use super::error::WorkflowError;

/// The status of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkflowStatus {
    pub run: String,
    pub workflow: String,
    pub state: RunState,
    /// Why the run is in this state.
    pub reason: Option<String>,
    pub steps: Vec<StepStatus>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepStatus {
    pub id: String,
    pub state: StepState,
    pub attempt: u32,
    pub started: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    pub result: Option<String>,
    pub error: Option<String>,
    /// Why the step is in this state.
    pub reason: Option<String>,
    /// True if the step ran again although an earlier attempt may have had its effect.
    pub repeated: bool,
}

impl WorkflowStatus {
    /// Returns the status of a run, with the steps in the order of the file.
    pub fn new(run: &Run, workflow: &Workflow, rows: &[RunStep]) -> Self {
        let step = |id: &str| {
            let row = rows.iter().find(|row| row.step == id).cloned();
            let row = row.unwrap_or_else(|| RunStep::pending(run.id, id));
            StepStatus {
                id: row.step,
                state: row.state,
                attempt: row.attempt,
                started: row.started,
                ended: row.ended,
                result: row.result,
                error: row.error,
                reason: row.reason,
                // Only a step that was started again is repeated, not one that may be.
                repeated: row.is_repeated && row.attempt > 0,
            }
        };
        Self {
            run: run.id.to_string(),
            workflow: run.name.clone(),
            state: run.state,
            reason: run.reason.clone(),
            steps: workflow.steps.iter().map(|s| step(&s.id)).collect(),
        }
    }
}

/// The result of checking a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ValidationReport {
    pub ok: bool,
    pub errors: Vec<WorkflowError>,
}

impl From<&Result<Workflow, Vec<WorkflowError>>> for ValidationReport {
    fn from(read: &Result<Workflow, Vec<WorkflowError>>) -> Self {
        Self {
            ok: read.is_ok(),
            errors: read.as_ref().err().cloned().unwrap_or_default(),
        }
    }
}
