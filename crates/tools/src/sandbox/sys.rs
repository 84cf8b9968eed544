//! The three system calls without a safe wrapper.
#![expect(
    unsafe_code,
    reason = "unshare, changing descriptors that are not owned, and code before an exec have no safe form"
)]

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use seccompiler::{BpfProgram, apply_filter};

/// Moves this process into new namespaces.
pub fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: only sharing of descriptor tables between threads is unsafe; the helper has one
    // thread, and `flags` never holds FILES.
    unsafe { unshare_unsafe(flags.difference(UnshareFlags::FILES)) }.map_err(Into::into)
}

/// Installs seccomp filters in the child process, not in this process.
pub fn filter_in_child(command: &mut Command, filters: [BpfProgram; 2]) {
    let denied = |_| io::Error::from(io::ErrorKind::PermissionDenied);
    let apply = move || {
        filters
            .iter()
            .try_for_each(|filter| apply_filter(filter).map_err(denied))
    };
    // SAFETY: between fork and exec only system calls are made; nothing is allocated and no lock is
    // taken.
    unsafe { command.pre_exec(apply) };
}

/// Marks all descriptors except stdin, stdout and stderr as close-on-exec.
pub fn set_cloexec() {
    let Ok(descriptors) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    let numbers = descriptors
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    for number in numbers.filter(|number| *number > 2) {
        // SAFETY: the descriptor is only borrowed for this one call, which fails harmlessly if it
        // is already closed.
        let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
        let _ = fcntl_setfd(borrowed, FdFlags::CLOEXEC);
    }
}
