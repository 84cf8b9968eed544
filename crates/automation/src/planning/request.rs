//! Requests of tools and commands.

use lango_domain::automation::{CatchUp, OverlapRule, RunBudget, ScheduleKind, SessionMode};
use serde_json::{Map, Value};

/// A request for a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRequest {
    /// Made from the work if not set.
    pub name: Option<String>,
    pub time: WorkTime,
    pub work: WorkRequest,
    /// The IANA name of the zone; the user's if not set.
    pub timezone: Option<String>,
    pub catch_up: CatchUp,
    pub overlap: OverlapRule,
    pub options: RunOptions,
}

impl JobRequest {
    /// Returns a request with the defaults of everything else.
    pub fn new(time: WorkTime, work: WorkRequest) -> Self {
        Self {
            name: None,
            time,
            work,
            timezone: None,
            catch_up: CatchUp::default(),
            overlap: OverlapRule::default(),
            options: RunOptions::default(),
        }
    }
}

/// When a job runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkTime {
    Schedule {
        kind: ScheduleKind,
        text: String,
    },
    /// A time in plain words: `tomorrow at 9`, `every Monday at 8`. With [`WorkRequest::InSentence`], the
    /// sentence says what to do, too.
    Words(String),
    /// As the file of the workflow says.
    OfWorkflow,
}

/// The work of a job.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkRequest {
    Reminder(String),
    Prompt {
        text: String,
        agent: Option<String>,
    },
    Workflow(WorkflowRequest),
    /// The rest of the sentence with the time: `remind me tomorrow at 9 to call Ann` is a reminder, and
    /// `every Monday at 8 check the disk` a prompt.
    InSentence,
}

#[derive(Clone, Debug, PartialEq)]
pub struct WorkflowRequest {
    pub source: WorkflowSource,
    pub params: Map<String, Value>,
}

/// Where the definition of a workflow is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkflowSource {
    /// The name of a saved workflow.
    Saved(String),
    /// The text of a file, with its name for errors.
    Text { file: String, text: String },
}

/// Options of all kinds of work. Texts are as the user wrote them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunOptions {
    pub session_mode: SessionMode,
    /// The targets of the workflow, or the inbox, if empty.
    pub deliver_to: Vec<String>,
    /// The inbox if empty.
    pub failure_deliver_to: Vec<String>,
    /// A duration such as `10m`.
    pub timeout: Option<String>,
    pub budget: RunBudget,
    /// Rules for calls that run without asking: `TOOL`, or `TOOL PATTERN`.
    pub allow: Vec<String>,
}

/// A request for a background task.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRequest {
    pub prompt: String,
    pub agent: Option<String>,
    pub options: RunOptions,
}
