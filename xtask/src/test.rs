//! Everything that must be green, in one command.

use anyhow::Result;

use crate::{step, tidy};

pub fn run() -> Result<()> {
    step("cargo", &["fmt", "--all", "--check"])?;
    step("cargo", &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    step("cargo", &["test", "--quiet", "--workspace"])?;
    tidy::run()
}
