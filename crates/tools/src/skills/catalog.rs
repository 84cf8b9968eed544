//! All skills that are there, the user's own and those of the project.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lango_domain::{suggest, text};
use sha2::{Digest as _, Sha256};

use super::snapshot::MAX_ENTRIES;
use super::{Skill, SkillError, SkillOrigin, TrustFile, read_skill};

/// More tools than this no model can tell apart. The user's own come first.
const MAX_SKILLS: usize = 100;
/// What providers take as the name of a tool.
const MAX_TOOL_NAME_LEN: usize = 64;

pub struct SkillCatalog {
    skills: Vec<Arc<Skill>>,
    warnings: SkillWarnings,
    trusted: TrustFile,
    folders: SkillFolders,
    stamp: CatalogStamp,
}

/// What could not be used, and why.
#[derive(Default)]
struct SkillWarnings {
    all: Vec<String>,
    /// Those about the user's own skills. The others repeat words of a project that nobody has confirmed.
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

/// There is no such skill.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no skill `{name}`{hint}")]
pub struct UnknownSkillError {
    name: String,
    hint: String,
}

/// A value that differs when something about the skills may have changed. It is made of times and sizes, so it is a reason
/// to read again and no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatalogStamp([u8; 32]);

impl SkillCatalog {
    /// Reads `<project>/.lango/skills/*` and `<user>/skills/*`. A broken skill is a warning. Blocks while it reads.
    pub fn load(project: Option<&Path>, user: Option<&Path>, trusted: TrustFile) -> Self {
        let places = SkillFolders::new(project, user, &trusted);
        // Taken first: what changes while it is read is then noticed afterwards.
        let stamp = places.stamp();
        let mut found = BTreeMap::new();
        let mut warnings = SkillWarnings::default();
        for (folder, origin) in places.existing_folders(&mut warnings) {
            let (skills, left) = subfolders(&folder);
            if left > 0 {
                let shown = text::strip_control_chars(&folder.to_string_lossy());
                let warning =
                    format!("{shown}: {left} folders not looked at; {MAX_SKILLS} are the most");
                warnings.add(origin, warning);
            }
            for skill in skills {
                match read_one(&folder, &skill, origin) {
                    Ok(skill) => insert_skill(skill, &mut found, &mut warnings),
                    Err(mistake) => warnings.add(origin, mistake.to_string()),
                }
            }
        }
        Self {
            skills: found.into_values().collect(),
            warnings,
            trusted,
            folders: places,
            stamp,
        }
    }

    /// Sorted by name.
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
                    name: text::one_line(name),
                    hint,
                }
            })
    }

    /// What could not be used, and why.
    pub fn warnings(&self) -> &[String] {
        &self.warnings.all
    }

    /// The part of it that models may read, and how much is left out.
    pub(super) fn warnings_for_models(&self) -> (&[String], usize) {
        (
            &self.warnings.own,
            self.warnings.all.len() - self.warnings.own.len(),
        )
    }

    pub fn trusted(&self) -> &TrustFile {
        &self.trusted
    }

    /// The state of the folders when this was read.
    pub fn stamp(&self) -> CatalogStamp {
        self.stamp
    }

    /// Whether the folders are still as they were. Looks at times and sizes only.
    pub fn is_current(&self) -> bool {
        self.folders.stamp() == self.stamp
    }
}

/// Why a skill of this name cannot be offered as a tool, though its name is a good one.
pub(super) fn tool_name_problem(name: &str) -> Option<String> {
    let most = MAX_TOOL_NAME_LEN - super::tools::TOOL_PREFIX.len();
    (name.len() > most).then(|| {
        format!(
            "the name has {} characters; models take at most {most}",
            name.len()
        )
    })
}

fn read_one(skills: &Path, folder: &Path, origin: SkillOrigin) -> Result<Skill, SkillError> {
    let skill = read_skill(folder, origin)?;
    // The user may keep a skill elsewhere and link to it. A project has no say about what lies outside of it.
    let is_there = || {
        skills
            .canonicalize()
            .is_ok_and(|skills| skill.folder.parent() == Some(&skills))
    };
    if origin == SkillOrigin::Project && !is_there() {
        return Err(SkillError::for_path(
            folder,
            "a project's skill must not be a link",
        ));
    }
    match tool_name_problem(&skill.name) {
        Some(why) => Err(SkillError::for_path(folder, why)),
        None => Ok(skill),
    }
}

fn insert_skill(
    skill: Skill,
    found: &mut BTreeMap<String, Arc<Skill>>,
    warnings: &mut SkillWarnings,
) {
    let origin = skill.origin;
    let place = text::strip_control_chars(&skill.folder.to_string_lossy());
    if let Some(first) = found.get(&skill.name) {
        let used = text::strip_control_chars(&first.folder.to_string_lossy());
        warnings.add(
            origin,
            format!("{place}: not used, since {used} has the same name"),
        );
    } else if found.len() >= MAX_SKILLS {
        warnings.add(
            origin,
            format!("{place}: not used, since there are {MAX_SKILLS} skills already"),
        );
    } else {
        found.insert(skill.name.clone(), Arc::new(skill));
    }
}

/// Where skills are looked for.
struct SkillFolders {
    project: Option<PathBuf>,
    user: Option<PathBuf>,
    /// What is told about a skill depends on whether it was confirmed.
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

    /// The folders that exist; the user's first, since its skills win.
    fn existing_folders(&self, warnings: &mut SkillWarnings) -> Vec<(PathBuf, SkillOrigin)> {
        let user = self.user_skills().filter(|folder| folder.is_dir());
        let project = self
            .project_skills()
            .filter(|folder| folder.is_dir())
            .filter(|folder| {
                let real = folder.canonicalize().ok();
                // At home, the project's folder and the user's may be one.
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
                let inside = root
                    .zip(real)
                    .is_some_and(|(root, real)| real.starts_with(root));
                if !inside {
                    let shown = text::strip_control_chars(&folder.to_string_lossy());
                    warnings.add(
                        SkillOrigin::Project,
                        format!("{shown}: not used, since it leads out of the project"),
                    );
                }
                inside
            });
        let user = user.clone().map(|folder| (folder, SkillOrigin::User));
        user.into_iter()
            .chain(project.map(|folder| (folder, SkillOrigin::Project)))
            .collect()
    }

    fn stamp(&self) -> CatalogStamp {
        let mut facts = Vec::new();
        let trusted = self
            .trusted
            .iter()
            .filter_map(|file| Some((file, fs::metadata(file).ok()?)));
        facts.extend(trusted.map(|(file, metadata)| stamp_entry(file, &metadata)));
        for folder in [self.user_skills(), self.project_skills()]
            .into_iter()
            .flatten()
        {
            let Ok(metadata) = fs::metadata(&folder) else {
                continue;
            };
            facts.push(stamp_entry(&folder, &metadata));
            for skill in subfolders(&folder).0 {
                let mut room = MAX_ENTRIES;
                facts.extend(fs::metadata(&skill).map(|metadata| stamp_entry(&skill, &metadata)));
                add_stamp_entries(&skill, &mut room, &mut facts);
            }
        }
        facts.sort_unstable();
        let mut hash = Sha256::new();
        facts.iter().for_each(|fact| hash.update(fact));
        CatalogStamp(hash.finalize().into())
    }
}

/// The first folders in a folder by name, and how many more there are. Hidden ones are somebody's work in progress.
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
    let left = folders.len().saturating_sub(MAX_SKILLS);
    folders.truncate(MAX_SKILLS);
    (folders, left)
}

/// Everything that a fingerprint covers is covered, or a change that makes a skill unusable would go unnoticed.
fn add_stamp_entries(folder: &Path, room: &mut usize, facts: &mut Vec<Vec<u8>>) {
    let Ok(listing) = fs::read_dir(folder) else {
        return;
    };
    for entry in listing.flatten() {
        if *room == 0 {
            return;
        }
        *room -= 1;
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        facts.push(stamp_entry(&entry.path(), &metadata));
        if metadata.is_dir() {
            add_stamp_entries(&entry.path(), room, facts);
        }
    }
}

fn stamp_entry(path: &Path, metadata: &Metadata) -> Vec<u8> {
    let mut fact = path.as_os_str().as_bytes().to_vec();
    fact.push(0);
    fact.extend(metadata.ino().to_le_bytes());
    fact.extend(metadata.mode().to_le_bytes());
    // The size and the link count of a folder say nothing that its time does not.
    let size = if metadata.is_dir() {
        0
    } else {
        metadata.size()
    };
    fact.extend(size.to_le_bytes());
    let times = [
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec(),
    ];
    times
        .iter()
        .for_each(|time| fact.extend(time.to_le_bytes()));
    fact
}
