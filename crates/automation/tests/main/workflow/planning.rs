//! Properties of the planner, on random workflows with random outcomes.

use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;
use lango_automation::workflow::{
    Plan, PlanInput, RetryPolicy, RunEnding, StepMove, StepRows, Workflow, ending, parse_workflow,
    plan,
};
use lango_domain::automation::{RunId, RunStep, StepDecision, StepState};
use proptest::prelude::*;
use serde_json::Map;

/// One random step: bits of its dependencies, and its options.
#[derive(Clone, Debug)]
struct RandomStep {
    dependencies: u32,
    has_approval: bool,
    may_fail: bool,
    condition: Option<bool>,
}

fn random_steps() -> impl Strategy<Value = Vec<RandomStep>> {
    let step = (
        any::<u32>(),
        any::<bool>(),
        any::<bool>(),
        any::<Option<bool>>(),
    )
        .prop_map(
            |(dependencies, has_approval, may_fail, condition)| RandomStep {
                dependencies,
                has_approval,
                may_fail,
                condition,
            },
        );
    prop::collection::vec(step, 1..12)
}

fn build(steps: &[RandomStep], concurrency: usize) -> Workflow {
    let mut text = format!("name: random\nconcurrency: {concurrency}\nsteps:\n");
    for (at, step) in steps.iter().enumerate() {
        let dependencies: Vec<String> = (0..at)
            .filter(|other| step.dependencies >> other & 1 == 1)
            .map(|other| format!("s{other}"))
            .collect();
        let _ = writeln!(
            text,
            "  - id: s{at}\n    prompt: Go.\n    depends_on: [{}]",
            dependencies.join(", ")
        );
        let _ = writeln!(text, "    approval: {}", step.has_approval);
        let on_failure = if step.may_fail { "continue" } else { "stop" };
        let _ = writeln!(text, "    on_failure: {on_failure}");
        if let Some(condition) = step.condition {
            let _ = writeln!(text, "    if: {condition}");
        }
    }
    parse_workflow("random", &text, None).unwrap()
}

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn plan_at(workflow: &Workflow, rows: &StepRows, now: Timestamp) -> Plan {
    plan(PlanInput {
        workflow,
        params: &Map::new(),
        rows,
        now,
        approval_deadline: Duration::from_secs(60),
    })
}

fn is_over(state: StepState) -> bool {
    matches!(
        state,
        StepState::Done | StepState::Failed | StepState::Skipped
    )
}

fn apply(workflow: &Workflow, rows: &mut StepRows, plan: &Plan) {
    for (id, step_move) in &plan.moves {
        let step = workflow.step(id).unwrap();
        if matches!(step_move, StepMove::Start { .. }) {
            let is_ready = step
                .depends_on
                .iter()
                .all(|before| is_over(rows[before].state));
            assert!(is_ready, "{id} starts before its dependencies are over");
        }
        let row = rows.get_mut(id).unwrap();
        match step_move {
            StepMove::Start { .. } => row.state = StepState::Running,
            StepMove::Skip { .. } => row.state = StepState::Skipped,
            StepMove::Fail { .. } => row.state = StepState::Failed,
            StepMove::AskApproval => {
                assert!(row.decision.is_none(), "{id} is asked twice");
                row.state = StepState::Waiting;
                row.started = Some(now());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// B122
    #[test]
    fn every_workflow_ends(
        steps in random_steps(),
        concurrency in 1_usize..4,
        outcomes in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..4), 100),
    ) {
        let workflow = build(&steps, concurrency);
        let run = RunId::new(1);
        let mut rows: StepRows = workflow.steps.iter()
            .map(|step| (step.id.clone(), RunStep::pending(run, &step.id)))
            .collect();
        let mut outcomes = outcomes.into_iter();
        for _ in 0..100 {
            let next = plan_at(&workflow, &rows, now());
            if next.is_over {
                break;
            }
            apply(&workflow, &mut rows, &next);
            let running = rows.values().filter(|row| row.state == StepState::Running).count();
            prop_assert!(running <= concurrency);
            if !next.moves.is_empty() {
                continue;
            }
            // Something ends, or a user answers.
            let mut open: Vec<&mut RunStep> = rows.values_mut()
                .filter(|row| matches!(row.state, StepState::Running | StepState::Waiting | StepState::Unknown))
                .collect();
            prop_assert!(!open.is_empty(), "nothing can happen, and the run is not over");
            open.sort_by(|a, b| a.step.cmp(&b.step));
            let Some((index, outcome)) = outcomes.next() else { break };
            let at = index.index(open.len());
            let row = &mut *open[at];
            match (row.state, outcome) {
                (StepState::Running, 0) => row.state = StepState::Failed,
                (StepState::Running, 1) => row.state = StepState::Unknown,
                (StepState::Running, _) => row.state = StepState::Done,
                (_, 0) => row.decision = Some(StepDecision::Deny),
                (_, 1) => row.decision = Some(StepDecision::Skip),
                (_, _) => row.decision = Some(StepDecision::Approve),
            }
            if row.state != StepState::Waiting && row.state != StepState::Unknown {
                row.decision = row.decision.filter(|_| row.state == StepState::Skipped);
            }
        }
        let last = plan_at(&workflow, &rows, now());
        if last.is_over {
            let has_stopped = workflow.steps.iter().zip(&steps).any(|(step, random)| {
                !random.may_fail && rows[&step.id].state == StepState::Failed
            });
            let is_failure = matches!(ending(&workflow, &rows), RunEnding::Failed { .. });
            prop_assert_eq!(is_failure, has_stopped);
        }
    }
}

#[test]
fn waits_between_attempts_grow_and_are_limited() {
    let policy = RetryPolicy {
        attempts: 20,
        backoff: Duration::from_secs(10),
        factor: 10.0,
    };
    let seconds: Vec<u64> = (1..=5)
        .map(|attempt| policy.wait_after(attempt).unwrap().as_secs())
        .collect();
    assert_eq!(seconds, [10, 100, 1_000, 10_000, 86_400]);
    assert_eq!(policy.wait_after(20), None);
    assert_eq!(RetryPolicy::default().wait_after(1), None);
}

#[test]
fn an_open_question_wakes_the_run_at_its_deadline() {
    let workflow = parse_workflow(
        "x",
        "name: x\nsteps: [{id: a, prompt: Go., approval: true}]",
        None,
    )
    .unwrap();
    let mut rows: StepRows = [("a".to_owned(), RunStep::pending(RunId::new(1), "a"))].into();
    let first = plan_at(&workflow, &rows, now());
    assert_eq!(first.moves, [("a".to_owned(), StepMove::AskApproval)]);
    apply(&workflow, &mut rows, &first);
    let waiting = plan_at(&workflow, &rows, now());
    assert_eq!(waiting.wake_at.unwrap().duration_since(now()).as_secs(), 60);
    assert_eq!(waiting.questions, ["step `a` waits for approval"]);
    let late = plan_at(&workflow, &rows, waiting.wake_at.unwrap());
    assert!(matches!(late.moves[0].1, StepMove::Fail { .. }));
}
