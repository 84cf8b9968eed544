//! Formats paths, sizes, times and lines for the model.

use std::path::Path;

use jiff::Timestamp;
use lango_text::sanitize::is_hidden;
use rustix::fs::Stat;

/// Returns a path on one line, with control characters escaped.
pub fn display_path(path: &Path) -> String {
    let text = path.to_string_lossy();
    if text.is_empty() {
        return ".".to_owned();
    }
    if !text.contains(char::is_control) {
        return text.into_owned();
    }
    text.chars()
        .map(|c| {
            if c.is_control() {
                c.escape_default().to_string()
            } else {
                c.to_string()
            }
        })
        .collect()
}

/// Truncates a text to `max_chars` and marks the cut with an ellipsis.
pub fn truncate(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Formats a number with its noun: `1 file`, `2 files`.
pub fn count(number: u64, thing: &str) -> String {
    if number == 1 {
        format!("1 {thing}")
    } else {
        format!("{number} {thing}s")
    }
}

/// Formats the time of the last change, to the second.
pub fn modified(stat: &Stat) -> String {
    Timestamp::from_second(stat.st_mtime)
        .unwrap_or_default()
        .to_string()
}

pub fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

/// Returns true if most lines end with CRLF.
pub fn uses_crlf(text: &[u8]) -> bool {
    let ends = text.iter().filter(|byte| **byte == b'\n').count();
    let pairs = text.windows(2).filter(|pair| pair == b"\r\n").count();
    pairs * 2 > ends
}

pub fn with_lf(text: &str) -> String {
    text.replace("\r\n", "\n")
}

pub fn with_crlf(text: &str) -> String {
    with_lf(text).replace('\n', "\r\n")
}

/// Returns a pattern for everything in the parent of a path, or `None` if its name has a wildcard
/// or hidden characters.
pub fn sibling_pattern(path: &Path) -> Option<String> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())?;
    let is_plain = !parent
        .to_string_lossy()
        .contains(|c: char| c == '*' || is_hidden(c));
    is_plain.then(|| format!("{}/*", display_path(parent)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displays_names_on_one_line() {
        assert_eq!(display_path(Path::new("a\nb")), "a\\nb");
        assert_eq!(display_path(Path::new("")), ".");
        assert_eq!(display_path(Path::new("grüße.txt")), "grüße.txt");
    }

    #[test]
    fn detects_line_endings_by_majority() {
        assert!(uses_crlf(b"a\r\nb\r\nc\n"));
        assert!(!uses_crlf(b"a\nb\r\nc\n"));
        assert!(!uses_crlf(b""));
        assert_eq!(with_crlf("a\r\nb\n"), "a\r\nb\r\n");
    }

    #[test]
    fn sibling_pattern_names_the_parent() {
        assert_eq!(
            sibling_pattern(Path::new("src/a.rs")).as_deref(),
            Some("src/*")
        );
        assert_eq!(sibling_pattern(Path::new("a.rs")), None);
        assert_eq!(sibling_pattern(Path::new("s\u{200b}rc/a.rs")), None);
        assert_eq!(
            sibling_pattern(Path::new("s*/a.rs")),
            None,
            "a star would match other folders"
        );
    }
}
