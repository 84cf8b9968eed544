//! The seam between the scheduler and what a run does.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use lango_domain::automation::{
    AutomationStore, LeaseNumber, NewDelivery, Run, RunProgress, RunState, RunStep,
};
use lango_domain::event::SessionId;
use lango_domain::{Clock, Label, StoreError};
use tokio_util::sync::CancellationToken;

use crate::run_meter::RunMeter;
use crate::scheduler::OutboxLoop;
use crate::timeout::ActivityClock;

/// Does the work of runs. The same run is executed again after a crash, so an executor first looks at what
/// an earlier attempt left behind.
pub trait RunExecutor: Send + Sync {
    /// Executes a run until it ends or waits. A store error leaves the run as it is; it is taken up again.
    ///
    /// The future is dropped if the process loses the lease.
    fn execute<'a>(
        &'a self,
        run: &'a Run,
        context: &'a RunContext,
    ) -> BoxFuture<'a, Result<RunOutcome, StoreError>>;
}

/// The outcome of an execution.
#[derive(Clone, Debug, PartialEq)]
pub enum RunOutcome {
    Done {
        /// The text to deliver. If it is empty, the delivery says so.
        result: String,
        label: Label,
    },
    Failed {
        error: String,
        /// The part that was achieved nevertheless.
        result: Option<String>,
        label: Label,
    },
    /// The run continues at a time, or earlier if a user answers one of its steps. No process holds it
    /// meanwhile.
    Waiting {
        reason: String,
        resume_at: Timestamp,
    },
    Cancelled,
    /// The process is shutting down. The run is queued again for the next one.
    Suspended,
}

impl RunOutcome {
    pub fn done(result: impl Into<String>) -> Self {
        Self::Done {
            result: result.into(),
            label: Label::default(),
        }
    }

    pub fn failed(error: impl Into<String>) -> Self {
        Self::Failed {
            error: error.into(),
            result: None,
            label: Label::default(),
        }
    }
}

/// The means of an executor while it executes a run. All writes carry the scheduler's lease number.
#[derive(Clone)]
pub struct RunContext {
    pub store: Arc<dyn AutomationStore>,
    pub lease: LeaseNumber,
    pub clock: Clock,
    /// Cancelled if a user cancels the run, if a later occurrence replaces it, or at its timeout. The
    /// executor stops its work and returns soon.
    pub cancel: CancellationToken,
    /// Cancelled if the process shuts down. The executor stops without an end and returns
    /// [`RunOutcome::Suspended`].
    pub suspend: CancellationToken,
    /// Cancelled if the process has lost the lease. All work stops without a trace in the store.
    pub lease_lost: CancellationToken,
    /// Woken when the run enqueues deliveries before its end.
    pub(crate) outbox: Option<Arc<dyn OutboxLoop>>,
    pub(crate) activity: Arc<ActivityClock>,
    pub(crate) meter: Arc<RunMeter>,
    session: Arc<Mutex<Option<SessionId>>>,
}

impl RunContext {
    /// Creates the context of a run that starts now.
    pub fn new(store: Arc<dyn AutomationStore>, lease: LeaseNumber, clock: Clock) -> Self {
        Self {
            store,
            lease,
            clock,
            cancel: CancellationToken::new(),
            suspend: CancellationToken::new(),
            lease_lost: CancellationToken::new(),
            outbox: None,
            activity: Arc::new(ActivityClock::start_after(Duration::ZERO)),
            meter: Arc::default(),
            session: Arc::default(),
        }
    }

    /// Counts the time that the run was active in earlier attempts.
    #[must_use]
    pub fn after(mut self, active: SignedDuration) -> Self {
        let active = Duration::try_from(active).unwrap_or_default();
        self.activity = Arc::new(ActivityClock::start_after(active));
        self
    }

    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Returns the session that was recorded in this attempt.
    pub fn session(&self) -> Option<SessionId> {
        let session = self.session.lock();
        session.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records the session of the run's turn.
    pub async fn record_session(&self, run: &Run, session: &SessionId) -> Result<(), StoreError> {
        let recorded = Some(session.clone());
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = recorded;
        let progress = RunProgress {
            session: Some(session.clone()),
            ..progress(run, RunState::Running)
        };
        self.store.record_progress(self.lease, progress).await?;
        Ok(())
    }

    /// Records that the run waits for a user while the executor holds it. The time does not count for the
    /// run's timeout.
    pub async fn record_waiting(&self, run: &Run, reason: &str) -> Result<(), StoreError> {
        self.activity.pause();
        let progress = RunProgress {
            reason: Some(reason.to_owned()),
            active: Some(self.active()),
            ..progress(run, RunState::Waiting)
        };
        self.store.record_progress(self.lease, progress).await?;
        Ok(())
    }

    /// Records the end of a wait. The run goes on unless it waits for something else, too.
    pub async fn record_answered(&self, run: &Run) -> Result<(), StoreError> {
        if !self.activity.resume() {
            return Ok(());
        }
        let progress = progress(run, RunState::Running);
        self.store.record_progress(self.lease, progress).await?;
        Ok(())
    }

    /// Returns the time that the run was active, in all attempts.
    pub fn active(&self) -> SignedDuration {
        SignedDuration::try_from(self.activity.active()).unwrap_or(SignedDuration::MAX)
    }

    /// Records steps of a workflow in one write, with the deliveries that go with them.
    pub async fn record_steps(
        &self,
        steps: Vec<RunStep>,
        deliveries: Vec<NewDelivery>,
    ) -> Result<(), StoreError> {
        let has_deliveries = !deliveries.is_empty();
        let recorded = self.store.record_steps(self.lease, steps, deliveries);
        recorded.await?;
        if has_deliveries {
            self.outbox.iter().for_each(|outbox| outbox.wake());
        }
        Ok(())
    }
}

fn progress(run: &Run, state: RunState) -> RunProgress {
    RunProgress {
        run: run.id,
        state,
        reason: None,
        session: None,
        resume_at: None,
        active: None,
    }
}
