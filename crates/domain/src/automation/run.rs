//! Runs: one row per occurrence of a job, background task or run of a workflow; and the steps of workflows.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{DeliveryState, JobId, LeaseNumber, NewDelivery, RunId, RunSpec};
use crate::event::{Principal, SessionId};
use crate::flow::Label;

/// A stored run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub id: RunId,
    pub kind: RunKind,
    /// The job it is an occurrence of. A run outlives its job only until it ends.
    pub job: Option<JobId>,
    pub principal: Principal,
    /// The name of the job or workflow, or the start of the prompt.
    pub name: String,
    /// Unique for the job.
    pub due: Timestamp,
    pub state: RunState,
    /// Why the run is in this state, for people.
    pub reason: Option<String>,
    /// The number of times that it was started since it last waited, was suspended or finished a step.
    pub attempt: u32,
    /// The lease number of the process that started it last.
    pub lease: Option<LeaseNumber>,
    /// The session of its turn.
    pub session: Option<SessionId>,
    pub created: Timestamp,
    pub started: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    /// For a waiting run that no process holds: the time at which it continues at the latest, such as the
    /// deadline of an approval or the time of a retry.
    pub resume_at: Option<Timestamp>,
    /// True if a user wants the running run to stop.
    pub is_cancel_requested: bool,
    pub spec: RunSpec,
    pub result: Option<String>,
    pub error: Option<String>,
    /// The label of the result.
    pub label: Label,
    /// The time that it was active in earlier attempts, without the time that it waited.
    #[serde(default)]
    pub active: SignedDuration,
    /// The state of its deliveries taken together; `None` if it has none. Read only.
    pub delivery: Option<DeliveryState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunKind {
    /// An occurrence of a job, whatever its action.
    Job,
    Background,
    /// A workflow that was started directly.
    Workflow,
}

impl RunKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Background => "background",
            Self::Workflow => "workflow",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    Queued,
    Running,
    /// It waits for an approval or for the time of a retry.
    Waiting,
    Done,
    Failed,
    /// A rule of the job decided against running it.
    Skipped,
    /// It was due while no scheduler ran, and was not caught up.
    Missed,
    Cancelled,
}

impl RunState {
    pub const ALL: [Self; 8] = [
        Self::Queued,
        Self::Running,
        Self::Waiting,
        Self::Done,
        Self::Failed,
        Self::Skipped,
        Self::Missed,
        Self::Cancelled,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Missed => "missed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns true if the state never changes again.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Running | Self::Waiting)
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A run that a user starts: a background task, a workflow, or a job out of turn.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRun {
    pub kind: RunKind,
    pub job: Option<JobId>,
    pub principal: Principal,
    pub name: String,
    pub due: Timestamp,
    pub spec: RunSpec,
}

/// The decision of the scheduler about the occurrences of a job through a time. Stored atomically.
#[derive(Clone, Debug, PartialEq)]
pub struct OccurrenceDecision {
    pub job: JobId,
    /// The version of the job that was decided on. Nothing is stored if it was edited since.
    pub job_version: u64,
    pub decided_until: Timestamp,
    pub next_due: Option<Timestamp>,
    pub occurrences: Vec<NewOccurrence>,
    /// The earlier runs that an occurrence replaces: queued ones are cancelled, running ones are asked to
    /// stop.
    pub replaced: Vec<RunId>,
    /// Notices about what was missed.
    pub deliveries: Vec<NewDelivery>,
    pub at: Timestamp,
}

/// Takes back how far a job was decided, because the clock was wrong. Occurrences that ran keep their row;
/// those that were skipped or missed after the new time lose it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionRewind {
    pub job: JobId,
    /// The version of the job. Nothing is stored if it was edited since.
    pub job_version: u64,
    pub decided_until: Timestamp,
    pub next_due: Option<Timestamp>,
}

/// One decided occurrence of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOccurrence {
    pub due: Timestamp,
    /// `Queued`, `Skipped` or `Missed`.
    pub state: RunState,
    pub reason: Option<String>,
}

/// The start of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunClaim {
    pub at: Timestamp,
    /// Most runs to start.
    pub limit: usize,
}

/// The take-over of runs from earlier processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    pub at: Timestamp,
    /// A run that was started this often fails instead of starting again.
    pub max_attempts: u32,
}

/// A change of a run that is not over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunProgress {
    pub run: RunId,
    /// `Running`, `Waiting`, or `Queued` if its process is shutting down.
    pub state: RunState,
    pub reason: Option<String>,
    /// Replaces the session if set.
    pub session: Option<SessionId>,
    /// Set if the run waits without a process that holds it.
    pub resume_at: Option<Timestamp>,
    /// Replaces the active time if set.
    pub active: Option<SignedDuration>,
}

/// The end of a run, stored atomically with its deliveries.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEnd {
    pub run: RunId,
    /// A final state.
    pub state: RunState,
    /// Replaces the reason if set.
    pub reason: Option<String>,
    pub at: Timestamp,
    pub result: Option<String>,
    pub error: Option<String>,
    pub label: Label,
    pub deliveries: Vec<NewDelivery>,
}

/// A filter for a principal's runs. An empty list of kinds or states means all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunQuery {
    pub principal: Principal,
    pub job: Option<JobId>,
    pub kinds: Vec<RunKind>,
    pub states: Vec<RunState>,
    /// Pagination cursor: only runs with a smaller id.
    pub before: Option<RunId>,
    pub limit: usize,
}

impl RunQuery {
    /// Returns a query for the newest runs of a principal.
    pub fn newest(principal: Principal, limit: usize) -> Self {
        Self {
            principal,
            job: None,
            kinds: Vec::new(),
            states: Vec::new(),
            before: None,
            limit,
        }
    }
}

/// A step of a workflow's run, with its memoised result (B122).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStep {
    pub run: RunId,
    /// The id of the step in the workflow.
    pub step: String,
    pub state: StepState,
    pub reason: Option<String>,
    pub attempt: u32,
    pub started: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    /// The session of the step's turn.
    pub session: Option<SessionId>,
    pub result: Option<String>,
    pub error: Option<String>,
    /// The label of the result.
    pub label: Label,
    /// True if the step was run again although an earlier attempt may have had its effect.
    pub is_repeated: bool,
    /// The user's answer to a waiting step. Only [`super::RunStore::answer_step`] writes it; it is removed
    /// when the step starts to wait again.
    pub decision: Option<StepDecision>,
    /// For a row that is the approval question about a call: identifies the call. The row of a step has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The time until which a waiting step can be answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
}

impl RunStep {
    /// Returns a step that has not started.
    pub fn pending(run: RunId, step: impl Into<String>) -> Self {
        Self {
            run,
            step: step.into(),
            state: StepState::Pending,
            reason: None,
            attempt: 0,
            started: None,
            ended: None,
            session: None,
            result: None,
            error: None,
            label: Label::default(),
            is_repeated: false,
            decision: None,
            question: None,
            deadline: None,
        }
    }

    /// Returns true if the row is an approval question that can be answered.
    pub fn is_open_question(&self) -> bool {
        self.question.is_some() && self.state == StepState::Waiting && self.decision.is_none()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepState {
    Pending,
    Running,
    Waiting,
    Done,
    Failed,
    Skipped,
    Cancelled,
    /// The process ended during the step, so that its effect is unknown.
    Unknown,
}

impl StepState {
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::Running,
        Self::Waiting,
        Self::Done,
        Self::Failed,
        Self::Skipped,
        Self::Cancelled,
        Self::Unknown,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
        }
    }
}

/// The user's answer to a step that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepDecision {
    Approve,
    Deny,
    /// Run a step of unknown effect again.
    Repeat,
    /// Go on without the step.
    Skip,
}

impl StepDecision {
    pub const ALL: [Self; 4] = [Self::Approve, Self::Deny, Self::Repeat, Self::Skip];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Deny => "deny",
            Self::Repeat => "repeat",
            Self::Skip => "skip",
        }
    }
}
