//! Jobs, and the decisions about their occurrences.

use std::sync::Arc;

use futures::future::join_all;
use jiff::SignedDuration;
use lango_domain::StoreError;
use lango_domain::automation::{
    AutomationStore, CatchUp, DecisionRewind, DeliveryState, Job, JobEdit, OccurrenceDecision,
    OverlapRule, RunQuery, RunState,
};

use super::deliveries::{delivery, query};
use super::{
    acquire, add_job, after, background, claim_own, decide, decision, new_job, occurrence, ok,
    principal, reminder, seconds, shared,
};

pub(super) async fn check(store: &Arc<dyn AutomationStore>) {
    jobs_round_trip(&**store).await;
    names_are_unique(&**store).await;
    the_number_of_jobs_is_limited(&**store).await;
    jobs_are_edited(&**store).await;
    jobs_belong_to_their_principal(&**store).await;
    due_jobs_are_found(&**store).await;
    decisions_are_stored_whole(&**store).await;
    each_occurrence_has_one_row(store).await;
    an_edited_job_is_not_decided(&**store).await;
    decisions_of_a_wrong_clock_are_taken_back(&**store).await;
    occurrences_that_a_wrong_clock_left_out_are_decided_again(&**store).await;
    a_removed_job_still_delivers(&**store).await;
    a_removed_job_takes_its_runs_along(&**store).await;
}

async fn jobs_round_trip(store: &dyn AutomationStore) {
    let new = new_job("round", "stretch ☕", Some(10));
    let job = ok(store.add_job(new.clone(), 10).await);
    assert_eq!(job.schedule, new.schedule);
    assert_eq!(job.spec, new.spec);
    assert_eq!(
        (job.catch_up, job.overlap),
        (CatchUp::All, OverlapRule::Queue)
    );
    assert_eq!(job.grace, SignedDuration::from_hours(24));
    assert!(job.enabled);
    assert_eq!(job.decided_until, new.created);
    assert_eq!(job.next_due, Some(seconds(10)));
    let owner = principal("round");
    assert_eq!(ok(store.job(&owner, "stretch ☕").await), Some(job.clone()));
    let other = add_job(store, "round", "a first one", 5).await;
    assert_eq!(ok(store.jobs(&owner).await), [other, job]);
}

async fn names_are_unique(store: &dyn AutomationStore) {
    let first = add_job(store, "names", "daily", 10).await;
    let again = store.add_job(new_job("names", "daily", Some(20)), 10).await;
    assert_eq!(again, Err(StoreError::JobExists("daily".to_owned())));
    add_job(store, "namesake", "daily", 10).await;
    // A job whose occurrences are all over gives its name up, and stays.
    let over = ok(store
        .edit_job(&principal("names"), first.id, JobEdit::default())
        .await);
    assert_eq!(over.next_due, None);
    add_job(store, "names", "daily", 20).await;
    let names: Vec<String> = ok(store.jobs(&principal("names")).await)
        .into_iter()
        .map(|job| job.name)
        .collect();
    assert_eq!(names, ["daily".to_owned(), format!("daily #{}", first.id)]);
}

async fn the_number_of_jobs_is_limited(store: &dyn AutomationStore) {
    let add = |name: &'static str, next_due| store.add_job(new_job("many", name, next_due), 2);
    ok(add("over", None).await);
    ok(add("a", Some(1)).await);
    let paused = ok(add("b", Some(1)).await);
    let pause = JobEdit {
        enabled: Some(false),
        ..JobEdit::default()
    };
    ok(store.edit_job(&principal("many"), paused.id, pause).await);
    assert_eq!(add("c", Some(1)).await, Err(StoreError::TooManyJobs(2)));
    ok(store.add_job(new_job("few", "c", Some(1)), 2).await);
}

async fn jobs_are_edited(store: &dyn AutomationStore) {
    let job = add_job(store, "edit", "job", 10).await;
    let edit = JobEdit {
        enabled: Some(false),
        spec: Some(reminder("something else")),
        decided_until: Some(seconds(7)),
        ..JobEdit::default()
    };
    let owner = principal("edit");
    let edited = ok(store.edit_job(&owner, job.id, edit).await);
    assert!(!edited.enabled && edited.version > job.version);
    assert_eq!(edited.spec, reminder("something else"));
    assert_eq!(edited.decided_until, seconds(7));
    assert_eq!(edited.schedule, job.schedule, "what is not named stays");
    assert_eq!(ok(store.job(&owner, "job").await), Some(edited));
}

/// B74
async fn jobs_belong_to_their_principal(store: &dyn AutomationStore) {
    let job = add_job(store, "alice", "private", 10).await;
    let (alice, bob) = (principal("alice"), principal("bob"));
    assert_eq!(ok(store.job(&bob, "private").await), None);
    assert_eq!(ok(store.jobs(&bob).await), []);
    let missing = || StoreError::JobNotFound(job.id.to_string());
    let edited = store.edit_job(&bob, job.id, JobEdit::default()).await;
    assert_eq!(edited, Err(missing()));
    let removed = store.remove_job(&bob, job.id, seconds(1)).await;
    assert_eq!(removed, Err(missing()));
    let mut run = background("bob", 1);
    run.job = Some(job.id);
    assert_eq!(store.submit_run(run).await, Err(missing()));
    assert_eq!(ok(store.job(&alice, "private").await), Some(job));
}

async fn due_jobs_are_found(store: &dyn AutomationStore) {
    let own = |jobs: Vec<Job>| -> Vec<String> {
        let own = jobs
            .into_iter()
            .filter(|job| job.principal.as_str() == "due");
        own.map(|job| job.name).collect()
    };
    add_job(store, "due", "late", 2_000).await;
    add_job(store, "due", "early", 1_000).await;
    ok(store.add_job(new_job("due", "over", None), 100).await);
    assert_eq!(own(ok(store.due_jobs(seconds(999), 100).await)), [""; 0]);
    assert_eq!(
        own(ok(store.due_jobs(seconds(1_000), 100).await)),
        ["early"]
    );
    let both = own(ok(store.due_jobs(seconds(2_000), 100).await));
    assert_eq!(both, ["early", "late"]);
    assert_eq!(ok(store.due_jobs(seconds(2_000), 1).await).len(), 1);
    let next = ok(store.agenda().await).next_occurrence;
    assert!(next.is_some_and(|next| next <= seconds(1_000)));
}

/// B120: what was skipped or missed has a row with a reason.
async fn decisions_are_stored_whole(store: &dyn AutomationStore) {
    let lease = acquire(store, "decides").await;
    let job = add_job(store, "decided", "job", 10).await;
    let states = [RunState::Missed, RunState::Skipped, RunState::Queued];
    let occurrences = states.into_iter().zip([10, 20, 30]);
    let occurrences = occurrences.map(|(state, due)| occurrence(due, state));
    assert_eq!(decide(store, lease, &job, occurrences.collect()).await, 3);
    let owner = principal("decided");
    let runs = ok(store.runs(RunQuery::newest(owner.clone(), 9)).await);
    let rows: Vec<_> = runs
        .iter()
        .rev()
        .map(|run| {
            (
                run.state,
                run.due,
                run.ended.is_some(),
                run.reason.is_some(),
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            (RunState::Missed, seconds(10), true, true),
            (RunState::Skipped, seconds(20), true, true),
            (RunState::Queued, seconds(30), false, false),
        ]
    );
    assert!(
        runs.iter()
            .all(|run| run.job == Some(job.id) && run.spec == job.spec)
    );
    let decided = ok(store.job(&owner, "job").await);
    let times = decided.map(|job| (job.decided_until, job.next_due));
    assert_eq!(times, Some((seconds(30), Some(seconds(40)))));
}

/// B120: of eight writers with the same occurrence, one inserts it.
async fn each_occurrence_has_one_row(store: &Arc<dyn AutomationStore>) {
    let lease = acquire(&**store, "unique").await;
    let job = add_job(&**store, "unique", "job", 10).await;
    let writers = (0..8).map(|_| {
        let (store, decision) = (
            shared(store),
            decision(&job, vec![occurrence(10, RunState::Queued)]),
        );
        tokio::spawn(async move { ok(store.decide(lease, decision).await) })
    });
    let added: usize = join_all(writers)
        .await
        .into_iter()
        .map(|added| added.ok().flatten().unwrap_or_default())
        .sum();
    assert_eq!(added, 1);
    let runs = ok(store.runs(RunQuery::newest(principal("unique"), 99)).await);
    assert_eq!(runs.len(), 1);
    let earlier = decision(&job, vec![occurrence(5, RunState::Missed)]);
    assert_eq!(ok(store.decide(lease, earlier).await), Some(1));
    let found = ok(store.job(&principal("unique"), "job").await);
    assert_eq!(
        found.map(|job| job.decided_until),
        Some(seconds(10)),
        "a decision never takes a later one back"
    );
}

async fn an_edited_job_is_not_decided(store: &dyn AutomationStore) {
    let lease = acquire(store, "outdated").await;
    let job = add_job(store, "outdated", "job", 10).await;
    let owner = principal("outdated");
    let edit = JobEdit {
        next_due: Some(after(seconds(10), 50)),
        ..JobEdit::default()
    };
    ok(store.edit_job(&owner, job.id, edit).await);
    let outdated = decision(&job, vec![occurrence(10, RunState::Queued)]);
    assert_eq!(ok(store.decide(lease, outdated.clone()).await), None);
    assert_eq!(ok(store.runs(RunQuery::newest(owner.clone(), 9)).await), []);
    ok(store.remove_job(&owner, job.id, seconds(1)).await);
    assert_eq!(ok(store.decide(lease, outdated).await), None);
}

/// B120: what ran keeps its row; what was only decided can be decided again.
async fn decisions_of_a_wrong_clock_are_taken_back(store: &dyn AutomationStore) {
    let lease = acquire(store, "rewinds").await;
    let job = add_job(store, "rewound", "job", 10).await;
    let states = [RunState::Missed, RunState::Missed, RunState::Queued];
    let occurrences = states.into_iter().zip([10, 90_020, 90_030]);
    let occurrences = occurrences.map(|(state, due)| occurrence(due, state));
    decide(store, lease, &job, occurrences.collect()).await;
    let beyond = |jobs: Vec<Job>| jobs.iter().any(|found| found.id == job.id);
    assert!(beyond(ok(store.jobs_decided_after(seconds(90_029)).await)));
    assert!(!beyond(ok(store.jobs_decided_after(seconds(90_030)).await)));
    let rewind = DecisionRewind {
        job: job.id,
        job_version: job.version,
        decided_until: seconds(15),
        next_due: Some(seconds(20)),
    };
    let outdated = DecisionRewind {
        job_version: job.version + 1,
        ..rewind.clone()
    };
    assert!(!ok(store.rewind_job(lease, outdated).await));
    assert!(ok(store.rewind_job(lease, rewind).await));
    let runs = ok(store.runs(RunQuery::newest(principal("rewound"), 9)).await);
    let left: Vec<i64> = runs.iter().map(|run| run.due.as_second()).collect();
    assert_eq!(left, [90_030]);
    let found = ok(store.job(&principal("rewound"), "job").await);
    let times = found.map(|job| (job.decided_until < seconds(10), job.next_due));
    assert_eq!(times, Some((true, Some(seconds(10)))));
}

/// B120: an occurrence that a wrong clock left out is decided again, and no try waits for that clock.
async fn occurrences_that_a_wrong_clock_left_out_are_decided_again(store: &dyn AutomationStore) {
    let lease = acquire(store, "left out").await;
    let job = add_job(store, "left out", "job", 10).await;
    let decision = OccurrenceDecision {
        at: seconds(90_000),
        ..decision(&job, vec![occurrence(10, RunState::Missed)])
    };
    ok(store.decide(lease, decision).await);
    let rewind = DecisionRewind {
        job: job.id,
        job_version: job.version,
        decided_until: seconds(15),
        next_due: Some(seconds(20)),
    };
    assert!(ok(store.rewind_job(lease, rewind).await));
    let owner = principal("left out");
    assert_eq!(ok(store.runs(RunQuery::newest(owner.clone(), 9)).await), []);
    let found = ok(store.job(&owner, "job").await);
    let times = found.map(|job| (job.decided_until < seconds(10), job.next_due));
    assert_eq!(times, Some((true, Some(seconds(10)))));
    let unsent = delivery("left out", None);
    ok(store.enqueue(lease, vec![unsent]).await);
    ok(store.shorten_waits(lease, seconds(5)).await);
    let deliveries = ok(store.deliveries(query("left out")).await);
    assert_eq!(deliveries[0].next_try, seconds(5));
}

/// B120: a message of a removed job that was not delivered yet still goes out.
async fn a_removed_job_still_delivers(store: &dyn AutomationStore) {
    let lease = acquire(store, "unsent").await;
    let job = add_job(store, "unsent", "job", 10).await;
    decide(store, lease, &job, vec![occurrence(10, RunState::Missed)]).await;
    let owner = principal("unsent");
    let runs = ok(store.runs(RunQuery::newest(owner.clone(), 9)).await);
    let message = delivery("unsent", Some(runs[0].id));
    ok(store.enqueue(lease, vec![message]).await);
    ok(store.remove_job(&owner, job.id, seconds(31)).await);
    let left = ok(store.deliveries(query("unsent")).await);
    let states: Vec<DeliveryState> = left.iter().map(|delivery| delivery.state).collect();
    assert_eq!(states, [DeliveryState::Pending]);
}

async fn a_removed_job_takes_its_runs_along(store: &dyn AutomationStore) {
    let lease = acquire(store, "remover").await;
    let job = add_job(store, "removed", "job", 10).await;
    let occurrences = vec![
        occurrence(10, RunState::Queued),
        occurrence(20, RunState::Queued),
    ];
    decide(store, lease, &job, occurrences).await;
    let running = claim_own(store, lease, 30, "removed").await;
    assert_eq!(running.len(), 1);
    let owner = principal("removed");
    ok(store.remove_job(&owner, job.id, seconds(31)).await);
    assert_eq!(ok(store.jobs(&owner).await), []);
    let left = ok(store.runs(RunQuery::newest(owner, 9)).await);
    assert_eq!(left.len(), 1, "the queued run went with its job");
    assert_eq!((left[0].id, left[0].job), (running[0].id, None));
    assert!(left[0].is_cancel_requested);
}
