//! Opening what lies beneath a folder, and nothing else: the kernel holds the border while it resolves the path.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

/// For reading: neither a fifo nor a device may keep anybody waiting.
pub const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);
/// A folder as a place, to do something in it.
pub const DIRECTORY_PATH: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// A folder whose names are read.
pub const DIRECTORY_LISTING: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// The kernel gives up a look-up that others disturb; so often it is tried again.
const MAX_TRIES: usize = 128;

/// Opens a path beneath `folder`; links are followed as long as they stay beneath it.
pub fn open(folder: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    resolve(
        folder,
        path,
        flags,
        ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
    )
}

/// The same without following any link, so that the path is the real one.
pub fn open_no_follow(folder: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    resolve(
        folder,
        path,
        flags,
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
    )
}

/// Opens an absolute path that has no link in it; one that got a link meanwhile is refused.
pub fn open_real(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    resolve(rustix::fs::CWD, path, flags, ResolveFlags::NO_SYMLINKS)
}

/// What a name in a folder is, links themselves included.
pub fn lstat(folder: impl AsFd, name: &OsStr) -> Result<Stat, Errno> {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
}

pub fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Where an open file really lies, as the kernel knows it.
pub fn real_path(opened: impl AsFd) -> std::io::Result<PathBuf> {
    use std::os::fd::AsRawFd;
    std::fs::read_link(format!("/proc/self/fd/{}", opened.as_fd().as_raw_fd()))
}

/// Where a link leads.
pub fn link_target(folder: impl AsFd, name: &OsStr) -> Result<PathBuf, Errno> {
    let target = rustix::fs::readlinkat(folder, name, Vec::new())?;
    Ok(PathBuf::from(std::ffi::OsString::from_vec(
        target.into_bytes(),
    )))
}

/// The names in a folder, unsorted, with the kind where the file system tells it.
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

/// Makes what was changed in a folder last. Not every file system can; the change itself is done all the same.
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
