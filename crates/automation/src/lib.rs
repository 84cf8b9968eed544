//! Automation: schedules, background tasks and workflows that survive crashes, and the delivery of their
//! results. Each occurrence is one row and runs exactly once (B120).

mod action_executor;
pub mod delivery;
mod execution;
pub mod natural_time;
mod occurrences;
pub mod planning;
mod run_meter;
mod run_report;
pub mod schedule;
mod scheduler;
mod settings;
pub mod time_text;
mod timeout;
mod tools;
mod turn_log_view;
mod turn_work;
mod unattended;
pub mod workflow;
mod workspace_teams;

pub use action_executor::ActionExecutor;
pub use execution::{RunContext, RunExecutor, RunOutcome};
pub use scheduler::{
    DuePass, OutboxLoop, Scheduler, SchedulerParts, SchedulerWake, running_scheduler,
};
pub use settings::{BackgroundSettings, CronSettings, WorkflowSettings};
pub use tools::{AutomationTools, LazyAutomationStore, ToolGroups, WakeFn, tools};
pub use turn_work::{TurnWork, TurnWorker};
pub use unattended::APPROVAL_PREFIX;
pub use workspace_teams::{OneTeam, WorkspaceTeams};
