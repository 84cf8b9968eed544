//! The reasons why work is refused, for the person who asked for it.

use lango_domain::StoreError;
use lango_domain::automation::{ParseAllowRuleError, RunId};

use crate::delivery::InvalidTarget;
use crate::natural_time::TimeError;
use crate::schedule::ScheduleError;
use crate::workflow::{DurationError, ParamError, WorkflowError};

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    #[error(transparent)]
    Time(#[from] TimeError),
    #[error("it is not said what to do")]
    NoWork,
    #[error("the {what} is empty")]
    EmptyText { what: &'static str },
    #[error("the {what} has more than {limit} characters")]
    LongText { what: &'static str, limit: usize },
    #[error("`{name}` cannot be the name of a job: {reason}")]
    Name { name: String, reason: String },
    #[error("a job named `{name}` exists already; choose another name, or remove it first")]
    NameTaken { name: String },
    #[error("the agent `{name}` does not exist{hint}")]
    UnknownAgent { name: String, hint: String },
    #[error("the rule `{rule}` names the tool `{tool}`, which does not exist{hint}")]
    UnknownTool {
        rule: String,
        tool: String,
        hint: String,
    },
    #[error(transparent)]
    Rule(#[from] ParseAllowRuleError),
    #[error("the rule `{0}` contains line ends or invisible characters; write it on one line")]
    HiddenInRule(String),
    #[error("at most {0} rules can be allowed")]
    TooManyRules(usize),
    #[error(transparent)]
    Target(#[from] InvalidTarget),
    #[error("`{target}` cannot be delivered to: {reason}")]
    Undeliverable { target: String, reason: String },
    #[error(
        "a run cannot deliver to `{0}`, because it has no such target itself; it can deliver to the inbox and to its own targets"
    )]
    WidenedTarget(String),
    #[error("timeout: {0}; write for example 90s, 10m or 1h")]
    Timeout(#[from] DurationError),
    #[error("the budget must be positive; leave it out for no limit of its own")]
    Budget,
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Workflow(Vec<WorkflowError>),
    #[error("there is no saved workflow `{name}`{hint}")]
    UnknownWorkflow { name: String, hint: String },
    #[error("the workflow `{0}` has no schedule of its own; say when it runs")]
    NoScheduleInWorkflow(String),
    #[error(transparent)]
    Param(#[from] ParamError),
    #[error(
        "this run may not allow `{rule}`: a job cannot give more permission than it has itself{}",
        own_rules(.own)
    )]
    Widened { rule: String, own: Vec<String> },
    #[error(
        "jobs and tasks that make others can be nested {0} deep at most; ask the user to set it up"
    )]
    TooDeep(u32),
    #[error("jobs have already made {0} jobs, which is the limit; remove some first")]
    TooManyNested(usize),
    #[error(
        "there are already {count} {what} that are not over; wait, cancel some, or raise {setting}"
    )]
    TooManyOpen {
        count: usize,
        what: &'static str,
        setting: &'static str,
    },
    #[error("run {run} of `{job}` is not over; wait for it, or cancel it")]
    NotOver { job: String, run: RunId },
    #[error("{0}; {hint}", hint = .0.hint())]
    Store(StoreError),
}

impl From<StoreError> for PlanError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::JobExists(name) => Self::NameTaken { name },
            error => Self::Store(error),
        }
    }
}

fn own_rules(own: &[String]) -> String {
    match own {
        [] => "; it has none".to_owned(),
        own => format!("; it has {}", own.join(", ")),
    }
}

/// Puts a suggestion after a sentence.
pub(super) fn hint(suggestion: Option<String>) -> String {
    suggestion.map_or_else(String::new, |suggestion| format!("; {suggestion}"))
}
