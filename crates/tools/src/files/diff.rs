//! The difference between two texts, as people and models read it.

use std::path::Path;
use std::time::Duration;

use similar::TextDiff;

use super::text::{display_path, truncate};

/// A shortest difference is looked for this long; then a longer one is good enough.
const DIFF_TIMEOUT: Duration = Duration::from_millis(500);
const MAX_LINE_CHARS: usize = 300;

/// The unified difference, at most so many lines of it.
pub fn unified_diff(path: &Path, old: &str, new: &str, most: usize) -> String {
    let difference = TextDiff::configure()
        .timeout(DIFF_TIMEOUT)
        .diff_lines(old, new);
    let name = display_path(path);
    let text = difference
        .unified_diff()
        .context_radius(3)
        .header(&name, &name)
        .to_string();
    head_and_tail(&text, most)
}

/// The first and the last lines of a text, and how many there are between them: what matters may stand at either end.
pub fn head_and_tail(text: &str, most: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= most {
        return first_lines(text, most);
    }
    let cut_each = |lines: &[&str]| {
        lines
            .iter()
            .map(|line| truncate(line, MAX_LINE_CHARS))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let (head, tail) = (&lines[..most / 2], &lines[lines.len() - most / 2..]);
    format!(
        "{}\n[{} lines between]\n{}",
        cut_each(head),
        lines.len() - head.len() - tail.len(),
        cut_each(tail)
    )
}

/// The first lines of a text, and how many more there are.
pub fn first_lines(text: &str, most: usize) -> String {
    let mut lines: Vec<String> = text
        .lines()
        .take(most)
        .map(|line| truncate(line, MAX_LINE_CHARS))
        .collect();
    let more = text.lines().count().saturating_sub(most);
    if more > 0 {
        lines.push(format!("[{more} more lines]"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_differences_are_cut() {
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
