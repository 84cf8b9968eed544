//! Crashes at every write: no step is done twice, and none is lost.

use std::sync::Arc;
use std::time::Duration;

use lango_automation::RunOutcome;
use lango_automation::workflow::StepCall;
use lango_domain::automation::{RunId, StepDecision, StepState};
use lango_domain::{StoreError, automation::AutomationStore};
use proptest::prelude::*;
use serde_json::Value;

use super::setup::{Fixture, result};
use crate::dying_store::{DyingStore, LastCall};

const MIXED: &str = "
name: mixed
concurrency: 2
steps:
  - {id: read, tool: fs_read, with: {path: x}}
  - {id: ask, prompt: Think., input: ['{{read.result}}'], depends_on: [read]}
  - {id: write, tool: fs_write, with: {path: x}, depends_on: [read]}
  - {id: skipped, prompt: No., depends_on: [read], if: false}
  - {id: send, tool: exec_shell, with: {command: send}, depends_on: [ask, write]}
  - {id: last, prompt: Sum up., depends_on: [send]}
";
const DONE: [&str; 5] = ["read", "ask", "write", "send", "last"];

/// The death of a process: after this many writes, and with or without the last one.
type Death = (usize, LastCall);

/// Runs a workflow through processes that die, until it is over. Steps of unknown effect are answered as a
/// careful user would: run again if nothing happened, else skip.
async fn survive(fixture: &Fixture, deaths: &[Death]) -> (RunId, RunOutcome) {
    let run = fixture.submit(MIXED, Value::Null).await;
    let mut deaths = deaths.iter().copied();
    loop {
        let lease = fixture.new_process().await;
        let claimed = fixture.claim(lease).await.expect("the run is not lost");
        let (writes, last_write) = deaths.next().unwrap_or((usize::MAX, LastCall::Stored));
        let store: Arc<dyn AutomationStore> =
            DyingStore::for_steps(&fixture.store, writes, last_write);
        let context = fixture.context_on(store, lease);
        let Ok(outcome) = fixture.execute(&claimed, &context).await else {
            continue;
        };
        fixture.settle(run, lease, &outcome).await;
        if !matches!(outcome, RunOutcome::Waiting { .. }) {
            return (run, outcome);
        }
        for row in fixture.rows(run).await {
            if row.state == StepState::Unknown {
                let decision = match fixture.steps.count(&row.step) {
                    0 => StepDecision::Repeat,
                    _ => StepDecision::Skip,
                };
                assert!(fixture.answer(run, &row.step, decision).await);
            }
        }
    }
}

async fn check(deaths: &[Death]) {
    let fixture = Fixture::new();
    let (run, outcome) = survive(&fixture, deaths).await;
    assert!(
        matches!(outcome, RunOutcome::Done { .. }),
        "{deaths:?}: {outcome:?}"
    );
    for row in fixture.rows(run).await {
        let count = fixture.steps.count(&row.step);
        let has_effect = matches!(row.step.as_str(), "write" | "send");
        match row.step.as_str() {
            "skipped" => assert_eq!((row.state, count), (StepState::Skipped, 0)),
            // Turns are resumed, and effects happen once, whatever happens to the process.
            "ask" | "last" => assert_eq!((row.state, count), (StepState::Done, 1), "{deaths:?}"),
            _ if has_effect => {
                assert_eq!(count, 1, "{deaths:?}: {}", row.step);
                assert!(matches!(row.state, StepState::Done | StepState::Skipped));
            }
            _ => assert_eq!(row.state, StepState::Done),
        }
    }
}

/// B122
#[tokio::test]
async fn a_crash_at_any_write_neither_loses_nor_doubles_a_step() {
    for writes in 0..14 {
        for last_write in [LastCall::Lost, LastCall::Stored] {
            check(&[(writes, last_write)]).await;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// B122
    #[test]
    fn many_crashes_neither_lose_nor_double_a_step(
        deaths in prop::collection::vec(
            (0_usize..4, prop_oneof![Just(LastCall::Lost), Just(LastCall::Stored)]),
            0..12,
        ),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(check(&deaths));
    }
}

/// B122
#[tokio::test]
async fn without_a_crash_every_step_runs_once() {
    let fixture = Fixture::new();
    let (_, outcome) = survive(&fixture, &[]).await;
    assert_eq!(result(&outcome), "result of last");
    let mut order = fixture.steps.order();
    order.sort();
    let mut expected = DONE.map(str::to_owned);
    expected.sort();
    assert_eq!(order, expected);
}

/// Stops a process while a step runs, and returns the run.
async fn stop_during(fixture: &Fixture, text: &str, step: &str) -> RunId {
    fixture.steps.with(|world| {
        world
            .durations
            .insert(step.to_owned(), Duration::from_secs(1_000_000));
    });
    let run = fixture.submit(text, Value::Null).await;
    let lease = fixture.new_process().await;
    let claimed = fixture.claim(lease).await.unwrap();
    let context = fixture.context(lease);
    let work = fixture.execute(&claimed, &context);
    let started = async {
        while fixture.steps.count(step) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        outcome = work => panic!("{outcome:?}"),
        () = started => {}
    }
    fixture.steps.with(|world| world.durations.clear());
    run
}

/// B122
#[tokio::test]
async fn an_unknown_effect_is_repeated_only_after_someone_said_so() {
    let text = "
name: unknown
steps:
  - {id: pay, tool: payment_send, with: {amount: '5'}}
  - {id: tell, prompt: Tell., depends_on: [pay]}
";
    for (decision, count) in [(StepDecision::Repeat, 2), (StepDecision::Skip, 1)] {
        let fixture = Fixture::new();
        let run = stop_during(&fixture, text, "pay").await;
        let lease = fixture.new_process().await;
        let RunOutcome::Waiting { reason, .. } = fixture.step_on(lease).await else {
            panic!("it waits");
        };
        assert_eq!(
            reason,
            "the effect of step `pay` is unknown: approve to run it again, or deny"
        );
        assert_eq!(fixture.row(run, "pay").await.state, StepState::Unknown);
        // A restart changes nothing: it still waits.
        let lease = fixture.new_process().await;
        assert!(fixture.claim(lease).await.is_none());
        assert_eq!(fixture.steps.count("pay"), 1);
        assert!(fixture.answer(run, "pay", decision).await);
        assert_eq!(result(&fixture.step_on(lease).await), "result of tell");
        assert_eq!(fixture.steps.count("pay"), count);
        assert_eq!(
            fixture.row(run, "pay").await.is_repeated,
            decision == StepDecision::Repeat
        );
    }
}

/// B122: a call that has not started, or whose result is in the log, is no question for a user.
#[tokio::test]
async fn a_call_continues_if_its_log_tells_how_far_it_came() {
    let text = "name: known\nsteps: [{id: pay, tool: payment_send, with: {amount: '5'}}]";
    let fixture = Fixture::new();
    let run = stop_during(&fixture, text, "pay").await;
    let session = fixture.row(run, "pay").await.session.unwrap();
    fixture
        .steps
        .with(|world| world.known.push(session.clone()));
    let lease = fixture.new_process().await;
    assert_eq!(result(&fixture.step_on(lease).await), "result of pay");
    assert!(fixture.steps.execution("pay").is_resumed);
    let row = fixture.row(run, "pay").await;
    assert_eq!(
        (row.session, row.attempt, row.is_repeated),
        (Some(session), 1, false)
    );
}

/// B122
#[tokio::test]
async fn turns_are_resumed_and_reads_run_again() {
    let text = "
name: resume
steps:
  - {id: read, tool: fs_read, with: {path: x}}
  - {id: think, prompt: Think., depends_on: [read]}
";
    let fixture = Fixture::new();
    let run = stop_during(&fixture, text, "think").await;
    let session = fixture.row(run, "think").await.session;
    let lease = fixture.new_process().await;
    assert_eq!(result(&fixture.step_on(lease).await), "result of think");
    let execution = fixture.steps.execution("think");
    assert!(execution.is_resumed && matches!(execution.call, StepCall::Agent { .. }));
    let row = fixture.row(run, "think").await;
    assert_eq!(
        (row.session, row.attempt, row.is_repeated),
        (session, 1, false)
    );
    assert_eq!(fixture.steps.count("read"), 1);

    let fixture = Fixture::new();
    let run = stop_during(&fixture, text, "read").await;
    let lease = fixture.new_process().await;
    assert_eq!(result(&fixture.step_on(lease).await), "result of think");
    assert_eq!(fixture.steps.count("read"), 2);
    assert!(!fixture.row(run, "read").await.is_repeated);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_leaves_the_run_to_the_next_process() {
    let text = "name: s\nsteps: [{id: think, prompt: Think.}, {id: after, prompt: Go., depends_on: [think]}]";
    let fixture = Fixture::new();
    fixture.steps.with(|world| {
        world
            .durations
            .insert("think".to_owned(), Duration::from_secs(1_000_000));
    });
    let run = fixture.submit(text, Value::Null).await;
    let lease = fixture.new_process().await;
    let claimed = fixture.claim(lease).await.unwrap();
    let context = fixture.context(lease);
    let stop = async {
        while fixture.steps.count("think") == 0 {
            tokio::task::yield_now().await;
        }
        context.suspend.cancel();
    };
    let (outcome, ()) = futures::join!(fixture.execute(&claimed, &context), stop);
    assert_eq!(outcome, Ok(RunOutcome::Suspended));
    assert_eq!(fixture.row(run, "think").await.state, StepState::Running);
    fixture.settle(run, lease, &RunOutcome::Suspended).await;
    fixture.steps.with(|world| world.durations.clear());
    let lease = fixture.new_process().await;
    assert_eq!(result(&fixture.step_on(lease).await), "result of after");
    assert!(fixture.steps.execution("think").is_resumed);
}

/// B120
#[tokio::test]
async fn a_process_that_lost_the_lease_stores_nothing() {
    let text = "name: z\nsteps: [{id: a, tool: exec_shell, with: {command: x}}]";
    let fixture = Fixture::new();
    let run = fixture.submit(text, Value::Null).await;
    let old = fixture.new_process().await;
    let claimed = fixture.claim(old).await.unwrap();
    let new = fixture.new_process().await;
    let outcome = fixture.execute(&claimed, &fixture.context(old)).await;
    assert_eq!(outcome, Err(StoreError::LeaseLost));
    assert_eq!(fixture.rows(run).await, []);
    assert_eq!(
        fixture.steps.count("a"),
        0,
        "nothing starts before it is stored"
    );
    assert_eq!(result(&fixture.step_on(new).await), "result of a");
}
