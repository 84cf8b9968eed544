//! Storage of automation. Methods of the scheduler take a [`LeaseNumber`]; with an old one they fail with
//! [`StoreError::LeaseLost`](crate::StoreError::LeaseLost) and change nothing.

use jiff::Timestamp;

use super::{
    ClaimDeliveries, DecisionRewind, Delivery, DeliveryEnd, DeliveryId, DeliveryQuery, InboxEntry,
    InboxSelection, Job, JobEdit, JobId, LeaseClaim, LeaseNumber, LeaseOutcome, NewDelivery,
    NewInboxEntry, NewJob, NewRun, OccurrenceDecision, Recovery, Run, RunClaim, RunEnd, RunId,
    RunProgress, RunQuery, RunStep, SchedulerLease, StepDecision, StepState, WorkflowStore,
};
use crate::event::{Principal, SessionId};
use crate::session::StoreFuture;

/// Everything that automation stores.
pub trait AutomationStore:
    JobStore + RunStore + WorkflowStore + DeliveryStore + LeaseStore
{
}

impl<Store> AutomationStore for Store where
    Store: JobStore + RunStore + WorkflowStore + DeliveryStore + LeaseStore
{
}

/// Stores jobs.
pub trait JobStore: Send + Sync {
    /// Adds a job. Fails with `JobExists`, or with `TooManyJobs` if the principal already has `limit` jobs
    /// that are paused or have occurrences to come. A job of that name whose occurrences are all over is
    /// renamed to `NAME #ID`.
    fn add_job(&self, job: NewJob, limit: usize) -> StoreFuture<'_, Job>;

    /// Changes a job. Fails with `JobNotFound`.
    fn edit_job<'a>(
        &'a self,
        principal: &'a Principal,
        job: JobId,
        edit: JobEdit,
    ) -> StoreFuture<'a, Job>;

    /// Removes a job with its runs that are over. Queued runs are cancelled and go too; running ones are
    /// asked to stop and lose their job. Fails with `JobNotFound`.
    fn remove_job<'a>(
        &'a self,
        principal: &'a Principal,
        job: JobId,
        at: Timestamp,
    ) -> StoreFuture<'a, ()>;

    fn job<'a>(&'a self, principal: &'a Principal, name: &'a str) -> StoreFuture<'a, Option<Job>>;

    /// Returns a principal's jobs, ordered by name.
    fn jobs<'a>(&'a self, principal: &'a Principal) -> StoreFuture<'a, Vec<Job>>;

    /// Returns jobs of all principals whose next occurrence is due, the longest due first.
    fn due_jobs(&self, at: Timestamp, limit: usize) -> StoreFuture<'_, Vec<Job>>;

    /// Stores a decision: the rows of the occurrences, and how far the job is decided. An occurrence that
    /// has a row already keeps it. Returns the number of new rows, or `None`, with nothing stored, if the
    /// job was edited or removed since.
    fn decide(
        &self,
        lease: LeaseNumber,
        decision: OccurrenceDecision,
    ) -> StoreFuture<'_, Option<usize>>;

    /// Returns jobs of all principals that are decided beyond a time. Slow; only for a clock that was wrong.
    fn jobs_decided_after(&self, at: Timestamp) -> StoreFuture<'_, Vec<Job>>;

    /// Takes decisions back. Returns false, with nothing stored, if the job was edited or removed since.
    /// What was left out beyond the present is decided again.
    fn rewind_job(&self, lease: LeaseNumber, rewind: DecisionRewind) -> StoreFuture<'_, bool>;

    /// Moves later tries of deliveries and runs to this time. They were set with a wrong clock.
    fn shorten_waits(&self, lease: LeaseNumber, latest: Timestamp) -> StoreFuture<'_, ()>;
}

/// Stores runs and the steps of workflows.
pub trait RunStore: Send + Sync {
    /// Queues a run. If the job already has a run with this due time, returns that one.
    fn submit_run(&self, run: NewRun) -> StoreFuture<'_, Run>;

    fn run<'a>(&'a self, principal: &'a Principal, run: RunId) -> StoreFuture<'a, Option<Run>>;

    /// Returns the run, or the run of the step, that works in a session.
    fn run_of_session<'a>(
        &'a self,
        principal: &'a Principal,
        session: &'a SessionId,
    ) -> StoreFuture<'a, Option<Run>>;

    /// Returns the matching runs, newest first.
    fn runs(&self, query: RunQuery) -> StoreFuture<'_, Vec<Run>>;

    /// Returns the runs of a job that are not over, oldest first.
    fn open_runs(&self, job: JobId) -> StoreFuture<'_, Vec<Run>>;

    /// Cancels a run. A run that a process holds is asked to stop instead. Returns false if it was over or
    /// does not exist.
    fn cancel_run<'a>(
        &'a self,
        principal: &'a Principal,
        run: RunId,
        at: Timestamp,
    ) -> StoreFuture<'a, bool>;

    /// Starts queued runs, and waiting ones whose time has come: the longest due first, and at most one of
    /// a job at a time. Each is `Running` and has one attempt more.
    fn claim_runs(&self, lease: LeaseNumber, claim: RunClaim) -> StoreFuture<'_, Vec<Run>>;

    /// Queues the runs that earlier lease holders left running, except those without attempts left and
    /// those that should stop. Returns all of them; the caller ends the ones that are not queued.
    fn recover_runs(&self, lease: LeaseNumber, recovery: Recovery) -> StoreFuture<'_, Vec<Run>>;

    /// Changes a run that is not over. A run that should wait, although one of its waiting steps was
    /// answered meanwhile, is queued. Returns false if the run is over.
    fn record_progress(&self, lease: LeaseNumber, progress: RunProgress) -> StoreFuture<'_, bool>;

    /// Ends a run and enqueues its deliveries. A step that still runs has an unknown effect, and others that
    /// are not over are cancelled. Returns false, with nothing stored, if the run was over.
    fn end_run(&self, lease: LeaseNumber, end: RunEnd) -> StoreFuture<'_, bool>;

    /// Adds or replaces steps of runs, except their `decision`, and enqueues deliveries with them. A step
    /// that is done sets the attempts of its run back to one. All or nothing is stored.
    fn record_steps(
        &self,
        lease: LeaseNumber,
        steps: Vec<RunStep>,
        deliveries: Vec<NewDelivery>,
    ) -> StoreFuture<'_, ()>;

    /// Returns the steps of a principal's run, in the order in which they were first recorded.
    fn steps<'a>(&'a self, principal: &'a Principal, run: RunId) -> StoreFuture<'a, Vec<RunStep>>;

    /// Answers a step that waits or whose effect is unknown, and queues its run if no process holds it.
    /// Returns false if the step is in another state.
    fn answer_step<'a>(
        &'a self,
        principal: &'a Principal,
        run: RunId,
        step: &'a str,
        decision: StepDecision,
    ) -> StoreFuture<'a, bool>;

    /// Queues a run that is over again. The named steps get these states and lose their results and attempts;
    /// all others keep theirs. A step that becomes skipped counts as skipped by the user. Returns false if
    /// the run is not over.
    fn requeue_run<'a>(
        &'a self,
        principal: &'a Principal,
        run: RunId,
        steps: Vec<(String, StepState)>,
    ) -> StoreFuture<'a, bool>;

    /// Deletes runs that ended before a time, with their steps and deliveries, except the last one of each
    /// job; and jobs whose occurrences were all over before it. Pending deliveries keep their run. Returns
    /// the number of deleted runs.
    fn prune_runs(&self, lease: LeaseNumber, before: Timestamp) -> StoreFuture<'_, usize>;

    /// Returns what the scheduler has to wait for. Cheap, whatever the number of jobs.
    fn agenda(&self) -> StoreFuture<'_, Agenda>;
}

/// The times at which the scheduler has something to do. A time may be in the past.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agenda {
    /// The first due occurrence of all jobs.
    pub next_occurrence: Option<Timestamp>,
    /// The first time at which a waiting run continues.
    pub next_resume: Option<Timestamp>,
    /// The first time at which a delivery is tried.
    pub next_delivery: Option<Timestamp>,
    pub has_queued_runs: bool,
    /// Running runs that users want to stop.
    pub cancel_requests: Vec<RunId>,
}

/// Stores the outbox and the inbox.
pub trait DeliveryStore: Send + Sync {
    fn enqueue(
        &self,
        lease: LeaseNumber,
        deliveries: Vec<NewDelivery>,
    ) -> StoreFuture<'_, Vec<DeliveryId>>;

    /// Takes pending deliveries whose time has come, oldest first.
    fn claim_deliveries(
        &self,
        lease: LeaseNumber,
        claim: ClaimDeliveries,
    ) -> StoreFuture<'_, Vec<Delivery>>;

    /// Records the end of an attempt. Returns false, with nothing stored, if the delivery is not pending.
    fn finish_attempt(
        &self,
        lease: LeaseNumber,
        delivery: DeliveryId,
        end: DeliveryEnd,
    ) -> StoreFuture<'_, bool>;

    /// Returns the matching deliveries, newest first.
    fn deliveries(&self, query: DeliveryQuery) -> StoreFuture<'_, Vec<Delivery>>;

    fn add_inbox_entry(&self, entry: NewInboxEntry) -> StoreFuture<'_, InboxEntry>;

    /// Returns entries of a principal's inbox, newest first.
    fn inbox<'a>(
        &'a self,
        principal: &'a Principal,
        selection: InboxSelection,
        limit: usize,
    ) -> StoreFuture<'a, Vec<InboxEntry>>;

    /// Marks entries as read. Returns the number of entries that were unread.
    fn mark_read<'a>(
        &'a self,
        principal: &'a Principal,
        selection: InboxSelection,
    ) -> StoreFuture<'a, usize>;

    /// Deletes entries. Returns their number.
    fn clear_inbox<'a>(
        &'a self,
        principal: &'a Principal,
        selection: InboxSelection,
    ) -> StoreFuture<'a, usize>;
}

/// Stores the lease of the scheduler.
pub trait LeaseStore: Send + Sync {
    /// Acquires the lease, with a number that was never used before, if its time is over or its owner is
    /// known to have ended.
    fn acquire_lease(&self, claim: LeaseClaim) -> StoreFuture<'_, LeaseOutcome>;

    fn renew_lease(&self, lease: LeaseNumber, until: Timestamp) -> StoreFuture<'_, ()>;

    /// Releases the lease, if it is still held with this number.
    fn release_lease(&self, lease: LeaseNumber) -> StoreFuture<'_, ()>;

    /// Returns the last lease, even if its time is over.
    fn lease(&self) -> StoreFuture<'_, Option<SchedulerLease>>;
}
