//! Installs skills into the user's folder, atomically.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::snapshot::{SkillSnapshot, SnapshotEntryKind, SnapshotPurpose};
use super::{Skill, SkillError, SkillOrigin, from_snapshot, read_skill, real_folder};

/// A file of a skill to write.
pub(super) struct NewSkillFile {
    /// Relative to the skill's folder.
    pub path: String,
    pub executable: bool,
    pub content: Vec<u8>,
}

/// Copies the skill in `source` to `<user_folder>/skills/<name>`. The caller must have the user's
/// approval, and records the trust. Blocks while it copies.
pub fn install_from(source: &Path, user_folder: &Path) -> Result<Skill, SkillError> {
    let real = real_folder(source)?;
    let snapshot = SkillSnapshot::take(&real, SnapshotPurpose::Copy)?;
    let name = from_snapshot(source, real, SkillOrigin::User, &snapshot)?.name;
    let files = snapshot.files.into_iter().map(|entry| NewSkillFile {
        executable: entry.kind == SnapshotEntryKind::Executable,
        content: entry.content.unwrap_or_default(),
        path: entry.path,
    });
    install(&name, &files.collect::<Vec<_>>(), user_folder)
}

/// Writes a new skill to a temporary folder, checks that it can be read, and then moves it to its
/// final path.
pub(super) fn install(
    name: &str,
    files: &[NewSkillFile],
    user_folder: &Path,
) -> Result<Skill, SkillError> {
    let skills = user_folder.join("skills");
    let target = skills.join(name);
    check_not_existing(&target)?;
    let io_error = |error: io::Error| SkillError::for_path(&target, error.to_string());
    make_folders(&skills).map_err(io_error)?;
    let staging = skills.join(format!(".new-{}", uuid::Uuid::now_v7().simple()));
    let draft = staging.join(name);
    let moved = make_folders(&draft)
        .and_then(|()| write_files(&draft, files))
        .map_err(io_error)
        .and_then(|()| read_skill(&draft, SkillOrigin::User))
        .and_then(|_| check_not_existing(&target))
        .and_then(|()| fs::rename(&draft, &target).map_err(io_error));
    // A staging folder that cannot be removed is hidden and harmless.
    let _ = fs::remove_dir_all(&staging);
    moved?;
    read_skill(&target, SkillOrigin::User)
}

pub(super) fn check_not_existing(target: &Path) -> Result<(), SkillError> {
    match target.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(SkillError::for_path(target, error.to_string())),
        Ok(_) => Err(SkillError::for_path(
            target,
            "a skill of this name already exists",
        )),
    }
}

fn write_files(folder: &Path, files: &[NewSkillFile]) -> io::Result<()> {
    for file in files {
        let path: PathBuf = folder.join(&file.path);
        if let Some(parent) = path.parent() {
            make_folders(parent)?;
        }
        let mode = if file.executable { 0o700 } else { 0o600 };
        let mut opened = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(path)?;
        opened.write_all(&file.content)?;
        opened.sync_all()?;
    }
    Ok(())
}

fn make_folders(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}
