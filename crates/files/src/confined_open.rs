//! Opens paths beneath a folder. The kernel enforces the confinement while it resolves the path
//! (`openat2`).

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

/// Flags to open a file for reading without blocking on a FIFO or a device.
pub const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);
/// Flags to open a folder as the base of other calls, without listing it.
pub const DIRECTORY_PATH: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Flags to open a folder in order to list it.
pub const DIRECTORY_LISTING: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// Number of attempts: the kernel aborts a lookup when a concurrent rename interferes.
const MAX_TRIES: usize = 128;

/// Opens a path beneath `folder`. Follows links as long as they stay beneath it.
pub fn open(folder: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    resolve(
        folder,
        path,
        flags,
        ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
    )
}

/// Like [`open`], but follows no link, so `path` is the real path.
pub fn open_no_follow(folder: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    resolve(
        folder,
        path,
        flags,
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
    )
}

/// Opens an absolute path without links. Fails if a component has become a link.
pub fn open_real(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    resolve(rustix::fs::CWD, path, flags, ResolveFlags::NO_SYMLINKS)
}

/// Returns the metadata of a name in a folder, without following a link.
pub fn lstat(folder: impl AsFd, name: &OsStr) -> Result<Stat, Errno> {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
}

pub fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Returns the real path of an open file, as reported by the kernel.
pub fn real_path(opened: impl AsFd) -> std::io::Result<PathBuf> {
    use std::os::fd::AsRawFd;
    std::fs::read_link(format!("/proc/self/fd/{}", opened.as_fd().as_raw_fd()))
}

/// Returns the target of a link.
pub fn link_target(folder: impl AsFd, name: &OsStr) -> Result<PathBuf, Errno> {
    let target = rustix::fs::readlinkat(folder, name, Vec::new())?;
    Ok(PathBuf::from(std::ffi::OsString::from_vec(
        target.into_bytes(),
    )))
}

/// Returns the names in a folder, unsorted, with their types if the file system reports them.
pub fn read_dir(folder: impl AsFd) -> Result<Vec<(std::ffi::OsString, FileType)>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push((
                std::ffi::OsString::from_vec(name.to_vec()),
                entry.file_type(),
            ));
        }
    }
    Ok(names)
}

/// Flushes changes of a folder to disk. Errors are ignored: not every file system supports it, and
/// the change itself is already done.
pub fn sync(folder: impl AsFd) {
    if let Ok(opened) = rustix::fs::openat(folder, c".", DIRECTORY_LISTING, Mode::empty()) {
        let _ = rustix::fs::fsync(opened);
    }
}

fn resolve(
    folder: impl AsFd,
    path: &Path,
    flags: OFlags,
    rules: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    let mut last = Errno::AGAIN;
    for _ in 0..MAX_TRIES {
        match rustix::fs::openat2(folder.as_fd(), path, flags, Mode::empty(), rules) {
            Err(error @ (Errno::AGAIN | Errno::INTR)) => last = error,
            done => return done,
        }
    }
    Err(last)
}
