//! The lease, and what a process without it cannot do.

use lango_domain::StoreError;
use lango_domain::automation::{
    AutomationStore, ClaimDeliveries, DecisionRewind, DeliveryEnd, Job, LeaseClaim, LeaseNumber,
    LeaseOutcome, Recovery, RunId, RunProgress, RunQuery, RunState, RunStep, SchedulerLease,
};

use super::deliveries::{delivery, query as delivery_query};
use super::{
    acquire, add_job, background, claim, decision, end, occurrence, ok, principal, seconds,
};

pub(super) async fn check(store: &dyn AutomationStore) {
    is_held_by_one_owner_at_a_time(store).await;
    changes_hands_when_abandoned(store).await;
    is_released(store).await;
}

fn lease_claim(owner: &str, at: i64, until: i64) -> LeaseClaim {
    LeaseClaim {
        owner: owner.to_owned(),
        at: seconds(at),
        until: seconds(until),
        abandoned: None,
    }
}

fn acquired(outcome: LeaseOutcome) -> SchedulerLease {
    match outcome {
        LeaseOutcome::Acquired(lease) => lease,
        LeaseOutcome::HeldBy(lease) => unreachable!("held by {}", lease.owner),
    }
}

async fn is_held_by_one_owner_at_a_time(store: &dyn AutomationStore) {
    assert_eq!(ok(store.lease().await), None);
    let first = acquired(ok(store.acquire_lease(lease_claim("first", 10, 40)).await));
    assert_eq!(ok(store.lease().await), Some(first.clone()));
    let held = ok(store.acquire_lease(lease_claim("second", 20, 50)).await);
    assert_eq!(held, LeaseOutcome::HeldBy(first.clone()));
    ok(store.renew_lease(first.number, seconds(60)).await);
    let held = ok(store.acquire_lease(lease_claim("second", 59, 90)).await);
    assert!(matches!(held, LeaseOutcome::HeldBy(_)), "it was renewed");
    let second = acquired(ok(store.acquire_lease(lease_claim("second", 60, 90)).await));
    assert!(second.number > first.number);
    let renewed = store.renew_lease(first.number, seconds(99)).await;
    assert_eq!(renewed, Err(StoreError::LeaseLost));
    ok(store.release_lease(first.number).await);
    assert_eq!(
        ok(store.lease().await),
        Some(second),
        "an old owner cannot release it"
    );
}

async fn changes_hands_when_abandoned(store: &dyn AutomationStore) {
    let Some(seen) = ok(store.lease().await) else {
        unreachable!("the lease was acquired before")
    };
    ok(store.renew_lease(seen.number, seconds(95)).await);
    let outdated = LeaseClaim {
        abandoned: Some(seen),
        ..lease_claim("third", 70, 100)
    };
    let held = ok(store.acquire_lease(outdated.clone()).await);
    assert!(
        matches!(held, LeaseOutcome::HeldBy(_)),
        "its owner has renewed it since"
    );
    let abandoned = ok(store.lease().await);
    let third = LeaseClaim {
        abandoned,
        ..outdated
    };
    acquired(ok(store.acquire_lease(third).await));
}

async fn is_released(store: &dyn AutomationStore) {
    let Some(held) = ok(store.lease().await) else {
        unreachable!("the lease was acquired before")
    };
    ok(store.release_lease(held.number).await);
    let next = acquired(ok(store.acquire_lease(lease_claim("next", 3, 105)).await));
    assert_eq!(next.number.get(), held.number.get() + 1);
}

/// B120: with an old number, no write of the scheduler changes anything.
pub(super) async fn check_all_scheduler_writes(store: &dyn AutomationStore) {
    let old = acquire(store, "old").await;
    let job = add_job(store, "fenced", "job", 1).await;
    let run = ok(store.submit_run(background("fenced", 0)).await);
    ok(store
        .enqueue(old, vec![delivery("fenced", Some(run.id))])
        .await);
    let new = acquire(store, "new").await;
    let deliveries = ok(store.deliveries(delivery_query("fenced")).await);
    let results = all_writes(store, old, &job, run.id).await;
    for (at, result) in results.into_iter().enumerate() {
        assert_eq!(result, Err(StoreError::LeaseLost), "write {at}");
    }
    let owner = principal("fenced");
    assert_eq!(ok(store.job(&owner, "job").await), Some(job));
    let runs = ok(store.runs(RunQuery::newest(owner.clone(), 9)).await);
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].state, RunState::Queued);
    assert_eq!(ok(store.steps(&owner, run.id).await), []);
    assert_eq!(
        ok(store.deliveries(delivery_query("fenced")).await),
        deliveries
    );
    assert_ne!(ok(store.claim_runs(new, claim(9, 9)).await), []);
}

/// Tries every write of the scheduler.
async fn all_writes(
    store: &dyn AutomationStore,
    old: LeaseNumber,
    job: &Job,
    run: RunId,
) -> [Result<(), StoreError>; 12] {
    let progress = RunProgress {
        run,
        state: RunState::Running,
        reason: None,
        session: None,
        resume_at: None,
        active: None,
    };
    let recovery = Recovery {
        at: seconds(9),
        max_attempts: 3,
    };
    let claim_deliveries = ClaimDeliveries {
        at: seconds(9),
        retry_at: seconds(99),
        limit: 9,
    };
    let decision = decision(job, vec![occurrence(1, RunState::Queued)]);
    let rewind = DecisionRewind {
        job: job.id,
        job_version: job.version,
        decided_until: seconds(0),
        next_due: None,
    };
    let step = RunStep::pending(run, "a");
    let end = end(run, RunState::Done, 9);
    let sent = vec![delivery("fenced", None)];
    let pending = ok(store.deliveries(delivery_query("fenced")).await);
    let delivered = DeliveryEnd::Delivered { inbox: None };
    let finished = store.finish_attempt(old, pending[0].id, delivered).await;
    [
        store.decide(old, decision).await.map(drop),
        store.rewind_job(old, rewind).await.map(drop),
        store.claim_runs(old, claim(9, 9)).await.map(drop),
        store.recover_runs(old, recovery).await.map(drop),
        store.record_progress(old, progress).await.map(drop),
        store.record_steps(old, vec![step], vec![]).await,
        store.end_run(old, end).await.map(drop),
        store.enqueue(old, sent).await.map(drop),
        store
            .claim_deliveries(old, claim_deliveries)
            .await
            .map(drop),
        finished.map(drop),
        store.prune_runs(old, seconds(99)).await.map(drop),
        store.renew_lease(old, seconds(99)).await,
    ]
}
