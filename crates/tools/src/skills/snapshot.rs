//! A snapshot of all files in the folder of a skill, with its fingerprint.
//!
//! The walk opens each name below a folder that is already open, and never follows a link. So all
//! content comes from the folder, and callers look up files in the snapshot instead of opening them
//! again.

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
/// Maximum number of files and folders, because empty folders do not count as files.
pub(super) const MAX_ENTRIES: usize = 2 * MAX_FILES;
const MAX_DEPTH: usize = 16;

/// The purpose of a snapshot, which decides what it keeps.
#[derive(Clone, Copy)]
pub(super) enum SnapshotPurpose<'a> {
    /// Keeps the contents of these files.
    Use { contents_of: &'a [&'a str] },
    /// Keeps all contents.
    Inspect,
    /// Keeps all contents, skips `.git`, and rejects links.
    Copy,
}

pub(super) struct SkillSnapshot {
    /// Sorted by path.
    pub files: Vec<SnapshotEntry>,
    pub fingerprint: String,
}

pub(super) struct SnapshotEntry {
    /// Relative to the skill's folder, with `/` as separator.
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
    /// A link to another path in the folder. It is never followed.
    Link,
}

impl SkillSnapshot {
    /// Takes a snapshot. Invariant: `folder` is a path without links.
    pub fn take(folder: &Path, purpose: SnapshotPurpose<'_>) -> Result<Self, SkillError> {
        let io_error = |error: rustix::io::Errno| {
            SkillError::for_path(folder, io::Error::from(error).to_string())
        };
        let root = confined_open::open_real(folder, DIRECTORY_LISTING).map_err(io_error)?;
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

    /// Returns the file at a path of the list of files. Links are not files.
    pub fn file(&self, path: &str) -> Option<&SnapshotEntry> {
        let index = self
            .files
            .binary_search_by(|entry| entry.path.as_str().cmp(path))
            .ok()?;
        self.files
            .get(index)
            .filter(|entry| entry.kind != SnapshotEntryKind::Link)
    }

    /// Returns the content of a file, if the snapshot keeps it.
    pub fn content(&self, path: &str) -> Option<&[u8]> {
        self.file(path)?.content.as_deref()
    }

    /// Returns the files below `scripts/`, with their names relative to it.
    pub fn scripts(&self) -> impl Iterator<Item = (&str, &SnapshotEntry)> {
        let files = self
            .files
            .iter()
            .filter(|entry| entry.kind != SnapshotEntryKind::Link);
        files.filter_map(|entry| Some((entry.path.strip_prefix("scripts/")?, entry)))
    }
}

/// Returns true for hidden characters. In a name, this includes line ends, which make one name look
/// like two.
fn is_hidden_in_name(c: char) -> bool {
    c.is_control() || quote::is_hidden(c)
}

/// Computes the fingerprint. The lengths separate adjacent parts, so that no two folders produce
/// the same bytes.
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
            // Writing to a string cannot fail.
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
    fn walk_folder(
        &mut self,
        opened: &OwnedFd,
        prefix: &str,
        depth: usize,
    ) -> Result<(), SkillError> {
        if depth > MAX_DEPTH {
            return Err(self.error(
                prefix,
                format!("folders are nested more than {MAX_DEPTH} deep"),
            ));
        }
        let listing = Dir::read_from(opened).map_err(|error| self.io_error(prefix, error))?;
        for listed in listing {
            let listed = listed.map_err(|error| self.io_error(prefix, error))?;
            let name = listed.file_name().to_string_lossy();
            if matches!(&*name, "." | "..") || self.is_excluded(&name) {
                continue;
            }
            let path = if prefix.is_empty() {
                name.to_string()
            } else {
                format!("{prefix}/{name}")
            };
            if listed.file_name().to_str().is_err() || name.chars().any(is_hidden_in_name) {
                return Err(self.error(
                    prefix,
                    format!("the file name {name:?} has hidden characters"),
                ));
            }
            self.entries += 1;
            self.visit(opened, &path, depth)?;
        }
        Ok(())
    }

    fn is_excluded(&self, name: &str) -> bool {
        matches!(self.purpose, SnapshotPurpose::Copy) && name == ".git"
    }

    fn visit(&mut self, parent: &OwnedFd, path: &str, depth: usize) -> Result<(), SkillError> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| self.io_error(path, error))?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        let has_too_many_files = kind != FileType::Directory && self.files.len() >= MAX_FILES;
        if has_too_many_files || self.entries > MAX_ENTRIES {
            return Err(self.error(path, format!("a skill may have at most {MAX_FILES} files")));
        }
        match kind {
            FileType::Directory => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let opened = rustix::fs::openat(parent, name, flags, Mode::empty())
                    .map_err(|error| self.io_error(path, error))?;
                self.walk_folder(&opened, path, depth + 1)
            }
            FileType::RegularFile => self.add_file(parent, name, path),
            FileType::Symlink => self.add_link(parent, name, path),
            _ => Err(self.error(path, "a skill may contain only files and folders")),
        }
    }

    fn add_file(&mut self, parent: &OwnedFd, name: &str, path: &str) -> Result<(), SkillError> {
        // If it has become a pipe, opening it must not block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(parent, name, flags, Mode::empty())
            .map_err(|error| self.io_error(path, error))?;
        let file = File::from(opened);
        let metadata = file
            .metadata()
            .map_err(|error| self.io_error(path, error))?;
        if !metadata.is_file() {
            return Err(self.error(path, "it changed while it was read"));
        }
        let remaining = MAX_BYTES - self.bytes;
        let mut content = Vec::new();
        file.take(remaining + 1)
            .read_to_end(&mut content)
            .map_err(|error| self.io_error(path, error))?;
        if content.len() as u64 > remaining {
            let limit = MAX_BYTES / (1024 * 1024);
            return Err(self.error(
                path,
                format!("a skill may have at most {limit} MiB in total"),
            ));
        }
        self.bytes += content.len() as u64;
        let kind = if metadata.permissions().mode() & 0o111 == 0 {
            SnapshotEntryKind::Plain
        } else {
            SnapshotEntryKind::Executable
        };
        self.add(path, kind, content);
        Ok(())
    }

    /// Adds a link with its target path. The content of the target is in the folder and is added
    /// separately.
    fn add_link(&mut self, parent: &OwnedFd, name: &str, path: &str) -> Result<(), SkillError> {
        if matches!(self.purpose, SnapshotPurpose::Copy) {
            return Err(self.error(path, "it is a link; an installed skill must not have links"));
        }
        let target = rustix::fs::readlinkat(parent, name, Vec::new())
            .map_err(|error| self.io_error(path, error))?;
        let resolved = self.folder.join(path).canonicalize();
        let is_inside = resolved.is_ok_and(|resolved| {
            self.folder
                .canonicalize()
                .is_ok_and(|folder| resolved.starts_with(folder))
        });
        if !is_inside {
            let target = target.to_string_lossy();
            let message = format!("it is a link to `{target}`, which is not in the skill's folder");
            return Err(self.error(path, message));
        }
        self.add(path, SnapshotEntryKind::Link, target.into_bytes());
        Ok(())
    }

    fn add(&mut self, path: &str, kind: SnapshotEntryKind, content: Vec<u8>) {
        let keeps_content = match self.purpose {
            SnapshotPurpose::Use { contents_of } => contents_of.contains(&path),
            SnapshotPurpose::Inspect | SnapshotPurpose::Copy => true,
        };
        self.files.push(SnapshotEntry {
            path: path.to_owned(),
            kind,
            size: content.len(),
            digest: Sha256::digest(&content).into(),
            content: keeps_content.then_some(content),
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

    fn fingerprint_of(folder: &Path) -> String {
        SkillSnapshot::take(folder, SnapshotPurpose::Use { contents_of: &[] })
            .unwrap()
            .fingerprint
    }

    #[test]
    fn fingerprint_covers_every_kind_of_change() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a"), "one").unwrap();
        fs::create_dir(at("deep")).unwrap();
        fs::write(at("deep/b"), "two").unwrap();
        let mut seen = vec![fingerprint_of(folder.path())];
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
            let now = fingerprint_of(folder.path());
            assert_eq!(now, fingerprint_of(folder.path()), "{what}: not stable");
            assert!(!seen.contains(&now), "{what}: not noticed");
            seen.push(now);
        }
        assert!(seen.iter().all(|fingerprint| fingerprint.len() == 64));
    }

    #[test]
    fn rejects_outside_links_and_special_files() {
        for (target, expected) in [
            ("/etc/passwd", "not in the skill's folder"),
            ("../x", "not in"),
            ("none", "not in"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            symlink(target, folder.path().join("link")).unwrap();
            let error = SkillSnapshot::take(folder.path(), SnapshotPurpose::Inspect)
                .err()
                .unwrap();
            assert!(error.to_string().contains(expected), "{error}");
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
        let error = SkillSnapshot::take(folder.path(), SnapshotPurpose::Inspect)
            .err()
            .unwrap();
        assert!(error.message.contains("only files and folders"), "{error}");
    }

    #[test]
    fn lists_inner_links_but_does_not_read_them() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "one").unwrap();
        symlink("a", folder.path().join("b")).unwrap();
        symlink(".", folder.path().join("loop")).unwrap();
        let snapshot = SkillSnapshot::take(folder.path(), SnapshotPurpose::Inspect).unwrap();
        assert_eq!(snapshot.files.len(), 3);
        assert_eq!(snapshot.content("a"), Some(b"one".as_slice()));
        assert!(snapshot.content("b").is_none() && snapshot.content("loop/a").is_none());
        assert!(SkillSnapshot::take(folder.path(), SnapshotPurpose::Copy).is_err());
    }

    #[test]
    fn enforces_limits() {
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
            (odd, "hidden characters"),
            (unseen, "hidden characters"),
        ] {
            let error =
                SkillSnapshot::take(folder.path(), SnapshotPurpose::Use { contents_of: &[] })
                    .err()
                    .unwrap();
            assert!(error.message.contains(expected), "{error}");
        }
    }
}
