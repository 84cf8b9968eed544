//! A store whose process dies at a chosen write.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::FutureExt;
use jiff::Timestamp;
use lango_domain::StoreError;
use lango_domain::automation::{
    Agenda, AutomationStore, ClaimDeliveries, DecisionRewind, Delivery, DeliveryEnd, DeliveryId,
    DeliveryQuery, DeliveryStore, InboxEntry, InboxSelection, Job, JobEdit, JobId, JobStore,
    LeaseClaim, LeaseNumber, LeaseOutcome, LeaseStore, NewDelivery, NewInboxEntry, NewJob, NewRun,
    NewSavedWorkflow, OccurrenceDecision, Recovery, Run, RunClaim, RunEnd, RunId, RunProgress,
    RunQuery, RunStep, RunStore, SavedWorkflow, SchedulerLease, StepDecision, StepState,
    WorkflowStore,
};
use lango_domain::event::{Principal, SessionId};
use lango_domain::session::StoreFuture;

/// Describes whether the last write still reached the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastWrite {
    Lost,
    Stored,
}

/// Fails every write of steps after the first ones.
pub struct DyingStore {
    pub inner: Arc<dyn AutomationStore>,
    pub writes_left: AtomicUsize,
    pub last_write: LastWrite,
}

impl DyingStore {
    pub fn new(inner: Arc<dyn AutomationStore>, writes: usize, last_write: LastWrite) -> Arc<Self> {
        Arc::new(Self {
            inner,
            writes_left: AtomicUsize::new(writes),
            last_write,
        })
    }
}

fn died() -> StoreError {
    StoreError::Other("the process died".to_owned())
}

/// Passes methods on to the inner store.
macro_rules! passes_on {
    ($store:ident { $(fn $name:ident($($arg:ident: $type:ty),*) -> $out:ty;)* $(ref fn $ref_name:ident($($ref_arg:ident: $ref_type:ty),*) -> $ref_out:ty;)* }) => {
        $(fn $name(&self, $($arg: $type),*) -> StoreFuture<'_, $out> { self.inner.$name($($arg),*) })*
        $(fn $ref_name<'a>(&'a self, principal: &'a Principal, $($ref_arg: $ref_type),*) -> StoreFuture<'a, $ref_out> {
            self.inner.$ref_name(principal, $($ref_arg),*)
        })*
    };
}

impl JobStore for DyingStore {
    passes_on!(inner {
        fn add_job(job: NewJob, limit: usize) -> Job;
        fn due_jobs(at: Timestamp, limit: usize) -> Vec<Job>;
        fn jobs_decided_after(at: Timestamp) -> Vec<Job>;
        fn rewind_job(lease: LeaseNumber, rewind: DecisionRewind) -> bool;
        fn shorten_waits(lease: LeaseNumber, latest: Timestamp) -> ();
        fn decide(lease: LeaseNumber, decision: OccurrenceDecision) -> Option<usize>;
        ref fn edit_job(job: JobId, edit: JobEdit) -> Job;
        ref fn remove_job(job: JobId, at: Timestamp) -> ();
        ref fn job(name: &'a str) -> Option<Job>;
        ref fn jobs() -> Vec<Job>;
    });
}

impl RunStore for DyingStore {
    fn record_steps(
        &self,
        lease: LeaseNumber,
        steps: Vec<RunStep>,
        deliveries: Vec<NewDelivery>,
    ) -> StoreFuture<'_, ()> {
        let left = self.writes_left.load(Ordering::Relaxed);
        self.writes_left
            .store(left.saturating_sub(1), Ordering::Relaxed);
        async move {
            match (left, self.last_write) {
                (0, _) | (1, LastWrite::Lost) => Err(died()),
                (1, LastWrite::Stored) => {
                    self.inner.record_steps(lease, steps, deliveries).await?;
                    Err(died())
                }
                _ => self.inner.record_steps(lease, steps, deliveries).await,
            }
        }
        .boxed()
    }

    passes_on!(inner {
        fn submit_run(run: NewRun) -> Run;
        fn runs(query: RunQuery) -> Vec<Run>;
        fn open_runs(job: JobId) -> Vec<Run>;
        fn claim_runs(lease: LeaseNumber, claim: RunClaim) -> Vec<Run>;
        fn recover_runs(lease: LeaseNumber, recovery: Recovery) -> Vec<Run>;
        fn record_progress(lease: LeaseNumber, progress: RunProgress) -> bool;
        fn end_run(lease: LeaseNumber, end: RunEnd) -> bool;
        fn prune_runs(lease: LeaseNumber, before: Timestamp) -> usize;
        fn agenda() -> Agenda;
        ref fn run(run: RunId) -> Option<Run>;
        ref fn run_of_session(session: &'a SessionId) -> Option<Run>;
        ref fn cancel_run(run: RunId, at: Timestamp) -> bool;
        ref fn steps(run: RunId) -> Vec<RunStep>;
        ref fn answer_step(run: RunId, step: &'a str, decision: StepDecision) -> bool;
        ref fn requeue_run(run: RunId, steps: Vec<(String, StepState)>) -> bool;
    });
}

impl WorkflowStore for DyingStore {
    passes_on!(inner {
        fn save_workflow(workflow: NewSavedWorkflow) -> SavedWorkflow;
        ref fn saved_workflow(name: &'a str, version: Option<u64>) -> Option<SavedWorkflow>;
        ref fn saved_workflows() -> Vec<SavedWorkflow>;
        ref fn delete_workflow(name: &'a str) -> bool;
    });
}

impl DeliveryStore for DyingStore {
    passes_on!(inner {
        fn enqueue(lease: LeaseNumber, deliveries: Vec<NewDelivery>) -> Vec<DeliveryId>;
        fn claim_deliveries(lease: LeaseNumber, claim: ClaimDeliveries) -> Vec<Delivery>;
        fn finish_attempt(lease: LeaseNumber, delivery: DeliveryId, end: DeliveryEnd) -> bool;
        fn deliveries(query: DeliveryQuery) -> Vec<Delivery>;
        fn add_inbox_entry(entry: NewInboxEntry) -> InboxEntry;
        ref fn inbox(selection: InboxSelection, limit: usize) -> Vec<InboxEntry>;
        ref fn mark_read(selection: InboxSelection) -> usize;
        ref fn clear_inbox(selection: InboxSelection) -> usize;
    });
}

impl LeaseStore for DyingStore {
    passes_on!(inner {
        fn acquire_lease(claim: LeaseClaim) -> LeaseOutcome;
        fn renew_lease(lease: LeaseNumber, until: Timestamp) -> ();
        fn release_lease(lease: LeaseNumber) -> ();
        fn lease() -> Option<SchedulerLease>;
    });
}
