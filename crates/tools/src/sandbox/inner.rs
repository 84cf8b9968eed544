//! The inner helper: drops all privileges, starts the command, and exits like the command.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::process::{
    DumpableBehavior, Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getpid,
    set_child_subreaper, set_dumpable_behavior, set_parent_process_death_signal, setrlimit, wait,
};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, UnshareFlags,
    clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_capabilities_secure_bits, set_no_new_privs,
};

use super::error_log::ErrorLog;
use super::outer::{PREPARED_VARIABLE, PreparedSandbox, SPEC_VARIABLE};
use super::spec::{SandboxError, SandboxLimits, SandboxMessage, SandboxMode, SandboxSpec};
use super::{cgroup, landlock, loopback, mounts, seccomp, sys};

/// Exit code of a helper that could not start the command. It has reported the reason before.
const EXIT_NOT_STARTED: u8 = 254;
/// Time to copy the rest of the standard error; a process that is left may hold it open.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_millis(200);

/// The resources that the command does not share with the system.
#[derive(Clone, Copy)]
pub struct Isolation {
    pub network: bool,
    /// Shared memory and queues between processes.
    pub ipc: bool,
    /// True if a control group limits the total memory.
    pub memory: bool,
    pub mounts: bool,
}

pub fn run() -> ExitCode {
    match confine_and_start() {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
        Err(error) => {
            SandboxMessage::Failed(error).send();
            ExitCode::from(EXIT_NOT_STARTED)
        }
    }
}

fn confine_and_start() -> Result<i32, SandboxError> {
    let other = |error: &dyn std::fmt::Display| SandboxError::Other(error.to_string());
    // This process is killed when the outer helper ends.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| other(&error))?;
    let spec = std::env::var(SPEC_VARIABLE).map_err(|error| other(&error))?;
    let spec: SandboxSpec = serde_json::from_str(&spec).map_err(|error| other(&error))?;
    let prepared = std::env::var(PREPARED_VARIABLE).unwrap_or_default();
    let prepared: PreparedSandbox =
        serde_json::from_str(&prepared).map_err(|error| other(&error))?;
    // Opened before the confinement, because the command itself cannot access the file.
    let error_log = spec.error_log.as_deref().map(ErrorLog::open).transpose();
    let error_log = error_log.map_err(|error| other(&error))?;
    let mut confined = prepared.namespaces;
    if !prepared.groups.is_empty() && cgroup::enter(&prepared.groups) {
        confined.push("control group".to_owned());
    }
    let has = |name: &str| confined.iter().any(|mechanism| mechanism == name);
    let own_user = has("user namespace");
    // Orphans become children of this process, which reaps them; after its end they go to the outer
    // helper.
    let _ = set_child_subreaper(Some(getpid()));
    let isolation = Isolation {
        network: has("network namespace"),
        ipc: has("ipc namespace"),
        memory: has("control group"),
        // Not done by the outer helper, which needs its view of all processes.
        mounts: own_user && sys::unshare(UnshareFlags::NEWNS).is_ok() && mounts::set_up(&spec),
    };
    if isolation.mounts {
        confined.push("mount namespace".to_owned());
    }
    if isolation.network {
        let _ = loopback::bring_up();
    }
    std::env::set_current_dir(&spec.folder).map_err(|error| {
        SandboxError::Other(format!(
            "cannot enter the folder {}: {error}",
            spec.folder.display()
        ))
    })?;
    set_limits(&spec.limits, own_user);
    if spec.mode != SandboxMode::Off {
        drop_capabilities().map_err(|error| other(&error))?;
        let files = landlock::confine(&spec, isolation).map_err(SandboxError::Unconfined)?;
        seccomp::install_filters(&spec, isolation, files.abi).map_err(SandboxError::Unconfined)?;
        confined.extend(files.confined_by);
        confined.push("system calls".to_owned());
    }
    // The command must not inspect this process or write messages in its name.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    start_command(&spec, confined, error_log)
}

fn set_limits(limits: &SandboxLimits, own_user: bool) {
    let set_limit = |resource, limit: u64| {
        let _ = setrlimit(
            resource,
            Rlimit {
                current: Some(limit),
                maximum: Some(limit),
            },
        );
    };
    set_limit(Resource::Core, 0);
    set_limit(Resource::Fsize, limits.file_bytes);
    set_limit(Resource::Data, limits.memory_bytes);
    // Without a user namespace, this counts all processes of the user, so their number is added to
    // the limit.
    let others = if own_user { 0 } else { total_processes() };
    set_limit(Resource::Nproc, limits.processes.saturating_add(others));
}

/// Returns the number of all processes, a cheap upper bound for those of the user.
fn total_processes() -> u64 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(['/', ' '])
        .nth(4)
        .and_then(|total| total.parse().ok())
        .unwrap_or_default()
}

/// Drops all capabilities for good, also for root and after any exec.
fn drop_capabilities() -> io::Result<()> {
    let _ = clear_ambient_capability_set();
    let no_root = CapabilitiesSecureBits::NO_ROOT | CapabilitiesSecureBits::NO_ROOT_LOCKED;
    let _ = set_capabilities_secure_bits(no_root);
    for capability in CapabilitySet::all().iter() {
        let _ = remove_capability_from_bounding_set(capability);
    }
    let none = CapabilitySet::empty();
    set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )?;
    Ok(set_no_new_privs(true)?)
}

fn start_command(
    spec: &SandboxSpec,
    confined: Vec<String>,
    error_log: Option<ErrorLog>,
) -> Result<i32, SandboxError> {
    let (program, args) = spec
        .argv
        .split_first()
        .ok_or_else(|| SandboxError::Other("the command is empty".to_owned()))?;
    let output = io::stdout()
        .as_fd()
        .try_clone_to_owned()
        .map_err(|error| SandboxError::Other(error.to_string()))?;
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .envs(spec.env.iter().map(|(name, value)| (name, value)));
    command.stderr(match error_log {
        Some(_) => Stdio::piped(),
        None => Stdio::from(output),
    });
    if !spec.starts_programs {
        sys::filter_in_child(
            &mut command,
            seccomp::no_fork_filters().map_err(SandboxError::Other)?,
        );
    }
    let mut child = command
        .spawn()
        .map_err(|error| SandboxError::Other(format!("{program}: {error}")))?;
    SandboxMessage::Confined(confined).send();
    let copied = error_log.and_then(|log| log.copy_in_background(child.stderr.take()?));
    let main = Pid::from_child(&child);
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == main => {
                // The last words of a command are the most interesting ones.
                if let Some(copied) = copied {
                    let _ = copied.recv_timeout(LAST_WORDS_TIMEOUT);
                }
                return Ok(exit_code(status));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(SandboxError::Other(error.to_string())),
        }
    }
}

fn exit_code(status: WaitStatus) -> i32 {
    let status = std::process::ExitStatus::from_raw(status.as_raw());
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(i32::from(u8::MAX))
}
