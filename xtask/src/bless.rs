//! Golden files and generated pages, written anew from what the code does now. Read the difference before committing.

use anyhow::Result;

use crate::{step, step_with};

pub fn run() -> Result<()> {
    // The names of golden tests end so; tests that only look are left out.
    step_with(
        "cargo",
        &["test", "--quiet", "--workspace", "blessed"],
        &[("LANGO_BLESS", "1")],
    )?;
    step("git", &["status", "--short"])
}
