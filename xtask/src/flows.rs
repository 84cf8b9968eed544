//! Checks that flow labels stop attacks and allow everyday work: `cargo xtask eval flows` (B101, B102, B103).
//!
//! Each case of `evals/flows` runs with the real binary and a model that obeys everything it reads. An attack runs twice:
//! without an approver, where its effect must not happen, and with every call approved, where it must.

mod case;
mod case_runner;
mod encodings;
mod obedient_model;
mod orders;
mod report;
mod servers;
mod terminal;

use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, bail};

use crate::step;
use case::{CaseKind, FlowCase};
use case_runner::{ApprovalMode, run as run_case};
use report::{CaseOutcome, FlowReport};

/// Number of cases that run in parallel.
const PARALLEL_CASES: usize = 2;

/// `cargo xtask eval flows [--markdown] [--case NAME]`.
pub fn eval(options: &[String]) -> Result<()> {
    step("cargo", &["build", "--quiet", "--package", "lango-cli"])?;
    let cases = case::load_all()?;
    match options.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => measure(&cases, false),
        ["--markdown"] => measure(&cases, true),
        ["--case", name] => show(&cases, name),
        _ => bail!("cargo xtask eval flows [--markdown] [--case NAME]"),
    }
}

fn measure(cases: &[(CaseKind, FlowCase)], is_markdown: bool) -> Result<()> {
    let outcomes = Mutex::new(Vec::new());
    let waiting = Mutex::new(cases.iter());
    thread::scope(|scope| {
        for _ in 0..PARALLEL_CASES {
            scope.spawn(|| {
                loop {
                    let next = waiting
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .next();
                    let Some((kind, case)) = next else { return };
                    let outcome = judge(*kind, case);
                    outcomes
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(outcome);
                }
            });
        }
    });
    let report = FlowReport::from_outcomes(
        outcomes
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner),
    );
    println!(
        "{}",
        if is_markdown {
            report.markdown()
        } else {
            report.plain()
        }
    );
    report.verdict()
}

fn judge(kind: CaseKind, case: &FlowCase) -> CaseOutcome {
    let (name, category) = (case.name.clone(), case.category.clone());
    let judged = || -> Result<CaseOutcome> {
        let (name, category) = (name.clone(), category.clone());
        match kind {
            CaseKind::Attack => {
                let alone = run_case(case, ApprovalMode::NoApprover)?;
                let allowed = run_case(case, ApprovalMode::AllowAll)?;
                let (asked, harmed) = (alone.question_count() > 0, alone.effects.contains(&true));
                let (works, accepted) = (allowed.effects.contains(&true), case.accepted.clone());
                Ok(CaseOutcome::Attack {
                    name,
                    category,
                    asked,
                    harmed,
                    works,
                    accepted,
                })
            }
            CaseKind::Benign => {
                let ran = run_case(case, ApprovalMode::Terminal)?;
                let is_done = ran.effects.iter().all(|sign| *sign);
                Ok(CaseOutcome::Benign {
                    name,
                    is_done,
                    before: case.asked_before,
                    now: ran.question_count(),
                })
            }
        }
    };
    judged().unwrap_or_else(|error| CaseOutcome::Broken {
        name: name.clone(),
        reason: format!("{error:#}"),
    })
}

/// Runs one case and prints its events.
fn show(cases: &[(CaseKind, FlowCase)], name: &str) -> Result<()> {
    let (kind, case) = cases
        .iter()
        .find(|(_, case)| case.name == name)
        .with_context(|| format!("no case is called `{name}`"))?;
    let ways: &[ApprovalMode] = match kind {
        CaseKind::Attack => &[ApprovalMode::NoApprover, ApprovalMode::AllowAll],
        CaseKind::Benign => &[ApprovalMode::Terminal],
    };
    for answers in ways {
        let ran = run_case(case, *answers)?;
        println!("== questions are answered by {answers:?}");
        ran.events.iter().for_each(|event| println!("{event}"));
        println!(
            "asked {} times; signs {:?}",
            ran.question_count(),
            ran.effects
        );
    }
    Ok(())
}
