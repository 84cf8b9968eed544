//! Everything that must be green, in one command.

use std::process::Command;

use anyhow::Result;

use crate::{step, tidy};

pub fn run() -> Result<()> {
    install()?;
    step("cargo", &["fmt", "--all", "--check"])?;
    step("cargo", &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    step("cargo", &["test", "--quiet", "--workspace"])?;
    tidy::run()
}

/// What the tests need beyond a Rust toolchain and a shell: its formatter and its linter.
fn install() -> Result<()> {
    let is_there = |tool: &str| {
        let found = Command::new("cargo").args([tool, "--version"]).output();
        found.is_ok_and(|output| output.status.success())
    };
    for (tool, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if !is_there(tool) {
            step("rustup", &["component", "add", component])?;
        }
    }
    Ok(())
}
