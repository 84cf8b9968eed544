//! A folder to read from, with a policy for links.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::bounded_read::{ReadError, read_bounded_fd};
use crate::confined_open::{self, DIRECTORY_LISTING, DIRECTORY_PATH, READ};

/// Reads files relative to an open folder.
#[derive(Debug)]
pub struct FolderReader {
    root: OwnedFd,
    /// Relative to the root.
    path: PathBuf,
    links: LinkPolicy,
}

#[derive(Clone, Copy, Debug)]
enum LinkPolicy {
    Anywhere,
    Beneath,
}

impl FolderReader {
    /// Opens a folder of a trusted user. Links may lead anywhere.
    pub fn open_unconfined(folder: &Path) -> Result<Self, ReadError> {
        let root = rustix::fs::open(folder, DIRECTORY_PATH, Mode::empty())?;
        Ok(Self {
            root,
            path: PathBuf::new(),
            links: LinkPolicy::Anywhere,
        })
    }

    /// Opens the folder at `path` below `root`. Neither this path nor a link in the folder may lead
    /// out of `root`.
    pub fn open_beneath(root: &Path, path: &Path) -> Result<Self, ReadError> {
        let root = rustix::fs::open(root, DIRECTORY_PATH, Mode::empty())?;
        confined_open::open(&root, path, DIRECTORY_PATH)?;
        Ok(Self {
            root,
            path: path.to_owned(),
            links: LinkPolicy::Beneath,
        })
    }

    /// Returns the names in the folder at `path`, sorted, with their types if the file system
    /// reports them.
    pub fn read_dir(&self, path: &Path) -> Result<Vec<(OsString, FileType)>, ReadError> {
        let mut names = confined_open::read_dir(self.open(path, DIRECTORY_LISTING)?)?;
        names.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(names)
    }

    /// Reads a regular file of at most `max_bytes`.
    pub fn read(&self, path: &Path, max_bytes: u64) -> Result<Vec<u8>, ReadError> {
        read_bounded_fd(self.open(path, READ)?, max_bytes)
    }

    fn open(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        match self.links {
            LinkPolicy::Beneath => confined_open::open(&self.root, &self.path.join(path), flags),
            LinkPolicy::Anywhere if path.as_os_str().is_empty() => {
                rustix::fs::openat(&self.root, c".", flags, Mode::empty())
            }
            LinkPolicy::Anywhere => rustix::fs::openat(&self.root, path, flags, Mode::empty()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::read_bounded;

    fn read(folder: &FolderReader, name: &str) -> Result<String, ReadError> {
        folder
            .read(Path::new(name), 100)
            .map(|bytes| String::from_utf8(bytes).unwrap())
    }

    /// B100
    #[test]
    fn rejects_paths_and_links_that_lead_outside() {
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
            ("loop", Path::new("loop")),
            ("within", Path::new("../inside")),
        ] {
            symlink(target, root.join("p").join(name)).unwrap();
        }
        let folder = FolderReader::open_beneath(&root, Path::new("p")).unwrap();
        for name in [
            "absolute",
            "relative",
            "environ",
            "folder/key",
            "cwd/x",
            "../../key",
            "deep/../../../key",
        ] {
            assert_eq!(read(&folder, name), Err(ReadError::Outside), "{name}");
        }
        assert_eq!(
            read(&folder, key.to_str().unwrap()),
            Err(ReadError::Outside)
        );
        assert!(matches!(read(&folder, "loop"), Err(ReadError::Failed(_))));
        assert_eq!(
            folder.read_dir(Path::new("folder")).unwrap_err(),
            ReadError::Outside
        );
        assert_eq!(read(&folder, "within").unwrap(), "inside");
        assert_eq!(
            read(
                &FolderReader::open_unconfined(&root.join("p")).unwrap(),
                "relative"
            )
            .unwrap(),
            "secret"
        );
        for path in ["..", "/", "p/../..", "p/folder", "p/cwd"] {
            assert_eq!(
                FolderReader::open_beneath(&root, Path::new(path)).unwrap_err(),
                ReadError::Outside,
                "{path}"
            );
        }
        assert_eq!(
            FolderReader::open_beneath(&root, Path::new("inside")).unwrap_err(),
            ReadError::NotAFolder
        );
    }

    /// B100
    #[test]
    fn rejects_pipes_sockets_devices_and_large_files() {
        let root = tempfile::tempdir().unwrap();
        let (pipe, large) = (root.path().join("pipe"), root.path().join("large"));
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        fs::File::create(&large)
            .unwrap()
            .set_len(100 * 1024 * 1024)
            .unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(root.path().join("socket")).unwrap();
        symlink("/dev/zero", root.path().join("zero")).unwrap();
        for folder in [
            FolderReader::open_unconfined(root.path()).unwrap(),
            FolderReader::open_beneath(root.path(), Path::new("")).unwrap(),
        ] {
            assert_eq!(read(&folder, "pipe"), Err(ReadError::NotRegular));
            assert_eq!(read(&folder, "socket"), Err(ReadError::NotRegular));
            assert_eq!(read(&folder, "large"), Err(ReadError::TooLarge(100)));
            assert_eq!(read(&folder, "none"), Err(ReadError::Missing));
        }
        assert_eq!(
            read(&FolderReader::open_unconfined(root.path()).unwrap(), "zero"),
            Err(ReadError::NotRegular)
        );
        assert_eq!(read_bounded(&pipe, 100), Err(ReadError::NotRegular));
        assert_eq!(read_bounded(root.path(), 100), Err(ReadError::NotRegular));
    }
}
