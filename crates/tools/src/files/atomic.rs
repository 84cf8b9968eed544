//! Putting new content in place of old: whole, or not at all.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Stat, Uid};
use uuid::Uuid;

/// What the new file takes over from the one before.
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

    /// The rights of a file with other content: never those of whoever owns it (set-user-id).
    fn permissions(self) -> Option<Mode> {
        self.mode.map(|mode| Mode::from_raw_mode(mode & 0o777))
    }
}

/// Writes `bytes` as `name` into a folder. Whoever reads meanwhile sees the old content or the new.
pub fn write_atomically(
    folder: impl AsFd,
    name: &OsStr,
    bytes: &[u8],
    like: FileAttributes,
) -> io::Result<()> {
    let folder = folder.as_fd();
    let mut draft = TempFile {
        folder,
        name: format!(".lango-{}.tmp", Uuid::now_v7().simple()),
        is_persisted: false,
    };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let rights = like.permissions().unwrap_or(Mode::from_raw_mode(0o666));
    let opened = rustix::fs::openat(folder, draft.name.as_str(), flags, rights);
    let mut file = File::from(opened.inspect_err(|_| draft.is_persisted = true)?);
    if let Some((user, group)) = like.owner {
        let ours = rustix::fs::fstat(&file)?;
        if (ours.st_uid, ours.st_gid) != (user, group) {
            // Only some may give files away; the content counts more than the owner.
            let _ =
                rustix::fs::fchown(&file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
        }
    }
    if let Some(rights) = like.permissions() {
        rustix::fs::fchmod(&file, rights)?;
    }
    file.write_all(bytes)?;
    file.sync_all()?;
    rustix::fs::renameat(folder, draft.name.as_str(), folder, name)?;
    draft.is_persisted = true;
    super::confined_open::sync(folder);
    Ok(())
}

/// A file under way; it goes when it does not come to its place.
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
    fn a_failure_leaves_no_draft_behind() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("taken/inside")).unwrap();
        let opened = File::open(folder.path()).unwrap();
        write_atomically(
            &opened,
            OsStr::new("taken"),
            b"x",
            FileAttributes::default(),
        )
        .unwrap_err();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn rights_are_kept_but_not_set_user_id() {
        let folder = tempfile::tempdir().unwrap();
        let opened = File::open(folder.path()).unwrap();
        let like = FileAttributes {
            mode: Some(0o104_751),
            owner: None,
        };
        write_atomically(&opened, OsStr::new("a"), b"x", like).unwrap();
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
