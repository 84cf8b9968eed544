//! The skills that the user has reviewed and trusted, identified by content.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::{Skill, SkillOrigin};

/// Larger files are not valid trust files.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The file of trusted skills. It is read for every check, so that changes by other processes or by
/// the user take effect immediately. Cheap to clone.
#[derive(Clone, Debug)]
pub struct TrustFile {
    path: Option<PathBuf>,
    /// Held while the file is read and rewritten, so that concurrent calls do not lose entries.
    write_lock: Arc<Mutex<()>>,
}

#[derive(Default, Serialize, Deserialize)]
struct TrustedSkills {
    /// Maps fingerprints to names; the names are for readers of the file.
    #[serde(default)]
    skills: BTreeMap<String, String>,
}

impl TrustFile {
    /// Uses the file at `path`. Without a path, no skill can be trusted.
    pub fn new(path: Option<PathBuf>) -> Self {
        Self {
            path,
            write_lock: Arc::default(),
        }
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns true if a model may read the description of a skill: for the user's own skills, and
    /// for those of a project after their content was trusted.
    pub fn is_description_visible(&self, skill: &Skill) -> bool {
        skill.origin == SkillOrigin::User || self.is_trusted(skill)
    }

    /// Returns true if exactly this content was trusted before. Errors count as not trusted.
    pub fn is_trusted(&self, skill: &Skill) -> bool {
        self.path
            .as_deref()
            .is_some_and(|path| read_trusted(path).skills.contains_key(&skill.fingerprint))
    }

    /// Trusts this content. Call it only after the user has reviewed and approved the skill.
    pub fn trust(&self, skill: &Skill) -> io::Result<()> {
        let no_file = || {
            io::Error::new(
                io::ErrorKind::Unsupported,
                "there is no trust file to write",
            )
        };
        let path = self.path.as_deref().ok_or_else(no_file)?;
        let _lock = self
            .write_lock
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut trusted = read_trusted(path);
        if trusted
            .skills
            .insert(skill.fingerprint.clone(), skill.name.clone())
            .is_some()
        {
            return Ok(());
        }
        write(path, &serde_json::to_vec_pretty(&trusted)?)
    }
}

/// Reads the file. Returns no skills if it cannot be read or if other users can write it.
fn read_trusted(path: &Path) -> TrustedSkills {
    let read = || -> io::Result<TrustedSkills> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.permissions().mode() & 0o022 != 0 {
            return Ok(TrustedSkills::default());
        }
        let mut content = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut content)?;
        Ok(serde_json::from_slice(&content)?)
    };
    read().unwrap_or_default()
}

/// Writes a temporary file and renames it, so that a crash leaves either the old or the new file.
fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let temp = folder.join(format!(".trusted-skills-{}", uuid::Uuid::now_v7().simple()));
    let mut file: File = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temp)?;
    let written = file
        .write_all(content)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&temp, path));
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&temp);
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
    fn trust_is_by_content_and_persistent() {
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
    fn errors_count_as_not_trusted() {
        let without_file = TrustFile::new(None);
        assert!(
            without_file.trust(&skill("aa")).is_err() && !without_file.is_trusted(&skill("aa"))
        );

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
