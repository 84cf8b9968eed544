//! Skills: folders with instructions and scripts in the open Agent Skills format,
//! `<name>/SKILL.md`.
//!
//! A skill is untrusted text until the user has reviewed it. It is identified by a fingerprint of
//! all files in its folder: trust is granted to the content, not to the name, and content that
//! changed since is not used.

mod catalog;
mod check;
mod create;
mod install;
mod quote;
mod scan;
mod script_command;
mod skill_file;
mod snapshot;
mod tools;
mod trust;
mod use_skill;

use std::path::{Path, PathBuf};

use lango_text::sanitize;

use snapshot::{SkillSnapshot, SnapshotPurpose};

pub use catalog::{CatalogStamp, SkillCatalog, UnknownSkillError};
pub use check::{Finding, FindingLevel, check};
pub use install::install_from;
pub use tools::{SkillSettings, tools};
pub use trust::TrustFile;

/// The file that makes a folder a skill.
const SKILL_FILE: &str = "SKILL.md";
const MAX_SKILL_FILE_BYTES: usize = 256 * 1024;

/// A skill as it was when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    pub name: String,
    /// On one line.
    pub description: String,
    /// The tools that the skill says it needs. Shown to the user; they grant nothing.
    pub allowed_tools: Vec<String>,
    pub body: String,
    /// Absolute, without links.
    pub folder: PathBuf,
    pub origin: SkillOrigin,
    /// SHA-256 over the names, executable bits and contents of all its files.
    pub fingerprint: String,
}

/// The source of a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkillOrigin {
    /// Part of the project's files.
    Project,
    /// Installed by the user.
    User,
}

/// An error in a skill, with its file and line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {message}", sanitize::strip_control_chars(&file.to_string_lossy()))]
pub struct SkillError {
    pub file: PathBuf,
    pub line: usize,
    pub message: String,
}

impl SkillError {
    /// An error that concerns a file or folder as a whole.
    fn for_path(file: impl Into<PathBuf>, message: impl AsRef<str>) -> Self {
        Self {
            file: file.into(),
            line: 1,
            message: sanitize::strip_control_chars(message.as_ref()),
        }
    }
}

/// Reads the skill in `folder`. Blocks while it reads all of its files.
pub fn read_skill(folder: &Path, origin: SkillOrigin) -> Result<Skill, SkillError> {
    let real = real_folder(folder)?;
    let snapshot = SkillSnapshot::take(
        &real,
        SnapshotPurpose::Use {
            contents_of: &[SKILL_FILE],
        },
    )?;
    from_snapshot(folder, real, origin, &snapshot)
}

/// Returns the files of a skill with their sizes, or `None` if they changed since the skill was
/// read. Blocks.
pub fn list_files(skill: &Skill) -> Option<Vec<(String, usize)>> {
    let now = SkillSnapshot::take(&skill.folder, SnapshotPurpose::Use { contents_of: &[] }).ok()?;
    let is_same = now.fingerprint == skill.fingerprint;
    is_same.then(|| {
        now.files
            .into_iter()
            .map(|entry| (entry.path, entry.size))
            .collect()
    })
}

/// Returns the real path of the folder, without links.
fn real_folder(folder: &Path) -> Result<PathBuf, SkillError> {
    folder
        .canonicalize()
        .map_err(|error| SkillError::for_path(folder, error.to_string()))
}

/// Builds the skill from a snapshot; `folder` is the path it was found under.
fn from_snapshot(
    folder: &Path,
    real: PathBuf,
    origin: SkillOrigin,
    snapshot: &SkillSnapshot,
) -> Result<Skill, SkillError> {
    let file = folder.join(SKILL_FILE);
    let text = skill_file_text(snapshot).map_err(|reason| SkillError::for_path(&file, reason))?;
    let page = skill_file::parse(text).map_err(|error| SkillError {
        file: file.clone(),
        line: error.line,
        message: error.message,
    })?;
    let folder_name = folder
        .file_name()
        .or(real.file_name())
        .unwrap_or_default()
        .to_string_lossy();
    if folder_name != page.name.as_str() {
        let message = format!(
            "`name` is `{}`, but the folder is called `{folder_name}`; they must be equal",
            page.name
        );
        return Err(SkillError {
            file,
            line: page.name_line,
            message: sanitize::strip_control_chars(&message),
        });
    }
    Ok(Skill {
        name: page.name,
        description: page.description,
        allowed_tools: page.allowed_tools,
        body: page.body,
        folder: real,
        origin,
        fingerprint: snapshot.fingerprint.clone(),
    })
}

fn skill_file_text(snapshot: &SkillSnapshot) -> Result<&str, String> {
    let content = snapshot
        .content(SKILL_FILE)
        .ok_or("no such file; every skill needs one")?;
    if content.len() > MAX_SKILL_FILE_BYTES {
        return Err(format!(
            "it has {} KiB; the limit is {} KiB",
            content.len() / 1024,
            MAX_SKILL_FILE_BYTES / 1024
        ));
    }
    std::str::from_utf8(content)
        .map_err(|error| format!("it is not valid UTF-8 from byte {} on", error.valid_up_to()))
}
