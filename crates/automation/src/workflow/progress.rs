//! The rows of a run in memory, and their changes. Does no IO: the driver stores the changes and runs the
//! steps.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use lango_domain::automation::{NewDelivery, Run, RunStep, StepState};
use serde_json::{Map, Value};

use super::definition::{Workflow, WorkflowStep};
use super::planner::{Plan, PlanInput, StepMove, StepRows, plan};
use super::report;
use super::step_call::{StepWork, step_session, step_work};
use super::step_executor::{StepCall, StepFailure, StepOutcome, limit_result};

/// The progress of a run that a process holds.
pub(super) struct WorkflowProgress<'a> {
    pub run: &'a Run,
    pub workflow: &'a Workflow,
    pub params: &'a Map<String, Value>,
    pub approval_deadline: Duration,
    pub rows: StepRows,
    /// Steps whose rows are not stored yet, in order.
    changed: Vec<String>,
    /// Stored with the rows.
    deliveries: Vec<NewDelivery>,
    starts: Vec<StepStart>,
}

/// A step to start once it is stored as running.
pub(super) struct StepStart {
    pub step: String,
    pub work: StepWork,
    /// True if an earlier process started it.
    pub is_resumed: bool,
}

impl<'a> WorkflowProgress<'a> {
    pub fn new(
        run: &'a Run,
        workflow: &'a Workflow,
        params: &'a Map<String, Value>,
        approval_deadline: Duration,
    ) -> Self {
        Self {
            run,
            workflow,
            params,
            approval_deadline,
            rows: StepRows::new(),
            changed: Vec::new(),
            deliveries: Vec::new(),
            starts: Vec::new(),
        }
    }

    /// Takes the stored rows, adds missing ones, and decides about steps that an earlier process left
    /// running.
    pub fn load(
        &mut self,
        stored: Vec<RunStep>,
        can_continue: &dyn Fn(&str, &StepCall) -> bool,
        now: Timestamp,
    ) {
        let stored = stored.into_iter().filter(|row| row.question.is_none());
        self.rows = stored.map(|row| (row.step.clone(), row)).collect();
        for step in &self.workflow.steps {
            if !self.rows.contains_key(&step.id) {
                let row = RunStep::pending(self.run.id, &step.id);
                self.rows.insert(step.id.clone(), row);
                self.changed.push(step.id.clone());
            }
            if self.state(&step.id) == Some(StepState::Running) {
                self.recover(step, can_continue, now);
            }
        }
    }

    /// An agent's turn is resumed, as is a call that has not run or whose result is known. A call that only
    /// reads runs again. The effect of any other call is unknown (B122).
    fn recover(
        &mut self,
        step: &WorkflowStep,
        can_continue: &dyn Fn(&str, &StepCall) -> bool,
        now: Timestamp,
    ) {
        match step_work(step, &self.plan_input(now)) {
            Ok(work) if can_continue(&step.id, &work.call) => {
                self.change(&step.id, |row| {
                    row.reason = Some("continued after the process ended".to_owned());
                });
                self.starts.push(StepStart {
                    step: step.id.clone(),
                    work,
                    is_resumed: true,
                });
            }
            _ => {
                let reason = "the process ended while it ran, so its effect is unknown";
                self.change(&step.id, |row| {
                    row.state = StepState::Unknown;
                    row.reason = Some(reason.to_owned());
                    // The store removes an older answer with this state.
                    row.decision = None;
                });
                let question = format!(
                    "The process ended while step `{id}` ran, so its effect is unknown. `lango workflow approve {run} {id}` \
                     runs it again, `lango workflow deny {run} {id}` does not.",
                    id = step.id,
                    run = self.run.id
                );
                self.notify(&question, now);
            }
        }
    }

    /// Plans and applies moves until nothing changes any more.
    pub fn advance(&mut self, now: Timestamp) -> Plan {
        loop {
            let mut plan = plan(self.plan_input(now));
            let moves = std::mem::take(&mut plan.moves);
            if moves.is_empty() {
                return plan;
            }
            for (id, step_move) in moves {
                self.apply(&id, step_move, now);
            }
        }
    }

    fn apply(&mut self, id: &str, step_move: StepMove, now: Timestamp) {
        match step_move {
            StepMove::Start { is_repeated } => self.prepare_start(id, is_repeated, now),
            StepMove::Skip { reason } => self.change(id, |row| {
                row.state = StepState::Skipped;
                row.reason = Some(reason);
                row.ended = Some(now);
            }),
            StepMove::Fail { error } => self.change(id, |row| {
                row.state = StepState::Failed;
                row.reason = None;
                row.error = Some(error);
                row.ended = Some(now);
            }),
            StepMove::AskApproval => {
                let own = self.workflow.step(id).and_then(|step| step.approval);
                let wait = own.and_then(|approval| approval.deadline);
                let wait = SignedDuration::try_from(wait.unwrap_or(self.approval_deadline));
                let wait = wait.unwrap_or(SignedDuration::MAX);
                let deadline = now.saturating_add(wait).unwrap_or(Timestamp::MAX);
                self.change(id, |row| {
                    row.state = StepState::Waiting;
                    row.reason = Some("waits for approval".to_owned());
                    row.started = Some(now);
                    row.deadline = Some(deadline);
                    // The store removes an older answer with this state.
                    row.decision = None;
                });
                self.notify(&format!("Step `{id}` waits for your approval."), now);
            }
        }
    }

    fn prepare_start(&mut self, id: &str, is_repeated: bool, now: Timestamp) {
        let Some(step) = self.workflow.step(id) else {
            return;
        };
        match step_work(step, &self.plan_input(now)) {
            Ok(work) => {
                let run = self.run.id;
                self.change(id, |row| {
                    row.state = StepState::Running;
                    row.reason = None;
                    row.error = None;
                    row.attempt += 1;
                    row.started = Some(now);
                    row.ended = None;
                    row.is_repeated = is_repeated;
                    row.session = Some(step_session(run, &row.step, row.attempt, now));
                });
                self.starts.push(StepStart {
                    step: id.to_owned(),
                    work,
                    is_resumed: false,
                });
            }
            Err(missing) => {
                let error = missing.to_string();
                self.apply(id, StepMove::Fail { error }, now);
            }
        }
    }

    /// Takes the end of an attempt.
    pub fn finish(&mut self, id: &str, outcome: StepOutcome, now: Timestamp) {
        let Some(step) = self.workflow.step(id) else {
            return;
        };
        match outcome {
            // The row stays as it is, for the next process.
            StepOutcome::Suspended | StepOutcome::StoreFailed(_) => {}
            StepOutcome::Done(result) => {
                self.change(id, |row| {
                    row.state = StepState::Done;
                    row.reason = None;
                    row.error = None;
                    row.ended = Some(now);
                    row.result = Some(limit_result(&result.text));
                    row.label = result.label;
                });
                if let Some(row) = self.rows.get(id) {
                    let deliveries = report::step_deliveries(self.run, step, row, now);
                    self.deliveries.extend(deliveries);
                }
            }
            StepOutcome::Failed(failure) => self.fail_attempt(step, failure, now),
        }
    }

    fn fail_attempt(&mut self, step: &WorkflowStep, failure: StepFailure, now: Timestamp) {
        self.change(&step.id, |row| {
            let has_attempt_left = step.retry.wait_after(row.attempt).is_some();
            row.ended = Some(now);
            row.error = Some(limit_result(&failure.message));
            row.label = failure.label;
            if failure.is_permanent || !has_attempt_left {
                row.state = StepState::Failed;
                row.reason = None;
            } else {
                row.state = StepState::Pending;
                row.reason = Some(format!(
                    "attempt {} of {} failed; it waits for the next one",
                    row.attempt, step.retry.attempts
                ));
            }
        });
    }

    /// Cancels every step that is not over.
    pub fn cancel_open_steps(&mut self, now: Timestamp) {
        for step in &self.workflow.steps {
            let reason = match self.state(&step.id) {
                Some(StepState::Running) => {
                    "cancelled while it ran; it may have had a part of its effect"
                }
                Some(StepState::Pending | StepState::Waiting | StepState::Unknown) => {
                    "the run was cancelled"
                }
                _ => continue,
            };
            self.change(&step.id, |row| {
                row.state = StepState::Cancelled;
                row.reason = Some(reason.to_owned());
                row.ended = Some(now);
            });
        }
    }

    /// Takes the answers from stored rows.
    pub fn take_answers(&mut self, stored: Vec<RunStep>) {
        for stored in stored {
            if let Some(row) = self.rows.get_mut(&stored.step)
                && row.state == stored.state
            {
                row.decision = stored.decision;
            }
        }
    }

    /// Returns what is not stored yet.
    pub fn take_changes(&mut self) -> (Vec<RunStep>, Vec<NewDelivery>) {
        let changed = std::mem::take(&mut self.changed);
        let rows = changed.iter().filter_map(|id| self.rows.get(id).cloned());
        (rows.collect(), std::mem::take(&mut self.deliveries))
    }

    pub fn take_starts(&mut self) -> Vec<StepStart> {
        std::mem::take(&mut self.starts)
    }

    fn change(&mut self, id: &str, change: impl FnOnce(&mut RunStep)) {
        if let Some(row) = self.rows.get_mut(id) {
            change(row);
            if !self.changed.iter().any(|changed| changed == id) {
                self.changed.push(id.to_owned());
            }
        }
    }

    fn notify(&mut self, text: &str, now: Timestamp) {
        self.deliveries.extend(report::notices(self.run, text, now));
    }

    fn state(&self, id: &str) -> Option<StepState> {
        self.rows.get(id).map(|row| row.state)
    }

    fn plan_input(&self, now: Timestamp) -> PlanInput<'_> {
        PlanInput {
            workflow: self.workflow,
            params: self.params,
            rows: &self.rows,
            now,
            approval_deadline: self.approval_deadline,
        }
    }
}
