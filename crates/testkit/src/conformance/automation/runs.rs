//! Runs.

use std::sync::Arc;

use futures::future::join_all;
use lango_domain::Stores;
use lango_domain::automation::{
    AutomationStore, OccurrenceDecision, Recovery, RunKind, RunProgress, RunQuery, RunState,
};
use lango_domain::event::SessionId;

use super::super::{append_turn, key};
use super::deliveries::delivery;
use super::{
    acquire, add_job, background, claim, claim_own, decide, decision, end, occurrence, ok,
    principal, seconds, shared,
};

pub(super) async fn check(stores: &Stores) {
    let store = &stores.automation;
    runs_go_from_queued_to_done(&**store).await;
    runs_are_claimed_once(store).await;
    one_run_of_a_job_at_a_time(&**store).await;
    waiting_runs_continue(&**store).await;
    runs_are_cancelled(&**store).await;
    replaced_runs_stop(&**store).await;
    runs_of_earlier_processes_are_recovered(&**store).await;
    runs_are_found(&**store).await;
    runs_belong_to_their_principal(&**store).await;
    old_runs_are_pruned(&**store).await;
    a_deleted_session_leaves_no_result(stores).await;
}

async fn runs_go_from_queued_to_done(store: &dyn AutomationStore) {
    let lease = acquire(store, "runs").await;
    let queued = ok(store.submit_run(background("run", 5)).await);
    assert_eq!((queued.state, queued.attempt), (RunState::Queued, 0));
    assert!(ok(store.agenda().await).has_queued_runs);
    let running = claim_own(store, lease, 7, "run").await.remove(0);
    assert_eq!(running.id, queued.id);
    assert_eq!((running.state, running.attempt), (RunState::Running, 1));
    assert_eq!(
        (running.started, running.lease),
        (Some(seconds(7)), Some(lease))
    );
    let session = SessionId::new("of the run");
    let progress = RunProgress {
        run: running.id,
        state: RunState::Running,
        reason: None,
        session: Some(session.clone()),
        resume_at: None,
        active: None,
    };
    assert!(ok(store.record_progress(lease, progress.clone()).await));
    assert!(ok(store
        .end_run(lease, end(running.id, RunState::Done, 9))
        .await));
    let owner = principal("run");
    let working = ok(store.run_of_session(&owner, &session).await);
    assert_eq!(working.map(|run| run.id), Some(running.id));
    let other = ok(store.run_of_session(&principal("runner"), &session).await);
    assert_eq!(other, None, "B74");
    let done = ok(store.run(&owner, running.id).await);
    let done = done.unwrap_or_else(|| unreachable!("the run was stored"));
    assert_eq!((done.state, done.ended), (RunState::Done, Some(seconds(9))));
    assert_eq!(done.result.as_deref(), Some("done"));
    assert_eq!(done.session, Some(session));
    assert!(done.label.is_private());
    assert_eq!(done.spec, background("run", 5).spec);
    let again = end(running.id, RunState::Failed, 10);
    assert!(!ok(store.end_run(lease, again).await), "it is over");
    assert!(!ok(store.record_progress(lease, progress).await));
    assert_eq!(ok(store.run(&owner, running.id).await), Some(done));
}

/// B120: eight claims at the same time start each run once.
async fn runs_are_claimed_once(store: &Arc<dyn AutomationStore>) {
    let lease = acquire(&**store, "claims").await;
    for due in 0..40 {
        ok(store.submit_run(background("claimed", due)).await);
    }
    let claims = (0..8).map(|_| {
        let store = shared(store);
        tokio::spawn(async move { ok(store.claim_runs(lease, claim(99, 10)).await) })
    });
    let claimed = join_all(claims).await.into_iter().flatten().flatten();
    let mut claimed: Vec<_> = claimed
        .filter(|run| run.principal.as_str() == "claimed")
        .collect();
    assert_eq!(claimed.len(), 40);
    assert!(claimed.iter().all(|run| run.attempt == 1));
    claimed.dedup_by_key(|run| run.id);
    assert_eq!(claimed.len(), 40);
}

async fn one_run_of_a_job_at_a_time(store: &dyn AutomationStore) {
    let lease = acquire(store, "serial").await;
    let job = add_job(store, "serial", "job", 10).await;
    let occurrences = [10, 20, 30].map(|due| occurrence(due, RunState::Queued));
    decide(store, lease, &job, occurrences.into()).await;
    for due in [10, 20, 30] {
        let claimed = claim_own(store, lease, 99, "serial").await;
        let dues: Vec<_> = claimed.iter().map(|run| run.due).collect();
        assert_eq!(dues, [seconds(due)], "the longest due first");
        assert_eq!(claim_own(store, lease, 99, "serial").await, []);
        let open = ok(store.open_runs(job.id).await);
        assert!(open.iter().any(|run| run.id == claimed[0].id));
        ok(store
            .end_run(lease, end(claimed[0].id, RunState::Done, 99))
            .await);
    }
    assert_eq!(ok(store.open_runs(job.id).await), []);
}

async fn waiting_runs_continue(store: &dyn AutomationStore) {
    let lease = acquire(store, "waiting").await;
    let run = ok(store.submit_run(background("waiting", 1)).await);
    assert_eq!(claim_own(store, lease, 1, "waiting").await.len(), 1);
    let wait = RunProgress {
        run: run.id,
        state: RunState::Waiting,
        reason: Some("for an approval".to_owned()),
        session: None,
        resume_at: Some(seconds(50)),
        active: None,
    };
    ok(store.record_progress(lease, wait).await);
    assert_eq!(ok(store.agenda().await).next_resume, Some(seconds(50)));
    assert_eq!(claim_own(store, lease, 49, "waiting").await, []);
    let recovery = Recovery {
        at: seconds(49),
        max_attempts: 9,
    };
    let next = acquire(store, "next").await;
    let recovered = ok(store.recover_runs(next, recovery).await);
    assert!(
        recovered.iter().all(|found| found.id != run.id),
        "nobody held it"
    );
    let continued = claim_own(store, next, 50, "waiting").await.remove(0);
    assert_eq!((continued.id, continued.attempt), (run.id, 1));
    assert_eq!(continued.resume_at, None);
    assert_eq!(continued.started, Some(seconds(1)));
}

async fn runs_are_cancelled(store: &dyn AutomationStore) {
    let lease = acquire(store, "cancels").await;
    let owner = principal("cancel");
    let running = ok(store.submit_run(background("cancel", 1)).await).id;
    claim_own(store, lease, 1, "cancel").await;
    let queued = ok(store.submit_run(background("cancel", 2)).await).id;
    assert!(!ok(store
        .cancel_run(&principal("somebody else"), queued, seconds(3))
        .await));
    for run in [running, queued] {
        assert!(ok(store.cancel_run(&owner, run, seconds(3)).await));
    }
    let state = async |run| ok(store.run(&owner, run).await).map(|run| run.state);
    assert_eq!(state(queued).await, Some(RunState::Cancelled));
    assert_eq!(
        state(running).await,
        Some(RunState::Running),
        "it is asked to stop"
    );
    assert!(ok(store.agenda().await).cancel_requests.contains(&running));
    ok(store
        .end_run(lease, end(running, RunState::Cancelled, 4))
        .await);
    assert!(!ok(store.agenda().await).cancel_requests.contains(&running));
    assert!(!ok(store.cancel_run(&owner, running, seconds(5)).await));
}

async fn replaced_runs_stop(store: &dyn AutomationStore) {
    let lease = acquire(store, "replaces").await;
    let job = add_job(store, "replaced", "job", 10).await;
    let occurrences = vec![
        occurrence(10, RunState::Queued),
        occurrence(20, RunState::Queued),
    ];
    decide(store, lease, &job, occurrences).await;
    let running = claim_own(store, lease, 20, "replaced").await.remove(0).id;
    let open = ok(store.open_runs(job.id).await);
    let replacing = OccurrenceDecision {
        replaced: open.iter().map(|run| run.id).collect(),
        ..decision(&job, vec![occurrence(30, RunState::Queued)])
    };
    ok(store.decide(lease, replacing).await);
    let runs = ok(store.runs(RunQuery::newest(principal("replaced"), 9)).await);
    let states: Vec<_> = runs.iter().rev().map(|run| run.state).collect();
    assert_eq!(
        states,
        [RunState::Running, RunState::Cancelled, RunState::Queued]
    );
    assert!(ok(store.agenda().await).cancel_requests.contains(&running));
    assert_eq!(claim_own(store, lease, 30, "replaced").await, []);
    ok(store
        .end_run(lease, end(running, RunState::Cancelled, 31))
        .await);
    assert_eq!(claim_own(store, lease, 31, "replaced").await.len(), 1);
}

/// B120: what an earlier process left running is queued again, a limited number of times.
async fn runs_of_earlier_processes_are_recovered(store: &dyn AutomationStore) {
    let run = ok(store.submit_run(background("crash", 1)).await).id;
    let held = ok(store.submit_run(background("crash", 2)).await).id;
    let first = acquire(store, "first").await;
    let recovery = Recovery {
        at: seconds(9),
        max_attempts: 2,
    };
    assert_eq!(claim_own(store, first, 9, "crash").await.len(), 2);
    let waits = RunProgress {
        run: held,
        state: RunState::Waiting,
        reason: None,
        session: None,
        resume_at: None,
        active: None,
    };
    ok(store.record_progress(first, waits).await);
    let own = ok(store.recover_runs(first, recovery).await);
    assert!(
        own.iter().all(|run| run.principal.as_str() != "crash"),
        "the process still runs its own"
    );
    // The wait for an answer is no attempt.
    for (expected, attempts) in [
        (
            [(run, RunState::Queued, 1), (held, RunState::Queued, 0)],
            vec![2, 1],
        ),
        (
            [(run, RunState::Running, 2), (held, RunState::Queued, 1)],
            vec![2],
        ),
    ] {
        let next = acquire(store, "next").await;
        let recovered = ok(store.recover_runs(next, recovery).await);
        let own = recovered
            .iter()
            .filter(|run| run.principal.as_str() == "crash");
        let found: Vec<_> = own.map(|run| (run.id, run.state, run.attempt)).collect();
        assert_eq!(found, expected);
        let claimed = claim_own(store, next, 9, "crash").await;
        let found: Vec<_> = claimed.iter().map(|run| run.attempt).collect();
        assert_eq!(found, attempts);
    }
    let last = acquire(store, "last").await;
    ok(store
        .cancel_run(&principal("crash"), run, seconds(10))
        .await);
    let patient = Recovery {
        max_attempts: 99,
        ..recovery
    };
    let recovered = ok(store.recover_runs(last, patient).await);
    let cancelled = recovered.iter().find(|found| found.id == run);
    assert_eq!(
        cancelled.map(|run| (run.state, run.is_cancel_requested)),
        Some((RunState::Running, true)),
        "a run that should stop is not queued again"
    );
}

async fn runs_are_found(store: &dyn AutomationStore) {
    let job = add_job(store, "find", "job", 10).await;
    let lease = acquire(store, "find").await;
    let occurrences = vec![
        occurrence(10, RunState::Missed),
        occurrence(20, RunState::Queued),
    ];
    decide(store, lease, &job, occurrences).await;
    ok(store.submit_run(background("find", 30)).await);
    let mut by_hand = background("find", 40);
    (by_hand.job, by_hand.kind) = (Some(job.id), RunKind::Job);
    let manual = ok(store.submit_run(by_hand.clone()).await);
    assert_eq!(
        ok(store.submit_run(by_hand).await),
        manual,
        "one row per time"
    );
    let all = RunQuery::newest(principal("find"), 99);
    let of_job = RunQuery {
        job: Some(job.id),
        ..all.clone()
    };
    let missed = RunQuery {
        states: vec![RunState::Missed, RunState::Failed],
        ..all.clone()
    };
    let background = RunQuery {
        kinds: vec![RunKind::Background],
        ..all.clone()
    };
    let older = RunQuery {
        before: Some(manual.id),
        limit: 2,
        ..all.clone()
    };
    for (query, expected) in [
        (all, vec![40, 30, 20, 10]),
        (of_job, vec![40, 20, 10]),
        (missed, vec![10]),
        (background, vec![30]),
        (older, vec![30, 20]),
    ] {
        let found = ok(store.runs(query).await);
        let dues: Vec<_> = found.iter().map(|run| run.due.as_second()).collect();
        assert_eq!(dues, expected);
    }
}

/// B74
async fn runs_belong_to_their_principal(store: &dyn AutomationStore) {
    let run = ok(store.submit_run(background("ann", 1)).await);
    let ben = principal("ben");
    assert_eq!(ok(store.run(&ben, run.id).await), None);
    assert_eq!(ok(store.runs(RunQuery::newest(ben.clone(), 9)).await), []);
    assert!(!ok(store.cancel_run(&ben, run.id, seconds(2)).await));
    assert!(!ok(store.requeue_run(&ben, run.id, vec![]).await));
    assert_eq!(ok(store.run(&principal("ann"), run.id).await), Some(run));
}

async fn old_runs_are_pruned(store: &dyn AutomationStore) {
    let lease = acquire(store, "prunes").await;
    let owner = principal("pruned");
    let job = add_job(store, "pruned", "lives", 10).await;
    let missed = [10, 20, 30].map(|due| occurrence(due, RunState::Missed));
    decide(store, lease, &job, missed.into()).await;
    let over = add_job(store, "pruned", "over", 10).await;
    let last = OccurrenceDecision {
        next_due: None,
        ..decision(&over, vec![occurrence(10, RunState::Missed)])
    };
    ok(store.decide(lease, last).await);
    let pending = ok(store.submit_run(background("pruned", 1)).await).id;
    let unsent = vec![delivery("pruned", Some(pending))];
    ok(store.enqueue(lease, unsent).await);
    let gone = ok(store.submit_run(background("pruned", 2)).await).id;
    for run in [pending, gone] {
        ok(store.end_run(lease, end(run, RunState::Done, 3)).await);
    }
    let recent = ok(store.submit_run(background("recent", 3)).await).id;
    ok(store
        .end_run(lease, end(recent, RunState::Done, 2_000))
        .await);
    // If nothing is newer, the clock is wrong.
    assert_eq!(ok(store.prune_runs(lease, seconds(900_000_000)).await), 0);
    assert!(ok(store.prune_runs(lease, seconds(1_000)).await) >= 3);
    let left = ok(store.runs(RunQuery::newest(owner.clone(), 99)).await);
    let left: Vec<_> = left.iter().map(|run| run.due.as_second()).collect();
    assert_eq!(
        left,
        [1, 30],
        "an unsent delivery and the last run of a job stay"
    );
    let names: Vec<_> = ok(store.jobs(&owner).await)
        .into_iter()
        .map(|job| job.name)
        .collect();
    assert_eq!(names, ["lives"]);
}

async fn a_deleted_session_leaves_no_result(stores: &Stores) {
    let store = &*stores.automation;
    let lease = acquire(store, "forgets").await;
    let key = key("forgets", "s");
    append_turn(&*stores.sessions, &key, "t", "hello").await;
    let run = ok(store.submit_run(background("forgets", 1)).await).id;
    let progress = RunProgress {
        run,
        state: RunState::Running,
        reason: None,
        session: Some(key.session.clone()),
        resume_at: None,
        active: None,
    };
    ok(store.record_progress(lease, progress).await);
    ok(store.end_run(lease, end(run, RunState::Done, 2)).await);
    ok(stores.catalog.delete(&key.principal, &key.session).await);
    let left = ok(store.run(&key.principal, run).await);
    let left = left.map(|run| (run.state, run.session, run.result));
    assert_eq!(left, Some((RunState::Done, None, None)));
}
