//! Changes of jobs and runs that exist.

use lango_domain::automation::{Job, JobAction, JobEdit, Run, RunId, RunKind, RunState, StepState};
use lango_domain::event::Principal;

use super::WorkPlanner;
use super::error::PlanError;
use crate::schedule::Timetable;
use crate::workflow::{UnknownStep, WorkflowError, parse_workflow, steps_to_retry};

/// The reason why a run cannot be changed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ControlError {
    #[error("there is no run {0}")]
    UnknownRun(RunId),
    #[error("run {run} is no {expected}, but {found}")]
    WrongKind {
        run: RunId,
        expected: &'static str,
        found: String,
    },
    #[error("run {run} is {state} already")]
    Over { run: RunId, state: RunState },
    #[error("run {run} is not over, but {state}; only a run that is over can be tried again")]
    NotOver { run: RunId, state: RunState },
    #[error(transparent)]
    UnknownStep(#[from] UnknownStep),
    #[error("the stored workflow cannot be read: {}", .0.first().map(ToString::to_string).unwrap_or_default())]
    Workflow(Vec<WorkflowError>),
    #[error("step `{step}` of run {run} does not wait for an answer")]
    NotWaiting { run: RunId, step: String },
    #[error("run {run} has no step that waits for an answer")]
    NoQuestion { run: RunId },
    #[error("several steps of run {run} wait for an answer; say which: {}", .steps.join(", "))]
    WhichStep { run: RunId, steps: Vec<String> },
    #[error(transparent)]
    Plan(#[from] PlanError),
}

impl From<lango_domain::StoreError> for ControlError {
    fn from(error: lango_domain::StoreError) -> Self {
        Self::Plan(error.into())
    }
}

impl WorkPlanner<'_> {
    /// Pauses a job. Runs that have started go on.
    pub async fn pause_job(&self, job: &Job) -> Result<Job, PlanError> {
        let edit = JobEdit {
            enabled: Some(false),
            next_due: None,
            ..JobEdit::default()
        };
        Ok(self.store.edit_job(&job.principal, job.id, edit).await?)
    }

    /// Resumes a paused job. Occurrences in between are not caught up.
    pub async fn resume_job(&self, job: &Job) -> Result<Job, PlanError> {
        let timetable = Timetable::read(&job.schedule)?;
        let edit = JobEdit {
            enabled: Some(true),
            decided_until: Some(self.now),
            next_due: timetable.next_after(self.now),
            ..JobEdit::default()
        };
        Ok(self.store.edit_job(&job.principal, job.id, edit).await?)
    }

    /// Returns a run that does the work of a kind.
    pub async fn run_of_kind(
        &self,
        principal: &Principal,
        id: RunId,
        kind: RunKind,
    ) -> Result<Run, ControlError> {
        let run = self.store.run(principal, id).await?;
        let run = run.ok_or(ControlError::UnknownRun(id))?;
        let is_workflow = matches!(run.spec.action, JobAction::Workflow { .. });
        let (fits, expected) = match kind {
            // Jobs run workflows too.
            RunKind::Workflow => (is_workflow, "run of a workflow"),
            RunKind::Background => (run.kind == kind, "background task"),
            RunKind::Job => (run.kind == kind, "run of a job"),
        };
        match fits {
            true => Ok(run),
            false => Err(ControlError::WrongKind {
                run: id,
                expected,
                found: kind_text(&run),
            }),
        }
    }

    /// Cancels a run, or asks the process that holds it to stop.
    pub async fn cancel(&self, run: &Run) -> Result<(), ControlError> {
        let cancelled = self.store.cancel_run(&run.principal, run.id, self.now);
        match cancelled.await? {
            true => Ok(()),
            false => Err(ControlError::Over {
                run: run.id,
                state: run.state,
            }),
        }
    }

    /// Queues a run of a workflow that is over again, and returns its steps that run once more or are skipped.
    /// All others keep their results (B122).
    pub async fn retry(
        &self,
        run: &Run,
        from: Option<&str>,
        skip: &[String],
    ) -> Result<Vec<(String, StepState)>, ControlError> {
        let steps = self.steps_to_retry(run, from, skip).await?;
        let requeued = self
            .store
            .requeue_run(&run.principal, run.id, steps.clone())
            .await?;
        match requeued {
            true => Ok(steps),
            false => Err(ControlError::NotOver {
                run: run.id,
                state: run.state,
            }),
        }
    }

    /// Returns the steps that another try would change.
    pub async fn steps_to_retry(
        &self,
        run: &Run,
        from: Option<&str>,
        skip: &[String],
    ) -> Result<Vec<(String, StepState)>, ControlError> {
        if !run.state.is_final() {
            return Err(ControlError::NotOver {
                run: run.id,
                state: run.state,
            });
        }
        let JobAction::Workflow {
            name, definition, ..
        } = &run.spec.action
        else {
            return Err(ControlError::WrongKind {
                run: run.id,
                expected: "run of a workflow",
                found: kind_text(run),
            });
        };
        let workflow = parse_workflow(name, definition, None).map_err(ControlError::Workflow)?;
        let rows = self.store.steps(&run.principal, run.id).await?;
        Ok(steps_to_retry(&workflow, &rows, from, skip)?)
    }

    /// Returns the step that an answer is for: the given one, or the only one that waits.
    pub async fn waiting_step(
        &self,
        run: &Run,
        step: Option<&str>,
    ) -> Result<lango_domain::automation::RunStep, ControlError> {
        let rows = self.store.steps(&run.principal, run.id).await?;
        let waits = |state| matches!(state, StepState::Waiting | StepState::Unknown);
        let mut waiting: Vec<_> = rows.into_iter().filter(|row| waits(row.state)).collect();
        if let Some(step) = step {
            let at = waiting.iter().position(|row| row.step == step.trim());
            return match at {
                Some(at) => Ok(waiting.swap_remove(at)),
                None => Err(ControlError::NotWaiting {
                    run: run.id,
                    step: lango_text::sanitize::truncated_line(step, 80),
                }),
            };
        }
        match waiting.len() {
            1 => Ok(waiting.swap_remove(0)),
            0 => Err(ControlError::NoQuestion { run: run.id }),
            _ => Err(ControlError::WhichStep {
                run: run.id,
                steps: waiting.into_iter().map(|row| row.step).collect(),
            }),
        }
    }
}

fn kind_text(run: &Run) -> String {
    match run.kind {
        RunKind::Job => format!("a run of the job `{}`", run.name),
        RunKind::Background => "a background task".to_owned(),
        RunKind::Workflow => format!("a run of the workflow `{}`", run.name),
    }
}
