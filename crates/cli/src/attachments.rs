//! Files that the user attaches to a request.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use lango_app::{TextFile, UserRequest};
use lango_domain::content::{Attachment, MAX_ATTACHMENT_BYTES, MAX_ATTACHMENTS};

use crate::output::CliError;

/// Adds files to a request. Text becomes context of the request, everything else an attachment.
pub fn attach_files(request: &mut UserRequest, files: &[PathBuf]) -> Result<(), CliError> {
    if files.len() > MAX_ATTACHMENTS {
        return Err(CliError::usage(format!(
            "{} files are attached, but a request may have at most {MAX_ATTACHMENTS}",
            files.len()
        )));
    }
    for file in files {
        attach_file(request, file)?;
    }
    Ok(())
}

fn attach_file(request: &mut UserRequest, file: &Path) -> Result<(), CliError> {
    let name = file.display().to_string();
    let bytes = read_bounded(file)?;
    let attachment = Attachment::new(bytes, &name, None)
        .map_err(|error| CliError::usage(format!("cannot attach {name}: {error}")))?;
    match text_of(&attachment) {
        Some(text) => request.text_files.push(TextFile {
            name: attachment.name,
            text,
        }),
        None => request.attachments.push(attachment),
    }
    Ok(())
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
        .with_hint("`lango index add` makes large documents searchable"));
    }
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(failed)?;
    let mut bounded = opened.take(MAX_ATTACHMENT_BYTES as u64 + 1);
    bounded.read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Returns the text of a file without a binary format.
fn text_of(attachment: &Attachment) -> Option<String> {
    let is_binary = attachment.media_type.starts_with("image/")
        && attachment.media_type != "image/svg+xml"
        || attachment.media_type == "application/pdf";
    let bytes = attachment.data.bytes().filter(|_| !is_binary)?;
    let text = std::str::from_utf8(bytes).ok()?;
    (!text.contains('\0')).then(|| text.to_owned())
}

/// Returns the files that a typed line names as `@path` or `@"path with spaces"`. Words that name no
/// file stay what they are.
pub fn mentioned_files(line: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    for (at, _) in line.match_indices('@') {
        let starts_word = line[..at]
            .chars()
            .next_back()
            .is_none_or(char::is_whitespace);
        let rest = &line[at + 1..];
        let path = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next().unwrap_or_default(),
            None => rest.split_whitespace().next().unwrap_or_default(),
        };
        let found = [
            path,
            path.trim_end_matches([',', '.', ';', ':', '!', '?', ')']),
        ]
        .into_iter()
        .map(PathBuf::from)
        .find(|path| starts_word && path.is_file());
        files.extend(found.filter(|file| !files.contains(file)));
    }
    files
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
        let line = format!(
            "compare @{}, with @\"{}\" and mail me@{} or @nobody",
            plain.display(),
            spaced.display(),
            plain.display()
        );
        assert_eq!(mentioned_files(&line), [plain, spaced]);
    }

    /// B110
    #[test]
    fn text_becomes_data_and_images_become_attachments() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let file = folder.path().join(name);
            std::fs::write(&file, bytes).unwrap();
            file
        };
        let files = [
            write("note.md", "grüße".as_bytes()),
            write("a.png", b"\x89PNG\r\n\x1a\nrest"),
            write("odd.bin", b"\xff\0\xfe"),
        ];
        let mut request = UserRequest::typed("look");
        attach_files(&mut request, &files).unwrap();
        assert_eq!(request.text_files[0].text, "grüße");
        let names: Vec<&str> = request
            .attachments
            .iter()
            .map(|file| file.name.as_str())
            .collect();
        assert_eq!(names, ["a.png", "odd.bin"]);
        for bad in [
            folder.path().to_path_buf(),
            folder.path().join("none"),
            "/dev/zero".into(),
        ] {
            assert!(attach_files(&mut request, &[bad]).is_err());
        }
        let many = vec![files[0].clone(); MAX_ATTACHMENTS + 1];
        assert!(attach_files(&mut request, &many).is_err());
    }
}
