//! Names, sizes, times and lines as a model reads them.

use std::path::Path;

use jiff::Timestamp;
use lango_domain::text::is_hidden;
use rustix::fs::Stat;

/// A path in one line: control characters cannot pass for something else.
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

/// At most so many characters, with a sign that there are more.
pub fn truncate(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// `1 file`, `2 files`.
pub fn count(number: u64, thing: &str) -> String {
    if number == 1 {
        format!("1 {thing}")
    } else {
        format!("{number} {thing}s")
    }
}

/// When it was last changed, to the second.
pub fn modified(stat: &Stat) -> String {
    Timestamp::from_second(stat.st_mtime)
        .unwrap_or_default()
        .to_string()
}

pub fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

/// Whether most lines end as on Windows.
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

/// The folder around a path, as a pattern for everything in it; none where its name would not be seen as it is.
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
    fn names_stay_in_one_line() {
        assert_eq!(display_path(Path::new("a\nb")), "a\\nb");
        assert_eq!(display_path(Path::new("")), ".");
        assert_eq!(display_path(Path::new("grüße.txt")), "grüße.txt");
    }

    #[test]
    fn line_ends_are_recognised_by_the_majority() {
        assert!(uses_crlf(b"a\r\nb\r\nc\n"));
        assert!(!uses_crlf(b"a\nb\r\nc\n"));
        assert!(!uses_crlf(b""));
        assert_eq!(with_crlf("a\r\nb\n"), "a\r\nb\r\n");
    }

    #[test]
    fn a_pattern_names_the_folder_around() {
        assert_eq!(
            sibling_pattern(Path::new("src/a.rs")).as_deref(),
            Some("src/*")
        );
        assert_eq!(sibling_pattern(Path::new("a.rs")), None);
        assert_eq!(sibling_pattern(Path::new("s\u{200b}rc/a.rs")), None);
        assert_eq!(
            sibling_pattern(Path::new("s*/a.rs")),
            None,
            "a star would stand for other folders"
        );
    }
}
