//! The temporary folder of one command. The outer helper, which outlives the command, creates and
//! removes it. It holds a lock on the folder, so an unlocked folder is stale.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::process::geteuid;
use uuid::Uuid;

use crate::files::private_directory::remove_folder;

const TEMP_DIR_PREFIX: &str = "lango-command-";
/// Number of attempts: a concurrent cleanup may remove a folder before it is locked.
const MAX_TRIES: usize = 16;

/// Returns an unused path for a temporary folder.
pub fn new_temp_path(parent: &Path) -> io::Result<PathBuf> {
    // The sandbox needs the real path, without links.
    Ok(parent
        .canonicalize()?
        .join(format!("{TEMP_DIR_PREFIX}{}", Uuid::now_v7().simple())))
}

/// Removes the folders whose helpers were killed.
pub fn remove_stale_temp_dirs(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| {
        entry
            .file_name()
            .to_string_lossy()
            .starts_with(TEMP_DIR_PREFIX)
    }) {
        let path = entry.path();
        // The lock is held during removal, so a helper that is about to use the folder waits and
        // then sees that it was removed.
        if let Ok(folder) = open_folder(&path)
            && is_owned(&folder)
            && flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            let _ = remove_folder(&path);
        }
    }
}

/// A temporary folder in use; removed on drop.
pub struct CommandTempDir {
    path: PathBuf,
    _lock: File,
}

impl CommandTempDir {
    pub fn create(path: &Path) -> io::Result<Self> {
        for _ in 0..MAX_TRIES {
            DirBuilder::new().mode(0o700).create(path)?;
            let Ok(folder) = open_folder(path) else {
                continue;
            };
            flock(&folder, FlockOperation::LockExclusive)?;
            if is_at(&folder, path) {
                return Ok(Self {
                    path: path.to_path_buf(),
                    _lock: folder,
                });
            }
        }
        Err(io::Error::other(format!(
            "{} was removed repeatedly by another process",
            path.display()
        )))
    }
}

impl Drop for CommandTempDir {
    fn drop(&mut self) {
        let _ = remove_folder(&self.path);
    }
}

fn open_folder(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(open(path, flags, Mode::empty())?))
}

/// Returns true if the folder belongs to this user. Folders of other users are left alone.
fn is_owned(folder: &File) -> bool {
    folder
        .metadata()
        .is_ok_and(|metadata| metadata.uid() == geteuid().as_raw())
}

fn is_at(folder: &File, path: &Path) -> bool {
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let at_path = fs::symlink_metadata(path).map(identity);
    folder
        .metadata()
        .map(identity)
        .is_ok_and(|own| at_path.is_ok_and(|at_path| at_path == own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn removes_only_stale_folders() {
        let parent = tempfile::tempdir().unwrap();
        let path_of = |name: &str| parent.path().join(name);
        let used = CommandTempDir::create(&path_of("lango-command-used")).unwrap();
        fs::create_dir_all(path_of("lango-command-left/closed/inside")).unwrap();
        fs::write(path_of("lango-command-left/closed/inside/file"), "x").unwrap();
        fs::set_permissions(
            path_of("lango-command-left/closed"),
            fs::Permissions::from_mode(0o000),
        )
        .unwrap();
        fs::create_dir_all(path_of("kept/inside")).unwrap();
        symlink(path_of("kept"), path_of("lango-command-link")).unwrap();
        fs::write(path_of("lango-command-file"), "x").unwrap();
        remove_stale_temp_dirs(parent.path());
        let mut names: Vec<_> = fs::read_dir(parent.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(
            names,
            [
                "kept",
                "lango-command-file",
                "lango-command-link",
                "lango-command-used"
            ]
        );
        assert!(path_of("kept/inside").exists());
        drop(used);
        assert!(!path_of("lango-command-used").exists());
    }

    #[test]
    fn creates_folders_during_concurrent_cleanup() {
        let parent = tempfile::tempdir().unwrap();
        let is_finished = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_finished.load(std::sync::atomic::Ordering::Relaxed) {
                    remove_stale_temp_dirs(parent.path());
                }
            });
            for _ in 0..300 {
                let path = new_temp_path(parent.path()).unwrap();
                let temp_dir = CommandTempDir::create(&path).unwrap();
                assert!(path.is_dir());
                drop(temp_dir);
                assert!(!path.exists());
            }
            is_finished.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
}
