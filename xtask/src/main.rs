//! The workshop: `cargo xtask test`, `tidy`, `bless`.

mod bless;
mod test;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

const USAGE: &str = "\
cargo xtask test     install what the tests need, then fmt, clippy, tests, tidy
cargo xtask tidy     layers, file sizes, forbidden names, agent files, ids of the contract
cargo xtask bless    write golden files and generated pages anew";

fn main() -> ExitCode {
    let command = std::env::args().nth(1).unwrap_or_default();
    let done = match command.as_str() {
        "test" => test::run(),
        "tidy" => tidy::run(),
        "bless" => bless::run(),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {command}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs one command at the root, showing what it is.
pub(crate) fn step(program: &str, args: &[&str]) -> Result<()> {
    step_with(program, args, &[])
}

pub(crate) fn step_with(program: &str, args: &[&str], variables: &[(&str, &str)]) -> Result<()> {
    eprintln!("== {program} {}", args.join(" "));
    let mut command = Command::new(program);
    command.args(args).current_dir(root()).envs(variables.iter().copied());
    let status = command.status().with_context(|| format!("cannot start {program}"))?;
    if !status.success() {
        bail!("{program} {} failed ({status})", args.join(" "));
    }
    Ok(())
}
