//! The sandbox that commands run in. It is put on in a helper process, the program itself started anew: first `outer`,
//! which makes namespaces and watches, then `inner`, which gives everything away for good and starts the command.
//!
//! Over stdin comes the [`Spec`], then what the command reads; stdout carries what the command prints, both its streams;
//! stderr carries [`Word`]s, and when its reader is gone, the helper ends the command and everything below it.

mod cgroup;
mod descendants;
mod inner;
mod sys;
mod loopback;
mod mounts;
mod namespaces;
mod outer;
mod readable_etc;
mod landlock;
mod spec;
mod seccomp;
mod temporary;

use std::ffi::OsStr;
use std::process::ExitCode;

pub use readable_etc::readable_etc;
pub use spec::{SandboxError, SandboxLimits, SandboxMode, ExceededLimit, SandboxSpec, SandboxMessage};
pub use temporary::{new_path, remove_abandoned};

/// The first argument that makes the program the outer helper.
pub const OUTER: &str = "__sandbox";
const INNER: &str = "__sandbox-inner";

/// What `main` does before anything else: nothing, unless this process was started as a helper.
pub fn run_if_asked() -> Option<ExitCode> {
    let first = std::env::args_os().nth(1)?;
    if first == OsStr::new(OUTER) {
        return Some(outer::run());
    }
    (first == OsStr::new(INNER)).then(inner::run)
}
