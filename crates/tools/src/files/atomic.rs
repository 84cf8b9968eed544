//! Replaces file content atomically.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Stat, Uid};
use uuid::Uuid;

/// Attributes that the new file takes over from the old one.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileAttributes {
    pub mode: Option<u32>,
    pub owner: Option<(u32, u32)>,
}

impl FileAttributes {
    pub fn from_stat(stat: &Stat) -> Self {
        Self {
            mode: Some(stat.st_mode),
            owner: Some((stat.st_uid, stat.st_gid)),
        }
    }

    /// Returns the permission bits for changed content, without set-user-id, set-group-id and
    /// sticky.
    fn permissions(self) -> Option<Mode> {
        self.mode.map(|mode| Mode::from_raw_mode(mode & 0o777))
    }
}

/// Writes `bytes` as `name` into a folder. Concurrent readers see either the old or the new
/// content.
pub fn write_atomically(
    folder: impl AsFd,
    name: &OsStr,
    bytes: &[u8],
    attributes: FileAttributes,
) -> io::Result<()> {
    let folder = folder.as_fd();
    let mut temp = TempFile {
        folder,
        name: format!(".lango-{}.tmp", Uuid::now_v7().simple()),
        is_persisted: false,
    };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let permissions = attributes
        .permissions()
        .unwrap_or(Mode::from_raw_mode(0o666));
    let opened = rustix::fs::openat(folder, temp.name.as_str(), flags, permissions);
    let mut file = File::from(opened.inspect_err(|_| temp.is_persisted = true)?);
    if let Some((user, group)) = attributes.owner {
        let ours = rustix::fs::fstat(&file)?;
        if (ours.st_uid, ours.st_gid) != (user, group) {
            // Changing the owner needs privileges; the content matters more than the owner.
            let _ =
                rustix::fs::fchown(&file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
        }
    }
    if let Some(permissions) = attributes.permissions() {
        rustix::fs::fchmod(&file, permissions)?;
    }
    file.write_all(bytes)?;
    file.sync_all()?;
    rustix::fs::renameat(folder, temp.name.as_str(), folder, name)?;
    temp.is_persisted = true;
    super::confined_open::sync(folder);
    Ok(())
}

/// A temporary file; removed on drop unless it was renamed to its final name.
struct TempFile<'a> {
    folder: BorrowedFd<'a>,
    name: String,
    is_persisted: bool,
}

impl Drop for TempFile<'_> {
    fn drop(&mut self) {
        if !self.is_persisted {
            let _ = rustix::fs::unlinkat(self.folder, self.name.as_str(), AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn removes_the_temporary_file_after_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("occupied/inside")).unwrap();
        let opened = File::open(folder.path()).unwrap();
        write_atomically(
            &opened,
            OsStr::new("occupied"),
            b"x",
            FileAttributes::default(),
        )
        .unwrap_err();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn keeps_permissions_without_set_user_id() {
        let folder = tempfile::tempdir().unwrap();
        let opened = File::open(folder.path()).unwrap();
        let attributes = FileAttributes {
            mode: Some(0o104_751),
            owner: None,
        };
        write_atomically(&opened, OsStr::new("a"), b"x", attributes).unwrap();
        let mode = folder
            .path()
            .join("a")
            .metadata()
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o751);
    }
}
