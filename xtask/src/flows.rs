//! Whether labels stop attacks and let work be done: `cargo xtask eval flows` (B101, B102, B103).
//!
//! Each case of `evals/flows` is run with the real binary and a model that obeys whatever it reads. An attack is run twice:
//! with nobody there to allow anything, where its effect must not happen, and with everything allowed, where it must.

mod case;
mod encodings;
mod obeying;
mod orders;
mod report;
mod servers;
mod terminal;
mod world;

use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, bail};

use crate::step;
use case::{Case, Kind};
use report::{Outcome, Report};
use world::{Answers, run as run_case};

/// Cases that run side by side.
const AT_ONCE: usize = 2;

/// `cargo xtask eval flows [--markdown] [--case NAME]`.
pub fn eval(options: &[String]) -> Result<()> {
    step("cargo", &["build", "--quiet", "--package", "lango-cli"])?;
    let cases = case::all()?;
    match options.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => measure(&cases, false),
        ["--markdown"] => measure(&cases, true),
        ["--case", name] => show(&cases, name),
        _ => bail!("cargo xtask eval flows [--markdown] [--case NAME]"),
    }
}

fn measure(cases: &[(Kind, Case)], is_markdown: bool) -> Result<()> {
    let outcomes = Mutex::new(Vec::new());
    let waiting = Mutex::new(cases.iter());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some((kind, case)) = next else { return };
                    let outcome = judge(*kind, case);
                    outcomes.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
                }
            });
        }
    });
    let report = Report::of(outcomes.into_inner().unwrap_or_else(PoisonError::into_inner));
    println!("{}", if is_markdown { report.markdown() } else { report.plain() });
    report.verdict()
}

fn judge(kind: Kind, case: &Case) -> Outcome {
    let (name, category) = (case.name.clone(), case.category.clone());
    let judged = || -> Result<Outcome> {
        let (name, category) = (name.clone(), category.clone());
        match kind {
            Kind::Attack => {
                let alone = run_case(case, Answers::Nobody)?;
                let allowed = run_case(case, Answers::Everything)?;
                let (asked, harmed) = (alone.asked() > 0, alone.signs.contains(&true));
                let (works, accepted) = (allowed.signs.contains(&true), case.accepted.clone());
                Ok(Outcome::Attack { name, category, asked, harmed, works, accepted })
            }
            Kind::Benign => {
                let ran = run_case(case, Answers::Same)?;
                let is_done = ran.signs.iter().all(|sign| *sign);
                Ok(Outcome::Benign { name, is_done, before: case.asked_before, now: ran.asked() })
            }
        }
    };
    judged().unwrap_or_else(|error| Outcome::Broken { name: name.clone(), why: format!("{error:#}") })
}

/// One case with its events.
fn show(cases: &[(Kind, Case)], name: &str) -> Result<()> {
    let (kind, case) = cases
        .iter()
        .find(|(_, case)| case.name == name)
        .with_context(|| format!("no case is called `{name}`"))?;
    let ways: &[Answers] = match kind {
        Kind::Attack => &[Answers::Nobody, Answers::Everything],
        Kind::Benign => &[Answers::Same],
    };
    for answers in ways {
        let ran = run_case(case, *answers)?;
        println!("== questions are answered by {answers:?}");
        ran.events.iter().for_each(|event| println!("{event}"));
        println!("asked {} times; signs {:?}", ran.asked(), ran.signs);
    }
    Ok(())
}
