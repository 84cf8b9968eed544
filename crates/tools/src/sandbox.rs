//! The sandbox for commands. Two helper processes, both re-executions of the program, set it up:
//! `outer` creates the namespaces and supervises, `inner` drops all privileges for good and
//! executes the command.
//!
//! stdin carries the [`SandboxSpec`], then the input of the command. stdout carries the output of
//! the command, both of its streams. stderr carries [`SandboxMessage`]s; when its reader is gone,
//! the helper kills the command and all of its descendants.

mod cgroup;
mod descendants;
mod error_log;
mod inner;
mod landlock;
mod loopback;
mod mounts;
mod namespaces;
mod outer;
mod readable_etc;
mod seccomp;
mod spec;
mod sys;
mod temp_dir;

use std::ffi::OsStr;
use std::process::ExitCode;

pub use readable_etc::readable_etc;
pub use spec::{
    ExceededLimit, SandboxError, SandboxLimits, SandboxMessage, SandboxMode, SandboxSpec,
};
pub use temp_dir::{new_temp_path, remove_stale_temp_dirs};

/// The first argument that turns the program into the outer helper.
pub const OUTER_ARG: &str = "__sandbox";
const INNER_ARG: &str = "__sandbox-inner";

/// Runs the helper if this process was started as one. `main` calls this before anything else.
pub fn run_if_sandbox_process() -> Option<ExitCode> {
    let first = std::env::args_os().nth(1)?;
    if first == OsStr::new(OUTER_ARG) {
        return Some(outer::run());
    }
    (first == OsStr::new(INNER_ARG)).then(inner::run)
}
