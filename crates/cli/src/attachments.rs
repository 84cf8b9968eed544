//! Files that the user attaches to a request.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use lango_app::UserRequest;
use lango_domain::content::{Attachment, MAX_ATTACHMENT_BYTES};

use crate::output::CliError;

/// Adds files to a request.
pub fn attach_files(request: &mut UserRequest, files: &[PathBuf]) -> Result<(), CliError> {
    for file in files {
        let name = file.display().to_string();
        let bytes = read_bounded(file)?;
        let attachment = Attachment::new(bytes, &name, None)
            .map_err(|error| CliError::usage(format!("cannot attach a file: {error}")))?;
        request.attachments.push(attachment);
    }
    Attachment::check_all(&request.attachments).map_err(|error| {
        CliError::usage(error.to_string()).with_hint("send them in several requests")
    })
}

/// Reads a regular file. Others, such as devices and pipes, may never end.
fn read_bounded(file: &Path) -> Result<Vec<u8>, CliError> {
    let name = file.display();
    let failed = |error: std::io::Error| CliError::usage(format!("cannot attach {name}: {error}"));
    let metadata = std::fs::metadata(file).map_err(failed)?;
    if !metadata.is_file() {
        return Err(CliError::usage(format!(
            "cannot attach {name}: it is not a regular file"
        )));
    }
    if metadata.len() > MAX_ATTACHMENT_BYTES as u64 {
        let size = metadata.len();
        return Err(CliError::usage(format!(
            "cannot attach {name}: it has {size} bytes; an attachment may have at most {MAX_ATTACHMENT_BYTES}"
        ))
        .with_hint("make an image smaller; `lango index add` makes large documents searchable"));
    }
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(failed)?;
    let mut bounded = opened.take(MAX_ATTACHMENT_BYTES as u64 + 1);
    bounded.read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// The files that a typed line names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MentionedFiles {
    pub found: Vec<PathBuf>,
    /// Words that look like a path but name no file.
    pub missing: Vec<String>,
}

/// Characters that may stand before or behind a mention.
const OPENING: [char; 4] = ['(', '[', '"', '\''];
const CLOSING: [char; 10] = [',', '.', ';', ':', '!', '?', ')', ']', '"', '\''];

/// Returns the files that a line names as `@path`, `@"path with spaces"` or `@'path with spaces'`. A word
/// that does not look like a path, such as a name, is none.
pub fn mentioned_files(line: &str) -> MentionedFiles {
    let mut files = MentionedFiles::default();
    for (at, _) in line.match_indices('@') {
        let before = line[..at].chars().next_back();
        if before.is_some_and(|c| !c.is_whitespace() && !OPENING.contains(&c) && c != ',') {
            continue;
        }
        let rest = &line[at + 1..];
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let path = match quote {
            Some(quote) => rest[1..].split(quote).next().unwrap_or_default(),
            None => {
                let word = rest.split_whitespace().next().unwrap_or_default();
                word.split(",@").next().unwrap_or_default()
            }
        };
        let candidates = [path, path.trim_end_matches(CLOSING)];
        match candidates
            .into_iter()
            .map(PathBuf::from)
            .find(|path| path.is_file())
        {
            Some(file) if files.found.contains(&file) => {}
            Some(file) => files.found.push(file),
            None if looks_like_path(candidates[1]) => files.missing.push(candidates[1].to_owned()),
            None => {}
        }
    }
    files
}

fn looks_like_path(word: &str) -> bool {
    let has_extension = word.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty() && (1..=5).contains(&extension.len()) && !word.contains('@')
    });
    !word.is_empty() && (word.contains('/') || has_extension || Path::new(word).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_mentioned_with_an_at_sign() {
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("a.png");
        let spaced = folder.path().join("my file.txt");
        std::fs::write(&plain, b"x").unwrap();
        std::fs::write(&spaced, b"x").unwrap();
        let (a, b) = (plain.display(), spaced.display());
        let both = MentionedFiles {
            found: vec![plain.clone(), spaced.clone()],
            missing: Vec::new(),
        };
        for line in [
            format!("compare @{a}, with @\"{b}\" and mail me@{a} or @nobody"),
            format!("(@{a}) and @'{b}'!"),
            format!("@{a},@\"{b}\""),
        ] {
            assert_eq!(mentioned_files(&line), both, "{line}");
        }
        let missing = mentioned_files("look at @none.png and @dir/x, ask @ann");
        assert_eq!(missing.missing, ["none.png", "dir/x"]);
    }

    /// B110
    #[test]
    fn bad_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("note.md");
        std::fs::write(&note, "grüße").unwrap();
        let mut request = UserRequest::typed("look");
        attach_files(&mut request, std::slice::from_ref(&note)).unwrap();
        assert_eq!(request.attachments[0].text().as_deref(), Some("grüße"));
        for bad in [
            folder.path().to_path_buf(),
            folder.path().join("none"),
            "/dev/zero".into(),
        ] {
            assert!(attach_files(&mut request, &[bad]).is_err());
        }
        assert!(attach_files(&mut request, &vec![note; 21]).is_err());
    }
}
