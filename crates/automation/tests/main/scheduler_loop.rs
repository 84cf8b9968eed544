//! The running scheduler: waking up, standing by, shutting down.

use std::sync::Arc;
use std::time::Duration;

use lango_automation::{Scheduler, SchedulerParts, SchedulerWake, running_scheduler};
use lango_domain::automation::{AutomationStore, NewRun, RunKind, RunState};
use lango_store::{SqliteStore, StoreLocation, log_file};
use tokio_util::sync::CancellationToken;

use crate::setup::{
    Behavior, CountingExecutor, START, WallClock, add, all_runs, hourly, me, memory_store, parts,
    reminder,
};

/// Waits until the given number of runs are in a state.
async fn until(store: &Arc<dyn AutomationStore>, count: usize, state: RunState) {
    // In real time, because the time of the runtime is not.
    let start = std::time::Instant::now();
    loop {
        let runs = all_runs(store).await;
        if runs.iter().filter(|run| run.state == state).count() == count {
            return;
        }
        let found: Vec<RunState> = runs.iter().map(|run| run.state).collect();
        assert!(start.elapsed() < Duration::from_secs(20), "{found:?}");
    }
}

struct Running {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
    wake: SchedulerWake,
}

fn start(parts: SchedulerParts) -> Running {
    let wake = parts.wake.clone();
    start_scheduler(Scheduler::new(parts), wake)
}

fn start_scheduler(scheduler: Scheduler, wake: SchedulerWake) -> Running {
    let stop = CancellationToken::new();
    let token = stop.clone();
    let task = tokio::spawn(async move { scheduler.run(&token).await });
    Running { stop, task, wake }
}

impl Running {
    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

fn background(clock: &WallClock) -> NewRun {
    NewRun {
        kind: RunKind::Background,
        job: None,
        principal: me(),
        name: "a task".to_owned(),
        due: clock.now(),
        spec: reminder("x"),
    }
}

#[tokio::test]
async fn a_change_in_the_same_process_is_seen_at_once() {
    let (store, clock) = (memory_store(), WallClock::at(START));
    let executor = CountingExecutor::new(Behavior::Done);
    let running = start(parts(&store, &executor, &clock));
    store.submit_run(background(&clock)).await.unwrap();
    running.wake.wake();
    until(&store, 1, RunState::Done).await;
    let lease = running_scheduler(&*store, clock.now()).await.unwrap();
    assert_eq!(lease.unwrap().owner, "a test");
    running.stop().await;
    assert_eq!(running_scheduler(&*store, clock.now()).await.unwrap(), None);
}

/// A second process has its own connection and cannot wake this one.
#[tokio::test]
async fn a_change_of_another_process_is_seen_soon() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lango.sqlite");
    let open = || SqliteStore::open(StoreLocation::File(file.clone())).unwrap();
    let (own, other) = (open().stores().automation, open().stores().automation);
    let clock = WallClock::at(START);
    let executor = CountingExecutor::new(Behavior::Done);
    let scheduler = Scheduler::new(parts(&own, &executor, &clock));
    let running = start_scheduler(
        scheduler.watching(Some(log_file(&file))),
        SchedulerWake::default(),
    );
    // The first pass is over once the lease is held and this run is done.
    for count in 1..=2 {
        other.submit_run(background(&clock)).await.unwrap();
        until(&other, count, RunState::Done).await;
    }
    running.stop().await;
}

/// B120: a suspended machine wakes up at any time; the next check finds what is due.
#[tokio::test(start_paused = true)]
async fn a_suspended_machine_catches_up_at_the_next_check() {
    let (store, clock) = (memory_store(), WallClock::at(START));
    let executor = CountingExecutor::new(Behavior::Done);
    add(&store, hourly("job", &clock)).await;
    let running = start(parts(&store, &executor, &clock));
    // The wall clock has gone on for a night while timers stood still.
    clock.advance(9 * 60 * 60);
    until(&store, 1, RunState::Done).await;
    assert_eq!(executor.counts(), [1]);
    running.stop().await;
}

/// B120: when the process shuts down, runs stop without an end and the next process continues them.
#[tokio::test]
async fn a_shutdown_suspends_runs() {
    let (store, clock) = (memory_store(), WallClock::at(START));
    store.submit_run(background(&clock)).await.unwrap();
    let suspended = CountingExecutor::new(Behavior::UntilSuspended);
    let running = start(parts(&store, &suspended, &clock));
    until(&store, 1, RunState::Running).await;
    running.stop().await;
    let run = &all_runs(&store).await[0];
    assert_eq!((run.state, run.attempt), (RunState::Queued, 0));
    let executor = CountingExecutor::new(Behavior::Done);
    let running = start(parts(&store, &executor, &clock));
    until(&store, 1, RunState::Done).await;
    running.stop().await;
}

#[tokio::test]
async fn a_running_run_is_cancelled() {
    let (store, clock) = (memory_store(), WallClock::at(START));
    let run = store.submit_run(background(&clock)).await.unwrap();
    let executor = CountingExecutor::new(Behavior::UntilCancelled);
    let running = start(parts(&store, &executor, &clock));
    until(&store, 1, RunState::Running).await;
    assert!(store.cancel_run(&me(), run.id, clock.now()).await.unwrap());
    running.wake.wake();
    until(&store, 1, RunState::Cancelled).await;
    let run = &all_runs(&store).await[0];
    assert_eq!(run.reason.as_deref(), Some("a user cancelled it"));
    running.stop().await;
}

/// B120: a second process stands by and takes over when the first one ends.
#[tokio::test(start_paused = true)]
async fn a_second_process_takes_over() {
    let (store, clock) = (memory_store(), WallClock::at(START));
    let first_executor = CountingExecutor::new(Behavior::Done);
    let second_executor = CountingExecutor::new(Behavior::Done);
    let first = start(parts(&store, &first_executor, &clock));
    store.submit_run(background(&clock)).await.unwrap();
    until(&store, 1, RunState::Done).await;
    let second = start(SchedulerParts {
        owner: "the second".to_owned(),
        ..parts(&store, &second_executor, &clock)
    });
    store.submit_run(background(&clock)).await.unwrap();
    until(&store, 2, RunState::Done).await;
    first.stop().await;
    store.submit_run(background(&clock)).await.unwrap();
    until(&store, 3, RunState::Done).await;
    let lease = store.lease().await.unwrap().unwrap();
    assert_eq!(lease.owner, "the second");
    second.stop().await;
}

/// A process that dies without releasing the lease is replaced once the lease is old, even if the clock
/// stands still.
#[tokio::test(start_paused = true)]
async fn a_lease_that_nobody_renews_is_taken_over() {
    let (store, clock) = (memory_store(), WallClock::at(START));
    let executor = CountingExecutor::new(Behavior::Done);
    let dead = start(parts(&store, &executor, &clock));
    store.submit_run(background(&clock)).await.unwrap();
    until(&store, 1, RunState::Done).await;
    dead.task.abort();
    store.submit_run(background(&clock)).await.unwrap();
    let running = start(parts(&store, &executor, &clock));
    until(&store, 2, RunState::Done).await;
    running.stop().await;
}
