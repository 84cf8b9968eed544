//! Rewrites golden files and generated pages. Read the difference before committing.

use anyhow::Result;

use crate::{step, step_with};

pub fn run() -> Result<()> {
    // Runs only tests whose names contain this word: those that write golden files.
    step_with(
        "cargo",
        &["test", "--quiet", "--workspace", "blessed"],
        &[("LANGO_BLESS", "1")],
    )?;
    step("git", &["status", "--short"])
}
