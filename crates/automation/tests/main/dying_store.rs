//! A store whose process dies at a chosen call.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
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

/// The fate of the last call: lost, or on the disk although no one learned of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastCall {
    Lost,
    Stored,
}

/// The calls that are counted, and that fail in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CountedCalls {
    All,
    StepWrites,
}

/// Works for a number of calls. After that, nothing works.
pub struct DyingStore {
    inner: Arc<dyn AutomationStore>,
    counted: CountedCalls,
    calls_left: AtomicUsize,
    last_call: LastCall,
}

impl DyingStore {
    pub fn new(inner: &Arc<dyn AutomationStore>, calls: usize, last_call: LastCall) -> Arc<Self> {
        Self::counting(CountedCalls::All, inner, calls, last_call)
    }

    /// Returns a store that fails only writes of steps.
    pub fn for_steps(
        inner: &Arc<dyn AutomationStore>,
        writes: usize,
        last_write: LastCall,
    ) -> Arc<Self> {
        Self::counting(CountedCalls::StepWrites, inner, writes, last_write)
    }

    fn counting(
        counted: CountedCalls,
        inner: &Arc<dyn AutomationStore>,
        calls: usize,
        last_call: LastCall,
    ) -> Arc<Self> {
        Arc::new(Self {
            counted,
            inner: Arc::clone(inner),
            calls_left: AtomicUsize::new(calls),
            last_call,
        })
    }

    pub fn is_dead(&self) -> bool {
        self.calls_left.load(Ordering::SeqCst) == 0
    }

    fn limited<'a, T: Send + 'a>(&'a self, call: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        match self.counted {
            CountedCalls::All => self.counted(call),
            CountedCalls::StepWrites => call,
        }
    }

    fn counted<'a, T: Send + 'a>(&'a self, call: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        let left = self.calls_left.load(Ordering::SeqCst);
        self.calls_left
            .store(left.saturating_sub(1), Ordering::SeqCst);
        async move {
            match left {
                // The process is gone, so nothing may be tried again.
                0 => Err(StoreError::LeaseLost),
                1 => {
                    if self.last_call == LastCall::Stored {
                        call.await?;
                    }
                    Err(StoreError::LeaseLost)
                }
                _ => call.await,
            }
        }
        .boxed()
    }
}

/// Passes methods on to the inner store.
macro_rules! passes_on {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $out:ty;)* $(ref fn $ref_name:ident($($ref_arg:ident: $ref_type:ty),*) -> $ref_out:ty;)*) => {
        $(fn $name(&self, $($arg: $type),*) -> StoreFuture<'_, $out> {
            self.limited(self.inner.$name($($arg),*))
        })*
        $(fn $ref_name<'a>(&'a self, principal: &'a Principal, $($ref_arg: $ref_type),*) -> StoreFuture<'a, $ref_out> {
            self.limited(self.inner.$ref_name(principal, $($ref_arg),*))
        })*
    };
}

impl WorkflowStore for DyingStore {
    passes_on! {
        fn save_workflow(workflow: NewSavedWorkflow) -> SavedWorkflow;
        ref fn saved_workflow(name: &'a str, version: Option<u64>) -> Option<SavedWorkflow>;
        ref fn saved_workflows() -> Vec<SavedWorkflow>;
        ref fn delete_workflow(name: &'a str) -> bool;
    }
}

impl JobStore for DyingStore {
    passes_on! {
        fn add_job(job: NewJob, limit: usize) -> Job;
        fn due_jobs(at: Timestamp, limit: usize) -> Vec<Job>;
        fn decide(lease: LeaseNumber, decision: OccurrenceDecision) -> Option<usize>;
        fn jobs_decided_after(at: Timestamp) -> Vec<Job>;
        fn rewind_job(lease: LeaseNumber, rewind: DecisionRewind) -> bool;
        fn shorten_waits(lease: LeaseNumber, latest: Timestamp) -> ();
        ref fn edit_job(job: JobId, edit: JobEdit) -> Job;
        ref fn remove_job(job: JobId, at: Timestamp) -> ();
        ref fn job(name: &'a str) -> Option<Job>;
        ref fn jobs() -> Vec<Job>;
    }
}

impl RunStore for DyingStore {
    fn record_steps(
        &self,
        lease: LeaseNumber,
        steps: Vec<RunStep>,
        deliveries: Vec<NewDelivery>,
    ) -> StoreFuture<'_, ()> {
        self.counted(self.inner.record_steps(lease, steps, deliveries))
    }

    passes_on! {
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
    }
}

impl DeliveryStore for DyingStore {
    passes_on! {
        fn enqueue(lease: LeaseNumber, deliveries: Vec<NewDelivery>) -> Vec<DeliveryId>;
        fn claim_deliveries(lease: LeaseNumber, claim: ClaimDeliveries) -> Vec<Delivery>;
        fn finish_attempt(lease: LeaseNumber, delivery: DeliveryId, end: DeliveryEnd) -> bool;
        fn deliveries(query: DeliveryQuery) -> Vec<Delivery>;
        fn add_inbox_entry(entry: NewInboxEntry) -> InboxEntry;
        ref fn inbox(selection: InboxSelection, limit: usize) -> Vec<InboxEntry>;
        ref fn mark_read(selection: InboxSelection) -> usize;
        ref fn clear_inbox(selection: InboxSelection) -> usize;
    }
}

impl LeaseStore for DyingStore {
    passes_on! {
        fn acquire_lease(claim: LeaseClaim) -> LeaseOutcome;
        fn renew_lease(lease: LeaseNumber, until: Timestamp) -> ();
        fn release_lease(lease: LeaseNumber) -> ();
        fn lease() -> Option<SchedulerLease>;
    }
}
