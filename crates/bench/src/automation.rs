//! `lango-bench automation`: kills the scheduler, and measures steps of workflows and jobs at rest.

mod audit;
mod child;
mod drain;
mod effects;
mod kill;
mod plan;
mod rest;
mod steps;
mod work;

use std::path::PathBuf;

use anyhow::Result;

pub use child::AutomationChild;

/// The options of `automation`.
#[derive(clap::Args)]
pub struct AutomationBench {
    /// Number of kills.
    #[arg(long, default_value_t = 1000)]
    kills: usize,
    /// Seed of the random times and choices.
    #[arg(long, default_value_t = 19)]
    seed: u64,
    /// Number of jobs at rest.
    #[arg(long, default_value_t = 100_000)]
    jobs: usize,
    /// Run only this part.
    #[arg(long)]
    only: Option<Part>,
    /// Folder for the files of the kills, which stay there; a temporary one by default.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Python with DBOS for the comparison; by default the one that `cargo xtask dbos` installs.
    #[arg(long)]
    python: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Kill the scheduler many times, and check that nothing is missed, doubled or lost.
    Kill,
    /// Measure steps per second, compared with DBOS.
    Steps,
    /// Measure many jobs at rest.
    Rest,
}

pub fn run(options: &AutomationBench) -> Result<()> {
    let is_chosen = |part| options.only.is_none_or(|only| only == part);
    if is_chosen(Part::Steps) {
        steps::run(options.python.as_deref())?;
    }
    if is_chosen(Part::Rest) {
        rest::run(options.jobs)?;
    }
    if is_chosen(Part::Kill) {
        kill::run(options.kills, options.seed, options.folder.as_deref())?;
    }
    Ok(())
}

/// Runs one of the processes that the benchmark measures or kills.
pub fn child(child: &AutomationChild) -> Result<()> {
    child::run(child)
}
