//! Runs every check and test.

use std::process::Command;

use anyhow::Result;

use crate::{flows, interop, step, tidy};

pub fn run() -> Result<()> {
    install_prerequisites()?;
    // Tests of payments run on a real chain.
    interop::peers::install_payment_peers()?;
    step("cargo", &["fmt", "--all", "--check"])?;
    step(
        "cargo",
        &[
            "clippy",
            "--quiet",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
    )?;
    step("cargo", &["test", "--quiet", "--workspace"])?;
    interop::run("")?;
    flows::eval(&[])?;
    tidy::run()
}

/// Installs rustfmt, clippy, the runtimes of the peers and a browser if they are missing.
fn install_prerequisites() -> Result<()> {
    for (tool, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if !is_installed("cargo", &[tool, "--version"]) {
            step("rustup", &["component", "add", component])?;
        }
    }
    let wanted: [(&str, &[&str], &[&str]); 4] = [
        ("node", &["--version"], &["nodejs"]),
        ("npm", &["--version"], &["npm"]),
        (
            "python3",
            &["-m", "ensurepip", "--version"],
            &["python3", "python3-venv"],
        ),
        (
            "chromium-headless-shell",
            &["--version"],
            &["chromium-headless-shell"],
        ),
    ];
    let missing = wanted
        .iter()
        .filter(|(program, arguments, _)| !is_installed(program, arguments));
    let packages: Vec<&str> = missing
        .flat_map(|(_, _, packages)| packages.iter().copied())
        .collect();
    if packages.is_empty() {
        return Ok(());
    }
    step("apt-get", &["update", "--quiet"])?;
    step(
        "apt-get",
        &[
            &["install", "--quiet", "--yes", "--no-install-recommends"],
            &packages[..],
        ]
        .concat(),
    )
}

fn is_installed(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .output()
        .is_ok_and(|output| output.status.success())
}
