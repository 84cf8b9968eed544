//! Turns requests for jobs, background tasks and workflows into checked work, for tools and commands alike.
//!
//! A plan says everything that is asked when the work is created (B121): what runs, when, what it may do
//! without asking, where results go, and what it may spend.

mod caller;
mod catalog;
mod control;
mod error;
mod job_plan;
mod names;
mod question;
mod request;
mod run_plan;
mod step_permission;
mod work;

pub use caller::{CallingRun, Requester, rule_covers};
pub use catalog::{AutomationCatalog, SharedCatalog};
pub use control::ControlError;
pub use error::PlanError;
pub use job_plan::PlannedJob;
pub use names::{JobNotFound, find_job};
pub use question::{
    describe_action, describe_budget, describe_schedule, describe_step, needs_folder,
};
pub use request::{
    JobRequest, RunOptions, RunRequest, WorkRequest, WorkTime, WorkflowRequest, WorkflowSource,
};
pub use run_plan::PlannedRun;
pub use step_permission::StepPermissions;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use lango_domain::automation::AutomationStore;

use crate::delivery::TargetCheck;
use crate::settings::{BackgroundSettings, CronSettings, WorkflowSettings};

/// Most jobs of a principal that jobs have made.
const MAX_NESTED_JOBS: usize = 20;

/// Plans work. Reads the store, and writes nothing.
pub struct WorkPlanner<'a> {
    pub store: &'a dyn AutomationStore,
    pub now: Timestamp,
    /// The user's zone, in which times are read.
    pub time_zone: &'a TimeZone,
    /// The folder in which the work runs.
    pub workspace: Option<PathBuf>,
    pub limits: &'a PlanLimits,
    /// Names of agents and tools are not checked without it.
    pub catalog: Option<Arc<AutomationCatalog>>,
}

/// The limits of work that is planned, from the settings.
#[derive(Clone)]
pub struct PlanLimits {
    pub max_jobs: usize,
    /// Most jobs of a principal that jobs have made.
    pub max_nested_jobs: usize,
    pub max_tasks: usize,
    pub max_workflow_runs: usize,
    pub max_depth: u32,
    /// The shortest time between two occurrences.
    pub min_interval: SignedDuration,
    /// An occurrence that is later than this is never caught up.
    pub grace: SignedDuration,
    pub target_check: TargetCheck,
}

impl PlanLimits {
    pub fn new(
        cron: &CronSettings,
        background: &BackgroundSettings,
        workflow: &WorkflowSettings,
        target_check: TargetCheck,
    ) -> Self {
        let count = |number: NonZeroU32| usize::try_from(number.get()).unwrap_or(usize::MAX);
        Self {
            max_jobs: count(cron.max_jobs),
            max_nested_jobs: MAX_NESTED_JOBS.min(count(cron.max_jobs)),
            max_tasks: count(background.max_open),
            max_workflow_runs: count(workflow.max_open),
            max_depth: cron.max_depth,
            min_interval: cron.min_interval(),
            grace: cron.grace(),
            target_check,
        }
    }
}
