//! The three things that are asked of the kernel without a safe wrapper.
#![expect(
    unsafe_code,
    reason = "unshare, marking descriptors that nobody here owns and acting before an exec have no safe form"
)]

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use seccompiler::{BpfProgram, apply_filter};

/// New namespaces for this process.
pub fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: only sharing of descriptor tables between threads is unsafe; the helper has one thread, and `flags` never
    // holds FILES.
    unsafe { unshare_unsafe(flags.difference(UnshareFlags::FILES)) }.map_err(Into::into)
}

/// Puts filters of system calls on what is started, and not on this process.
pub fn filter_in_child(command: &mut Command, filters: [BpfProgram; 2]) {
    let refused = |_| io::Error::from(io::ErrorKind::PermissionDenied);
    let put_on = move || {
        filters
            .iter()
            .try_for_each(|filter| apply_filter(filter).map_err(refused))
    };
    // SAFETY: between fork and exec only system calls are made; nothing is allocated and no lock is taken.
    unsafe { command.pre_exec(put_on) };
}

/// No descriptor beside the three usual ones reaches what is started from here.
pub fn set_cloexec() {
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    let numbers = open
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    for number in numbers.filter(|number| *number > 2) {
        // SAFETY: the descriptor is only borrowed for this one call, which fails harmlessly when it is closed already.
        let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
        let _ = fcntl_setfd(borrowed, FdFlags::CLOEXEC);
    }
}
