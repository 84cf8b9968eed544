//! Namespaces: another user, its own processes, mounts and network. Many systems forbid them; then the rest must do.

use std::fs;
use std::io;

use rustix::process::{getgid, getuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, capabilities, configure_capability_in_ambient_set,
    set_capabilities,
};

use super::spec::{SandboxMode, SandboxSpec};
use super::sys;

/// Whoever is root outside is this user inside: never root.
const UNPRIVILEGED_ID: u32 = 1000;

/// Enters them, and says which ones; none where the system does not allow it.
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

/// One user: the files of the workspace stay writable, nobody else exists.
fn map_user(uid: u32, gid: u32) -> io::Result<()> {
    let inside = |id: u32| if id == 0 { UNPRIVILEGED_ID } else { id };
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{} {uid} 1", inside(uid)))?;
    fs::write("/proc/self/gid_map", format!("{} {gid} 1", inside(gid)))
}

/// What the inner helper needs to mount, to bring its own loopback up, and to give all of it away for good.
fn keep_capabilities() -> io::Result<()> {
    let kept = [
        CapabilitySet::SYS_ADMIN,
        CapabilitySet::NET_ADMIN,
        CapabilitySet::SETPCAP,
    ];
    let own = capabilities(None)?;
    set_capabilities(
        None,
        CapabilitySets {
            inheritable: kept.into_iter().collect(),
            ..own
        },
    )?;
    for capability in kept {
        configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}
