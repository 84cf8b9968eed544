//! The inner helper: gives everything away for good, starts the command, and ends as the command does.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, Stdio};

use rustix::process::{
    DumpableBehavior, Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getpid,
    set_child_subreaper, set_dumpable_behavior, set_parent_process_death_signal, setrlimit, wait,
};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, UnshareFlags,
    clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_capabilities_secure_bits, set_no_new_privs,
};

use super::outer::{PREPARED_VARIABLE, PreparedSandbox, SPEC_VARIABLE};
use super::spec::{SandboxError, SandboxLimits, SandboxMessage, SandboxMode, SandboxSpec};
use super::{cgroup, landlock, loopback, mounts, seccomp, sys};

/// The exit code of a helper that never came to start the command; it has said so by then.
const EXIT_NOT_STARTED: u8 = 254;

/// What the command has to itself.
#[derive(Clone, Copy)]
pub struct Isolation {
    pub network: bool,
    /// Shared memory and queues between processes.
    pub ipc: bool,
    /// A limit that counts all memory.
    pub memory: bool,
    pub mounts: bool,
}

pub fn run() -> ExitCode {
    match confine_and_start() {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
        Err(failed) => {
            SandboxMessage::Failed(failed).send();
            ExitCode::from(EXIT_NOT_STARTED)
        }
    }
}

fn confine_and_start() -> Result<i32, SandboxError> {
    let other = |error: &dyn std::fmt::Display| SandboxError::Other(error.to_string());
    // Whatever happens to the outer helper happens to this one.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| other(&error))?;
    let spec = std::env::var(SPEC_VARIABLE).map_err(|error| other(&error))?;
    let spec: SandboxSpec = serde_json::from_str(&spec).map_err(|error| other(&error))?;
    let prepared = std::env::var(PREPARED_VARIABLE).unwrap_or_default();
    let prepared: PreparedSandbox =
        serde_json::from_str(&prepared).map_err(|error| other(&error))?;
    let mut confined = prepared.namespaces;
    if !prepared.groups.is_empty() && cgroup::enter(&prepared.groups) {
        confined.push("control group".to_owned());
    }
    let has = |name: &str| confined.iter().any(|word| word == name);
    let own_user = has("user namespace");
    // Orphans come here, to be forgotten at once; the outer helper gets them when this one is gone.
    let _ = set_child_subreaper(Some(getpid()));
    let own = Isolation {
        network: has("network namespace"),
        ipc: has("ipc namespace"),
        memory: has("control group"),
        // The outer helper keeps its own view of all processes.
        mounts: own_user && sys::unshare(UnshareFlags::NEWNS).is_ok() && mounts::set_up(&spec),
    };
    if own.mounts {
        confined.push("mount namespace".to_owned());
    }
    if own.network {
        let _ = loopback::bring_up();
    }
    std::env::set_current_dir(&spec.folder).map_err(|error| {
        SandboxError::Other(format!(
            "cannot start in {}: {error}",
            spec.folder.display()
        ))
    })?;
    set_limits(&spec.limits, own_user);
    if spec.mode != SandboxMode::Off {
        drop_capabilities().map_err(|error| other(&error))?;
        let files = landlock::confine(&spec, own).map_err(SandboxError::Unconfined)?;
        seccomp::install_filters(&spec, own, files.abi).map_err(SandboxError::Unconfined)?;
        confined.extend(files.confined_by);
        confined.push("system calls".to_owned());
    }
    // Nobody inside may look at this process or speak in its place.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    start_command(&spec, confined)
}

fn set_limits(limits: &SandboxLimits, own_user: bool) {
    let at_most = |resource, most: u64| {
        let _ = setrlimit(
            resource,
            Rlimit {
                current: Some(most),
                maximum: Some(most),
            },
        );
    };
    at_most(Resource::Core, 0);
    at_most(Resource::Fsize, limits.file_bytes);
    at_most(Resource::Data, limits.memory_bytes);
    // Elsewhere this counts all processes of the user, not only those of the command: room is made for the others.
    let others = if own_user { 0 } else { total_processes() };
    at_most(Resource::Nproc, limits.processes.saturating_add(others));
}

/// More than this user has, and quickly known.
fn total_processes() -> u64 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(['/', ' '])
        .nth(4)
        .and_then(|all| all.parse().ok())
        .unwrap_or_default()
}

/// Also for root: none now, none after any exec.
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

fn start_command(spec: &SandboxSpec, confined: Vec<String>) -> Result<i32, SandboxError> {
    let (program, args) = spec
        .argv
        .split_first()
        .ok_or_else(|| SandboxError::Other("no program is named".to_owned()))?;
    let output = io::stdout()
        .as_fd()
        .try_clone_to_owned()
        .map_err(|error| SandboxError::Other(error.to_string()))?;
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .envs(spec.env.iter().map(|(name, value)| (name, value)));
    command.stderr(Stdio::from(output));
    if !spec.starts_programs {
        sys::filter_in_child(
            &mut command,
            seccomp::no_fork_filters().map_err(SandboxError::Other)?,
        );
    }
    let child = command
        .spawn()
        .map_err(|error| SandboxError::Other(format!("{program}: {error}")))?;
    SandboxMessage::Confined(confined).send();
    let main = Pid::from_child(&child);
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == main => return Ok(exit_code(status)),
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
