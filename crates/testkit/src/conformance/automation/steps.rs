//! Steps of workflows.

use lango_domain::Label;
use lango_domain::automation::{
    AutomationStore, LeaseNumber, Recovery, RunId, RunKind, RunProgress, RunState, RunStep,
    StepDecision, StepState,
};
use lango_domain::event::SessionId;

use super::deliveries::{delivery, query};
use super::{acquire, background, claim_own, end, ok, principal, seconds};

pub(super) async fn check(store: &dyn AutomationStore) {
    steps_keep_their_results(store).await;
    an_answer_continues_the_run(store).await;
    an_early_answer_is_not_lost(store).await;
    a_question_is_answered_once(store).await;
    a_run_is_retried_from_a_step(store).await;
    a_run_that_gets_on_keeps_its_attempts(store).await;
    a_run_that_is_over_has_no_running_step(store).await;
    steps_belong_to_their_principal(store).await;
}

/// Starts a workflow.
async fn start(store: &dyn AutomationStore, owner: &str) -> (LeaseNumber, RunId) {
    let lease = acquire(store, owner).await;
    let mut new = background(owner, 1);
    new.kind = RunKind::Workflow;
    let run = ok(store.submit_run(new).await).id;
    claim_own(store, lease, 1, owner).await;
    (lease, run)
}

fn step(run: RunId, name: &str, state: StepState) -> RunStep {
    RunStep {
        state,
        ..RunStep::pending(run, name)
    }
}

/// B122
async fn steps_keep_their_results(store: &dyn AutomationStore) {
    let (lease, run) = start(store, "steps").await;
    let done = RunStep {
        attempt: 2,
        reason: Some("why".to_owned()),
        started: Some(seconds(2)),
        ended: Some(seconds(3)),
        session: Some(SessionId::new("of the step")),
        result: Some("안녕".to_owned()),
        error: Some("at first".to_owned()),
        label: Label::untrusted("a page"),
        is_repeated: true,
        ..step(run, "z", StepState::Done)
    };
    let last = step(run, "a", StepState::Pending);
    ok(store
        .record_steps(lease, vec![step(run, "z", StepState::Running)], vec![])
        .await);
    ok(store.record_steps(lease, vec![last.clone()], vec![]).await);
    let sent = vec![delivery("steps", Some(run))];
    ok(store.record_steps(lease, vec![done.clone()], sent).await);
    let owner = principal("steps");
    assert_eq!(ok(store.steps(&owner, run).await), [done, last]);
    assert_eq!(ok(store.deliveries(query("steps")).await).len(), 1);
    let session = SessionId::new("of the step");
    let working = ok(store.run_of_session(&owner, &session).await);
    assert_eq!(working.map(|found| found.id), Some(run));
}

async fn wait(store: &dyn AutomationStore, lease: LeaseNumber, run: RunId) {
    let progress = RunProgress {
        run,
        state: RunState::Waiting,
        reason: Some("for an answer".to_owned()),
        session: None,
        resume_at: Some(seconds(1_000)),
        active: None,
    };
    ok(store.record_progress(lease, progress).await);
}

async fn an_answer_continues_the_run(store: &dyn AutomationStore) {
    let (lease, run) = start(store, "answers").await;
    let owner = principal("answers");
    let waiting = step(run, "publish", StepState::Waiting);
    ok(store
        .record_steps(lease, vec![waiting.clone()], vec![])
        .await);
    wait(store, lease, run).await;
    assert_eq!(claim_own(store, lease, 2, "answers").await, []);
    let answer = async |step| {
        let answered = store.answer_step(&owner, run, step, StepDecision::Approve);
        ok(answered.await)
    };
    assert!(!answer("another").await);
    assert!(answer("publish").await);
    assert_eq!(claim_own(store, lease, 2, "answers").await.len(), 1);
    ok(store
        .record_steps(lease, vec![waiting.clone()], vec![])
        .await);
    let decision = async || ok(store.steps(&owner, run).await).remove(0).decision;
    assert_eq!(
        decision().await,
        Some(StepDecision::Approve),
        "the executor does not overwrite it"
    );
    ok(store
        .record_steps(
            lease,
            vec![step(run, "publish", StepState::Running)],
            vec![],
        )
        .await);
    assert!(!answer("publish").await, "it no longer waits");
    ok(store.record_steps(lease, vec![waiting], vec![]).await);
    assert_eq!(decision().await, None, "it waits for another answer");
    ok(store.end_run(lease, end(run, RunState::Failed, 3)).await);
    assert!(!answer("publish").await, "the run is over");
}

/// B121: the question of a turn takes one answer, which does not continue a run that waits for something
/// else. It is over with its run.
async fn a_question_is_answered_once(store: &dyn AutomationStore) {
    let (lease, run) = start(store, "questions").await;
    let owner = principal("questions");
    let ask = |name: &str| RunStep {
        question: Some("exec_shell ls".to_owned()),
        deadline: Some(seconds(60)),
        ..step(run, name, StepState::Waiting)
    };
    let rows = vec![ask("approval:1"), ask("approval:2")];
    ok(store.record_steps(lease, rows.clone(), vec![]).await);
    assert_eq!(ok(store.steps(&owner, run).await), rows);
    let answer = async |decision| {
        let answered = store.answer_step(&owner, run, "approval:1", decision);
        ok(answered.await)
    };
    assert!(answer(StepDecision::Approve).await);
    assert!(!answer(StepDecision::Deny).await, "it is answered");
    wait(store, lease, run).await;
    assert_eq!(claim_own(store, lease, 2, "questions").await, []);
    ok(store.end_run(lease, end(run, RunState::Failed, 3)).await);
    let states: Vec<_> = ok(store.steps(&owner, run).await)
        .iter()
        .map(|row| row.state)
        .collect();
    assert_eq!(states, [StepState::Cancelled, StepState::Cancelled]);
}

/// An answer between the last look at the steps and the end of the attempt continues the run.
async fn an_early_answer_is_not_lost(store: &dyn AutomationStore) {
    let (lease, run) = start(store, "early").await;
    ok(store
        .record_steps(lease, vec![step(run, "pay", StepState::Unknown)], vec![])
        .await);
    let owner = principal("early");
    ok(store
        .answer_step(&owner, run, "pay", StepDecision::Skip)
        .await);
    wait(store, lease, run).await;
    assert_eq!(claim_own(store, lease, 2, "early").await.len(), 1);
}

async fn a_run_is_retried_from_a_step(store: &dyn AutomationStore) {
    let (lease, run) = start(store, "retry").await;
    let owner = principal("retry");
    let done = RunStep {
        result: Some("kept".to_owned()),
        ..step(run, "first", StepState::Done)
    };
    ok(store.record_steps(lease, vec![done.clone()], vec![]).await);
    let failed = RunStep {
        error: Some("no".to_owned()),
        attempt: 3,
        ..step(run, "second", StepState::Failed)
    };
    ok(store.record_steps(lease, vec![failed], vec![]).await);
    let changed = vec![
        ("second".to_owned(), StepState::Pending),
        ("third".to_owned(), StepState::Skipped),
    ];
    assert!(!ok(store.requeue_run(&owner, run, changed.clone()).await));
    ok(store.end_run(lease, end(run, RunState::Failed, 3)).await);
    assert!(ok(store.requeue_run(&owner, run, changed).await));
    let steps = ok(store.steps(&owner, run).await);
    assert_eq!(steps[0], done);
    let states: Vec<_> = steps.iter().map(|step| (step.state, &step.error)).collect();
    assert_eq!(
        states[1..],
        [(StepState::Pending, &None), (StepState::Skipped, &None)]
    );
    // A step that ran before counts its attempts again and says that it is repeated.
    assert_eq!((steps[1].attempt, steps[1].is_repeated), (0, true));
    assert_eq!(steps[2].decision, Some(StepDecision::Skip));
    assert!(!steps[2].is_repeated);
    let again = claim_own(store, lease, 9, "retry").await.remove(0);
    assert_eq!((again.id, again.ended, again.result), (run, None, None));
}

/// Only a run that ends its process without getting on fails in the end.
async fn a_run_that_gets_on_keeps_its_attempts(store: &dyn AutomationStore) {
    let (_, run) = start(store, "gets on").await;
    let interrupt = async || {
        let lease = acquire(store, "gets on").await;
        let recovery = Recovery {
            at: seconds(2),
            max_attempts: 99,
        };
        ok(store.recover_runs(lease, recovery).await);
        (
            lease,
            claim_own(store, lease, 2, "gets on").await[0].attempt,
        )
    };
    interrupt().await;
    let (lease, attempt) = interrupt().await;
    assert_eq!(attempt, 3);
    let running = vec![step(run, "a", StepState::Running)];
    ok(store.record_steps(lease, running, vec![]).await);
    assert_eq!(interrupt().await.1, 4, "a step that starts is no progress");
    let (lease, _) = interrupt().await;
    let done = vec![step(run, "a", StepState::Done)];
    ok(store.record_steps(lease, done, vec![]).await);
    assert_eq!(interrupt().await.1, 2);
}

/// B122
async fn a_run_that_is_over_has_no_running_step(store: &dyn AutomationStore) {
    let (lease, run) = start(store, "over").await;
    let states = [
        StepState::Done,
        StepState::Running,
        StepState::Waiting,
        StepState::Pending,
    ];
    let names = ["a", "b", "c", "d"].into_iter().zip(states);
    let steps = names.map(|(name, state)| step(run, name, state)).collect();
    ok(store.record_steps(lease, steps, vec![]).await);
    ok(store.end_run(lease, end(run, RunState::Failed, 3)).await);
    let left = ok(store.steps(&principal("over"), run).await);
    let left: Vec<StepState> = left.iter().map(|step| step.state).collect();
    let expected = [
        StepState::Done,
        StepState::Unknown,
        StepState::Cancelled,
        StepState::Cancelled,
    ];
    assert_eq!(left, expected);
}

/// B74
async fn steps_belong_to_their_principal(store: &dyn AutomationStore) {
    let (lease, run) = start(store, "carol").await;
    ok(store
        .record_steps(lease, vec![step(run, "a", StepState::Waiting)], vec![])
        .await);
    let dave = principal("dave");
    assert_eq!(ok(store.steps(&dave, run).await), []);
    assert!(!ok(store
        .answer_step(&dave, run, "a", StepDecision::Approve)
        .await));
    assert_eq!(
        ok(store.steps(&principal("carol"), run).await)[0].decision,
        None
    );
}
