//! Moves a file or a folder, also to another file system, without losing data on failure.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Stat, Timespec, Timestamps};
use rustix::io::Errno;

use super::confined_open::{self, DIRECTORY_LISTING, READ};
use super::text::size;

/// Each level takes a file descriptor and stack space.
const MAX_DEPTH: usize = 200;

/// A name in an open folder.
#[derive(Clone, Copy)]
pub struct FolderEntry<'a> {
    pub folder: BorrowedFd<'a>,
    pub name: &'a OsStr,
}

/// The size of a file or folder with all of its contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeSize {
    pub files: u64,
    pub folders: u64,
    pub bytes: u64,
}

impl<'a> FolderEntry<'a> {
    pub fn new(folder: &'a impl AsFd, name: &'a OsStr) -> Self {
        Self {
            folder: folder.as_fd(),
            name,
        }
    }

    fn open(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        confined_open::open_no_follow(self.folder, Path::new(self.name), flags)
    }

    fn lstat(&self) -> Result<Stat, Errno> {
        confined_open::lstat(self.folder, self.name)
    }
}

/// Moves an entry. Fails if the target exists. After a failure the entry is unchanged.
pub fn move_entry(from: FolderEntry<'_>, to: FolderEntry<'_>) -> io::Result<()> {
    match rename(from, to) {
        Err(Errno::XDEV) => move_by_copy(from, to),
        result => {
            result?;
            confined_open::sync(to.folder);
            confined_open::sync(from.folder);
            Ok(())
        }
    }
}

/// Copies, then removes the original once the copy is complete and flushed to disk.
fn move_by_copy(from: FolderEntry<'_>, to: FolderEntry<'_>) -> io::Result<()> {
    let temp = format!(".lango-{}.tmp", uuid::Uuid::now_v7().simple());
    let temp = FolderEntry {
        folder: to.folder,
        name: OsStr::new(&temp),
    };
    let copied = copy(from, temp).and_then(|()| Ok(rename(temp, to)?));
    if let Err(error) = copied {
        let _ = remove(temp);
        return Err(error);
    }
    confined_open::sync(to.folder);
    remove(from)
}

/// Measures an entry without following links, and calls `visit` with each path; `path` is the path
/// of the entry. Fails if folders are nested too deeply, before anything is moved.
pub fn measure(
    entry: FolderEntry<'_>,
    path: &Path,
    visit: &mut dyn FnMut(&Path),
) -> io::Result<TreeSize> {
    measure_at(entry, path, visit, 0)
}

fn measure_at(
    entry: FolderEntry<'_>,
    path: &Path,
    visit: &mut dyn FnMut(&Path),
    depth: usize,
) -> io::Result<TreeSize> {
    visit(path);
    if depth > MAX_DEPTH {
        return Err(io::Error::other(format!(
            "folders are nested more than {MAX_DEPTH} deep"
        )));
    }
    let stat = entry.lstat()?;
    if confined_open::file_type(&stat) != FileType::Directory {
        return Ok(TreeSize {
            files: 1,
            folders: 0,
            bytes: size(&stat),
        });
    }
    let mut total = TreeSize {
        folders: 1,
        ..TreeSize::default()
    };
    let folder = entry.open(DIRECTORY_LISTING)?;
    for (name, _) in confined_open::read_dir(&folder)? {
        let inner = measure_at(
            FolderEntry::new(&folder, &name),
            &path.join(&name),
            visit,
            depth + 1,
        )?;
        total.files += inner.files;
        total.folders += inner.folders;
        total.bytes += inner.bytes;
    }
    Ok(total)
}

/// Removes a file, a link, or a folder with everything in it.
pub fn remove(entry: FolderEntry<'_>) -> io::Result<()> {
    if confined_open::file_type(&entry.lstat()?) == FileType::Directory {
        let folder = entry.open(DIRECTORY_LISTING)?;
        for (name, _) in confined_open::read_dir(&folder)? {
            remove(FolderEntry::new(&folder, &name))?;
        }
        return Ok(rustix::fs::unlinkat(
            entry.folder,
            entry.name,
            AtFlags::REMOVEDIR,
        )?);
    }
    Ok(rustix::fs::unlinkat(
        entry.folder,
        entry.name,
        AtFlags::empty(),
    )?)
}

fn rename(from: FolderEntry<'_>, to: FolderEntry<'_>) -> Result<(), Errno> {
    match rustix::fs::renameat_with(
        from.folder,
        from.name,
        to.folder,
        to.name,
        RenameFlags::NOREPLACE,
    ) {
        // The file system does not support `NOREPLACE`.
        Err(Errno::INVAL | Errno::NOSYS) => match to.lstat() {
            Err(Errno::NOENT) => rustix::fs::renameat(from.folder, from.name, to.folder, to.name),
            Err(error) => Err(error),
            Ok(_) => Err(Errno::EXIST),
        },
        result => result,
    }
}

/// Copies an entry with modes, links and times. Rejects pipes, sockets and devices.
fn copy(from: FolderEntry<'_>, to: FolderEntry<'_>) -> io::Result<()> {
    let stat = from.lstat()?;
    match confined_open::file_type(&stat) {
        FileType::Symlink => {
            let target = confined_open::link_target(from.folder, from.name)?;
            rustix::fs::symlinkat(&target, to.folder, to.name)?;
        }
        FileType::RegularFile => copy_file(from, to, &stat)?,
        FileType::Directory => copy_folder(from, to, &stat)?,
        _ => {
            let name = from.name.to_string_lossy();
            return Err(io::Error::other(format!(
                "`{name}` is a pipe, a socket or a device"
            )));
        }
    }
    let times = Timestamps {
        last_access: Timespec {
            tv_sec: stat.st_atime,
            tv_nsec: stat.st_atime_nsec as _,
        },
        last_modification: Timespec {
            tv_sec: stat.st_mtime,
            tv_nsec: stat.st_mtime_nsec as _,
        },
    };
    Ok(rustix::fs::utimensat(
        to.folder,
        to.name,
        &times,
        AtFlags::SYMLINK_NOFOLLOW,
    )?)
}

fn copy_file(from: FolderEntry<'_>, to: FolderEntry<'_>, stat: &Stat) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut source = File::from(from.open(READ)?);
    let mut target = File::from(rustix::fs::openat(
        to.folder,
        to.name,
        flags,
        Mode::from_raw_mode(0o600),
    )?);
    io::copy(&mut source, &mut target)?;
    rustix::fs::fchmod(&target, Mode::from_raw_mode(stat.st_mode & 0o7777))?;
    target.sync_all()
}

fn copy_folder(from: FolderEntry<'_>, to: FolderEntry<'_>, stat: &Stat) -> io::Result<()> {
    rustix::fs::mkdirat(to.folder, to.name, Mode::from_raw_mode(0o700))?;
    let (source, target) = (from.open(DIRECTORY_LISTING)?, to.open(DIRECTORY_LISTING)?);
    for (name, _) in confined_open::read_dir(&source)? {
        copy(
            FolderEntry::new(&source, &name),
            FolderEntry::new(&target, &name),
        )?;
    }
    rustix::fs::fchmod(&target, Mode::from_raw_mode(stat.st_mode & 0o7777))?;
    Ok(rustix::fs::fsync(&target)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    #[test]
    fn copies_modes_links_and_times() {
        let temp = tempfile::tempdir().unwrap();
        let from = temp.path().join("from");
        std::fs::create_dir_all(from.join("sub")).unwrap();
        std::fs::write(from.join("sub/a.txt"), "hello").unwrap();
        symlink("a.txt", from.join("sub/link")).unwrap();
        let run = std::fs::Permissions::from_mode(0o750);
        std::fs::set_permissions(from.join("sub/a.txt"), run).unwrap();
        let opened = File::open(temp.path()).unwrap();
        let (old, new) = (
            FolderEntry::new(&opened, OsStr::new("from")),
            FolderEntry::new(&opened, OsStr::new("to")),
        );
        let mut visited = Vec::new();
        let size_before = measure(old, Path::new("from"), &mut |path| {
            visited.push(path.to_owned())
        })
        .unwrap();
        visited.sort();
        assert_eq!(
            visited,
            ["from", "from/sub", "from/sub/a.txt", "from/sub/link"].map(std::path::PathBuf::from)
        );
        let (old_mode, old_time) = {
            let metadata = from.join("sub/a.txt").metadata().unwrap();
            (metadata.mode(), metadata.mtime_nsec())
        };
        move_by_copy(old, new).unwrap();
        let copy = temp.path().join("to/sub/a.txt");
        let metadata = copy.metadata().unwrap();
        assert_eq!(std::fs::read_to_string(&copy).unwrap(), "hello");
        assert_eq!(
            (old_mode, old_time),
            (metadata.mode(), metadata.mtime_nsec())
        );
        assert_eq!(
            std::fs::read_link(temp.path().join("to/sub/link")).unwrap(),
            Path::new("a.txt")
        );
        assert_eq!(
            size_before,
            measure(new, Path::new("to"), &mut |_| {}).unwrap()
        );
        assert!(!from.exists());
    }

    #[test]
    fn keeps_the_original_if_copying_fails() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("from")).unwrap();
        std::fs::write(temp.path().join("from/a.txt"), "hello").unwrap();
        let _socket =
            std::os::unix::net::UnixListener::bind(temp.path().join("from/socket")).unwrap();
        let opened = File::open(temp.path()).unwrap();
        let (old, new) = (
            FolderEntry::new(&opened, OsStr::new("from")),
            FolderEntry::new(&opened, OsStr::new("to")),
        );
        move_by_copy(old, new).unwrap_err();
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1);
        assert_eq!(
            std::fs::read_dir(temp.path().join("from")).unwrap().count(),
            2
        );
    }

    #[test]
    fn rejects_an_existing_target() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join("a"), "a").unwrap();
        std::fs::write(temp.path().join("b"), "b").unwrap();
        let opened = File::open(temp.path()).unwrap();
        let moved = move_entry(
            FolderEntry::new(&opened, OsStr::new("a")),
            FolderEntry::new(&opened, OsStr::new("b")),
        );
        assert_eq!(moved.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(temp.path().join("b")).unwrap(), "b");
    }
}
