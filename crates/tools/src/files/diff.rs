//! Diffs and excerpts for people and models.

use std::path::Path;

use super::line_diff;
use super::text::{display_path, truncate};

const MAX_LINE_CHARS: usize = 300;

/// Returns the unified diff, shortened to `max_lines`.
pub fn unified_diff(path: &Path, old: &str, new: &str, max_lines: usize) -> String {
    head_and_tail(
        &line_diff::unified(&display_path(path), old, new),
        max_lines,
    )
}

/// Returns the first and the last lines of a text with the number of lines between them, because
/// either end may matter.
pub fn head_and_tail(text: &str, max_lines: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= max_lines {
        return first_lines(text, max_lines);
    }
    let truncate_each = |lines: &[&str]| {
        lines
            .iter()
            .map(|line| truncate(line, MAX_LINE_CHARS))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let (head, tail) = (
        &lines[..max_lines / 2],
        &lines[lines.len() - max_lines / 2..],
    );
    format!(
        "{}\n[{} lines between]\n{}",
        truncate_each(head),
        lines.len() - head.len() - tail.len(),
        truncate_each(tail)
    )
}

/// Returns the first lines of a text with the number of omitted lines.
pub fn first_lines(text: &str, max_lines: usize) -> String {
    let mut lines: Vec<String> = text
        .lines()
        .take(max_lines)
        .map(|line| truncate(line, MAX_LINE_CHARS))
        .collect();
    let more = text.lines().count().saturating_sub(max_lines);
    if more > 0 {
        lines.push(format!("[{more} more lines]"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortens_long_diffs() {
        let new: String = (0..100).map(|number| format!("{number}\n")).collect();
        let text = unified_diff(Path::new("a"), "", &new, 10);
        assert_eq!(text.lines().count(), 11);
        assert!(
            text.starts_with("--- a\n+++ a\n@@") && text.ends_with("+98\n+99"),
            "{text}"
        );
        assert!(text.contains("[93 lines between]"), "{text}");
    }
}
