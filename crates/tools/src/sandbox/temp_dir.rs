//! The temporary folder of one command. Whoever makes it also removes it: the outer helper, which outlives the command. It
//! holds a lock on the folder, so that a folder without one belongs to nobody any more.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::process::geteuid;
use uuid::Uuid;

use crate::files::private_directory::remove_folder;

const TEMP_DIR_PREFIX: &str = "lango-command-";
/// Somebody who clears up may come between making a folder and locking it; then it is made again.
const MAX_TRIES: usize = 16;

/// A path for such a folder; nothing is there yet.
pub fn new_temp_path(parent: &Path) -> io::Result<PathBuf> {
    // A link among its parents would be another path for the sandbox.
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
        // The lock is held while the folder is removed: whoever is about to use it waits, and sees that it is gone.
        if let Ok(folder) = open_folder(&path)
            && is_owned(&folder)
            && flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            let _ = remove_folder(&path);
        }
    }
}

/// The folder while it is used; it goes with this value.
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
            "{} is removed again and again",
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

/// Whether it is this user's. Others may make folders of that name too, and nobody else clears up for them.
fn is_owned(folder: &File) -> bool {
    folder
        .metadata()
        .is_ok_and(|found| found.uid() == geteuid().as_raw())
}

fn is_at(folder: &File, path: &Path) -> bool {
    let here = |found: fs::Metadata| (found.dev(), found.ino());
    let named = fs::symlink_metadata(path).map(here);
    folder
        .metadata()
        .map(here)
        .is_ok_and(|own| named.is_ok_and(|named| named == own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn what_nobody_uses_any_more_is_removed_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let place = |name: &str| parent.path().join(name);
        let used = CommandTempDir::create(&place("lango-command-used")).unwrap();
        fs::create_dir_all(place("lango-command-left/closed/inside")).unwrap();
        fs::write(place("lango-command-left/closed/inside/file"), "x").unwrap();
        fs::set_permissions(
            place("lango-command-left/closed"),
            fs::Permissions::from_mode(0o000),
        )
        .unwrap();
        fs::create_dir_all(place("kept/inside")).unwrap();
        symlink(place("kept"), place("lango-command-link")).unwrap();
        fs::write(place("lango-command-file"), "x").unwrap();
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
        assert!(place("kept/inside").exists());
        drop(used);
        assert!(!place("lango-command-used").exists());
    }

    #[test]
    fn a_folder_is_made_while_others_clear_up() {
        let parent = tempfile::tempdir().unwrap();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    remove_stale_temp_dirs(parent.path());
                }
            });
            for _ in 0..300 {
                let path = new_temp_path(parent.path()).unwrap();
                let made = CommandTempDir::create(&path).unwrap();
                assert!(path.is_dir());
                drop(made);
                assert!(!path.exists());
            }
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
}
