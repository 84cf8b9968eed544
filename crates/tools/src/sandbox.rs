//! The sandbox that commands run in. It is put on in a helper process, the program itself started anew: first `outer`,
//! which makes namespaces and watches, then `inner`, which gives everything away for good and starts the command.
//!
//! Over stdin comes the [`Spec`], then what the command reads; stdout carries what the command prints, both its streams;
//! stderr carries [`Word`]s, and when its reader is gone, the helper ends the command and everything below it.

mod cgroup;
mod descendants;
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

/// The first argument that makes the program the outer helper.
pub const OUTER_ARG: &str = "__sandbox";
const INNER_ARG: &str = "__sandbox-inner";

/// What `main` does before anything else: nothing, unless this process was started as a helper.
pub fn run_if_sandbox_process() -> Option<ExitCode> {
    let first = std::env::args_os().nth(1)?;
    if first == OsStr::new(OUTER_ARG) {
        return Some(outer::run());
    }
    (first == OsStr::new(INNER_ARG)).then(inner::run)
}
