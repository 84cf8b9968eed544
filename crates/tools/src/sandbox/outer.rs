//! The outer helper: prepares, starts the inner one, watches, and leaves nothing behind.

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

/// The variable that the inner helper finds its spec in.
pub const SPEC_VARIABLE: &str = "LANGO_SANDBOX";
/// The variable that it finds in what was prepared for it.
pub const PREPARED_VARIABLE: &str = "LANGO_SANDBOX_PREPARED";

/// What the inner helper finds.
#[derive(Default, Serialize, Deserialize)]
pub struct PreparedSandbox {
    /// Those that were entered.
    pub namespaces: Vec<String>,
    /// Control groups to enter.
    pub groups: Vec<PathBuf>,
}

/// How often limits are looked at: soon at first, for what grows fast, then less.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(30);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The helpers themselves.
const OWN_PROCESSES: usize = 1;

pub fn run() -> ExitCode {
    match supervise() {
        Ok(Some(word)) => word.send(),
        Ok(None) => {}
        Err(why) => SandboxMessage::Failed(SandboxError::Other(why)).send(),
    }
    ExitCode::SUCCESS
}

/// What became of the command; nothing when nobody listens any more.
fn supervise() -> Result<Option<SandboxMessage>, String> {
    sys::set_cloexec();
    let spec = SandboxSpec::read_frame(UnbufferedStdin)?;
    let _ = setsid();
    // Whoever loses its parent becomes a child of this process, and ends with it.
    set_child_subreaper(Some(getpid())).map_err(|error| error.to_string())?;
    let temporary = spec.temp.as_deref().map(CommandTempDir::create).transpose();
    let _temporary = temporary.map_err(|error| format!("no temporary folder: {error}"))?;
    let group = Cgroup::create(&spec.limits);
    let prepared = PreparedSandbox {
        namespaces: namespaces::enter(&spec),
        groups: group.folders().to_vec(),
    };
    let free = free_bytes(&spec);
    let mut inner = start_inner(&spec, &prepared)?;
    let word = watch(&mut inner, &spec, &free);
    kill_all();
    Ok(word)
}

fn start_inner(spec: &SandboxSpec, prepared: &PreparedSandbox) -> Result<Child, String> {
    let json = serde_json::to_string(spec).map_err(|error| error.to_string())?;
    let prepared = serde_json::to_string(prepared).map_err(|error| error.to_string())?;
    let mut command = Command::new("/proc/self/exe");
    // The allocator would take more room for later than some limits allow in all.
    command
        .arg(INNER_ARG)
        .env_clear()
        .env("MIMALLOC_ARENA_RESERVE", "0")
        .env(SPEC_VARIABLE, json)
        .env(PREPARED_VARIABLE, prepared);
    command
        .spawn()
        .map_err(|error| format!("the sandbox cannot be started: {error}"))
}

fn watch(inner: &mut Child, spec: &SandboxSpec, free: &[Option<u64>]) -> Option<SandboxMessage> {
    let pid = Pid::from_child(inner);
    let ending = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let listener = rustix::stdio::stderr();
    let mut pause = MIN_POLL_INTERVAL;
    loop {
        let mut events = [
            PollFd::new(&ending, PollFlags::IN),
            PollFd::new(&listener, PollFlags::empty()),
        ];
        let time = Timespec {
            tv_sec: 0,
            tv_nsec: pause.subsec_nanos().into(),
        };
        let _ = poll(&mut events, Some(&time));
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
        pause = (pause * 2).min(MAX_POLL_INTERVAL);
    }
}

/// The inner helper ends as the command did. Where it never came to start it, it has said so before, and this is not heard.
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
    let below = list();
    if below.processes.len() > limits.processes as usize + OWN_PROCESSES {
        return Some(ExceededLimit::Processes);
    }
    if below.pages.saturating_mul(page_size() as u64) > limits.memory_bytes {
        return Some(ExceededLimit::Memory);
    }
    let taken = before
        .iter()
        .zip(now())
        .filter_map(|(before, now)| Some((*before)?.saturating_sub(now?)));
    taken
        .into_iter()
        .any(|taken| taken > limits.disk_bytes)
        .then_some(ExceededLimit::Disk)
}

/// Of every place that can be written to.
fn free_bytes(spec: &SandboxSpec) -> Vec<Option<u64>> {
    let free = |folder: &PathBuf| {
        let found = statvfs(folder).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    };
    spec.write.iter().map(free).collect()
}

/// Without a buffer: what stands behind the spec is the command's.
struct UnbufferedStdin;

impl Read for UnbufferedStdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(rustix::stdio::stdin(), buffer)?)
    }
}
