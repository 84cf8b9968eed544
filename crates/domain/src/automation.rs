//! Automation: jobs with schedules, the runs of jobs, background tasks and workflows, and the delivery of
//! their results.
//!
//! The state is one row per occurrence, never "next run at". A run, its failure and its delivery have
//! states of their own.

mod delivery;
mod ids;
mod job;
mod lease;
mod run;
mod saved_workflow;
mod store;

pub use delivery::{
    ClaimDeliveries, Delivery, DeliveryEnd, DeliveryMessage, DeliveryOccasion, DeliveryQuery,
    DeliveryState, INBOX_TARGET, InboxEntry, InboxSelection, NewDelivery, NewInboxEntry,
};
pub use ids::{DeliveryId, InboxId, JobId, LeaseNumber, ParseIdError, RunId};
pub use job::{
    AllowRule, CatchUp, Job, JobAction, JobEdit, NewJob, OverlapRule, ParseAllowRuleError,
    RunBudget, RunSpec, Schedule, ScheduleKind, SessionMode,
};
pub use lease::{LeaseClaim, LeaseOutcome, SchedulerLease};
pub use run::{
    DecisionRewind, NewOccurrence, NewRun, OccurrenceDecision, Recovery, Run, RunClaim, RunEnd,
    RunKind, RunProgress, RunQuery, RunState, RunStep, StepDecision, StepState,
};
pub use saved_workflow::{NewSavedWorkflow, SavedWorkflow, WorkflowStore};
pub use store::{Agenda, AutomationStore, DeliveryStore, JobStore, LeaseStore, RunStore};
