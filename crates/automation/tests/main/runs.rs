//! The ends of runs: overlap, timeouts, cancelling, failures, and what is delivered.

use std::num::NonZeroU32;
use std::sync::Arc;

use lango_automation::{CronSettings, Scheduler, SchedulerParts};
use lango_domain::automation::RunState::{Cancelled, Done, Failed, Queued, Skipped, Waiting};
use lango_domain::automation::{
    AutomationStore, CatchUp, Delivery, DeliveryOccasion, DeliveryQuery, LeaseClaim, LeaseOutcome,
    NewJob, NewRun, OverlapRule, RunClaim, RunKind,
};

use crate::setup::{
    Behavior, CountingExecutor, START, WallClock, add, all_runs, history, hourly, me, memory_store,
    parts, reminder, run_due, scheduler, states,
};

async fn deliveries(store: &Arc<dyn AutomationStore>) -> Vec<Delivery> {
    let query = DeliveryQuery {
        principal: me(),
        run: None,
        state: None,
        limit: 99,
    };
    store.deliveries(query).await.unwrap()
}

/// Runs an hourly job once with an executor that behaves so.
async fn run_once(behavior: Behavior, change: impl Fn(&mut NewJob)) -> Arc<dyn AutomationStore> {
    let (store, clock) = (memory_store(), WallClock::at(START));
    let executor = CountingExecutor::new(behavior);
    let mut job = hourly("job", &clock);
    change(&mut job);
    add(&store, job).await;
    clock.advance(60 * 60);
    assert_eq!(run_due(&scheduler(&store, &executor, &clock)).await, 1);
    store
}

/// B120: run, failure and delivery have states of their own.
#[tokio::test]
async fn results_and_failures_are_delivered_to_their_targets() {
    let store = run_once(Behavior::Done, |job| {
        job.spec.deliver_to = vec!["file:a.md".to_owned(), "notify".to_owned()];
    })
    .await;
    let sent = deliveries(&store).await;
    let targets: Vec<&str> = sent
        .iter()
        .map(|delivery| delivery.target.as_str())
        .collect();
    assert_eq!(targets, ["notify", "file:a.md"]);
    assert!(
        sent.iter()
            .all(|delivery| delivery.occasion == DeliveryOccasion::Result)
    );
    let store = run_once(Behavior::Fail, |job| {
        job.spec.deliver_to = vec!["file:a.md".to_owned()];
    })
    .await;
    let sent = deliveries(&store).await;
    assert_eq!((sent.len(), sent[0].target.as_str()), (1, "inbox"));
    assert_eq!(sent[0].message.text, "it did not work");
    let run = &all_runs(&store).await[0];
    assert_eq!(
        (run.state, run.error.as_deref()),
        (Failed, Some("it did not work"))
    );
}

#[tokio::test]
async fn a_panic_fails_the_run_alone() {
    let store = run_once(Behavior::Panic, |_| {}).await;
    let run = &all_runs(&store).await[0];
    assert_eq!(run.state, Failed);
    assert!(run.error.as_deref().unwrap().contains("panicked"));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_takes_too_long_is_stopped() {
    for behavior in [Behavior::UntilCancelled, Behavior::Hang] {
        let store = run_once(behavior, |job| {
            job.spec.timeout = Some(jiff::SignedDuration::from_mins(5));
        })
        .await;
        let run = &all_runs(&store).await[0];
        assert_eq!(run.state, Failed, "{behavior:?}");
        assert_eq!(
            run.error.as_deref(),
            Some("it took longer than 5m and was stopped")
        );
        assert_eq!(deliveries(&store).await.len(), 1);
    }
}

#[tokio::test]
async fn a_run_waits_without_a_process() {
    let (store, clock) = (memory_store(), WallClock::at(START));
    let executor = CountingExecutor::new(Behavior::WaitOnce);
    let scheduler = scheduler(&store, &executor, &clock);
    add(&store, hourly("job", &clock)).await;
    clock.advance(60 * 60);
    run_due(&scheduler).await;
    let run = &all_runs(&store).await[0];
    assert_eq!(
        (run.state, run.reason.as_deref()),
        (Waiting, Some("for an approval"))
    );
    clock.advance(29 * 60);
    assert_eq!(run_due(&scheduler).await, 0);
    clock.advance(60);
    assert_eq!(run_due(&scheduler).await, 1);
    assert_eq!(all_runs(&store).await[0].state, Done);
}

/// Returns a store with a job whose run of 01:00 is held by another process, and what a pass at 02:00 does.
async fn overlapping(overlap: OverlapRule) -> Vec<(String, lango_domain::automation::RunState)> {
    let (store, clock) = (memory_store(), WallClock::at(START));
    let job = NewJob {
        overlap,
        catch_up: CatchUp::Once,
        ..hourly("job", &clock)
    };
    add(&store, job).await;
    clock.advance(60 * 60);
    let waiting = CountingExecutor::new(Behavior::WaitOnce);
    run_due(&scheduler(&store, &waiting, &clock)).await;
    clock.set("2026-03-02T01:20:00Z");
    // The next occurrence is due while the first run still waits.
    let mut edited = store.jobs(&me()).await.unwrap().remove(0);
    edited.schedule.text = "25 * * * *".to_owned();
    let edit = lango_domain::automation::JobEdit {
        schedule: Some(edited.schedule),
        next_due: Some("2026-03-02T01:25:00Z".parse().unwrap()),
        ..Default::default()
    };
    store.edit_job(&me(), edited.id, edit).await.unwrap();
    clock.set("2026-03-02T01:25:10Z");
    let done = CountingExecutor::new(Behavior::Done);
    run_due(&scheduler(&store, &done, &clock)).await;
    states(&store).await
}

#[tokio::test]
async fn overlapping_occurrences_are_skipped_queued_or_replace() {
    for (overlap, expected) in [
        (OverlapRule::Skip, [Waiting, Skipped]),
        (OverlapRule::Queue, [Waiting, Queued]),
        (OverlapRule::Replace, [Cancelled, Done]),
    ] {
        let states = overlapping(overlap).await;
        let found: Vec<_> = states.iter().map(|(_, state)| *state).collect();
        assert_eq!(found, expected, "{overlap:?}");
    }
}

#[tokio::test]
async fn at_most_some_runs_run_at_the_same_time() {
    let (store, clock) = (memory_store(), WallClock::at(START));
    for number in 0..20 {
        let run = NewRun {
            kind: RunKind::Background,
            job: None,
            principal: me(),
            name: format!("task {number}"),
            due: clock.now(),
            spec: reminder("x"),
        };
        store.submit_run(run).await.unwrap();
    }
    let executor = CountingExecutor::new(Behavior::Done);
    let settings = CronSettings {
        max_running: NonZeroU32::new(3).unwrap(),
        ..CronSettings::default()
    };
    let scheduler = Scheduler::new(SchedulerParts {
        settings,
        ..parts(&store, &executor, &clock)
    });
    assert_eq!(run_due(&scheduler).await, 20);
    assert!(all_runs(&store).await.iter().all(|run| run.state == Done));
}

/// B120: a run that kills its process again and again ends at some point, and says so.
#[tokio::test]
async fn a_run_that_kills_its_process_fails_in_the_end() {
    let (store, clock) = (memory_store(), WallClock::at(START));
    add(&store, hourly("job", &clock)).await;
    clock.advance(60 * 60);
    let executor = CountingExecutor::new(Behavior::Done);
    let scheduler = scheduler(&store, &executor, &clock);
    // Processes that claim the run and die.
    store
        .decide(crash(&store, &clock).await, decision(&store, &clock).await)
        .await
        .unwrap();
    for _ in 0..10 {
        let lease = crash(&store, &clock).await;
        let recovery = lango_domain::automation::Recovery {
            at: clock.now(),
            max_attempts: 99,
        };
        store.recover_runs(lease, recovery).await.unwrap();
        let claim = RunClaim {
            at: clock.now(),
            limit: 9,
        };
        assert_eq!(store.claim_runs(lease, claim).await.unwrap().len(), 1);
    }
    clock.advance(120);
    assert_eq!(run_due(&scheduler).await, 0);
    let run = &all_runs(&store).await[0];
    assert_eq!((run.state, run.attempt), (Failed, 10));
    assert_eq!(deliveries(&store).await.len(), 1);
}

/// Acquires the lease of a process that will not release it.
async fn crash(
    store: &Arc<dyn AutomationStore>,
    clock: &WallClock,
) -> lango_domain::automation::LeaseNumber {
    clock.advance(120);
    let claim = LeaseClaim {
        owner: "crashes".to_owned(),
        at: clock.now(),
        until: clock.now() + jiff::SignedDuration::from_secs(60),
        abandoned: None,
    };
    match store.acquire_lease(claim).await.unwrap() {
        LeaseOutcome::Acquired(lease) => lease.number,
        LeaseOutcome::HeldBy(lease) => panic!("held by {}", lease.owner),
    }
}

async fn decision(
    store: &Arc<dyn AutomationStore>,
    clock: &WallClock,
) -> lango_domain::automation::OccurrenceDecision {
    let job = store.jobs(&me()).await.unwrap().remove(0);
    lango_domain::automation::OccurrenceDecision {
        job: job.id,
        job_version: job.version,
        decided_until: job.next_due.unwrap(),
        next_due: None,
        occurrences: vec![lango_domain::automation::NewOccurrence {
            due: job.next_due.unwrap(),
            state: Queued,
            reason: None,
        }],
        replaced: vec![],
        deliveries: vec![],
        at: clock.now(),
    }
}

/// A zone that no longer exists stops the job and says so; it does not stop the scheduler.
#[tokio::test]
async fn a_job_that_cannot_be_read_stops_alone() {
    let (store, clock) = (memory_store(), WallClock::at(START));
    let executor = CountingExecutor::new(Behavior::Done);
    let mut broken = hourly("broken", &clock);
    broken.schedule.time_zone = "Europe/Atlantis".to_owned();
    add(&store, broken).await;
    add(&store, hourly("sound", &clock)).await;
    clock.advance(60 * 60);
    assert_eq!(run_due(&scheduler(&store, &executor, &clock)).await, 1);
    assert_eq!(history(&store).await.len(), 1);
    let sent = deliveries(&store).await;
    assert!(
        sent.iter()
            .any(|delivery| delivery.message.text.contains("Atlantis"))
    );
}
