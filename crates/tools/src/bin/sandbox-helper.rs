//! The sandbox's helper by itself, for tests and measuring; the product is its own helper.

use std::process::ExitCode;

fn main() -> ExitCode {
    lango_tools::sandbox::run_if_sandbox_process().unwrap_or(ExitCode::FAILURE)
}
