//! The parts of `/etc` that commands may read: those readable by every user.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, open, openat, statat};
use rustix::process::geteuid;

const ETC: &str = "/etc";
/// Maximum depth of folders that are split into public parts.
const MAX_DEPTH: usize = 3;

/// Returns the world-readable parts of `/etc`. Only root needs this list; for other users the file
/// permissions apply anyway.
pub fn readable_etc() -> Vec<PathBuf> {
    let folder = Path::new(ETC);
    if !geteuid().is_root() {
        return vec![folder.to_path_buf()];
    }
    let Ok(opened) = open(
        folder,
        OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    ) else {
        return Vec::new();
    };
    public_paths(opened.as_fd(), folder, MAX_DEPTH).unwrap_or_else(|| vec![folder.to_path_buf()])
}

/// Returns the public parts of a folder, or `None` if all of it is public.
fn public_paths(opened: BorrowedFd<'_>, folder: &Path, depth: usize) -> Option<Vec<PathBuf>> {
    let mut parts = Vec::new();
    let mut is_public = true;
    for entry in Dir::read_from(opened).ok()?.flatten() {
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let path = folder.join(OsStr::from_bytes(name.to_bytes()));
        let Ok(stat) = statat(opened, name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if kind != FileType::Symlink && stat.st_mode & 0o004 == 0 {
            is_public = false;
        } else if kind == FileType::Directory
            && depth > 1
            && let Ok(inner) = openat(opened, name, flags, Mode::empty())
            && let Some(inside) = public_paths(inner.as_fd(), &path, depth - 1)
        {
            is_public = false;
            parts.extend(inside);
        } else {
            parts.push(path);
        }
    }
    (!is_public).then_some(parts)
}
