//! The catalog of all skills, of the user and of the project.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lango_text::{sanitize, suggest};
use sha2::{Digest as _, Sha256};

use super::snapshot::MAX_ENTRIES;
use super::{Skill, SkillError, SkillOrigin, TrustFile, read_skill};

/// Maximum number of skills, because models cannot distinguish more tools. Skills of the user come
/// first.
const MAX_SKILLS: usize = 100;
/// The limit of providers for the name of a tool.
const MAX_TOOL_NAME_LEN: usize = 64;

pub struct SkillCatalog {
    skills: Vec<Arc<Skill>>,
    warnings: SkillWarnings,
    trusted: TrustFile,
    folders: SkillFolders,
    stamp: CatalogStamp,
}

/// Warnings about skills that cannot be used.
#[derive(Default)]
struct SkillWarnings {
    all: Vec<String>,
    /// Warnings about the user's own skills. The others quote text of an unconfirmed project.
    own: Vec<String>,
}

impl SkillWarnings {
    fn add(&mut self, origin: SkillOrigin, warning: String) {
        if origin == SkillOrigin::User {
            self.own.push(warning.clone());
        }
        self.all.push(warning);
    }
}

/// The error for a skill that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown skill `{name}`{hint}")]
pub struct UnknownSkillError {
    name: String,
    hint: String,
}

/// A value that differs when the skills may have changed. It is computed from times and sizes, so
/// a difference is only a reason to read them again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatalogStamp([u8; 32]);

impl SkillCatalog {
    /// Reads `<project>/.lango/skills/*` and `<user>/skills/*`. A broken skill is a warning. Blocks
    /// while it reads.
    pub fn load(project: Option<&Path>, user: Option<&Path>, trusted: TrustFile) -> Self {
        let folders = SkillFolders::new(project, user, &trusted);
        // Taken first, so that changes during the read are noticed later.
        let stamp = folders.stamp();
        let mut found = BTreeMap::new();
        let mut warnings = SkillWarnings::default();
        for (folder, origin) in folders.existing_folders(&mut warnings) {
            let (skills, omitted) = subfolders(&folder);
            if omitted > 0 {
                let shown = sanitize::strip_control_chars(&folder.to_string_lossy());
                let warning =
                    format!("{shown}: {omitted} folders skipped; the limit is {MAX_SKILLS} skills");
                warnings.add(origin, warning);
            }
            for skill in skills {
                match read_one(&folder, &skill, origin) {
                    Ok(skill) => insert_skill(skill, &mut found, &mut warnings),
                    Err(error) => warnings.add(origin, error.to_string()),
                }
            }
        }
        Self {
            skills: found.into_values().collect(),
            warnings,
            trusted,
            folders,
            stamp,
        }
    }

    /// Returns the skills, sorted by name.
    pub fn skills(&self) -> &[Arc<Skill>] {
        &self.skills
    }

    pub fn get(&self, name: &str) -> Result<&Skill, UnknownSkillError> {
        self.skills
            .iter()
            .find(|skill| skill.name == name)
            .map(AsRef::as_ref)
            .ok_or_else(|| {
                let known = self.skills.iter().map(|skill| skill.name.as_str());
                let hint = suggest::did_you_mean(name, known)
                    .map_or(String::new(), |hint| format!("; {hint}"));
                UnknownSkillError {
                    name: sanitize::one_line(name),
                    hint,
                }
            })
    }

    /// Returns the warnings about skills that cannot be used.
    pub fn warnings(&self) -> &[String] {
        &self.warnings.all
    }

    /// Returns the warnings that models may read, and the number of the others.
    pub(super) fn warnings_for_models(&self) -> (&[String], usize) {
        (
            &self.warnings.own,
            self.warnings.all.len() - self.warnings.own.len(),
        )
    }

    pub fn trusted(&self) -> &TrustFile {
        &self.trusted
    }

    /// Returns the state of the folders when the catalog was loaded.
    pub fn stamp(&self) -> CatalogStamp {
        self.stamp
    }

    /// Returns true if the folders did not change. Checks only times and sizes.
    pub fn is_current(&self) -> bool {
        self.folders.stamp() == self.stamp
    }
}

/// Returns the reason why a skill with a valid name cannot be offered as a tool.
pub(super) fn tool_name_problem(name: &str) -> Option<String> {
    let limit = MAX_TOOL_NAME_LEN - super::tools::TOOL_PREFIX.len();
    (name.len() > limit).then(|| {
        format!(
            "the name has {} characters; model providers accept at most {limit}",
            name.len()
        )
    })
}

fn read_one(skills: &Path, folder: &Path, origin: SkillOrigin) -> Result<Skill, SkillError> {
    let skill = read_skill(folder, origin)?;
    // The user may link to a skill in another folder. A project must not refer to folders outside
    // of it.
    let is_direct_child = || {
        skills
            .canonicalize()
            .is_ok_and(|skills| skill.folder.parent() == Some(&skills))
    };
    if origin == SkillOrigin::Project && !is_direct_child() {
        return Err(SkillError::for_path(
            folder,
            "a project's skill must not be a link",
        ));
    }
    match tool_name_problem(&skill.name) {
        Some(problem) => Err(SkillError::for_path(folder, problem)),
        None => Ok(skill),
    }
}

fn insert_skill(
    skill: Skill,
    found: &mut BTreeMap<String, Arc<Skill>>,
    warnings: &mut SkillWarnings,
) {
    let origin = skill.origin;
    let folder = sanitize::strip_control_chars(&skill.folder.to_string_lossy());
    if let Some(first) = found.get(&skill.name) {
        let used = sanitize::strip_control_chars(&first.folder.to_string_lossy());
        warnings.add(
            origin,
            format!("{folder}: not used, because {used} has the same name"),
        );
    } else if found.len() >= MAX_SKILLS {
        warnings.add(
            origin,
            format!("{folder}: not used, because the limit of {MAX_SKILLS} skills is reached"),
        );
    } else {
        found.insert(skill.name.clone(), Arc::new(skill));
    }
}

/// The folders that are searched for skills.
struct SkillFolders {
    project: Option<PathBuf>,
    user: Option<PathBuf>,
    /// The trust file, because descriptions depend on it.
    trusted: Option<PathBuf>,
}

impl SkillFolders {
    fn new(project: Option<&Path>, user: Option<&Path>, trusted: &TrustFile) -> Self {
        let owned = |path: Option<&Path>| path.map(Path::to_owned);
        Self {
            project: owned(project),
            user: owned(user),
            trusted: owned(trusted.path()),
        }
    }

    fn user_skills(&self) -> Option<PathBuf> {
        self.user.as_ref().map(|user| user.join("skills"))
    }

    fn project_skills(&self) -> Option<PathBuf> {
        self.project
            .as_ref()
            .map(|project| project.join(".lango/skills"))
    }

    /// Returns the folders that exist, the user's first, because its skills take precedence.
    fn existing_folders(&self, warnings: &mut SkillWarnings) -> Vec<(PathBuf, SkillOrigin)> {
        let user = self.user_skills().filter(|folder| folder.is_dir());
        let project = self
            .project_skills()
            .filter(|folder| folder.is_dir())
            .filter(|folder| {
                let real = folder.canonicalize().ok();
                // In the home folder, both folders may be the same.
                if user
                    .as_ref()
                    .is_some_and(|user| user.canonicalize().ok() == real)
                {
                    return false;
                }
                let root = self
                    .project
                    .as_ref()
                    .and_then(|project| project.canonicalize().ok());
                let is_inside = root
                    .zip(real)
                    .is_some_and(|(root, real)| real.starts_with(root));
                if !is_inside {
                    let shown = sanitize::strip_control_chars(&folder.to_string_lossy());
                    warnings.add(
                        SkillOrigin::Project,
                        format!("{shown}: not used, because it leads out of the project"),
                    );
                }
                is_inside
            });
        let user = user.clone().map(|folder| (folder, SkillOrigin::User));
        user.into_iter()
            .chain(project.map(|folder| (folder, SkillOrigin::Project)))
            .collect()
    }

    fn stamp(&self) -> CatalogStamp {
        let mut entries = Vec::new();
        let trusted = self
            .trusted
            .iter()
            .filter_map(|file| Some((file, fs::metadata(file).ok()?)));
        entries.extend(trusted.map(|(file, metadata)| stamp_entry(file, &metadata)));
        for folder in [self.user_skills(), self.project_skills()]
            .into_iter()
            .flatten()
        {
            let Ok(metadata) = fs::metadata(&folder) else {
                continue;
            };
            entries.push(stamp_entry(&folder, &metadata));
            for skill in subfolders(&folder).0 {
                let mut remaining = MAX_ENTRIES;
                entries.extend(fs::metadata(&skill).map(|metadata| stamp_entry(&skill, &metadata)));
                add_stamp_entries(&skill, &mut remaining, &mut entries);
            }
        }
        entries.sort_unstable();
        let mut hash = Sha256::new();
        entries.iter().for_each(|entry| hash.update(entry));
        CatalogStamp(hash.finalize().into())
    }
}

/// Returns the first subfolders by name, and the number of omitted ones. Skips hidden ones, such as
/// staging folders of an installation.
fn subfolders(folder: &Path) -> (Vec<PathBuf>, usize) {
    let Ok(listing) = fs::read_dir(folder) else {
        return (Vec::new(), 0);
    };
    let visible = listing
        .flatten()
        .filter(|entry| !entry.file_name().as_bytes().starts_with(b"."));
    let mut folders: Vec<PathBuf> = visible
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    let omitted = folders.len().saturating_sub(MAX_SKILLS);
    folders.truncate(MAX_SKILLS);
    (folders, omitted)
}

/// Adds all files that a fingerprint covers. Otherwise a change that makes a skill unusable would
/// go unnoticed.
fn add_stamp_entries(folder: &Path, remaining: &mut usize, entries: &mut Vec<Vec<u8>>) {
    let Ok(listing) = fs::read_dir(folder) else {
        return;
    };
    for entry in listing.flatten() {
        if *remaining == 0 {
            return;
        }
        *remaining -= 1;
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        entries.push(stamp_entry(&entry.path(), &metadata));
        if metadata.is_dir() {
            add_stamp_entries(&entry.path(), remaining, entries);
        }
    }
}

fn stamp_entry(path: &Path, metadata: &Metadata) -> Vec<u8> {
    let mut entry = path.as_os_str().as_bytes().to_vec();
    entry.push(0);
    entry.extend(metadata.ino().to_le_bytes());
    entry.extend(metadata.mode().to_le_bytes());
    // The size of a folder adds nothing to its times.
    let size = if metadata.is_dir() {
        0
    } else {
        metadata.size()
    };
    entry.extend(size.to_le_bytes());
    let times = [
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec(),
    ];
    times
        .iter()
        .for_each(|time| entry.extend(time.to_le_bytes()));
    entry
}
