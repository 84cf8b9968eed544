//! The outer helper: prepares the sandbox, starts the inner helper, supervises it, and kills all
//! remaining processes.

use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::statvfs;
use rustix::param::page_size;
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open, set_child_subreaper, setsid};
use serde::{Deserialize, Serialize};

use super::cgroup::Cgroup;
use super::descendants::{kill_all, list};
use super::spec::{ExceededLimit, SandboxError, SandboxLimits, SandboxMessage, SandboxSpec};
use super::temp_dir::CommandTempDir;
use super::{INNER_ARG, namespaces, sys};

/// The environment variable with the spec for the inner helper.
pub const SPEC_VARIABLE: &str = "LANGO_SANDBOX";
/// The environment variable with the [`PreparedSandbox`] for the inner helper.
pub const PREPARED_VARIABLE: &str = "LANGO_SANDBOX_PREPARED";

/// State that the outer helper prepared for the inner one.
#[derive(Default, Serialize, Deserialize)]
pub struct PreparedSandbox {
    /// Namespaces that were entered.
    pub namespaces: Vec<String>,
    /// Control groups to enter.
    pub groups: Vec<PathBuf>,
}

/// Interval of limit checks: short at first, for commands that grow fast, then longer.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(30);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Descendants that are helpers.
const OWN_PROCESSES: usize = 1;

pub fn run() -> ExitCode {
    match supervise() {
        Ok(Some(message)) => message.send(),
        Ok(None) => {}
        Err(reason) => SandboxMessage::Failed(SandboxError::Other(reason)).send(),
    }
    ExitCode::SUCCESS
}

/// Runs the command and returns its result, or `None` if the reader of the messages is gone.
fn supervise() -> Result<Option<SandboxMessage>, String> {
    sys::set_cloexec();
    let spec = SandboxSpec::read_frame(UnbufferedStdin)?;
    let _ = setsid();
    // Orphaned descendants become children of this process and are killed with it.
    set_child_subreaper(Some(getpid())).map_err(|error| error.to_string())?;
    let temp_dir = spec.temp.as_deref().map(CommandTempDir::create).transpose();
    let _temp_dir =
        temp_dir.map_err(|error| format!("cannot create a temporary folder: {error}"))?;
    let group = Cgroup::create(&spec.limits);
    let prepared = PreparedSandbox {
        namespaces: namespaces::enter(&spec),
        groups: group.folders().to_vec(),
    };
    let free = free_bytes(&spec);
    let mut inner = start_inner(&spec, &prepared)?;
    let message = watch(&mut inner, &spec, &free);
    kill_all();
    Ok(message)
}

fn start_inner(spec: &SandboxSpec, prepared: &PreparedSandbox) -> Result<Child, String> {
    let json = serde_json::to_string(spec).map_err(|error| error.to_string())?;
    let prepared = serde_json::to_string(prepared).map_err(|error| error.to_string())?;
    let mut command = Command::new("/proc/self/exe");
    // The allocator would reserve more memory than some limits allow.
    command
        .arg(INNER_ARG)
        .env_clear()
        .env("MIMALLOC_ARENA_RESERVE", "0")
        .env(SPEC_VARIABLE, json)
        .env(PREPARED_VARIABLE, prepared);
    command
        .spawn()
        .map_err(|error| format!("cannot start the sandbox: {error}"))
}

fn watch(inner: &mut Child, spec: &SandboxSpec, free: &[Option<u64>]) -> Option<SandboxMessage> {
    let pid = Pid::from_child(inner);
    let process = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let message_pipe = rustix::stdio::stderr();
    let mut interval = MIN_POLL_INTERVAL;
    loop {
        let mut events = [
            PollFd::new(&process, PollFlags::IN),
            PollFd::new(&message_pipe, PollFlags::empty()),
        ];
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: interval.subsec_nanos().into(),
        };
        let _ = poll(&mut events, Some(&timeout));
        if events[0].revents().contains(PollFlags::IN) {
            return inner.wait().ok().and_then(exit_message);
        }
        if events[1]
            .revents()
            .intersects(PollFlags::ERR | PollFlags::HUP)
        {
            return None;
        }
        if let Some(reason) = exceeded_limit(&spec.limits, free, || free_bytes(spec)) {
            return Some(SandboxMessage::Stopped(reason));
        }
        interval = (interval * 2).min(MAX_POLL_INTERVAL);
    }
}

/// Returns the final message. The inner helper exits like the command. If it could not start the
/// command, it has reported that before, and this message is ignored.
fn exit_message(status: ExitStatus) -> Option<SandboxMessage> {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))?;
    Some(SandboxMessage::Ended { code })
}

fn exceeded_limit(
    limits: &SandboxLimits,
    before: &[Option<u64>],
    now: impl Fn() -> Vec<Option<u64>>,
) -> Option<ExceededLimit> {
    let descendants = list();
    if descendants.processes.len() > limits.processes as usize + OWN_PROCESSES {
        return Some(ExceededLimit::Processes);
    }
    if descendants.pages.saturating_mul(page_size() as u64) > limits.memory_bytes {
        return Some(ExceededLimit::Memory);
    }
    let used = before
        .iter()
        .zip(now())
        .filter_map(|(before, now)| Some((*before)?.saturating_sub(now?)));
    used.into_iter()
        .any(|used| used > limits.disk_bytes)
        .then_some(ExceededLimit::Disk)
}

/// Returns the free disk space of each writable folder.
fn free_bytes(spec: &SandboxSpec) -> Vec<Option<u64>> {
    let free = |folder: &PathBuf| {
        let found = statvfs(folder).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    };
    spec.write.iter().map(free).collect()
}

/// stdin without a buffer, because the input after the spec belongs to the command.
struct UnbufferedStdin;

impl Read for UnbufferedStdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(rustix::stdio::stdin(), buffer)?)
    }
}
