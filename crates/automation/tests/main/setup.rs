//! A store, a clock that is set by hand, and executors for tests.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use lango_automation::schedule::Timetable;
use lango_automation::{
    CronSettings, DuePass, RunContext, RunExecutor, RunOutcome, Scheduler, SchedulerParts,
    SchedulerWake,
};
use lango_domain::automation::{
    AutomationStore, CatchUp, Job, JobAction, NewJob, OverlapRule, Run, RunBudget, RunQuery,
    RunSpec, RunState, Schedule, ScheduleKind, SessionMode,
};
use lango_domain::event::Principal;
use lango_domain::{Clock, Label, StoreError};
use lango_store::{SqliteStore, StoreLocation};

/// A Monday at midnight.
pub const START: &str = "2026-03-02T00:00:00Z";

pub fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A wall clock that only moves when it is told to.
#[derive(Clone)]
pub struct WallClock(Arc<AtomicI64>);

impl WallClock {
    pub fn at(text: &str) -> Self {
        Self(Arc::new(AtomicI64::new(time(text).as_second())))
    }

    pub fn set(&self, text: &str) {
        self.0.store(time(text).as_second(), Ordering::SeqCst);
    }

    pub fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }

    pub fn now(&self) -> Timestamp {
        Timestamp::from_second(self.0.load(Ordering::SeqCst)).unwrap()
    }

    pub fn as_clock(&self) -> Clock {
        let clock = self.clone();
        Arc::new(move || clock.now())
    }
}

pub fn memory_store() -> Arc<dyn AutomationStore> {
    SqliteStore::open(StoreLocation::Memory)
        .unwrap()
        .stores()
        .automation
}

pub fn me() -> Principal {
    Principal::local()
}

pub fn reminder(text: &str) -> RunSpec {
    RunSpec {
        action: JobAction::Reminder {
            text: text.to_owned(),
        },
        workspace: None,
        session_mode: SessionMode::Isolated,
        deliver_to: Vec::new(),
        failure_deliver_to: Vec::new(),
        timeout: None,
        budget: RunBudget::default(),
        allow: Vec::new(),
        allowed_steps: Vec::new(),
        depth: 0,
        label: Label::default(),
    }
}

/// Returns an hourly job.
pub fn hourly(name: &str, clock: &WallClock) -> NewJob {
    let schedule = Schedule {
        kind: ScheduleKind::Cron,
        text: "0 * * * *".to_owned(),
        time_zone: "Europe/Berlin".to_owned(),
        anchor: clock.now(),
    };
    NewJob {
        principal: me(),
        name: name.to_owned(),
        next_due: Timetable::read(&schedule).unwrap().next_after(clock.now()),
        schedule,
        catch_up: CatchUp::default(),
        grace: SignedDuration::from_hours(24),
        overlap: OverlapRule::default(),
        spec: reminder(name),
        created: clock.now(),
    }
}

pub async fn add(store: &Arc<dyn AutomationStore>, job: NewJob) -> Job {
    store.add_job(job, 1_000).await.unwrap()
}

/// Returns due hour, state and reason of all runs, the earliest due first.
pub async fn history(store: &Arc<dyn AutomationStore>) -> Vec<(String, RunState, String)> {
    let mut runs = all_runs(store).await;
    runs.sort_by_key(|run| (run.due, run.id));
    let show = |run: Run| {
        let due = run.due.strftime("%d %H:%M").to_string();
        (due, run.state, run.reason.unwrap_or_default())
    };
    runs.into_iter().map(show).collect()
}

pub async fn states(store: &Arc<dyn AutomationStore>) -> Vec<(String, RunState)> {
    let history = history(store).await.into_iter();
    history.map(|(due, state, _)| (due, state)).collect()
}

pub async fn all_runs(store: &Arc<dyn AutomationStore>) -> Vec<Run> {
    store.runs(RunQuery::newest(me(), 100_000)).await.unwrap()
}

/// Counts how often each run was executed, and does what it is told.
#[derive(Default)]
pub struct CountingExecutor {
    pub executed: Mutex<BTreeMap<Timestamp, usize>>,
    pub behavior: Behavior,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Behavior {
    #[default]
    Done,
    Fail,
    Panic,
    /// Works until it is cancelled.
    UntilCancelled,
    /// Works for ever and does not listen.
    Hang,
    /// Waits for half an hour without a process, then is done.
    WaitOnce,
    /// Works until the process shuts down.
    UntilSuspended,
}

impl CountingExecutor {
    pub fn new(behavior: Behavior) -> Arc<Self> {
        Arc::new(Self {
            behavior,
            ..Self::default()
        })
    }

    pub fn counts(&self) -> Vec<usize> {
        self.executed.lock().unwrap().values().copied().collect()
    }
}

impl RunExecutor for CountingExecutor {
    fn execute<'a>(
        &'a self,
        run: &'a Run,
        context: &'a RunContext,
    ) -> BoxFuture<'a, Result<RunOutcome, StoreError>> {
        async move {
            let count = {
                let mut executed = self.executed.lock().unwrap();
                let count = executed.entry(run.due).or_insert(0);
                *count += 1;
                *count
            };
            Ok(match self.behavior {
                Behavior::Done => RunOutcome::done(format!("result of {}", run.due)),
                Behavior::Fail => RunOutcome::failed("it did not work"),
                Behavior::Panic => panic!("a bug"),
                Behavior::UntilCancelled => {
                    context.cancel.cancelled().await;
                    RunOutcome::Cancelled
                }
                Behavior::Hang => futures::future::pending().await,
                Behavior::WaitOnce if count == 1 => RunOutcome::Waiting {
                    reason: "for an approval".to_owned(),
                    resume_at: context.now() + SignedDuration::from_mins(30),
                },
                Behavior::WaitOnce => RunOutcome::done("approved"),
                Behavior::UntilSuspended => {
                    context.suspend.cancelled().await;
                    RunOutcome::Suspended
                }
            })
        }
        .boxed()
    }
}

pub fn scheduler(
    store: &Arc<dyn AutomationStore>,
    executor: &Arc<CountingExecutor>,
    clock: &WallClock,
) -> Scheduler {
    Scheduler::new(parts(store, executor, clock))
}

pub fn parts(
    store: &Arc<dyn AutomationStore>,
    executor: &Arc<CountingExecutor>,
    clock: &WallClock,
) -> SchedulerParts {
    SchedulerParts {
        store: Arc::clone(store),
        executor: executor.clone(),
        outbox: None,
        clock: clock.as_clock(),
        owner: "a test".to_owned(),
        settings: CronSettings::default(),
        wake: SchedulerWake::default(),
    }
}

/// Runs everything that is due, and returns the number of runs.
pub async fn run_due(scheduler: &Scheduler) -> usize {
    match scheduler.run_due().await.unwrap() {
        DuePass::Ran(count) => count,
        DuePass::HeldBy(lease) => panic!("held by {}", lease.owner),
    }
}
