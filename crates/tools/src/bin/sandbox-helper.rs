//! The sandbox helper as a separate binary, for tests and benchmarks. `lango` itself re-executes
//! its own binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    lango_tools::sandbox::run_if_sandbox_process().unwrap_or(ExitCode::FAILURE)
}
