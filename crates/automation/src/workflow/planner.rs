//! Decides what happens next in a run of a workflow. Pure: rows and a time in, decisions out.
//!
//! ```text
//! pending ─▶ running ─▶ done
//!    │  ▲       ├─▶ failed                       (no attempt left)
//!    │  └───────┤                                (waits for its next attempt; holds no slot)
//!    │          └─▶ unknown ─▶ running | skipped (the process ended; only a user decides)
//!    ├─▶ waiting ─▶ running | failed | skipped   (approval)
//!    └─▶ skipped                               (condition, skipped dependency, failed run)
//! ```

use std::collections::HashMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use lango_domain::automation::{RunStep, StepDecision, StepState};
use serde_json::{Map, Value};

use super::definition::{OnFailure, Workflow, WorkflowStep};
use super::expression::evaluate;
use super::reference::{ReferenceValues, StepField};

/// The rows of a run by step. Every step of the workflow has one.
pub type StepRows = HashMap<String, RunStep>;

/// The time that a run with a step of unknown effect waits for an answer before it is looked at again. An answer
/// wakes it up at once.
const ANSWER_WAIT: SignedDuration = SignedDuration::from_hours(30 * 24);

/// A change of one step that the plan decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepMove {
    /// Runs it. `is_repeated` if an earlier attempt may have had its effect.
    Start {
        is_repeated: bool,
    },
    Skip {
        reason: String,
    },
    Fail {
        error: String,
    },
    AskApproval,
}

/// The next moves of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub moves: Vec<(String, StepMove)>,
    /// The first time at which a step can go on by itself: a retry, or the deadline of an approval.
    pub wake_at: Option<Timestamp>,
    /// Why steps wait for a user, if some do.
    pub questions: Vec<String>,
    /// True if no step runs or can still run.
    pub is_over: bool,
}

impl Plan {
    /// Returns the time at which a run that only waits continues.
    pub fn resume_at(&self, now: Timestamp) -> Timestamp {
        self.wake_at.unwrap_or_else(|| later(now, ANSWER_WAIT))
    }
}

/// The state of a run, as the planner reads it.
#[derive(Clone, Copy)]
pub struct PlanInput<'a> {
    pub workflow: &'a Workflow,
    pub params: &'a Map<String, Value>,
    pub rows: &'a StepRows,
    pub now: Timestamp,
    /// The time that an approval waits if the file does not say.
    pub approval_deadline: Duration,
}

/// Decides the next moves of a run. Moves depend on each other, so the caller applies them and plans again
/// until there are none.
pub fn plan(input: PlanInput<'_>) -> Plan {
    let mut plan = Plan::default();
    let running = input.count(StepState::Running);
    let mut slots = input.workflow.concurrency.saturating_sub(running);
    let stopped_by = input.stopping_failure();
    let mut is_open = running > 0;
    for step in &input.workflow.steps {
        let Some(row) = input.rows.get(&step.id) else {
            continue;
        };
        let verdict = match (row.state, stopped_by) {
            (StepState::Pending | StepState::Waiting, Some(failed)) => {
                StepVerdict::Move(StepMove::Skip {
                    reason: format!("not run, because `{failed}` failed"),
                })
            }
            // Nothing waits for an answer in a run that has failed. A retry asks again.
            (StepState::Unknown, Some(_)) => StepVerdict::Over,
            (StepState::Pending, None) => input.pending(step, row),
            (StepState::Waiting, None) => input.waiting(step, row),
            (StepState::Unknown, None) => unknown(step, row),
            _ => StepVerdict::Over,
        };
        match verdict {
            StepVerdict::Over => {}
            StepVerdict::Blocked => is_open = true,
            StepVerdict::Wait { until, question } => {
                is_open = true;
                plan.wake_at = earliest(plan.wake_at, until);
                plan.questions.extend(question);
            }
            StepVerdict::Move(StepMove::Start { .. }) if slots == 0 => is_open = true,
            StepVerdict::Move(step_move) => {
                is_open = true;
                slots -= usize::from(matches!(step_move, StepMove::Start { .. }));
                plan.moves.push((step.id.clone(), step_move));
            }
        }
    }
    plan.is_over = !is_open;
    plan
}

enum StepVerdict {
    Over,
    /// Another step has to end first.
    Blocked,
    Wait {
        until: Option<Timestamp>,
        question: Option<String>,
    },
    Move(StepMove),
}

impl PlanInput<'_> {
    fn count(&self, state: StepState) -> usize {
        self.rows.values().filter(|row| row.state == state).count()
    }

    /// Returns the failed step that stops the run.
    fn stopping_failure(&self) -> Option<&str> {
        let failed = self.workflow.steps.iter().find(|step| {
            let state = self.rows.get(&step.id).map(|row| row.state);
            step.on_failure == OnFailure::Stop && state == Some(StepState::Failed)
        });
        failed.map(|step| step.id.as_str())
    }

    fn pending(&self, step: &WorkflowStep, row: &RunStep) -> StepVerdict {
        for dependency in &step.depends_on {
            let Some(earlier) = self.rows.get(dependency) else {
                continue;
            };
            match earlier.state {
                StepState::Done | StepState::Failed => {}
                StepState::Skipped if is_bypassed(earlier) || step.reads_state_of(dependency) => {}
                StepState::Skipped => {
                    return StepVerdict::Move(StepMove::Skip {
                        reason: format!("`{dependency}` was skipped"),
                    });
                }
                _ => return StepVerdict::Blocked,
            }
        }
        if let Some(ended) = row.ended
            && let Some(wait) = step.retry.wait_after(row.attempt)
        {
            let retry_at = later(ended, signed(wait));
            if retry_at > self.now {
                return StepVerdict::Wait {
                    until: Some(retry_at),
                    question: None,
                };
            }
            return StepVerdict::Move(StepMove::Start {
                is_repeated: row.is_repeated,
            });
        }
        self.first_start(step, row)
    }

    /// Decides about a step whose dependencies are over and that was not tried yet.
    fn first_start(&self, step: &WorkflowStep, row: &RunStep) -> StepVerdict {
        if let Some(condition) = &step.condition {
            match evaluate(condition, self) {
                Ok(true) => {}
                Ok(false) => {
                    return StepVerdict::Move(StepMove::Skip {
                        reason: "its condition is false".to_owned(),
                    });
                }
                Err(error) => {
                    return StepVerdict::Move(StepMove::Fail {
                        error: error.to_string(),
                    });
                }
            }
        }
        StepVerdict::Move(match step.approval {
            Some(_) => StepMove::AskApproval,
            None => StepMove::Start {
                is_repeated: row.is_repeated,
            },
        })
    }

    fn waiting(&self, step: &WorkflowStep, row: &RunStep) -> StepVerdict {
        let deadline = step.approval.and_then(|approval| approval.deadline);
        let deadline = signed(deadline.unwrap_or(self.approval_deadline));
        let until = later(row.started.unwrap_or(self.now), deadline);
        let fail = |error: &str| {
            StepVerdict::Move(StepMove::Fail {
                error: error.to_owned(),
            })
        };
        match row.decision {
            Some(StepDecision::Approve | StepDecision::Repeat) => {
                StepVerdict::Move(StepMove::Start {
                    is_repeated: row.is_repeated,
                })
            }
            Some(StepDecision::Deny) => fail("a user denied it"),
            Some(StepDecision::Skip) => skipped_by_user(),
            None if until <= self.now => fail("nobody approved it before its deadline"),
            None => StepVerdict::Wait {
                until: Some(until),
                question: Some(format!("step `{}` waits for approval", step.id)),
            },
        }
    }
}

fn unknown(step: &WorkflowStep, row: &RunStep) -> StepVerdict {
    match row.decision {
        Some(StepDecision::Approve | StepDecision::Repeat) => {
            StepVerdict::Move(StepMove::Start { is_repeated: true })
        }
        Some(StepDecision::Skip) => skipped_by_user(),
        Some(StepDecision::Deny) => StepVerdict::Move(StepMove::Fail {
            error: "a user decided against running it again".to_owned(),
        }),
        None => StepVerdict::Wait {
            until: None,
            question: Some(format!(
                "the effect of step `{}` is unknown: approve to run it again, or deny",
                step.id
            )),
        },
    }
}

fn skipped_by_user() -> StepVerdict {
    StepVerdict::Move(StepMove::Skip {
        reason: "a user skipped it".to_owned(),
    })
}

/// Returns true for a step that a user skipped. Steps that depend on it run without its result.
pub fn is_bypassed(row: &RunStep) -> bool {
    row.state == StepState::Skipped && row.decision == Some(StepDecision::Skip)
}

/// Results for references: `null` for a step that has none.
impl ReferenceValues for PlanInput<'_> {
    fn param(&self, name: &str) -> Option<Value> {
        self.params.get(name).cloned()
    }

    fn step(&self, id: &str, field: StepField) -> Option<Value> {
        let row = self.rows.get(id)?;
        match field {
            StepField::State => Some(Value::from(row.state.as_str())),
            StepField::Result => row.result.clone().map(Value::String),
            StepField::Error => row.error.clone().map(Value::String),
        }
    }
}

fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

fn later(time: Timestamp, duration: SignedDuration) -> Timestamp {
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnding {
    Done,
    Failed { error: String },
}

/// Returns how a run ended whose plan is over.
pub fn ending(workflow: &Workflow, rows: &StepRows) -> RunEnding {
    let failed = workflow.steps.iter().find_map(|step| {
        let row = rows.get(&step.id)?;
        let stops = step.on_failure == OnFailure::Stop && row.state == StepState::Failed;
        stops.then_some((step, row))
    });
    match failed {
        None => RunEnding::Done,
        Some((step, row)) => RunEnding::Failed {
            error: format!(
                "step `{}` failed: {}",
                step.id,
                row.error.as_deref().unwrap_or("no reason is known")
            ),
        },
    }
}

/// The error of a retry that cannot be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "workflow `{workflow}` has no step `{step}`{}",
    .hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default()
)]
pub struct UnknownStep {
    pub workflow: String,
    pub step: String,
    pub hint: Option<String>,
}

/// Returns the steps whose state changes for another try of a run that is over: those from `from` on, those
/// that did not succeed, and those to skip. All others keep their results.
pub fn steps_to_retry(
    workflow: &Workflow,
    rows: &[RunStep],
    from: Option<&str>,
    skip: &[String],
) -> Result<Vec<(String, StepState)>, UnknownStep> {
    for name in from.into_iter().chain(skip.iter().map(String::as_str)) {
        if workflow.step(name).is_none() {
            let ids = workflow.steps.iter().map(|step| step.id.as_str());
            return Err(UnknownStep {
                workflow: workflow.name.clone(),
                step: name.to_owned(),
                hint: lango_text::suggest::did_you_mean(name, ids),
            });
        }
    }
    let row = |id: &str| rows.iter().find(|row| row.step == id);
    let has_failed = |id: &str| {
        row(id).is_some_and(|row| {
            matches!(
                row.state,
                StepState::Failed | StepState::Cancelled | StepState::Unknown | StepState::Running
            )
        })
    };
    let mut again: Vec<&str> = Vec::new();
    // Steps may come in any order, so this goes on until nothing is added.
    loop {
        let before = again.len();
        for step in &workflow.steps {
            let id = step.id.as_str();
            let follows = step
                .depends_on
                .iter()
                .any(|dependency| again.contains(&dependency.as_str()));
            if !again.contains(&id) && (from == Some(id) || has_failed(id) || follows) {
                again.push(id);
            }
        }
        if again.len() == before {
            break;
        }
    }
    let changed = workflow.steps.iter().filter_map(|step| {
        let id = step.id.as_str();
        let was_skipped =
            row(id).is_some_and(|row| row.state == StepState::Skipped && !is_bypassed(row));
        let state = if skip.iter().any(|skipped| skipped == id) {
            StepState::Skipped
        } else if again.contains(&id) || was_skipped {
            StepState::Pending
        } else {
            return None;
        };
        Some((id.to_owned(), state))
    });
    Ok(changed.collect())
}
