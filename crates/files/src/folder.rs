//! A folder to read from, and how far its links may lead.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::beneath::{self, NAMES, PLACE, READ};
use crate::reading::{Unreadable, read_opened};

/// Everything in it is opened below a folder that is already open.
#[derive(Debug)]
pub struct Folder {
    root: OwnedFd,
    /// Below the root.
    path: PathBuf,
    links: Links,
}

#[derive(Clone, Copy, Debug)]
enum Links {
    Anywhere,
    Beneath,
}

impl Folder {
    /// A folder of somebody who may read everything anyway: links lead wherever they lead.
    pub fn free(folder: &Path) -> Result<Self, Unreadable> {
        let root = rustix::fs::open(folder, PLACE, Mode::empty())?;
        Ok(Self { root, path: PathBuf::new(), links: Links::Anywhere })
    }

    /// The folder at `path` below `root`. Neither this path nor a link in the folder leads out of `root`.
    pub fn beneath(root: &Path, path: &Path) -> Result<Self, Unreadable> {
        let root = rustix::fs::open(root, PLACE, Mode::empty())?;
        beneath::open(&root, path, PLACE)?;
        Ok(Self { root, path: path.to_owned(), links: Links::Beneath })
    }

    /// What is in the folder at `path`, sorted by name, with the kind where the file system tells it.
    pub fn names(&self, path: &Path) -> Result<Vec<(OsString, FileType)>, Unreadable> {
        let mut names = beneath::names(self.open(path, NAMES)?)?;
        names.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(names)
    }

    /// The whole of a regular file of at most `most` bytes.
    pub fn read(&self, path: &Path, most: u64) -> Result<Vec<u8>, Unreadable> {
        read_opened(self.open(path, READ)?, most)
    }

    fn open(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        match self.links {
            Links::Beneath => beneath::open(&self.root, &self.path.join(path), flags),
            Links::Anywhere if path.as_os_str().is_empty() => {
                rustix::fs::openat(&self.root, c".", flags, Mode::empty())
            }
            Links::Anywhere => rustix::fs::openat(&self.root, path, flags, Mode::empty()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::read_bounded;

    fn read(folder: &Folder, name: &str) -> Result<String, Unreadable> {
        folder.read(Path::new(name), 100).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    /// B100
    #[test]
    fn nothing_outside_is_read_whatever_leads_there() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        fs::create_dir_all(root.join("p/deep")).unwrap();
        fs::write(outer.path().join("key"), "secret").unwrap();
        fs::write(root.join("inside"), "inside").unwrap();
        let key = outer.path().join("key");
        for (name, target) in [
            ("absolute", key.as_path()),
            ("relative", Path::new("../../key")),
            ("folder", outer.path()),
            ("environ", Path::new("/proc/self/environ")),
            ("cwd", Path::new("/proc/self/cwd")),
            ("round", Path::new("round")),
            ("within", Path::new("../inside")),
        ] {
            symlink(target, root.join("p").join(name)).unwrap();
        }
        let folder = Folder::beneath(&root, Path::new("p")).unwrap();
        for name in
            ["absolute", "relative", "environ", "folder/key", "cwd/x", "../../key", "deep/../../../key"]
        {
            assert_eq!(read(&folder, name), Err(Unreadable::Outside), "{name}");
        }
        assert_eq!(read(&folder, key.to_str().unwrap()), Err(Unreadable::Outside));
        assert!(matches!(read(&folder, "round"), Err(Unreadable::Failed(_))));
        assert_eq!(folder.names(Path::new("folder")).unwrap_err(), Unreadable::Outside);
        assert_eq!(read(&folder, "within").unwrap(), "inside");
        assert_eq!(read(&Folder::free(&root.join("p")).unwrap(), "relative").unwrap(), "secret");
        for path in ["..", "/", "p/../..", "p/folder", "p/cwd"] {
            assert_eq!(Folder::beneath(&root, Path::new(path)).unwrap_err(), Unreadable::Outside, "{path}");
        }
        assert_eq!(Folder::beneath(&root, Path::new("inside")).unwrap_err(), Unreadable::NotAFolder);
    }

    /// B100
    #[test]
    fn what_never_ends_is_not_waited_for() {
        let root = tempfile::tempdir().unwrap();
        let (pipe, large) = (root.path().join("pipe"), root.path().join("large"));
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        fs::File::create(&large).unwrap().set_len(100 * 1024 * 1024).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(root.path().join("socket")).unwrap();
        symlink("/dev/zero", root.path().join("zero")).unwrap();
        for folder in
            [Folder::free(root.path()).unwrap(), Folder::beneath(root.path(), Path::new("")).unwrap()]
        {
            assert_eq!(read(&folder, "pipe"), Err(Unreadable::NotRegular));
            assert_eq!(read(&folder, "socket"), Err(Unreadable::NotRegular));
            assert_eq!(read(&folder, "large"), Err(Unreadable::TooLarge(100)));
            assert_eq!(read(&folder, "none"), Err(Unreadable::Missing));
        }
        assert_eq!(read(&Folder::free(root.path()).unwrap(), "zero"), Err(Unreadable::NotRegular));
        assert_eq!(read_bounded(&pipe, 100), Err(Unreadable::NotRegular));
        assert_eq!(read_bounded(root.path(), 100), Err(Unreadable::NotRegular));
    }
}
