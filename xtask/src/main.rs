//! The workshop: `cargo xtask test`, `tidy`, `bless`.

mod bless;
mod flows;
mod interop;
mod routing;
mod test;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

const USAGE: &str = "\
cargo xtask test     install what the tests need, then fmt, clippy, tests, tidy
cargo xtask interop  the real binary beside the A2A kits and OpenAI clients of others [WORD chooses cases]
cargo xtask tidy     layers, file sizes, forbidden names, agent files, ids of the contract
cargo xtask bless    write golden files and generated pages anew
cargo xtask train routing   learn the offline router's table from evals/routing/train
cargo xtask eval routing    measure it: [--cross] by writers left out, [--all-misses], [--provider P] a real model
cargo xtask eval flows      attacks and everyday tasks with a model that obeys all it reads: [--markdown], [--case NAME]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let command = words.first().copied().unwrap_or_default();
    let done = match words.as_slice() {
        ["test"] => test::run(),
        ["interop"] => interop::run(""),
        ["interop", word] => interop::run(word),
        ["tidy"] => tidy::run(),
        ["bless"] => bless::run(),
        ["train", "routing"] => routing::train(),
        ["eval", "routing", ..] => routing::eval(&arguments[2..]),
        ["eval", "flows", ..] => flows::eval(&arguments[2..]),
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
    command
        .args(args)
        .current_dir(root())
        .envs(variables.iter().copied());
    let status = command
        .status()
        .with_context(|| format!("cannot start {program}"))?;
    if !status.success() {
        bail!("{program} {} failed ({status})", args.join(" "));
    }
    Ok(())
}
