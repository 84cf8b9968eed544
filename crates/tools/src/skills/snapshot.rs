//! Everything in a skill's folder at one moment, and the fingerprint of it.
//!
//! Every step of the walk opens one name below a folder that is already open, and never through a link. So what is read
//! lies in the folder, and what a caller asks for by name is looked up here instead of being opened once more.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use lango_files::confined_open::{self, DIRECTORY_LISTING};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use sha2::{Digest as _, Sha256};

use super::{SkillError, quote};

pub(super) const MAX_FILES: usize = 500;
pub(super) const MAX_BYTES: u64 = 50 * 1024 * 1024;
/// Folders count here as well, so that empty ones cannot go on forever.
pub(super) const MAX_ENTRIES: usize = 2 * MAX_FILES;
const MAX_DEPTH: usize = 16;

/// What a snapshot is taken for.
#[derive(Clone, Copy)]
pub(super) enum SnapshotPurpose<'a> {
    /// Keeps the contents of these files.
    Use { contents_of: &'a [&'a str] },
    /// Keeps all contents.
    Inspect,
    /// Keeps all contents, leaves `.git` out, and refuses links.
    Copy,
}

pub(super) struct SkillSnapshot {
    /// Sorted by path.
    pub files: Vec<SnapshotEntry>,
    pub fingerprint: String,
}

pub(super) struct SnapshotEntry {
    /// Relative to the skill's folder, with `/` between its parts.
    pub path: String,
    pub kind: SnapshotEntryKind,
    pub size: usize,
    digest: [u8; 32],
    pub content: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SnapshotEntryKind {
    Plain,
    Executable,
    /// Leads to another place in the folder. It is never followed.
    Link,
}

impl SkillSnapshot {
    /// Invariant: `folder` is a path without links, so that what is read is what lies there.
    pub fn take(folder: &Path, purpose: SnapshotPurpose<'_>) -> Result<Self, SkillError> {
        let wrong = |error: rustix::io::Errno| {
            SkillError::for_path(folder, io::Error::from(error).to_string())
        };
        let root = confined_open::open_real(folder, DIRECTORY_LISTING).map_err(wrong)?;
        let mut walk = SnapshotWalk {
            folder,
            purpose,
            files: Vec::new(),
            entries: 0,
            bytes: 0,
        };
        walk.walk_folder(&root, "", 0)?;
        let mut files = walk.files;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let fingerprint = fingerprint(&files);
        Ok(Self { files, fingerprint })
    }

    /// The file at a path as it is written in the list of files; links are not files.
    pub fn file(&self, path: &str) -> Option<&SnapshotEntry> {
        let at = self
            .files
            .binary_search_by(|entry| entry.path.as_str().cmp(path))
            .ok()?;
        self.files
            .get(at)
            .filter(|entry| entry.kind != SnapshotEntryKind::Link)
    }

    /// The content of a file that was to be kept.
    pub fn content(&self, path: &str) -> Option<&[u8]> {
        self.file(path)?.content.as_deref()
    }

    /// The files below `scripts/`, by their names there.
    pub fn scripts(&self) -> impl Iterator<Item = (&str, &SnapshotEntry)> {
        let files = self
            .files
            .iter()
            .filter(|entry| entry.kind != SnapshotEntryKind::Link);
        files.filter_map(|entry| Some((entry.path.strip_prefix("scripts/")?, entry)))
    }
}

/// In a name, a line end hides as well: it lets one name pass for two.
fn is_hidden_in_name(c: char) -> bool {
    c.is_control() || quote::is_hidden(c)
}

/// Lengths keep neighbouring parts apart, so that no two folders give the same bytes.
fn fingerprint(files: &[SnapshotEntry]) -> String {
    let mut hash = Sha256::new();
    hash.update(b"lango skill 1\n");
    for entry in files {
        hash.update((entry.path.len() as u64).to_be_bytes());
        hash.update(entry.path.as_bytes());
        hash.update([match entry.kind {
            SnapshotEntryKind::Plain => b'-',
            SnapshotEntryKind::Executable => b'x',
            SnapshotEntryKind::Link => b'l',
        }]);
        hash.update(entry.digest);
    }
    to_hex(&hash.finalize())
}

fn to_hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing into a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

struct SnapshotWalk<'a> {
    folder: &'a Path,
    purpose: SnapshotPurpose<'a>,
    files: Vec<SnapshotEntry>,
    entries: usize,
    bytes: u64,
}

impl SnapshotWalk<'_> {
    fn walk_folder(&mut self, open: &OwnedFd, at: &str, depth: usize) -> Result<(), SkillError> {
        if depth > MAX_DEPTH {
            return Err(self.error(at, format!("folders are nested more than {MAX_DEPTH} deep")));
        }
        let listing = Dir::read_from(open).map_err(|error| self.io_error(at, error))?;
        for listed in listing {
            let listed = listed.map_err(|error| self.io_error(at, error))?;
            let name = listed.file_name().to_string_lossy();
            if matches!(&*name, "." | "..") || self.is_excluded(&name) {
                continue;
            }
            let path = if at.is_empty() {
                name.to_string()
            } else {
                format!("{at}/{name}")
            };
            if listed.file_name().to_str().is_err() || name.chars().any(is_hidden_in_name) {
                return Err(self.error(
                    at,
                    format!("the file name {name:?} has characters that hide it"),
                ));
            }
            self.entries += 1;
            self.visit(open, &path, depth)?;
        }
        Ok(())
    }

    fn is_excluded(&self, name: &str) -> bool {
        matches!(self.purpose, SnapshotPurpose::Copy) && name == ".git"
    }

    fn visit(&mut self, parent: &OwnedFd, path: &str, depth: usize) -> Result<(), SkillError> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let facts = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| self.io_error(path, error))?;
        let kind = FileType::from_raw_mode(facts.st_mode);
        let is_one_too_many = kind != FileType::Directory && self.files.len() >= MAX_FILES;
        if is_one_too_many || self.entries > MAX_ENTRIES {
            return Err(self.error(path, format!("a skill may have at most {MAX_FILES} files")));
        }
        match kind {
            FileType::Directory => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let open = rustix::fs::openat(parent, name, flags, Mode::empty())
                    .map_err(|error| self.io_error(path, error))?;
                self.walk_folder(&open, path, depth + 1)
            }
            FileType::RegularFile => self.add_file(parent, name, path),
            FileType::Symlink => self.add_link(parent, name, path),
            _ => Err(self.error(path, "only files and folders may be part of a skill")),
        }
    }

    fn add_file(&mut self, parent: &OwnedFd, name: &str, path: &str) -> Result<(), SkillError> {
        // Should it have become a pipe meanwhile, opening it must not wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = rustix::fs::openat(parent, name, flags, Mode::empty())
            .map_err(|error| self.io_error(path, error))?;
        let file = File::from(open);
        let facts = file
            .metadata()
            .map_err(|error| self.io_error(path, error))?;
        if !facts.is_file() {
            return Err(self.error(path, "it changed while it was read"));
        }
        let room = MAX_BYTES - self.bytes;
        let mut content = Vec::new();
        file.take(room + 1)
            .read_to_end(&mut content)
            .map_err(|error| self.io_error(path, error))?;
        if content.len() as u64 > room {
            let most = MAX_BYTES / (1024 * 1024);
            return Err(self.error(path, format!("a skill may have at most {most} MiB in all")));
        }
        self.bytes += content.len() as u64;
        let kind = if facts.permissions().mode() & 0o111 == 0 {
            SnapshotEntryKind::Plain
        } else {
            SnapshotEntryKind::Executable
        };
        self.add(path, kind, content);
        Ok(())
    }

    /// A link counts by where it leads. Its target's content is part of the folder and counts by itself.
    fn add_link(&mut self, parent: &OwnedFd, name: &str, path: &str) -> Result<(), SkillError> {
        if matches!(self.purpose, SnapshotPurpose::Copy) {
            return Err(self.error(
                path,
                "it is a link; a skill that is added must not have any",
            ));
        }
        let target = rustix::fs::readlinkat(parent, name, Vec::new())
            .map_err(|error| self.io_error(path, error))?;
        let leads_to = self.folder.join(path).canonicalize();
        let inside = leads_to.is_ok_and(|end| {
            self.folder
                .canonicalize()
                .is_ok_and(|folder| end.starts_with(folder))
        });
        if !inside {
            let target = target.to_string_lossy();
            let message = format!("it is a link to `{target}`, which is not in the skill's folder");
            return Err(self.error(path, message));
        }
        self.add(path, SnapshotEntryKind::Link, target.into_bytes());
        Ok(())
    }

    fn add(&mut self, path: &str, kind: SnapshotEntryKind, content: Vec<u8>) {
        let keeps = match self.purpose {
            SnapshotPurpose::Use { contents_of: keep } => keep.contains(&path),
            SnapshotPurpose::Inspect | SnapshotPurpose::Copy => true,
        };
        self.files.push(SnapshotEntry {
            path: path.to_owned(),
            kind,
            size: content.len(),
            digest: Sha256::digest(&content).into(),
            content: keeps.then_some(content),
        });
    }

    fn error(&self, path: &str, message: impl AsRef<str>) -> SkillError {
        SkillError::for_path(self.folder.join(path), message)
    }

    fn io_error(&self, path: &str, error: impl Into<io::Error>) -> SkillError {
        self.error(path, error.into().to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn print(folder: &Path) -> String {
        SkillSnapshot::take(folder, SnapshotPurpose::Use { contents_of: &[] })
            .unwrap()
            .fingerprint
    }

    #[test]
    fn the_fingerprint_notices_every_kind_of_change() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a"), "one").unwrap();
        fs::create_dir(at("deep")).unwrap();
        fs::write(at("deep/b"), "two").unwrap();
        let mut seen = vec![print(folder.path())];
        let changes: [(&str, &dyn Fn()); 6] = [
            ("content", &|| fs::write(at("deep/b"), "twO").unwrap()),
            ("new file", &|| fs::write(at(".hidden"), "").unwrap()),
            ("name", &|| fs::rename(at("a"), at("c")).unwrap()),
            ("mode", &|| {
                fs::set_permissions(at("c"), fs::Permissions::from_mode(0o700)).unwrap()
            }),
            ("link", &|| symlink("deep/b", at("d")).unwrap()),
            ("gone", &|| fs::remove_file(at("c")).unwrap()),
        ];
        for (what, change) in changes {
            change();
            let now = print(folder.path());
            assert_eq!(now, print(folder.path()), "{what}: not stable");
            assert!(!seen.contains(&now), "{what}: not noticed");
            seen.push(now);
        }
        assert!(seen.iter().all(|print| print.len() == 64));
    }

    #[test]
    fn what_leads_outside_or_is_no_file_is_a_mistake() {
        for (target, expected) in [
            ("/etc/passwd", "not in the skill's folder"),
            ("../x", "not in"),
            ("none", "not in"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            symlink(target, folder.path().join("link")).unwrap();
            let mistake = SkillSnapshot::take(folder.path(), SnapshotPurpose::Inspect)
                .err()
                .unwrap();
            assert!(mistake.to_string().contains(expected), "{mistake}");
        }
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        let mistake = SkillSnapshot::take(folder.path(), SnapshotPurpose::Inspect)
            .err()
            .unwrap();
        assert!(
            mistake.message.contains("only files and folders"),
            "{mistake}"
        );
    }

    #[test]
    fn a_link_within_the_folder_is_listed_but_is_no_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "one").unwrap();
        symlink("a", folder.path().join("b")).unwrap();
        symlink(".", folder.path().join("round")).unwrap();
        let snapshot = SkillSnapshot::take(folder.path(), SnapshotPurpose::Inspect).unwrap();
        assert_eq!(snapshot.files.len(), 3);
        assert_eq!(snapshot.content("a"), Some(b"one".as_slice()));
        assert!(snapshot.content("b").is_none() && snapshot.content("round/a").is_none());
        assert!(SkillSnapshot::take(folder.path(), SnapshotPurpose::Copy).is_err());
    }

    #[test]
    fn there_are_limits() {
        let many = tempfile::tempdir().unwrap();
        for number in 0..=MAX_FILES {
            fs::write(many.path().join(number.to_string()), "").unwrap();
        }
        fs::remove_file(many.path().join("0")).unwrap();
        fs::create_dir(many.path().join("empty")).unwrap();
        assert_eq!(
            SkillSnapshot::take(many.path(), SnapshotPurpose::Inspect)
                .unwrap()
                .files
                .len(),
            MAX_FILES
        );
        fs::write(many.path().join("0"), "").unwrap();
        let big = tempfile::tempdir().unwrap();
        File::create(big.path().join("big"))
            .unwrap()
            .set_len(MAX_BYTES + 1)
            .unwrap();
        let deep = tempfile::tempdir().unwrap();
        fs::create_dir_all(deep.path().join("d/".repeat(MAX_DEPTH + 2))).unwrap();
        let odd = tempfile::tempdir().unwrap();
        fs::write(odd.path().join("a\nb"), "").unwrap();
        let unseen = tempfile::tempdir().unwrap();
        fs::write(unseen.path().join("a\u{200b}b"), "").unwrap();
        for (folder, expected) in [
            (many, "at most 500 files"),
            (big, "at most 50 MiB"),
            (deep, "nested"),
            (odd, "characters that hide"),
            (unseen, "characters that hide"),
        ] {
            let mistake =
                SkillSnapshot::take(folder.path(), SnapshotPurpose::Use { contents_of: &[] })
                    .err()
                    .unwrap();
            assert!(mistake.message.contains(expected), "{mistake}");
        }
    }
}
