//! What a text that is not in a file most likely meant.

use std::collections::HashMap;

use super::text::{truncate, with_lf};

/// Only so many lines are compared.
const MAX_LINES: usize = 20_000;
const MAX_SHOWN_CHARS: usize = 200;
/// Below this, lines have nothing to do with each other.
const MIN_SIMILARITY: f32 = 0.5;
/// Lines shown around the most similar one.
const CONTEXT_LINES: usize = 2;

/// Why the text was not found, with what comes nearest.
pub fn hint(text: &str, old: &str) -> String {
    let lines: Vec<&str> = text.lines().take(MAX_LINES).collect();
    let wanted: Vec<&str> = old.lines().collect();
    if let Some(at) = find_ignoring_whitespace(&lines, &wanted) {
        let found = format_lines(&lines, at, at + trim_blank_lines(&wanted).len());
        return format!(
            "old_text is not there exactly, but with other white space it is:\n{found}"
        );
    }
    if with_lf(text).contains(with_lf(old).as_str()) {
        return "old_text is there only with other line ends, mixed ones; give fewer lines at once"
            .to_owned();
    }
    match nearest_line(&lines, &wanted) {
        Some(at) => {
            let shown = format_lines(
                &lines,
                at.saturating_sub(CONTEXT_LINES),
                at + wanted.len().min(10) + CONTEXT_LINES,
            );
            format!("old_text is not there; the most similar lines are:\n{shown}")
        }
        None => "old_text is not there, nor anything like it; read the file first".to_owned(),
    }
}

/// The first line of the place that has the same words in the same lines.
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

/// Without empty lines around it.
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
    let likeness = lines
        .iter()
        .map(|line| dice_similarity(&first, &bigrams(line)));
    let (at, best) = likeness
        .enumerate()
        .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
    (best >= MIN_SIMILARITY).then_some(at)
}

/// Neighbouring characters, and how often they occur.
fn bigrams(line: &str) -> HashMap<(char, char), u32> {
    let chars: Vec<char> = line.trim().chars().take(MAX_SHOWN_CHARS).collect();
    let mut pairs = HashMap::new();
    for pair in chars.windows(2) {
        *pairs.entry((pair[0], pair[1])).or_default() += 1;
    }
    pairs
}

/// From 0 to 1: how many pairs two lines share.
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
    fn other_white_space_is_recognised() {
        let why = hint(TEXT, "let total =  count(files);\nprint(total);\n");
        assert!(
            why.contains("other white space") && why.contains("2:     let total"),
            "{why}"
        );
    }

    #[test]
    fn the_most_similar_lines_are_shown() {
        let why = hint(TEXT, "let totals = count(file);");
        assert!(
            why.contains("most similar") && why.contains("2:     let total"),
            "{why}"
        );
        assert!(hint(TEXT, "zebra").contains("nor anything like it"));
    }
}
