//! The mounts of a command: everything is read-only except its writable folders, `/proc` and shared
//! memory are new, and Lango's own folders are covered.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change, mount_remount,
};

use super::spec::SandboxSpec;

/// Size of the shared memory.
const SHM_OPTIONS: &std::ffi::CStr = c"size=256m,mode=1777";

/// Sets up the mounts in a new mount namespace. Returns true if all hidden folders are covered;
/// otherwise Landlock must exclude them.
pub fn set_up(spec: &SandboxSpec) -> bool {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    if mount_change("/", private).is_err() {
        return false;
    }
    let restricted = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let _ = mount("proc", "/proc", "proc", restricted, None);
    make_read_only(&spec.write);
    let shm_flags = MountFlags::NOSUID | MountFlags::NODEV;
    let has_shm = spec
        .write
        .iter()
        .any(|folder| folder.starts_with("/dev/shm"))
        || mount("tmpfs", "/dev/shm", "tmpfs", shm_flags, Some(SHM_OPTIONS)).is_ok();
    let mut hidden = spec
        .hidden
        .iter()
        .filter(|hidden| is_reachable(spec, hidden));
    let empty = Some(c"size=4k,mode=0");
    let cover_flags = restricted | MountFlags::RDONLY;
    let cover = |folder: &PathBuf| mount("tmpfs", folder, "tmpfs", cover_flags, empty);
    has_shm && hidden.all(|folder| pin_parents(spec, folder) && cover(folder).is_ok())
}

/// Bind-mounts the parents of a hidden folder onto themselves. Mount points cannot be renamed, so
/// the command cannot move a parent away and replace it.
fn pin_parents(spec: &SandboxSpec, hidden: &Path) -> bool {
    let is_inside = |folder: &Path| {
        let allowed = || spec.read.iter().chain(&spec.write);
        allowed().any(|path| folder.starts_with(path)) && allowed().all(|path| folder != path)
    };
    let parents: Vec<&Path> = hidden
        .ancestors()
        .skip(1)
        .take_while(|folder| is_inside(folder))
        .collect();
    parents
        .into_iter()
        .rev()
        .all(|folder| mount_bind_recursive(folder, folder).is_ok())
}

/// Remounts everything read-only except `writable`. Landlock protects contents; this also protects
/// modes, times and attributes.
fn make_read_only(writable: &[PathBuf]) {
    let excluded: Vec<&PathBuf> = writable
        .iter()
        .filter(|folder| mount_bind_recursive(*folder, *folder).is_ok())
        .collect();
    for (path, flags) in list_mounts() {
        let is_excluded = excluded.iter().any(|folder| path.starts_with(folder));
        // Writing to a device does not change the mount.
        if !is_excluded && path != Path::new("/dev") && path != Path::new("/proc") {
            let _ = mount_remount(&path, flags | MountFlags::BIND | MountFlags::RDONLY, "");
        }
    }
}

/// Returns every mount with its flags. They must be kept: in a user namespace, flags can be added
/// but not removed.
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

/// Decodes octal escapes: a backslash and three digits, as for spaces.
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
        .any(|path| folder.starts_with(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unescapes_spaces() {
        assert_eq!(unescape("/mnt/my\\040disk"), "/mnt/my disk");
        assert_eq!(unescape("/plain"), "/plain");
    }
}
