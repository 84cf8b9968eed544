//! Skills: folders with instructions and scripts in the open Agent Skills form, `<name>/SKILL.md`.
//!
//! A skill is other people's text until its owner has seen it. So it is known by a fingerprint of everything in its
//! folder: what was allowed once is this content, not this name, and nothing acts on content that changed since.

mod check;
mod command;
mod create;
mod format;
mod install;
mod quote;
mod shelf;
mod snapshot;
mod suspicion;
mod tools;
mod trust;
mod using;

use std::path::{Path, PathBuf};

use lango_domain::text;

use snapshot::{Purpose, Snapshot};

pub use check::{Finding, Level, check};
pub use install::add;
pub use shelf::{Shelf, Stamp, UnknownSkill};
pub use tools::{SkillSettings, tools};
pub use trust::TrustFile;

/// The file that makes a folder a skill.
const SKILL_FILE: &str = "SKILL.md";
const MOST_SKILL_FILE_BYTES: usize = 256 * 1024;

/// One skill, as it was when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    pub name: String,
    /// On one line.
    pub description: String,
    /// What it says it needs. Shown to the user; it grants nothing.
    pub allowed_tools: Vec<String>,
    pub body: String,
    /// Absolute, without links.
    pub folder: PathBuf,
    pub origin: Origin,
    /// SHA-256 over the names, executable bits and contents of all its files.
    pub fingerprint: String,
}

/// Who brought a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It came with the project's files.
    Project,
    /// The user keeps it.
    User,
}

/// What is wrong with a skill, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {message}", text::strip_control_chars(&file.to_string_lossy()))]
pub struct SkillMistake {
    pub file: PathBuf,
    pub line: usize,
    pub message: String,
}

impl SkillMistake {
    /// A mistake of a file or folder as a whole.
    fn whole(file: impl Into<PathBuf>, message: impl AsRef<str>) -> Self {
        Self { file: file.into(), line: 1, message: text::strip_control_chars(message.as_ref()) }
    }
}

/// Reads the skill in `folder`. Reads all of its files, so it blocks for as long as that takes.
pub fn read_skill(folder: &Path, origin: Origin) -> Result<Skill, SkillMistake> {
    let real = real_folder(folder)?;
    let snapshot = Snapshot::take(&real, Purpose::Use { keep: &[SKILL_FILE] })?;
    understand(folder, real, origin, &snapshot)
}

/// The files of a skill with their sizes, as long as they are what was read. Blocks while it reads them.
pub fn files_of(skill: &Skill) -> Option<Vec<(String, usize)>> {
    let now = Snapshot::take(&skill.folder, Purpose::Use { keep: &[] }).ok()?;
    let is_same = now.fingerprint == skill.fingerprint;
    is_same.then(|| now.files.into_iter().map(|entry| (entry.path, entry.size)).collect())
}

/// The folder without links. What is no folder is a mistake.
fn real_folder(folder: &Path) -> Result<PathBuf, SkillMistake> {
    folder.canonicalize().map_err(|error| SkillMistake::whole(folder, error.to_string()))
}

/// The skill that a snapshot holds; `folder` is the path under which it was found.
fn understand(
    folder: &Path,
    real: PathBuf,
    origin: Origin,
    snapshot: &Snapshot,
) -> Result<Skill, SkillMistake> {
    let file = folder.join(SKILL_FILE);
    let text = skill_file(snapshot).map_err(|why| SkillMistake::whole(&file, why))?;
    let page = format::parse(text).map_err(|mistake| SkillMistake {
        file: file.clone(),
        line: mistake.line,
        message: mistake.message,
    })?;
    let called = folder.file_name().or(real.file_name()).unwrap_or_default().to_string_lossy();
    if called != page.name.as_str() {
        let message =
            format!("`name` is `{}`, but the folder is called `{called}`; they must be equal", page.name);
        return Err(SkillMistake { file, line: page.name_line, message: text::strip_control_chars(&message) });
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

fn skill_file(snapshot: &Snapshot) -> Result<&str, String> {
    let content = snapshot.content(SKILL_FILE).ok_or("there is no such file; every skill needs one")?;
    if content.len() > MOST_SKILL_FILE_BYTES {
        return Err(format!(
            "it has {} KiB; at most {} fit",
            content.len() / 1024,
            MOST_SKILL_FILE_BYTES / 1024
        ));
    }
    std::str::from_utf8(content)
        .map_err(|error| format!("it is not valid UTF-8 from byte {} on", error.valid_up_to()))
}
