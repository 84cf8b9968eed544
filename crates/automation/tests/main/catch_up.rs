//! Occurrences that were due while no scheduler ran, and wrong clocks.

use lango_domain::automation::RunState::{Done, Missed, Skipped};
use lango_domain::automation::{CatchUp, DeliveryQuery, JobEdit, NewJob, RunState};

use crate::setup::{
    Behavior, CountingExecutor, START, WallClock, add, all_runs, history, hourly, me, memory_store,
    run_due, scheduler, states,
};

fn due(rows: &[(&str, RunState)]) -> Vec<(String, RunState)> {
    let owned = |(due, state): &(&str, RunState)| ((*due).to_owned(), *state);
    rows.iter().map(owned).collect()
}

/// B120
#[tokio::test]
async fn each_occurrence_runs_once_and_nothing_runs_twice() {
    let (store, clock) = (memory_store(), WallClock::at(START));
    let executor = CountingExecutor::new(Behavior::Done);
    let scheduler = scheduler(&store, &executor, &clock);
    add(&store, hourly("job", &clock)).await;
    assert_eq!(run_due(&scheduler).await, 0, "nothing is due");
    for _ in 0..3 {
        clock.advance(60 * 60);
        assert_eq!(run_due(&scheduler).await, 1);
        assert_eq!(run_due(&scheduler).await, 0, "it ran already");
    }
    let expected = due(&[("02 01:00", Done), ("02 02:00", Done), ("02 03:00", Done)]);
    assert_eq!(states(&store).await, expected);
    assert_eq!(executor.counts(), [1, 1, 1]);
    let runs = all_runs(&store).await;
    assert!(
        runs[0]
            .result
            .as_deref()
            .is_some_and(|text| text.starts_with("result"))
    );
}

/// B120: what was missed while no one ran the scheduler is visible, with a reason.
#[tokio::test]
async fn missed_occurrences_are_caught_up_as_configured() {
    for (catch_up, expected) in [
        (
            CatchUp::Once,
            due(&[
                ("02 01:00", Missed),
                ("02 02:00", Missed),
                ("02 03:00", Done),
            ]),
        ),
        (
            CatchUp::Skip,
            due(&[
                ("02 01:00", Skipped),
                ("02 02:00", Skipped),
                ("02 03:00", Skipped),
            ]),
        ),
        (
            CatchUp::All,
            due(&[("02 01:00", Done), ("02 02:00", Done), ("02 03:00", Done)]),
        ),
    ] {
        let (store, clock) = (memory_store(), WallClock::at(START));
        let executor = CountingExecutor::new(Behavior::Done);
        let scheduler = scheduler(&store, &executor, &clock);
        let job = NewJob {
            catch_up,
            ..hourly("job", &clock)
        };
        add(&store, job).await;
        clock.set("2026-03-02T03:30:00Z");
        run_due(&scheduler).await;
        assert_eq!(states(&store).await, expected, "{catch_up:?}");
        let rows = history(&store).await;
        let has_reason = |(_, state, reason): &(String, RunState, String)| {
            *state == Done || reason.contains("no scheduler ran")
        };
        assert!(rows.iter().all(has_reason), "{rows:?}");
        clock.set("2026-03-02T04:00:30Z");
        run_due(&scheduler).await;
        assert_eq!(
            states(&store).await.last().unwrap().1,
            Done,
            "the next is on time"
        );
    }
}

/// B120: what is too late to catch up is told to the user.
#[tokio::test]
async fn occurrences_beyond_the_grace_period_are_missed_with_a_notice() {
    let (store, clock) = (memory_store(), WallClock::at(START));
    let executor = CountingExecutor::new(Behavior::Done);
    let scheduler = scheduler(&store, &executor, &clock);
    let mut job = hourly("water the plants", &clock);
    job.schedule.text = "0 9 2 3 *".to_owned();
    job.next_due = Some("2026-03-02T08:00:00Z".parse().unwrap());
    add(&store, job).await;
    clock.set("2026-03-03T08:00:01Z");
    assert_eq!(run_due(&scheduler).await, 0);
    assert_eq!(states(&store).await, due(&[("02 08:00", Missed)]));
    let query = DeliveryQuery {
        principal: me(),
        run: None,
        state: None,
        limit: 9,
    };
    let sent = store.deliveries(query).await.unwrap();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].target, "inbox");
    assert!(sent[0].message.title.contains("Missed"));
    assert!(sent[0].message.text.contains("water the plants"));
}

/// A year of minutes is a few rows, and one run.
#[tokio::test]
async fn a_long_absence_is_summarized() {
    let (store, clock) = (memory_store(), WallClock::at(START));
    let executor = CountingExecutor::new(Behavior::Done);
    let scheduler = scheduler(&store, &executor, &clock);
    let mut job = hourly("often", &clock);
    job.schedule.text = "* * * * *".to_owned();
    add(&store, job).await;
    clock.set("2026-04-01T00:30:30Z");
    assert_eq!(run_due(&scheduler).await, 1);
    let rows = history(&store).await;
    assert!(rows.len() < 300, "{} rows", rows.len());
    assert!(rows[0].2.contains("occurrences through"), "{}", rows[0].2);
    assert_eq!(executor.counts(), [1]);
    assert_eq!(rows.last().unwrap().1, Done);
}

/// B120: a paused job misses nothing.
#[tokio::test]
async fn a_paused_job_does_not_run() {
    let (store, clock) = (memory_store(), WallClock::at(START));
    let executor = CountingExecutor::new(Behavior::Done);
    let scheduler = scheduler(&store, &executor, &clock);
    let job = add(&store, hourly("job", &clock)).await;
    let pause = JobEdit {
        enabled: Some(false),
        ..JobEdit::default()
    };
    store.edit_job(&me(), job.id, pause).await.unwrap();
    clock.advance(10 * 60 * 60);
    assert_eq!(run_due(&scheduler).await, 0);
    assert_eq!(states(&store).await, []);
}

/// B120: a clock that was wrong for a while neither repeats nor loses occurrences.
#[tokio::test]
async fn a_clock_that_jumps_forward_and_back_loses_nothing() {
    let (store, clock) = (memory_store(), WallClock::at(START));
    let executor = CountingExecutor::new(Behavior::Done);
    let scheduler = scheduler(&store, &executor, &clock);
    add(&store, hourly("job", &clock)).await;
    clock.set("2026-03-02T01:00:10Z");
    assert_eq!(run_due(&scheduler).await, 1);
    // Five hours ahead: the last occurrence runs, four are missed.
    clock.set("2026-03-02T06:00:10Z");
    assert_eq!(run_due(&scheduler).await, 1);
    // Back again: what was only decided is decided again, and what ran does not run twice.
    clock.set("2026-03-02T01:10:00Z");
    assert_eq!(run_due(&scheduler).await, 0);
    for hour in 2..8 {
        clock.set(&format!("2026-03-02T0{hour}:00:10Z"));
        let expected = usize::from(hour != 6);
        assert_eq!(run_due(&scheduler).await, expected, "{hour}:00");
    }
    assert!(states(&store).await.iter().all(|(_, state)| *state == Done));
    assert_eq!(executor.counts(), [1; 7]);
}

/// B120: small steps back of the clock change nothing.
#[tokio::test]
async fn a_clock_that_is_corrected_repeats_nothing() {
    let (store, clock) = (memory_store(), WallClock::at(START));
    let executor = CountingExecutor::new(Behavior::Done);
    let scheduler = scheduler(&store, &executor, &clock);
    add(&store, hourly("job", &clock)).await;
    clock.set("2026-03-02T01:00:05Z");
    assert_eq!(run_due(&scheduler).await, 1);
    clock.set("2026-03-02T00:59:50Z");
    assert_eq!(run_due(&scheduler).await, 0);
    clock.set("2026-03-02T01:00:05Z");
    assert_eq!(run_due(&scheduler).await, 0);
    assert_eq!(executor.counts(), [1]);
}
