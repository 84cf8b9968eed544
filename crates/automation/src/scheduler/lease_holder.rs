//! The process that holds the lease: it decides, starts and recovers runs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use lango_domain::StoreError;
use lango_domain::automation::{
    Agenda, DecisionRewind, Job, LeaseNumber, OccurrenceDecision, Recovery, Run, RunClaim, RunId,
    RunState,
};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::run_task::{RunTask, end_interrupted};
use super::{RENEW_INTERVAL, SchedulerParts, later};
use crate::execution::RunContext;
use crate::occurrences::decide;
use crate::schedule::Timetable;
use crate::timeout::ActivityClock;

/// The longest time between two looks into the store. Other processes change it, the clock may jump, and
/// the machine may have been suspended.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// Jobs that are decided about at once.
const DUE_BATCH: usize = 100;
/// A run that was interrupted this often fails.
const MAX_ATTEMPTS: u32 = 10;
/// The time that runs have to stop when the process shuts down.
const SHUTDOWN_TIME: Duration = Duration::from_secs(10);
/// A job that is decided further into the future than this was decided with a wrong clock.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_mins(1);
/// The longest wait for the next try of a delivery or of a run that is left after the clock went back.
const LONGEST_WAIT: SignedDuration = SignedDuration::from_hours(1);
/// The wait after an error of the store.
const STORE_RETRY: Duration = Duration::from_secs(5);
const PRUNE_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) struct LeaseHolder<'a> {
    parts: &'a SchedulerParts,
    lease: LeaseNumber,
    /// Ends with the holder: dropping it drops the work of all runs.
    tasks: JoinSet<(RunId, Result<(), StoreError>)>,
    active: HashMap<RunId, ActiveRun>,
    /// The number of runs that were started.
    started: usize,
    suspend: CancellationToken,
    lease_lost: CancellationToken,
    /// The clock at the last pass, and the time then on a clock that does not jump.
    last_pass: Option<(Timestamp, Instant)>,
    last_prune: Option<Instant>,
}

struct ActiveRun {
    cancel: CancellationToken,
    activity: Arc<ActivityClock>,
}

impl<'a> LeaseHolder<'a> {
    pub fn new(parts: &'a SchedulerParts, lease: LeaseNumber) -> Self {
        Self {
            parts,
            lease,
            tasks: JoinSet::new(),
            active: HashMap::new(),
            started: 0,
            suspend: CancellationToken::new(),
            lease_lost: CancellationToken::new(),
            last_pass: None,
            last_prune: None,
        }
    }

    fn now(&self) -> Timestamp {
        (self.parts.clock)()
    }

    /// Works until `stop`, then releases the lease. An error of the store does not stop runs that go on, so
    /// only the loss of the lease ends the work early.
    pub async fn run(&mut self, stop: &CancellationToken) -> Result<(), StoreError> {
        let mut companions = self.start_companions();
        let worked = self.work(&mut companions, stop).await;
        if worked == Err(StoreError::LeaseLost) {
            self.lease_lost.cancel();
        }
        worked?;
        self.shut_down().await;
        self.parts.store.release_lease(self.lease).await
    }

    async fn work(
        &mut self,
        companions: &mut JoinSet<Result<(), StoreError>>,
        stop: &CancellationToken,
    ) -> Result<(), StoreError> {
        let mut is_recovered = false;
        while !stop.is_cancelled() {
            let wait = match self.advance(&mut is_recovered).await {
                Ok(wait) => wait,
                Err(error) => retry_wait(error)?,
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(wait) => {}
                () = self.parts.wake.notified() => {}
                Some(ended) = self.tasks.join_next() => self.finish(ended)?,
                Some(ended) = companions.join_next() => ended.map_err(task_error)??,
            }
        }
        Ok(())
    }

    /// Does what is due. Returns the time until the next look into the store.
    async fn advance(&mut self, is_recovered: &mut bool) -> Result<Duration, StoreError> {
        if !*is_recovered {
            self.recover().await?;
            *is_recovered = true;
        }
        // Before the runs of this pass, whose times say nothing about the clock.
        self.prune().await?;
        let progressed = self.pass().await?;
        match progressed {
            true => Ok(Duration::ZERO),
            false => self.time_to_next().await,
        }
    }

    /// Decides and runs everything that is due. Returns the number of runs that were started.
    pub async fn run_due(&mut self) -> Result<usize, StoreError> {
        let mut companions = JoinSet::new();
        companions.spawn(renew(self.parts.clone(), self.lease));
        self.recover().await?;
        loop {
            let progressed = self.pass().await?;
            match (self.tasks.is_empty(), progressed) {
                (true, true) => continue,
                (true, false) => return Ok(self.started),
                (false, _) => {}
            }
            tokio::select! {
                Some(ended) = self.tasks.join_next() => self.finish(ended)?,
                Some(ended) = companions.join_next() => ended.map_err(task_error)??,
            }
        }
    }

    /// Starts what runs next to the scheduler and ends with it: the renewal of the lease and the outbox.
    fn start_companions(&self) -> JoinSet<Result<(), StoreError>> {
        let mut companions = JoinSet::new();
        companions.spawn(renew(self.parts.clone(), self.lease));
        if let Some(outbox) = self.parts.outbox.clone() {
            let (lease, stop) = (self.lease, self.suspend.clone());
            companions.spawn(async move {
                loop {
                    match outbox.run(lease, &stop).await {
                        Ok(()) => return futures::future::pending().await,
                        Err(error) => tokio::time::sleep(retry_wait(error)?).await,
                    }
                }
            });
        }
        companions
    }

    /// Takes over the runs of earlier processes, and decisions that were made with a wrong clock.
    async fn recover(&mut self) -> Result<(), StoreError> {
        let recovery = Recovery {
            at: self.now(),
            max_attempts: MAX_ATTEMPTS,
        };
        let left = self.parts.store.recover_runs(self.lease, recovery).await?;
        for run in left.iter().filter(|run| run.state != RunState::Queued) {
            let end = end_interrupted(run, self.now());
            self.parts.store.end_run(self.lease, end).await?;
        }
        self.rewind().await
    }

    /// Decides due occurrences, stops runs and starts runs. Returns true if there may be more to do.
    async fn pass(&mut self) -> Result<bool, StoreError> {
        let now = self.now();
        if self.has_clock_gone_back(now) {
            tracing::warn!("the clock went back");
            self.rewind().await?;
        }
        self.last_pass = Some((now, Instant::now()));
        let decided = self.decide_due(now).await?;
        let agenda = self.parts.store.agenda().await?;
        self.stop_runs(&agenda);
        let is_due = agenda.next_resume.is_some_and(|resume| resume <= now);
        let started = match agenda.has_queued_runs || is_due {
            true => self.start_runs(now).await?,
            false => 0,
        };
        Ok(decided > 0 || started > 0)
    }

    async fn decide_due(&self, now: Timestamp) -> Result<usize, StoreError> {
        if !self.parts.settings.enabled {
            return Ok(0);
        }
        let store = &self.parts.store;
        let mut decided = 0;
        for job in store.due_jobs(now, DUE_BATCH).await? {
            let decision = match Timetable::read(&job.schedule) {
                Ok(timetable) => {
                    let open = store.open_runs(job.id).await?;
                    decide(&job, &timetable, &open, now)
                }
                Err(error) => unreadable(&job, &error.to_string(), now),
            };
            let has_notice = !decision.deliveries.is_empty();
            decided += usize::from(store.decide(self.lease, decision).await?.is_some());
            if has_notice {
                self.wake_outbox();
            }
        }
        Ok(decided)
    }

    fn stop_runs(&self, agenda: &Agenda) {
        for run in &agenda.cancel_requests {
            if let Some(active) = self.active.get(run) {
                active.cancel.cancel();
            }
        }
    }

    async fn start_runs(&mut self, now: Timestamp) -> Result<usize, StoreError> {
        let is_working = |run: &&ActiveRun| !run.activity.is_paused();
        let working = self.active.values().filter(is_working).count();
        let limit = self.parts.settings.max_running.get() as usize;
        let free = limit.saturating_sub(working);
        if free == 0 {
            return Ok(0);
        }
        let claim = RunClaim {
            at: now,
            limit: free,
        };
        let runs = self.parts.store.claim_runs(self.lease, claim).await?;
        let started = runs.len();
        runs.into_iter().for_each(|run| self.start(run));
        Ok(started)
    }

    fn start(&mut self, run: Run) {
        let store = Arc::clone(&self.parts.store);
        let context = RunContext::new(store, self.lease, Arc::clone(&self.parts.clock));
        let mut context = context.after(run.active);
        context.outbox = self.parts.outbox.clone();
        context.suspend = self.suspend.child_token();
        context.lease_lost = self.lease_lost.child_token();
        let active = ActiveRun {
            cancel: context.cancel.clone(),
            activity: Arc::clone(&context.activity),
        };
        let id = run.id;
        self.started += 1;
        self.active.insert(id, active);
        let task = RunTask {
            parts: self.parts.clone(),
            context,
            run,
        };
        self.tasks.spawn(async move { (id, task.run().await) });
    }

    fn finish(
        &mut self,
        ended: Result<(RunId, Result<(), StoreError>), tokio::task::JoinError>,
    ) -> Result<(), StoreError> {
        let (run, result) = ended.map_err(task_error)?;
        self.active.remove(&run);
        // A run that is not stored is taken over by the next process.
        match result {
            Err(StoreError::LeaseLost) => Err(StoreError::LeaseLost),
            _ => Ok(()),
        }
    }

    /// Takes decisions back that are beyond the present.
    async fn rewind(&self) -> Result<(), StoreError> {
        let now = self.now();
        let beyond = now
            .saturating_add(CLOCK_TOLERANCE)
            .unwrap_or(Timestamp::MAX);
        for job in self.parts.store.jobs_decided_after(beyond).await? {
            let Ok(timetable) = Timetable::read(&job.schedule) else {
                continue;
            };
            tracing::warn!(job = job.name, "decided with a wrong clock; decided again");
            let rewind = DecisionRewind {
                job: job.id,
                job_version: job.version,
                decided_until: now,
                next_due: timetable.next_after(now),
            };
            self.parts.store.rewind_job(self.lease, rewind).await?;
        }
        let latest = now.saturating_add(LONGEST_WAIT).unwrap_or(Timestamp::MAX);
        self.parts.store.shorten_waits(self.lease, latest).await
    }

    fn has_clock_gone_back(&self, now: Timestamp) -> bool {
        self.last_pass.is_some_and(|(at, instant)| {
            let expected = later(at, instant.elapsed());
            expected.duration_since(now) > CLOCK_TOLERANCE
        })
    }

    async fn prune(&mut self) -> Result<(), StoreError> {
        if self
            .last_prune
            .is_some_and(|last| last.elapsed() < PRUNE_INTERVAL)
        {
            return Ok(());
        }
        self.last_prune = Some(Instant::now());
        let retention = self.parts.settings.retention();
        if let Ok(before) = self.now().checked_sub(retention) {
            self.parts.store.prune_runs(self.lease, before).await?;
        }
        Ok(())
    }

    async fn time_to_next(&self) -> Result<Duration, StoreError> {
        let (agenda, now) = (self.parts.store.agenda().await?, self.now());
        let times = [agenda.next_occurrence, agenda.next_resume];
        // What is due already could not be handled now, so it waits for the next check.
        let next = times.into_iter().flatten().filter(|time| *time > now).min();
        let wait = next.and_then(|next| Duration::try_from(next.duration_since(now)).ok());
        Ok(wait.unwrap_or(CHECK_INTERVAL).min(CHECK_INTERVAL))
    }

    fn wake_outbox(&self) {
        self.parts.outbox.iter().for_each(|outbox| outbox.wake());
    }

    /// Lets the runs stop without an end, so that the next process continues them.
    async fn shut_down(&mut self) {
        self.suspend.cancel();
        let all_ended = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(SHUTDOWN_TIME, all_ended)
            .await
            .is_err()
        {
            tracing::warn!("some runs did not stop; the next scheduler takes them over");
        }
    }
}

/// Returns the wait after an error of the store, unless the lease is lost.
fn retry_wait(error: StoreError) -> Result<Duration, StoreError> {
    if error == StoreError::LeaseLost {
        return Err(error);
    }
    tracing::warn!(%error, "the store failed; the scheduler tries again");
    Ok(STORE_RETRY)
}

/// Renews the lease until it is lost.
async fn renew(parts: SchedulerParts, lease: LeaseNumber) -> Result<(), StoreError> {
    loop {
        tokio::time::sleep(RENEW_INTERVAL).await;
        let until = later((parts.clock)(), super::LEASE_TIME);
        match parts.store.renew_lease(lease, until).await {
            Err(StoreError::LeaseLost) => return Err(StoreError::LeaseLost),
            Err(error) => tracing::warn!(%error, "the lease could not be renewed"),
            Ok(()) => {}
        }
    }
}

/// Stops a job whose schedule can no longer be read, such as one in a zone that no longer exists.
fn unreadable(job: &Job, error: &str, now: Timestamp) -> OccurrenceDecision {
    tracing::error!(
        job = job.name,
        error,
        "the schedule of a job cannot be read"
    );
    OccurrenceDecision {
        job: job.id,
        job_version: job.version,
        decided_until: job.decided_until,
        next_due: None,
        occurrences: Vec::new(),
        replaced: Vec::new(),
        deliveries: crate::run_report::schedule_failure(job, error, now),
        at: now,
    }
}

fn task_error(error: tokio::task::JoinError) -> StoreError {
    StoreError::Other(format!("a task of the scheduler failed: {error}"))
}
