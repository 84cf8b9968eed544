//! Which skills the user has seen and allowed, by their content.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::{Skill, SkillOrigin};

/// More than anybody's list; a longer file is not ours.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The file that remembers it. It is read whenever it is asked, so that what another process or the user's editor takes
/// back holds at once. Cheap to clone.
#[derive(Clone, Debug)]
pub struct TrustFile {
    path: Option<PathBuf>,
    /// Held while the file is read and written anew, so that two calls do not lose each other's line.
    write_lock: Arc<Mutex<()>>,
}

#[derive(Default, Serialize, Deserialize)]
struct TrustedSkills {
    /// From fingerprint to name; the name is for people who read the file.
    #[serde(default)]
    skills: BTreeMap<String, String>,
}

impl TrustFile {
    /// Without a path nothing is trusted, and nothing can be.
    pub fn new(path: Option<PathBuf>) -> Self {
        Self {
            path,
            write_lock: Arc::default(),
        }
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Whether a model may read what a skill says about itself: the user's own may speak, a project's once its content
    /// was allowed.
    pub fn is_description_visible(&self, skill: &Skill) -> bool {
        skill.origin == SkillOrigin::User || self.is_trusted(skill)
    }

    /// Whether exactly this content was allowed before. When in doubt, it was not.
    pub fn is_trusted(&self, skill: &Skill) -> bool {
        self.path
            .as_deref()
            .is_some_and(|path| read_trusted(path).skills.contains_key(&skill.fingerprint))
    }

    /// Remembers this content. Only for what the user saw and allowed.
    pub fn trust(&self, skill: &Skill) -> io::Result<()> {
        let nowhere = || {
            io::Error::new(
                io::ErrorKind::Unsupported,
                "there is no file to remember it in",
            )
        };
        let path = self.path.as_deref().ok_or_else(nowhere)?;
        let _writing = self
            .write_lock
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut known = read_trusted(path);
        if known
            .skills
            .insert(skill.fingerprint.clone(), skill.name.clone())
            .is_some()
        {
            return Ok(());
        }
        write(path, &serde_json::to_vec_pretty(&known)?)
    }
}

/// What the file says; nothing, if it cannot be read or if others could have written it.
fn read_trusted(path: &Path) -> TrustedSkills {
    let read = || -> io::Result<TrustedSkills> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(path)?;
        let facts = file.metadata()?;
        if !facts.is_file() || facts.permissions().mode() & 0o022 != 0 {
            return Ok(TrustedSkills::default());
        }
        let mut content = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut content)?;
        Ok(serde_json::from_slice(&content)?)
    };
    read().unwrap_or_default()
}

/// Beside it first, then over it: a crash leaves the old file or the new one.
fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let beside = folder.join(format!(".trusted-skills-{}", uuid::Uuid::now_v7().simple()));
    let mut file: File = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)?;
    let written = file
        .write_all(content)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // What went wrong first is what is told.
        let _ = fs::remove_file(&beside);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(fingerprint: &str) -> Skill {
        Skill {
            name: "pdf".to_owned(),
            description: "x".to_owned(),
            allowed_tools: Vec::new(),
            body: String::new(),
            folder: PathBuf::from("/nowhere"),
            origin: SkillOrigin::User,
            fingerprint: fingerprint.to_owned(),
        }
    }

    #[test]
    fn trust_is_by_content_and_outlives_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data/trusted-skills.json");
        let file = TrustFile::new(Some(path.clone()));
        assert!(!file.is_trusted(&skill("aa")));
        file.trust(&skill("aa")).unwrap();
        file.trust(&skill("bb")).unwrap();
        let again = TrustFile::new(Some(path.clone()));
        assert!(again.is_trusted(&skill("aa")) && again.is_trusted(&skill("bb")));
        assert!(!again.is_trusted(&skill("cc")));
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn when_in_doubt_nothing_is_trusted() {
        let nowhere = TrustFile::new(None);
        assert!(nowhere.trust(&skill("aa")).is_err() && !nowhere.is_trusted(&skill("aa")));

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trusted-skills.json");
        let file = TrustFile::new(Some(path.clone()));
        file.trust(&skill("aa")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o622)).unwrap();
        assert!(!file.is_trusted(&skill("aa")), "others may have written it");
        fs::write(&path, "{ not json").unwrap();
        assert!(!file.is_trusted(&skill("aa")));
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert!(!file.is_trusted(&skill("aa")));
        file.trust(&skill("aa")).unwrap();
        assert!(
            file.is_trusted(&skill("aa")),
            "the link is replaced, not followed"
        );
    }
}
