//! Development tasks: `cargo xtask test`, `tidy`, `bless` and more.

mod bless;
mod browser;
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
cargo xtask interop  test the binary against official A2A kits and OpenAI clients [WORD selects cases]
cargo xtask dbos     install DBOS, with which `lango-bench automation` compares
cargo xtask browser-peers   install the MCP servers with which `lango-bench browser` compares
cargo xtask tidy     check layers, features, file sizes, names, wording, agent files, rule ids
cargo xtask bless    rewrite golden files and generated pages
cargo xtask peers           install the chain and the servers that the tests of payments need
cargo xtask train routing   train the offline router's weights from evals/routing/train
cargo xtask eval routing    evaluate them: [--cross] cross-validate by writer, [--all-misses], [--provider P] use a real model
cargo xtask eval flows      run attacks and everyday tasks with a model that obeys everything: [--markdown], [--case NAME]
cargo xtask eval browser    run MiniWoB++ with scripted policies: [WORD selects tasks], [--seeds N], [--json], [--quick]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let command = words.first().copied().unwrap_or_default();
    let done = match words.as_slice() {
        ["test"] => test::run(),
        ["interop"] => interop::run(""),
        ["interop", word] => interop::run(word),
        ["dbos"] => interop::install_dbos(),
        ["browser-peers"] => interop::peers::install_browser_peers(),
        ["peers"] => interop::peers::install_payment_peers(),
        ["tidy"] => tidy::run(),
        ["bless"] => bless::run(),
        ["train", "routing"] => routing::train(),
        ["eval", "routing", ..] => routing::eval(&arguments[2..]),
        ["eval", "browser", ..] => browser::eval(&arguments[2..]),
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

/// Returns the root folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Prints a command and runs it in the root folder.
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
