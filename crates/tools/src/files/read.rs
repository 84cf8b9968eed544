//! `fs_read`: returns the text of a file, or describes a file that is not text.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek};

use lango_domain::content::{Attachment, AttachmentKind, MAX_ATTACHMENT_BYTES};
use lango_domain::{Content, Safety, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::text::count;
use super::workspace::{OpenedFile, Workspace};
use super::{FileTools, run_blocking};

/// Maximum size of one result.
const MAX_BYTES: usize = 256 * 1024;
/// Longer lines are cut.
const MAX_LINE_CHARS: usize = 2_000;
/// Maximum number of bytes kept of a line; enough for every character that is shown.
const MAX_LINE_BYTES: usize = MAX_LINE_CHARS * 4 + 4;
/// Number of bytes inspected to tell text from binary files.
const HEAD_BYTES: u64 = 8 * 1024;
/// Lines after the shown part are counted up to this many bytes.
const MAX_COUNTED: u64 = 256 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
struct FsReadArgs {
    /// Path of the file, relative to the workspace.
    path: String,
    /// First line to read, counted from 1.
    start_line: Option<u64>,
    #[schemars(description = "How many lines to read.")]
    lines: Option<u64>,
}

pub fn tool(files: FileTools) -> Tool {
    let intent_workspace = files.workspace.clone();
    let description = "Reads a text file of the workspace, whole or a range of its lines. \
        Large files are cut with a note how to read on; images and PDF files are attached, other files without text \
        are described.";
    Tool::new("fs_read", description, Safety::Safe, move |_, args: FsReadArgs| {
        let workspace = files.workspace.clone();
        async move { run_blocking(move || read(&workspace, &args)).await }
    })
    .with_intent(move |_, args: FsReadArgs| {
        let workspace = intent_workspace.clone();
        async move { run_blocking(move || workspace.read_intent(&args.path)).await }
    })
    .with_untrusted_output()
    .with_private_output()
    .with_phrases([
        "(read|show|print|display|open|cat) [me] [the] [contents of] [the] [file] {path:word}",
        "(read|show|print|display) [me] [the] (first|top) {lines:word} lines (of|from|in) [the] [file] {path:word}",
        "(read|show|print) [me] {lines:word} lines (of|from|in) [the] [file] {path:word} (from|starting at) line {start_line:word}",
        "(read|show|print) [me] [the] [file] {path:word} from line {start_line:word}",
        "what (is|does) [in] [the] [file] {path:word} (say|contain|hold)",
        "what is (in|inside) [the] file {path:word}",
        "what are the contents of [the] [file] {path:word}",
    ])
}

fn read(workspace: &Workspace, args: &FsReadArgs) -> Result<Content, ToolError> {
    let range = LineRange::from_args(args)?;
    let opened = workspace.open_regular(&args.path)?;
    let failed = |error: io::Error| ToolError(format!("`{}`: {error}", args.path));
    let head = read_head(&opened.file).map_err(failed)?;
    if head.contains(&0) || head.starts_with(b"%PDF-") {
        return Ok(read_binary(&args.path, &opened, &head));
    }
    if head.is_empty() {
        return Ok(format!("`{}` is empty", args.path).into());
    }
    let mut file = &opened.file;
    file.rewind().map_err(failed)?;
    let excerpt =
        FileExcerpt::read(BufReader::with_capacity(64 * 1024, file), &range).map_err(failed)?;
    if excerpt.last == 0 {
        let lines = count(excerpt.total, "line");
        let (path, start) = (&args.path, range.start);
        return Err(ToolError(format!(
            "`{path}` has {lines}, so there is no line {start}"
        )));
    }
    Ok(excerpt.into_text(&range).into())
}

/// Describes a file without text. Attaches an image or a PDF file.
fn read_binary(path: &str, opened: &OpenedFile, head: &[u8]) -> Content {
    let mut content = Content::from(describe_binary(path, opened, head));
    if let Some(attachment) = read_attachment(path, opened) {
        content.attach(attachment);
    }
    content
}

/// Returns an image or a PDF file that is not too large.
fn read_attachment(path: &str, opened: &OpenedFile) -> Option<Attachment> {
    let (mut file, mut bytes) = (&opened.file, Vec::new());
    file.rewind().ok()?;
    let max_bytes = MAX_ATTACHMENT_BYTES as u64;
    if opened.bytes() > max_bytes {
        return None;
    }
    file.take(max_bytes + 1).read_to_end(&mut bytes).ok()?;
    let attachment = Attachment::new(bytes, path, None).ok()?;
    (attachment.kind() != AttachmentKind::Other).then_some(attachment)
}

/// Reads the first bytes of a file.
pub(super) fn read_head(file: &File) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    file.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(head)
}

/// Returns the type of a binary file, guessed from its first bytes.
pub(super) fn guess_type(head: &[u8]) -> &'static str {
    const KINDS: [(&[u8], &str); 10] = [
        (b"\x89PNG\r\n\x1a\n", "PNG image"),
        (b"\xff\xd8\xff", "JPEG image"),
        (b"GIF8", "GIF image"),
        (b"%PDF-", "PDF document"),
        (b"PK\x03\x04", "ZIP archive"),
        (b"\x7fELF", "ELF program or library"),
        (b"\x1f\x8b", "gzip data"),
        (b"SQLite format 3\0", "SQLite database"),
        (b"\xff\xfe", "UTF-16 text"),
        (b"\xfe\xff", "UTF-16 text"),
    ];
    KINDS
        .iter()
        .find(|(magic, _)| head.starts_with(magic))
        .map_or("binary file", |(_, kind)| kind)
}

fn describe_binary(path: &str, opened: &OpenedFile, head: &[u8]) -> String {
    format!(
        "`{path}` is not plain text: {}, {}",
        guess_type(head),
        count(opened.bytes(), "byte")
    )
}

/// The requested range of lines.
struct LineRange {
    start: u64,
    limit: u64,
    is_whole: bool,
}

impl LineRange {
    fn from_args(args: &FsReadArgs) -> Result<Self, ToolError> {
        if args.start_line == Some(0) {
            return Err(ToolError("start_line counts from 1".to_owned()));
        }
        if args.lines == Some(0) {
            return Err(ToolError("lines must be at least 1".to_owned()));
        }
        let is_whole = args.start_line.is_none() && args.lines.is_none();
        Ok(Self {
            start: args.start_line.unwrap_or(1),
            limit: args.lines.unwrap_or(u64::MAX),
            is_whole,
        })
    }
}

/// The lines read from a file.
#[derive(Default)]
struct FileExcerpt {
    text: String,
    /// The number of the last line in `text`; 0 if none of the requested lines exists.
    last: u64,
    total: u64,
    /// True if the file has more lines than were counted.
    is_endless: bool,
    is_full: bool,
    has_cut_lines: bool,
    is_lossy: bool,
}

impl FileExcerpt {
    fn read(mut reader: impl BufRead, range: &LineRange) -> io::Result<Self> {
        let mut excerpt = Self::default();
        let mut line = Vec::new();
        let mut uncounted = MAX_COUNTED;
        while let Some(length) = next_line(&mut reader, &mut line)? {
            excerpt.total += 1;
            let number = excerpt.total;
            if number < range.start {
                continue;
            }
            if excerpt.is_full || number - range.start >= range.limit {
                uncounted = uncounted.saturating_sub(length);
                excerpt.is_endless = uncounted == 0;
                if excerpt.is_endless {
                    break;
                }
                continue;
            }
            excerpt.add(&line, length, number);
        }
        Ok(excerpt)
    }

    fn add(&mut self, line: &[u8], length: u64, number: u64) {
        let (text, is_lossy) = decode_lossy(line, (line.len() as u64) < length);
        let shown = match text.char_indices().nth(MAX_LINE_CHARS) {
            Some((end, _)) if text[end..] != *"\n" && text[end..] != *"\r\n" => {
                let rest = count(length.saturating_sub(end as u64), "byte");
                self.has_cut_lines = true;
                format!("{} [… {rest} more]\n", &text[..end])
            }
            _ => text,
        };
        if !self.text.is_empty() && self.text.len() + shown.len() > MAX_BYTES {
            self.is_full = true;
            return;
        }
        self.is_lossy |= is_lossy;
        self.text.push_str(&shown);
        self.last = number;
    }

    fn into_text(self, range: &LineRange) -> String {
        let mut notes = Vec::new();
        if !range.is_whole || self.is_full {
            let total = if self.is_endless { "more than " } else { "" };
            notes.push(format!(
                "lines {}-{} of {total}{}",
                range.start, self.last, self.total
            ));
        }
        if self.is_full {
            notes.push(format!("read on with start_line={}", self.last + 1));
        }
        if self.has_cut_lines {
            notes.push(format!(
                "lines longer than {MAX_LINE_CHARS} characters are cut"
            ));
        }
        if self.is_lossy {
            notes.push("not valid UTF-8; invalid bytes are shown as �".to_owned());
        }
        if notes.is_empty() {
            self.text
        } else {
            format!("{}\n{}", notes.join("; "), self.text)
        }
    }
}

/// Reads the next line with its line ending, up to [`MAX_LINE_BYTES`], and returns its full length.
fn next_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<u64>> {
    line.clear();
    let mut length = 0;
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok((length > 0).then_some(length));
        }
        let end = buffer
            .iter()
            .position(|byte| *byte == b'\n')
            .map(|index| index + 1);
        let consumed = end.unwrap_or(buffer.len());
        let space = MAX_LINE_BYTES.saturating_sub(line.len());
        line.extend_from_slice(&buffer[..consumed.min(space)]);
        reader.consume(consumed);
        length += consumed as u64;
        if end.is_some() {
            return Ok(Some(length));
        }
    }
}

/// Returns the text of a line, and true if it had invalid bytes. A character split by the cut does
/// not count as invalid.
fn decode_lossy(line: &[u8], is_cut: bool) -> (String, bool) {
    match std::str::from_utf8(line) {
        Ok(text) => (text.to_owned(), false),
        Err(error) if is_cut && error.error_len().is_none() => (
            String::from_utf8_lossy(&line[..error.valid_up_to()]).into_owned(),
            false,
        ),
        Err(_) => (String::from_utf8_lossy(line).into_owned(), true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(text: &[u8], start: u64, limit: u64) -> FileExcerpt {
        FileExcerpt::read(
            text,
            &LineRange {
                start,
                limit,
                is_whole: false,
            },
        )
        .unwrap()
    }

    #[test]
    fn counts_lines_with_and_without_final_newline() {
        assert_eq!(
            (excerpt(b"a\nb\n", 1, 9).total, excerpt(b"a\nb", 1, 9).total),
            (2, 2)
        );
        let middle = excerpt(b"a\nb\nc\nd\n", 2, 2);
        assert_eq!(
            (middle.text.as_str(), middle.last, middle.total),
            ("b\nc\n", 3, 4)
        );
    }

    #[test]
    fn keeps_a_line_of_exactly_the_limit() {
        let line = "ü".repeat(MAX_LINE_CHARS);
        assert!(!excerpt(format!("{line}\r\n").as_bytes(), 1, 1).has_cut_lines);
        let cut = excerpt(format!("{line}ü\n").as_bytes(), 1, 1);
        assert!(
            cut.has_cut_lines && !cut.is_lossy && cut.text.ends_with("[… 3 bytes more]\n"),
            "{}",
            cut.text
        );
    }
}
