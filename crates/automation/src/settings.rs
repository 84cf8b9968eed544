//! `cron.*`, `background.*` and `workflow.*`.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `cron`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CronSettings {
    /// Gives the automator tools for schedules, and runs them.
    pub enabled: bool,
    /// Most jobs of a principal that are paused or have occurrences to come.
    pub max_jobs: NonZeroU32,
    /// The depth to which jobs may create jobs: 1 lets a job of the user create one, 0 none.
    pub max_depth: u32,
    /// The shortest time between two occurrences of a job, in seconds.
    pub min_interval_seconds: NonZeroU64,
    /// An occurrence that is later than this many hours is never caught up, unless the job says otherwise.
    pub grace_hours: NonZeroU32,
    /// Minutes after which a run is stopped, unless the job says otherwise. Waiting for an approval does
    /// not count.
    pub timeout_minutes: NonZeroU32,
    /// Most runs at the same time. Runs that wait for an approval do not count.
    pub max_running: NonZeroU32,
    /// Minutes that a call outside the permission of its job waits for an approval before the run fails.
    pub approval_wait_minutes: NonZeroU32,
    /// Days after which finished runs are deleted. The last one of each job stays.
    pub retention_days: NonZeroU32,
}

impl Default for CronSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            max_jobs: NonZeroU32::MIN.saturating_add(200 - 1),
            max_depth: 1,
            min_interval_seconds: NonZeroU64::MIN.saturating_add(60 - 1),
            grace_hours: NonZeroU32::MIN.saturating_add(24 - 1),
            timeout_minutes: NonZeroU32::MIN.saturating_add(30 - 1),
            max_running: NonZeroU32::MIN.saturating_add(4 - 1),
            approval_wait_minutes: NonZeroU32::MIN.saturating_add(60 - 1),
            retention_days: NonZeroU32::MIN.saturating_add(90 - 1),
        }
    }
}

impl CronSettings {
    pub fn min_interval(&self) -> SignedDuration {
        let seconds = i64::try_from(self.min_interval_seconds.get());
        SignedDuration::from_secs(seconds.unwrap_or(i64::MAX))
    }

    pub fn grace(&self) -> SignedDuration {
        SignedDuration::from_hours(i64::from(self.grace_hours.get()))
    }

    pub fn timeout(&self) -> Duration {
        minutes(self.timeout_minutes)
    }

    pub fn approval_wait(&self) -> Duration {
        minutes(self.approval_wait_minutes)
    }

    pub fn retention(&self) -> SignedDuration {
        SignedDuration::from_hours(24 * i64::from(self.retention_days.get()))
    }
}

/// `background`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BackgroundSettings {
    /// Gives the automator tools for background tasks.
    pub enabled: bool,
    /// Most background tasks of a principal that are not over.
    pub max_open: NonZeroU32,
}

impl Default for BackgroundSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            max_open: NonZeroU32::MIN.saturating_add(20 - 1),
        }
    }
}

/// `workflow`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkflowSettings {
    /// Gives the automator tools for workflows.
    pub enabled: bool,
    /// Most runs of workflows of a principal that are not over.
    pub max_open: NonZeroU32,
    /// Hours that a step waits for an approval before its run fails.
    pub approval_wait_hours: NonZeroU32,
}

impl Default for WorkflowSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            max_open: NonZeroU32::MIN.saturating_add(20 - 1),
            approval_wait_hours: NonZeroU32::MIN.saturating_add(72 - 1),
        }
    }
}

fn minutes(count: NonZeroU32) -> Duration {
    Duration::from_secs(60 * u64::from(count.get()))
}
