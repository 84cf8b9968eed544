//! Hints for a text that does not occur in a file: the most similar lines.

use std::collections::HashMap;

use super::text::{truncate, with_lf};

/// Maximum number of lines to compare.
const MAX_LINES: usize = 20_000;
const MAX_SHOWN_CHARS: usize = 200;
/// Lines below this similarity are considered unrelated.
const MIN_SIMILARITY: f32 = 0.5;
/// Lines shown around the most similar one.
const CONTEXT_LINES: usize = 2;

/// Returns the reason hint_text the text was not found, with the most similar lines.
pub fn hint(text: &str, old: &str) -> String {
    let lines: Vec<&str> = text.lines().take(MAX_LINES).collect();
    let wanted: Vec<&str> = old.lines().collect();
    if let Some(at) = find_ignoring_whitespace(&lines, &wanted) {
        let found = format_lines(&lines, at, at + trim_blank_lines(&wanted).len());
        return format!(
            "old_text does not occur exactly, but it does with different whitespace:\n{found}"
        );
    }
    if with_lf(text).contains(with_lf(old).as_str()) {
        return "old_text occurs only with mixed line endings; give fewer lines at once".to_owned();
    }
    match nearest_line(&lines, &wanted) {
        Some(at) => {
            let shown = format_lines(
                &lines,
                at.saturating_sub(CONTEXT_LINES),
                at + wanted.len().min(10) + CONTEXT_LINES,
            );
            format!("old_text does not occur; the most similar lines are:\n{shown}")
        }
        None => "old_text does not occur, nor anything similar; read the file first".to_owned(),
    }
}

/// Returns the first of the lines that have the same words as `wanted`, line by line.
fn find_ignoring_whitespace(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let wanted: Vec<Vec<&str>> = trim_blank_lines(wanted)
        .iter()
        .map(|line| split_words(line))
        .collect();
    if wanted.is_empty() {
        return None;
    }
    let all: Vec<Vec<&str>> = lines.iter().map(|line| split_words(line)).collect();
    all.windows(wanted.len())
        .position(|window| window == wanted)
}

fn split_words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Removes leading and trailing blank lines.
fn trim_blank_lines<'a, 'b>(lines: &'b [&'a str]) -> &'b [&'a str] {
    let is_empty = |line: &&str| line.trim().is_empty();
    let start = lines
        .iter()
        .position(|line| !is_empty(line))
        .unwrap_or(lines.len());
    let end = lines
        .iter()
        .rposition(|line| !is_empty(line))
        .map_or(start, |end| end + 1);
    &lines[start..end]
}

fn nearest_line(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let first = bigrams(trim_blank_lines(wanted).first()?);
    let scores = lines
        .iter()
        .map(|line| dice_similarity(&first, &bigrams(line)));
    let (at, best) = scores
        .enumerate()
        .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
    (best >= MIN_SIMILARITY).then_some(at)
}

/// Counts the pairs of adjacent characters.
fn bigrams(line: &str) -> HashMap<(char, char), u32> {
    let chars: Vec<char> = line.trim().chars().take(MAX_SHOWN_CHARS).collect();
    let mut pairs = HashMap::new();
    for pair in chars.windows(2) {
        *pairs.entry((pair[0], pair[1])).or_default() += 1;
    }
    pairs
}

/// Returns the share of pairs that two lines have in common, from 0 to 1.
fn dice_similarity(a: &HashMap<(char, char), u32>, b: &HashMap<(char, char), u32>) -> f32 {
    let total: u32 = a.values().sum::<u32>() + b.values().sum::<u32>();
    let shared: u32 = a
        .iter()
        .map(|(pair, count)| *count.min(b.get(pair).unwrap_or(&0)))
        .sum();
    if total == 0 {
        0.0
    } else {
        2.0 * shared as f32 / total as f32
    }
}

fn format_lines(lines: &[&str], from: usize, to: usize) -> String {
    let shown = lines.iter().enumerate().take(to).skip(from);
    let shown: Vec<String> = shown
        .map(|(at, line)| format!("{}: {}", at + 1, truncate(line, MAX_SHOWN_CHARS)))
        .collect();
    shown.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "fn main() {\n    let total = count(files);\n    print(total);\n}\n";

    #[test]
    fn finds_lines_with_different_whitespace() {
        let hint_text = hint(TEXT, "let total =  count(files);\nprint(total);\n");
        assert!(
            hint_text.contains("different whitespace") && hint_text.contains("2:     let total"),
            "{hint_text}"
        );
    }

    #[test]
    fn shows_the_most_similar_lines() {
        let hint_text = hint(TEXT, "let totals = count(file);");
        assert!(
            hint_text.contains("most similar") && hint_text.contains("2:     let total"),
            "{hint_text}"
        );
        assert!(hint(TEXT, "zebra").contains("nor anything similar"));
    }
}
