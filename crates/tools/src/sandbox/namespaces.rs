//! Namespaces for user, processes, IPC and network. Many systems forbid them; the other mechanisms
//! apply then.

use std::fs;
use std::io;

use rustix::process::{getgid, getuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, capabilities, configure_capability_in_ambient_set,
    set_capabilities,
};

use super::spec::{SandboxMode, SandboxSpec};
use super::sys;

/// The user id inside the namespace if the user is root outside, so that the command never runs as
/// root.
const UNPRIVILEGED_ID: u32 = 1000;

/// Enters the namespaces and returns their names, or nothing if the system does not allow it.
pub fn enter(spec: &SandboxSpec) -> Vec<String> {
    if spec.mode != SandboxMode::Full {
        return Vec::new();
    }
    let mut flags =
        UnshareFlags::NEWUSER | UnshareFlags::NEWPID | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS;
    let mut entered = vec!["user", "pid", "ipc"];
    if !spec.network {
        flags |= UnshareFlags::NEWNET;
        entered.push("network");
    }
    let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
    match sys::unshare(flags)
        .and_then(|()| map_user(uid, gid))
        .and_then(|()| keep_capabilities())
    {
        Ok(()) => entered
            .into_iter()
            .map(|name| format!("{name} namespace"))
            .collect(),
        Err(_) => Vec::new(),
    }
}

/// Maps only the current user, so that the files of the workspace stay writable.
fn map_user(uid: u32, gid: u32) -> io::Result<()> {
    let inside = |id: u32| if id == 0 { UNPRIVILEGED_ID } else { id };
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{} {uid} 1", inside(uid)))?;
    fs::write("/proc/self/gid_map", format!("{} {gid} 1", inside(gid)))
}

/// Keeps the capabilities that the inner helper needs to mount, to bring up the loopback, and to
/// drop all capabilities.
fn keep_capabilities() -> io::Result<()> {
    let needed = [
        CapabilitySet::SYS_ADMIN,
        CapabilitySet::NET_ADMIN,
        CapabilitySet::SETPCAP,
    ];
    let own = capabilities(None)?;
    set_capabilities(
        None,
        CapabilitySets {
            inheritable: needed.into_iter().collect(),
            ..own
        },
    )?;
    for capability in needed {
        configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}
