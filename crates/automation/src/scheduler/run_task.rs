//! One run, from its start to its stored end.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use jiff::{SignedDuration, Timestamp};
use lango_domain::automation::{Run, RunEnd, RunProgress, RunState};
use lango_domain::{Label, StoreError};

use super::{SchedulerParts, later};
use crate::execution::{RunContext, RunOutcome};
use crate::run_report::{RunReport, capped};

/// The time that an executor has to return after it was told to stop.
const STOP_TIME: Duration = Duration::from_secs(15);
/// The wait of a run after an error of the store.
const STORE_RETRY: Duration = Duration::from_secs(60);
/// Waits between attempts to store the end of a run.
const FIRST_END_RETRY: Duration = Duration::from_secs(1);
const MAX_END_RETRY: Duration = Duration::from_secs(30);

pub(super) struct RunTask {
    pub parts: SchedulerParts,
    pub context: RunContext,
    pub run: Run,
}

/// Why a run is stopped before it ends by itself.
enum StopCause {
    Cancelled,
    TimedOut(Duration),
    Suspended,
}

impl RunTask {
    pub async fn run(self) -> Result<(), StoreError> {
        match self.execute().await {
            Ok(outcome) => self.record(outcome).await,
            Err(StoreError::LeaseLost) => Err(StoreError::LeaseLost),
            Err(error) => {
                let reason = format!("the store failed: {error}");
                let resume_at = later(self.context.now(), STORE_RETRY);
                self.record(RunOutcome::Waiting { reason, resume_at }).await
            }
        }
    }

    async fn execute(&self) -> Result<RunOutcome, StoreError> {
        let work = self.parts.executor.execute(&self.run, &self.context);
        let mut work = AssertUnwindSafe(work).catch_unwind();
        let cause = tokio::select! {
            biased;
            outcome = &mut work => return unwound(outcome),
            cause = self.stopped() => cause,
        };
        if !matches!(cause, StopCause::Suspended) {
            self.context.cancel.cancel();
        }
        let outcome = match tokio::time::timeout(STOP_TIME, work).await {
            Ok(outcome) => Some(unwound(outcome)?),
            Err(_) => None,
        };
        Ok(after_stop(&cause, outcome))
    }

    async fn stopped(&self) -> StopCause {
        let timeout = self.run.spec.timeout;
        let timeout = timeout.and_then(|timeout| Duration::try_from(timeout).ok());
        let timeout = timeout.unwrap_or_else(|| self.parts.settings.timeout());
        tokio::select! {
            biased;
            () = self.context.suspend.cancelled() => StopCause::Suspended,
            () = self.context.cancel.cancelled() => StopCause::Cancelled,
            () = self.context.activity.reached(timeout) => StopCause::TimedOut(timeout),
        }
    }

    /// Stores the outcome. A result is not given up because the store fails for a while.
    async fn record(&self, outcome: RunOutcome) -> Result<(), StoreError> {
        let mut wait = FIRST_END_RETRY;
        loop {
            match self.try_record(outcome.clone()).await {
                Ok(()) => return Ok(()),
                Err(StoreError::LeaseLost) => return Err(StoreError::LeaseLost),
                Err(error) => tracing::warn!(run = %self.run.id, %error, "a run cannot be stored"),
            }
            if self.context.suspend.is_cancelled() {
                return Ok(());
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(MAX_END_RETRY);
        }
    }

    async fn try_record(&self, outcome: RunOutcome) -> Result<(), StoreError> {
        let (store, lease) = (&self.context.store, self.context.lease);
        let progress = |state, reason, resume_at| RunProgress {
            run: self.run.id,
            state,
            reason: Some(reason),
            session: None,
            resume_at,
            active: Some(self.context.active()),
        };
        let progress = match outcome {
            RunOutcome::Waiting { reason, resume_at } => {
                progress(RunState::Waiting, reason, Some(resume_at))
            }
            RunOutcome::Suspended => {
                let reason = "its process was stopped".to_owned();
                progress(RunState::Queued, reason, None)
            }
            outcome => {
                let end = self.end(outcome);
                let has_deliveries = !end.deliveries.is_empty();
                store.end_run(lease, end).await?;
                if has_deliveries {
                    self.parts.outbox.iter().for_each(|outbox| outbox.wake());
                }
                return Ok(());
            }
        };
        store.record_progress(lease, progress).await.map(drop)
    }

    fn end(&self, outcome: RunOutcome) -> RunEnd {
        let at = self.context.now();
        let end = RunEnd {
            run: self.run.id,
            state: RunState::Cancelled,
            reason: None,
            at,
            result: None,
            error: None,
            label: Label::default(),
            deliveries: Vec::new(),
        };
        let report = |label| RunReport {
            run: &self.run,
            session: self.context.session().or_else(|| self.run.session.clone()),
            label,
            at,
        };
        match outcome {
            RunOutcome::Done { result, label } => {
                let result = capped(result);
                RunEnd {
                    state: RunState::Done,
                    deliveries: report(&label).of_result(&result),
                    result: Some(result),
                    label,
                    ..end
                }
            }
            RunOutcome::Failed {
                error,
                result,
                label,
            } => {
                let (error, result) = (capped(error), result.map(capped));
                RunEnd {
                    state: RunState::Failed,
                    deliveries: report(&label).of_failure(&error, result.as_deref()),
                    error: Some(error),
                    result,
                    label,
                    ..end
                }
            }
            RunOutcome::Cancelled | RunOutcome::Suspended | RunOutcome::Waiting { .. } => end,
        }
    }
}

type Unwound = Result<Result<RunOutcome, StoreError>, Box<dyn std::any::Any + Send>>;

/// A panic of the work is a failure of the run alone.
fn unwound(outcome: Unwound) -> Result<RunOutcome, StoreError> {
    outcome.unwrap_or_else(|_| {
        Ok(RunOutcome::failed(
            "the work panicked; this is a bug in Lango",
        ))
    })
}

/// Returns the outcome of a run that was stopped. Work that was done in time is not thrown away.
fn after_stop(cause: &StopCause, outcome: Option<RunOutcome>) -> RunOutcome {
    match (cause, outcome) {
        (_, Some(done @ RunOutcome::Done { .. })) => done,
        (StopCause::Suspended, Some(outcome)) => outcome,
        (StopCause::Suspended, None) => RunOutcome::Suspended,
        (StopCause::Cancelled, _) => RunOutcome::Cancelled,
        (StopCause::TimedOut(timeout), outcome) => {
            let timeout = SignedDuration::try_from(*timeout).unwrap_or_default();
            let (result, label) = match outcome {
                Some(RunOutcome::Failed { result, label, .. }) => (result, label),
                _ => (None, Label::default()),
            };
            RunOutcome::Failed {
                error: format!("it took longer than {timeout:#} and was stopped"),
                result,
                label,
            }
        }
    }
}

/// Returns the end of a run that its earlier process left, and that is not started again.
pub(super) fn end_interrupted(run: &Run, at: Timestamp) -> RunEnd {
    let error = format!(
        "its process ended {} times while it ran; it is not started again",
        run.attempt
    );
    let label = Label::default();
    let report = RunReport {
        run,
        session: run.session.clone(),
        label: &label,
        at,
    };
    let deliveries = report.of_failure(&error, None);
    let end = RunEnd {
        run: run.id,
        state: RunState::Cancelled,
        reason: None,
        at,
        result: None,
        error: None,
        label: label.clone(),
        deliveries: Vec::new(),
    };
    match run.is_cancel_requested {
        true => end,
        false => RunEnd {
            state: RunState::Failed,
            error: Some(error),
            deliveries,
            ..end
        },
    }
}
