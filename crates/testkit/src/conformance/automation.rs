//! The conformance suite for automation.

mod deliveries;
mod jobs;
mod lease;
mod runs;
mod steps;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use lango_domain::automation::{
    AutomationStore, CatchUp, Job, JobAction, LeaseClaim, LeaseNumber, LeaseOutcome, NewJob,
    NewOccurrence, NewRun, OccurrenceDecision, OverlapRule, Run, RunBudget, RunClaim, RunEnd,
    RunId, RunKind, RunSpec, RunState, Schedule, ScheduleKind, SessionMode,
};
use lango_domain::event::Principal;
use lango_domain::{Label, Stores};

use super::{ok, seconds};

/// Runs the whole suite on empty stores.
///
/// # Panics
/// If the store violates the contract of [`AutomationStore`].
pub async fn check(stores: &Stores) {
    let store = &stores.automation;
    lease::check(&**store).await;
    jobs::check(store).await;
    runs::check(stores).await;
    steps::check(&**store).await;
    deliveries::check(stores).await;
    lease::check_all_scheduler_writes(&**store).await;
}

/// Acquires the lease, even if another process holds it.
async fn acquire(store: &dyn AutomationStore, owner: &str) -> LeaseNumber {
    let abandoned = ok(store.lease().await);
    let claim = LeaseClaim {
        owner: owner.to_owned(),
        at: seconds(0),
        until: seconds(1_000_000),
        abandoned,
    };
    match ok(store.acquire_lease(claim).await) {
        LeaseOutcome::Acquired(lease) => lease.number,
        LeaseOutcome::HeldBy(_) => unreachable!("an abandoned lease is free"),
    }
}

/// Returns a builder for principals, so that the parts of the suite do not meet.
fn principal(name: &str) -> Principal {
    Principal::new(name)
}

fn reminder(text: &str) -> RunSpec {
    RunSpec {
        action: JobAction::Reminder {
            text: text.to_owned(),
        },
        workspace: None,
        session_mode: SessionMode::Isolated,
        deliver_to: vec!["inbox".to_owned()],
        failure_deliver_to: Vec::new(),
        timeout: Some(SignedDuration::from_secs(60)),
        budget: RunBudget {
            tokens: Some(1_000),
            usd: Some(0.5),
        },
        allow: vec![],
        allowed_steps: Vec::new(),
        depth: 1,
        label: Label::untrusted("a page"),
    }
}

fn new_job(owner: &str, name: &str, next_due: Option<i64>) -> NewJob {
    NewJob {
        principal: principal(owner),
        name: name.to_owned(),
        schedule: Schedule {
            kind: ScheduleKind::Every,
            text: "10s".to_owned(),
            time_zone: "Europe/Berlin".to_owned(),
            anchor: seconds(0),
        },
        catch_up: CatchUp::All,
        grace: SignedDuration::from_hours(24),
        overlap: OverlapRule::Queue,
        spec: reminder("stretch"),
        created: seconds(0),
        next_due: next_due.map(seconds),
    }
}

async fn add_job(store: &dyn AutomationStore, owner: &str, name: &str, next_due: i64) -> Job {
    ok(store
        .add_job(new_job(owner, name, Some(next_due)), 100)
        .await)
}

fn occurrence(due: i64, state: RunState) -> NewOccurrence {
    NewOccurrence {
        due: seconds(due),
        state,
        reason: (state != RunState::Queued).then(|| format!("{state} by a rule")),
    }
}

fn decision(job: &Job, occurrences: Vec<NewOccurrence>) -> OccurrenceDecision {
    let last = occurrences.last().map(|occurrence| occurrence.due);
    OccurrenceDecision {
        job: job.id,
        job_version: job.version,
        decided_until: last.unwrap_or(job.decided_until),
        next_due: last.map(|last| last + SignedDuration::from_secs(10)),
        occurrences,
        replaced: Vec::new(),
        deliveries: Vec::new(),
        at: last.unwrap_or_default(),
    }
}

async fn decide(
    store: &dyn AutomationStore,
    lease: LeaseNumber,
    job: &Job,
    occurrences: Vec<NewOccurrence>,
) -> usize {
    let decided = ok(store.decide(lease, decision(job, occurrences)).await);
    decided.unwrap_or_else(|| unreachable!("the job was not edited"))
}

fn background(owner: &str, due: i64) -> NewRun {
    NewRun {
        kind: RunKind::Background,
        job: None,
        principal: principal(owner),
        name: "look something up".to_owned(),
        due: seconds(due),
        spec: reminder("look something up"),
    }
}

fn claim(at: i64, limit: usize) -> RunClaim {
    RunClaim {
        at: seconds(at),
        limit,
    }
}

/// Claims runs and returns those of one principal.
async fn claim_own(
    store: &dyn AutomationStore,
    lease: LeaseNumber,
    at: i64,
    owner: &str,
) -> Vec<Run> {
    let mut claimed = ok(store.claim_runs(lease, claim(at, 1_000)).await);
    claimed.retain(|run| run.principal.as_str() == owner);
    claimed
}

fn end(run: RunId, state: RunState, at: i64) -> RunEnd {
    RunEnd {
        run,
        state,
        reason: None,
        at: seconds(at),
        result: Some("done".to_owned()),
        error: None,
        label: Label::private("a file"),
        deliveries: Vec::new(),
    }
}

fn shared(store: &Arc<dyn AutomationStore>) -> Arc<dyn AutomationStore> {
    Arc::clone(store)
}

fn after(time: Timestamp, seconds: i64) -> Timestamp {
    time + SignedDuration::from_secs(seconds)
}
