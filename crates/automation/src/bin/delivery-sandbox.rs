//! The sandbox helper as a separate binary, for the tests of deliveries to commands. `lango` itself
//! re-executes its own binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    lango_tools::sandbox::run_if_sandbox_process().unwrap_or(ExitCode::FAILURE)
}
