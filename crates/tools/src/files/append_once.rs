//! Appends an entry to a file of the workspace exactly once, without a tool call.
//!
//! Used for results of unattended work: there is no user who could approve a sensitive path, so such
//! a path is refused.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;

use lango_domain::{Safety, ToolError};
use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::Workspace;
use super::confined_open;
use super::sensitive_paths::PlannedChange;
use super::text::{display_path, size};
use super::workspace::WriteTarget;

/// A reason why nothing was appended, by who can act on it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The path cannot be used; another one has to be chosen.
    #[error("{0}")]
    Refused(String),
    /// The system failed; it may work later.
    #[error("{0}")]
    Failed(String),
}

impl From<ToolError> for AppendError {
    fn from(ToolError(reason): ToolError) -> Self {
        Self::Refused(reason)
    }
}

impl Workspace {
    /// Checks that entries can be appended to a path, and changes nothing.
    pub fn check_append(&self, path: &str) -> Result<(), AppendError> {
        self.append_target(path).map(drop)
    }

    /// Appends `entry` to a file, unless the file already contains it. Its first line must be unique,
    /// because it identifies the entry. Completes the entry if an earlier process was killed while it
    /// wrote. The file may not grow beyond `max_bytes`.
    pub fn append_once(&self, path: &str, entry: &str, max_bytes: u64) -> Result<(), AppendError> {
        let _lock = self.write_lock();
        let target = self.append_target(path)?;
        let relative = &target.relative;
        let folder = self.create_parents(relative, |_| Ok(()))?;
        let name = relative
            .file_name()
            .ok_or_else(|| AppendError::Refused(format!("`{path}` does not name a file")))?;
        let flags = OFlags::RDWR
            | OFlags::APPEND
            | OFlags::CREATE
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        // Only the owner can read a new file: the entries may be private.
        let opened = rustix::fs::openat(&folder, name, flags, Mode::from_raw_mode(0o600));
        let file = File::from(opened.map_err(|error| failed(path, &error))?);
        // Another process that appends the same entry must not read before this one has written.
        let lock = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
        if lock == Err(Errno::WOULDBLOCK) {
            return Err(failed(path, &Errno::WOULDBLOCK));
        }
        let missing = missing_part(path, &file, entry, max_bytes)?;
        if missing.is_empty() {
            return Ok(());
        }
        write_or_restore(path, file, &missing)
    }

    fn append_target(&self, path: &str) -> Result<WriteTarget, AppendError> {
        let target = self.write_target(path)?;
        let intent = self.change_intent(PlannedChange {
            requested: &target.requested,
            real: &target.relative,
            level: Safety::Moderate,
            shows: String::new(),
            subject: display_path(&target.relative),
            inside: None,
        });
        if intent.level == Safety::Dangerous {
            return Err(AppendError::Refused(format!(
                "nothing may be appended unattended to `{}`; {}",
                display_path(Path::new(path)),
                intent.shows.trim_end()
            )));
        }
        Ok(target)
    }
}

/// Returns the part of `entry` that the file does not contain yet.
fn missing_part(
    path: &str,
    file: &File,
    entry: &str,
    max_bytes: u64,
) -> Result<Vec<u8>, AppendError> {
    let stat = rustix::fs::fstat(file).map_err(|error| failed(path, &error))?;
    if confined_open::file_type(&stat) != FileType::RegularFile {
        return Err(ToolError(super::workspace::not_a_regular_file(path)).into());
    }
    // Appending changes the file under all of its names, and another name may be outside.
    if stat.st_nlink > 1 {
        return Err(AppendError::Refused(format!(
            "`{path}` has another hard link"
        )));
    }
    let too_large = || {
        AppendError::Refused(format!(
            "`{path}` would be larger than {max_bytes} bytes; move it away or choose another file"
        ))
    };
    if size(&stat).saturating_add(entry.len() as u64) > max_bytes {
        return Err(too_large());
    }
    let mut before = Vec::with_capacity(size(&stat) as usize);
    file.take(max_bytes)
        .read_to_end(&mut before)
        .map_err(|error| failed(path, &error))?;
    Ok(remaining(&before, entry))
}

/// Returns the rest of an entry after what a file already has of it.
fn remaining(before: &[u8], entry: &str) -> Vec<u8> {
    let line_end = entry.find('\n').map_or(entry.len(), |at| at + 1);
    let first_line = &entry.as_bytes()[..line_end];
    let written = before
        .windows(first_line.len().max(1))
        .rposition(|part| part == first_line)
        .map(|at| &before[at..]);
    match written {
        Some(written) if written.starts_with(entry.as_bytes()) => Vec::new(),
        Some(written) if entry.as_bytes().starts_with(written) => {
            entry.as_bytes()[written.len()..].to_vec()
        }
        _ if before.last().is_some_and(|last| *last != b'\n') => format!("\n{entry}").into_bytes(),
        _ => entry.as_bytes().to_vec(),
    }
}

/// Writes the bytes, or restores the former length of the file if that fails.
fn write_or_restore(path: &str, mut file: File, bytes: &[u8]) -> Result<(), AppendError> {
    let length = file.metadata().map_err(|error| failed(path, &error))?.len();
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .map_err(|error| {
            let _ = file.set_len(length);
            failed(path, &error)
        })
}

fn failed(path: &str, error: &dyn std::fmt::Display) -> AppendError {
    AppendError::Failed(format!("`{path}` could not be written: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    const ENTRY: &str = "--- one (delivery 1)\nhello\nwörld\n\n";
    const LIMIT: u64 = 1_000;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(temp.path().join("work/.lango")).unwrap();
        let root = temp.path().join("work");
        let workspace = Workspace::open(&root, vec![root.join(".lango")]).unwrap();
        (temp, workspace)
    }

    #[test]
    fn appends_an_entry_exactly_once() {
        let (temp, workspace) = workspace();
        let path = temp.path().join("work/notes/log.txt");
        for _ in 0..3 {
            workspace
                .append_once("notes/log.txt", ENTRY, LIMIT)
                .unwrap();
        }
        let other = ENTRY.replace("delivery 1", "delivery 2");
        workspace
            .append_once("notes/log.txt", &other, LIMIT)
            .unwrap();
        workspace
            .append_once("notes/log.txt", ENTRY, LIMIT)
            .unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            format!("{ENTRY}{other}")
        );
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn completes_an_entry_that_was_cut_off() {
        let (temp, workspace) = workspace();
        let path = temp.path().join("work/log.txt");
        for cut in 0..ENTRY.len() {
            std::fs::write(&path, [b"old\n", &ENTRY.as_bytes()[..cut]].concat()).unwrap();
            workspace.append_once("log.txt", ENTRY, LIMIT).unwrap();
            workspace.append_once("log.txt", ENTRY, LIMIT).unwrap();
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            assert!(text.ends_with(ENTRY) && text.starts_with("old\n"), "{text}");
            let is_complete = cut > ENTRY.find('\n').unwrap();
            assert!(
                !is_complete || text == format!("old\n{ENTRY}"),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn refuses_links_out_hidden_sensitive_and_odd_files() {
        let (temp, workspace) = workspace();
        let work = temp.path().join("work");
        std::fs::write(temp.path().join("outside.txt"), "x").unwrap();
        symlink("../outside.txt", work.join("out.txt")).unwrap();
        symlink("..", work.join("up")).unwrap();
        std::fs::hard_link(temp.path().join("outside.txt"), work.join("hard.txt")).unwrap();
        std::fs::write(work.join("large.txt"), "x".repeat(990)).unwrap();
        for path in [
            "out.txt",
            "up/outside.txt",
            "hard.txt",
            "../outside.txt",
            "/etc/motd",
            ".lango/x",
            ".git/hooks/post-commit",
            ".bashrc",
            "",
            ".",
            "large.txt",
        ] {
            let refused = workspace.append_once(path, ENTRY, LIMIT);
            assert!(
                matches!(refused, Err(AppendError::Refused(_))),
                "{path}: {refused:?}"
            );
        }
        assert_eq!(
            std::fs::read_to_string(temp.path().join("outside.txt")).unwrap(),
            "x"
        );
        assert_eq!(work.join("large.txt").metadata().unwrap().len(), 990);
        assert!(workspace.check_append(".git/config").is_err());
        workspace.check_append("new/file.txt").unwrap();
        assert!(!work.join("new").exists(), "a check changes nothing");
    }
}
