//! Mounts of the command's own: everything read-only but what it may change, fresh views of processes and shared memory, and
//! nothing to see where Lango keeps its own.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change, mount_remount,
};

use super::spec::SandboxSpec;

/// As much shared memory as anything small needs.
const SHM_OPTIONS: &std::ffi::CStr = c"size=256m,mode=1777";

/// In a new mount namespace. Whether everything is out of sight that must be; where not, Landlock has to see to it.
pub fn set_up(spec: &SandboxSpec) -> bool {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    if mount_change("/", private).is_err() {
        return false;
    }
    let quiet = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let _ = mount("proc", "/proc", "proc", quiet, None);
    make_read_only(&spec.write);
    let shared = MountFlags::NOSUID | MountFlags::NODEV;
    let is_shared = spec
        .write
        .iter()
        .any(|folder| folder.starts_with("/dev/shm"))
        || mount("tmpfs", "/dev/shm", "tmpfs", shared, Some(SHM_OPTIONS)).is_ok();
    let mut hidden = spec
        .hidden
        .iter()
        .filter(|hidden| is_reachable(spec, hidden));
    let empty = Some(c"size=4k,mode=0");
    let cover =
        |folder: &PathBuf| mount("tmpfs", folder, "tmpfs", quiet | MountFlags::RDONLY, empty);
    is_shared && hidden.all(|folder| pin_parents(spec, folder) && cover(folder).is_ok())
}

/// What is mounted cannot be renamed: else a folder above a hidden one could be moved aside, and another put in its place.
fn pin_parents(spec: &SandboxSpec, hidden: &Path) -> bool {
    let is_inside = |folder: &Path| {
        let open = || spec.read.iter().chain(&spec.write);
        open().any(|open| folder.starts_with(open)) && open().all(|open| folder != open)
    };
    let way: Vec<&Path> = hidden
        .ancestors()
        .skip(1)
        .take_while(|folder| is_inside(folder))
        .collect();
    way.into_iter()
        .rev()
        .all(|folder| mount_bind_recursive(folder, folder).is_ok())
}

/// Landlock keeps contents as they are; this also keeps modes, times and attributes.
fn make_read_only(but: &[PathBuf]) {
    let open: Vec<&PathBuf> = but
        .iter()
        .filter(|folder| mount_bind_recursive(*folder, *folder).is_ok())
        .collect();
    for (path, flags) in list_mounts() {
        let is_open = open.iter().any(|folder| path.starts_with(folder));
        // Devices are written to, not changed.
        if !is_open && path != Path::new("/dev") && path != Path::new("/proc") {
            let _ = mount_remount(&path, flags | MountFlags::BIND | MountFlags::RDONLY, "");
        }
    }
}

/// Every mount with the flags that it has: a new user may add to them, not take away.
fn list_mounts() -> Vec<(PathBuf, MountFlags)> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mount = |line: &str| {
        let mut fields = line.split(' ');
        Some((
            PathBuf::from(unescape(fields.nth(4)?)),
            parse_flags(fields.next()?),
        ))
    };
    table.lines().filter_map(mount).collect()
}

fn parse_flags(options: &str) -> MountFlags {
    options
        .split(',')
        .fold(MountFlags::empty(), |flags, option| {
            flags
                | match option {
                    "nosuid" => MountFlags::NOSUID,
                    "nodev" => MountFlags::NODEV,
                    "noexec" => MountFlags::NOEXEC,
                    "noatime" => MountFlags::NOATIME,
                    "nodiratime" => MountFlags::NODIRATIME,
                    "relatime" => MountFlags::RELATIME,
                    _ => MountFlags::empty(),
                }
        })
}

/// Spaces and the like stand as three octal digits behind a backslash.
fn unescape(field: &str) -> String {
    let mut text = Vec::new();
    let mut bytes = field.bytes().collect::<std::collections::VecDeque<u8>>();
    while let Some(byte) = bytes.pop_front() {
        let digits: Option<Vec<u8>> =
            (byte == b'\\' && bytes.len() >= 3).then(|| bytes.drain(..3).collect());
        let code = digits
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 8).ok());
        text.push(code.unwrap_or(byte));
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn is_reachable(spec: &SandboxSpec, folder: &Path) -> bool {
    spec.read
        .iter()
        .chain(&spec.write)
        .any(|open| folder.starts_with(open))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_spaces_are_read_as_they_are() {
        assert_eq!(unescape("/mnt/my\\040disk"), "/mnt/my disk");
        assert_eq!(unescape("/plain"), "/plain");
    }
}
