//! The difference between two texts, as people and models read it.

use std::path::Path;
use std::time::Duration;

use similar::TextDiff;

use super::text::{cut, shown};

/// A shortest difference is looked for this long; then a longer one is good enough.
const PATIENCE: Duration = Duration::from_millis(500);
const MAX_LINE_CHARS: usize = 300;

/// The unified difference, at most so many lines of it.
pub fn unified(path: &Path, old: &str, new: &str, most: usize) -> String {
    let difference = TextDiff::configure().timeout(PATIENCE).diff_lines(old, new);
    let name = shown(path);
    let text = difference.unified_diff().context_radius(3).header(&name, &name).to_string();
    first_lines(&text, most)
}

/// The first lines of a text, and how many more there are.
pub fn first_lines(text: &str, most: usize) -> String {
    let mut lines: Vec<String> = text.lines().take(most).map(|line| cut(line, MAX_LINE_CHARS)).collect();
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
        let text = unified(Path::new("a"), "", &new, 10);
        assert_eq!(text.lines().count(), 11);
        assert!(text.starts_with("--- a\n+++ a\n@@") && text.ends_with("[93 more lines]"), "{text}");
    }
}
