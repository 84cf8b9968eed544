//! Processes that die at every possible moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use lango_automation::{DuePass, Scheduler};
use lango_domain::StoreError;
use lango_domain::automation::{AutomationStore, CatchUp, DeliveryQuery, NewJob, RunState};

use crate::dying_store::{DyingStore, LastCall};
use crate::setup::{
    Behavior, CountingExecutor, START, WallClock, add, all_runs, hourly, me, memory_store, run_due,
    scheduler,
};

const HOURS: usize = 3;

/// Returns a store with two jobs that have both missed some hours.
async fn store_with_jobs(clock: &WallClock) -> Arc<dyn AutomationStore> {
    let store = memory_store();
    for name in ["first", "second"] {
        let job = NewJob {
            catch_up: CatchUp::All,
            ..hourly(name, clock)
        };
        add(&store, job).await;
    }
    clock.advance(60 * 60 * HOURS as i64);
    store
}

/// Checks that each occurrence has one row, is done, and was delivered once.
async fn assert_complete(store: &Arc<dyn AutomationStore>, context: &str) {
    let runs = all_runs(store).await;
    let mut by_occurrence = BTreeMap::new();
    for run in &runs {
        *by_occurrence.entry((run.job, run.due)).or_insert(0) += 1;
        assert_eq!(run.state, RunState::Done, "{context}: {run:?}");
    }
    assert_eq!(runs.len(), 2 * HOURS, "{context}: none is missing");
    assert!(by_occurrence.values().all(|count| *count == 1), "{context}");
    let query = DeliveryQuery {
        principal: me(),
        run: None,
        state: None,
        limit: 999,
    };
    let mut delivered = BTreeMap::new();
    for delivery in store.deliveries(query).await.unwrap() {
        *delivered.entry(delivery.run).or_insert(0) += 1;
    }
    assert_eq!(
        delivered.len(),
        runs.len(),
        "{context}: none is undelivered"
    );
    assert!(delivered.values().all(|count| *count == 1), "{context}");
}

/// B120: a process that dies at any call of the store, before or after the call took effect, leaves nothing
/// missed and nothing doubled.
#[tokio::test]
async fn death_at_any_call_loses_and_doubles_nothing() {
    for last_call in [LastCall::Lost, LastCall::Stored] {
        for calls in 1.. {
            let clock = WallClock::at(START);
            let store = store_with_jobs(&clock).await;
            let executor = CountingExecutor::new(Behavior::Done);
            let dying = DyingStore::new(&store, calls, last_call);
            let as_store: Arc<dyn AutomationStore> = dying.clone();
            let first = scheduler(&as_store, &executor, &clock).run_due().await;
            let context = format!("death at call {calls}, {last_call:?}: {first:?}");
            // The lease of the dead process expires.
            clock.advance(61);
            run_due(&scheduler(&store, &executor, &clock)).await;
            assert_complete(&store, &context).await;
            if !dying.is_dead() {
                assert!(calls > 20, "the test reached the end too early");
                break;
            }
        }
    }
}

/// B120: processes that die one after the other, each a little later, still get everything done once.
#[tokio::test]
async fn many_deaths_in_a_row_lose_and_double_nothing() {
    let clock = WallClock::at(START);
    let store = store_with_jobs(&clock).await;
    let executor = CountingExecutor::new(Behavior::Done);
    for calls in 1..60 {
        let last_call = match calls % 2 {
            0 => LastCall::Lost,
            _ => LastCall::Stored,
        };
        let dying: Arc<dyn AutomationStore> = DyingStore::new(&store, calls % 13, last_call);
        let scheduler = scheduler(&dying, &executor, &clock);
        let _ = scheduler.run_due().await;
        clock.advance(61);
    }
    run_due(&scheduler(&store, &executor, &clock)).await;
    assert_complete(&store, "many deaths").await;
}

/// B120: of several schedulers on one store, one works; the others see who.
#[tokio::test]
async fn two_schedulers_run_each_occurrence_once() {
    let clock = WallClock::at(START);
    let store = store_with_jobs(&clock).await;
    let executor = CountingExecutor::new(Behavior::Done);
    let schedulers: Vec<Arc<Scheduler>> = (0..8)
        .map(|_| Arc::new(scheduler(&store, &executor, &clock)))
        .collect();
    let passes = schedulers.iter().map(|scheduler| {
        let scheduler = Arc::clone(scheduler);
        tokio::spawn(async move { scheduler.run_due().await })
    });
    let passes = futures::future::join_all(passes).await;
    let ran = passes.into_iter().filter_map(|pass| match pass.unwrap() {
        Ok(DuePass::Ran(count)) => Some(count),
        Ok(DuePass::HeldBy(_)) => None,
        Err(error) => panic!("{error}"),
    });
    assert_eq!(ran.sum::<usize>(), 2 * HOURS);
    assert_complete(&store, "two schedulers").await;
    assert!(
        executor.counts().iter().all(|count| *count == 2),
        "one of each job"
    );
}

/// B120: a process that was suspended while another took over can no longer write.
#[tokio::test]
async fn a_zombie_cannot_write() {
    let clock = WallClock::at(START);
    let store = store_with_jobs(&clock).await;
    let zombie = {
        let claim = lango_domain::automation::LeaseClaim {
            owner: "zombie".to_owned(),
            at: clock.now(),
            until: clock.now() + jiff::SignedDuration::from_secs(60),
            abandoned: None,
        };
        match store.acquire_lease(claim).await.unwrap() {
            lango_domain::automation::LeaseOutcome::Acquired(lease) => lease.number,
            lango_domain::automation::LeaseOutcome::HeldBy(_) => panic!("it was free"),
        }
    };
    clock.advance(61);
    let executor = CountingExecutor::new(Behavior::Done);
    run_due(&scheduler(&store, &executor, &clock)).await;
    let claim = lango_domain::automation::RunClaim {
        at: clock.now(),
        limit: 9,
    };
    let claimed = store.claim_runs(zombie, claim).await;
    assert_eq!(claimed, Err(StoreError::LeaseLost));
    assert_complete(&store, "a zombie").await;
}
