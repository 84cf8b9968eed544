//! The scheduler: decides occurrences, starts runs and recovers them after a crash. Exactly one process per
//! store runs it.

mod lease_holder;
mod run_task;
mod store_watch;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use lango_domain::automation::{
    AutomationStore, LeaseClaim, LeaseNumber, LeaseOutcome, SchedulerLease,
};
use lango_domain::{Clock, StoreError};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::execution::RunExecutor;
use crate::settings::CronSettings;
use lease_holder::LeaseHolder;

/// The time after which a lease that is not renewed is free.
const LEASE_TIME: Duration = Duration::from_secs(60);
/// Well before the lease expires, so that two renewals may fail.
const RENEW_INTERVAL: Duration = Duration::from_secs(20);
/// The wait of a process that does not hold the lease, and after an error of the store.
const STANDBY_INTERVAL: Duration = Duration::from_secs(10);

/// The parts of a [`Scheduler`].
#[derive(Clone)]
pub struct SchedulerParts {
    pub store: Arc<dyn AutomationStore>,
    pub executor: Arc<dyn RunExecutor>,
    /// Sends deliveries next to the scheduler; `None` if nothing is sent.
    pub outbox: Option<Arc<dyn OutboxLoop>>,
    pub clock: Clock,
    /// The process, for people.
    pub owner: String,
    pub settings: CronSettings,
    pub wake: SchedulerWake,
}

/// Sends deliveries while the process holds the lease.
pub trait OutboxLoop: Send + Sync {
    /// Sends deliveries when they are due, until `stop`.
    fn run<'a>(
        &'a self,
        lease: LeaseNumber,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Sends the deliveries that are due now.
    fn send_due(&self, lease: LeaseNumber) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Called when deliveries were enqueued.
    fn wake(&self);
}

/// Tells the scheduler of this process that something changed in the store. Cheap to clone.
#[derive(Clone, Default)]
pub struct SchedulerWake(Arc<Notify>);

impl SchedulerWake {
    pub fn wake(&self) {
        self.0.notify_one();
    }

    async fn notified(&self) {
        self.0.notified().await;
    }
}

/// The result of [`Scheduler::run_due`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DuePass {
    /// The number of runs that were started.
    Ran(usize),
    /// Another process runs the scheduler.
    HeldBy(SchedulerLease),
}

pub struct Scheduler {
    parts: SchedulerParts,
    watched_file: Option<PathBuf>,
}

/// The holder of the lease, as another process has seen it.
#[derive(Default)]
struct LeaseWatch {
    /// The lease as it was last seen, and since when it is unchanged on a clock that does not jump.
    seen: Option<(SchedulerLease, Instant)>,
    /// A lease of this process that was not released because of an error.
    own: Option<LeaseNumber>,
}

impl Scheduler {
    pub fn new(parts: SchedulerParts) -> Self {
        Self {
            parts,
            watched_file: None,
        }
    }

    /// Sets the file that changes with every write to the store, also of another process. Without it,
    /// changes of other processes are seen at the next check only.
    #[must_use]
    pub fn watching(mut self, file: Option<PathBuf>) -> Self {
        self.watched_file = file;
        self
    }

    /// Runs the scheduler until `stop`. Waits as long as another process holds the lease, and through
    /// errors of the store.
    pub async fn run(&self, stop: &CancellationToken) {
        let watch = async {
            match &self.watched_file {
                Some(file) => store_watch::watch(file, &self.parts.wake).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.run_with_lease(stop) => {}
            () = watch => {}
        }
    }

    async fn run_with_lease(&self, stop: &CancellationToken) {
        let mut watch = LeaseWatch::default();
        while !stop.is_cancelled() {
            match self.acquire(&mut watch).await {
                Ok(LeaseOutcome::Acquired(lease)) => {
                    tracing::info!(lease = %lease.number, "this process runs the scheduler");
                    watch.own = Some(lease.number);
                    let mut holder = LeaseHolder::new(&self.parts, lease.number);
                    match holder.run(stop).await {
                        Ok(()) => return,
                        Err(error) => tracing::warn!(%error, "the scheduler was interrupted"),
                    }
                }
                Ok(LeaseOutcome::HeldBy(_)) => {}
                Err(error) => tracing::warn!(%error, "the scheduler cannot use the store"),
            }
            tokio::select! {
                () = tokio::time::sleep(STANDBY_INTERVAL) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// Decides and runs everything that is due now, then releases the lease.
    pub async fn run_due(&self) -> Result<DuePass, StoreError> {
        let lease = match self.acquire(&mut LeaseWatch::default()).await? {
            LeaseOutcome::Acquired(lease) => lease,
            LeaseOutcome::HeldBy(lease) => return Ok(DuePass::HeldBy(lease)),
        };
        let mut holder = LeaseHolder::new(&self.parts, lease.number);
        let started = holder.run_due().await?;
        if let Some(outbox) = &self.parts.outbox {
            outbox.send_due(lease.number).await?;
        }
        self.parts.store.release_lease(lease.number).await?;
        Ok(DuePass::Ran(started))
    }

    async fn acquire(&self, watch: &mut LeaseWatch) -> Result<LeaseOutcome, StoreError> {
        let now = (self.parts.clock)();
        let claim = LeaseClaim {
            owner: self.parts.owner.clone(),
            at: now,
            until: later(now, LEASE_TIME),
            abandoned: watch.abandoned(),
        };
        let outcome = self.parts.store.acquire_lease(claim).await?;
        if let LeaseOutcome::HeldBy(lease) = &outcome {
            watch.observe(lease);
        }
        Ok(outcome)
    }
}

impl LeaseWatch {
    fn observe(&mut self, lease: &SchedulerLease) {
        let is_same = self.seen.as_ref().is_some_and(|(seen, _)| seen == lease);
        if !is_same {
            self.seen = Some((lease.clone(), Instant::now()));
        }
    }

    /// Returns the lease that no one renewed for long enough, or that this process left itself.
    fn abandoned(&self) -> Option<SchedulerLease> {
        let (lease, since) = self.seen.as_ref()?;
        let is_abandoned = since.elapsed() > LEASE_TIME || self.own == Some(lease.number);
        is_abandoned.then(|| lease.clone())
    }
}

/// Returns the lease of the process that runs the scheduler, if there is one.
pub async fn running_scheduler(
    store: &dyn AutomationStore,
    now: Timestamp,
) -> Result<Option<SchedulerLease>, StoreError> {
    let lease = store.lease().await?;
    Ok(lease.filter(|lease| lease.until > now))
}

fn later(at: Timestamp, wait: Duration) -> Timestamp {
    let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX);
    at.saturating_add(wait).unwrap_or(Timestamp::MAX)
}
