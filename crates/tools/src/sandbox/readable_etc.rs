//! What of the system's settings commands may read: nothing that is kept from other users.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, open, openat, statat};
use rustix::process::geteuid;

const ETC: &str = "/etc";
/// A folder with something private in it is looked into so deep.
const MAX_DEPTH: usize = 3;

/// Its parts that everybody may read. For root the permissions alone would keep nothing back; anyone else meets them anyway.
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

/// The parts of a folder that are public; nothing when all of it is.
fn public_paths(opened: BorrowedFd<'_>, folder: &Path, depth: usize) -> Option<Vec<PathBuf>> {
    let mut parts = Vec::new();
    let mut is_whole = true;
    for entry in Dir::read_from(opened).ok()?.flatten() {
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let path = folder.join(OsStr::from_bytes(name.to_bytes()));
        let Ok(found) = statat(opened, name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        let kind = FileType::from_raw_mode(found.st_mode);
        if kind != FileType::Symlink && found.st_mode & 0o004 == 0 {
            is_whole = false;
        } else if let Some(inside) = (kind == FileType::Directory && depth > 1)
            .then(|| {
                openat(
                    opened,
                    name,
                    OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                    Mode::empty(),
                )
                .ok()
            })
            .flatten()
            .and_then(|inside| public_paths(inside.as_fd(), &path, depth - 1))
        {
            is_whole = false;
            parts.extend(inside);
        } else {
            parts.push(path);
        }
    }
    (!is_whole).then_some(parts)
}
