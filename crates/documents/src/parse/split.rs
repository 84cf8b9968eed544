//! Splits long texts at sentences, lines or spaces.

use std::ops::Range;

use unicode_segmentation::GraphemeCursor;

use super::chunker::ChunkSizes;
use super::{Shape, code};

/// Returns the parts of a text, each at most `sizes.max_chars` characters long. Together they cover
/// the whole text.
pub fn split(text: &str, shape: Shape, sizes: ChunkSizes) -> Vec<Range<usize>> {
    if text.chars().nth(sizes.max_chars).is_none() {
        return std::iter::once(0..text.len()).collect();
    }
    match shape {
        Shape::Heading | Shape::Prose => split_prose(text, sizes),
        Shape::Lines => split_lines(text, sizes),
    }
}

/// Returns the size up to which the rest of a text stays whole, so that no small part remains.
fn rest_limit(sizes: ChunkSizes) -> usize {
    (sizes.target_chars + sizes.target_chars / 2).min(sizes.max_chars)
}

fn split_prose(text: &str, sizes: ChunkSizes) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = 0;
    while text[start..].chars().nth(rest_limit(sizes)).is_some() {
        let end = start + best_split(&text[start..], sizes);
        parts.push(start..end);
        start = end;
    }
    if start < text.len() {
        parts.push(start..text.len());
    }
    parts
}

/// Returns the end of the first part: at a sentence, else at a space, else at any character.
fn best_split(text: &str, sizes: ChunkSizes) -> usize {
    // One character more than a part may have, to check the character after its end.
    let window: Vec<(usize, char)> = text.char_indices().take(sizes.max_chars + 1).collect();
    let least = (sizes.target_chars / 2).max(1);
    let distance = |index: &usize| index.abs_diff(sizes.target_chars);
    let candidates = || least..window.len();
    let best = candidates()
        .filter(|index| is_sentence_end(&window, *index))
        .min_by_key(distance)
        .or_else(|| {
            candidates()
                .filter(|index| window[*index].1.is_whitespace())
                .min_by_key(distance)
        });
    match best {
        Some(index) => window[index].0,
        None => grapheme_boundary(text, &window, sizes.target_chars),
    }
}

/// Returns true if a sentence ends right before the character `index`.
fn is_sentence_end(window: &[(usize, char)], index: usize) -> bool {
    const ENDS: &[char] = &['.', '!', '?', '…', '؟', '۔', '।'];
    const ENDS_WITHOUT_SPACE: &[char] = &['。', '！', '？', '｡', '．'];
    const CLOSING: &[char] = &[
        '"', '\'', '”', '’', '»', ')', ']', '」', '』', '）', '】', '》', '*', '_',
    ];
    let next = window[index].1;
    let before = window[..index].iter().rev().map(|(_, char)| *char).take(4);
    let Some(last) = before.into_iter().find(|char| !CLOSING.contains(char)) else {
        return false;
    };
    if ENDS_WITHOUT_SPACE.contains(&last) {
        return !CLOSING.contains(&next) && !ENDS_WITHOUT_SPACE.contains(&next);
    }
    ENDS.contains(&last) && next.is_whitespace()
}

/// Returns the grapheme boundary nearest before `target`, unless the grapheme is extremely long.
fn grapheme_boundary(text: &str, window: &[(usize, char)], target: usize) -> usize {
    let end = window.last().map_or(text.len(), |(offset, _)| *offset);
    let wanted = window.get(target).map_or(end, |(offset, _)| *offset);
    let prefix = &text[..end];
    let mut cursor = GraphemeCursor::new(wanted, prefix.len(), true);
    if matches!(cursor.is_boundary(prefix, 0), Ok(true)) {
        return wanted;
    }
    match cursor.prev_boundary(prefix, 0) {
        Ok(Some(boundary)) if boundary * 2 > wanted => boundary,
        _ => wanted,
    }
}

/// A line, or a part of a line that is too long.
struct SplitLine {
    range: Range<usize>,
    chars: usize,
    /// The cost of starting a part at this line.
    cost: usize,
}

fn split_lines(text: &str, sizes: ChunkSizes) -> Vec<Range<usize>> {
    let lines = scored_lines(text, sizes);
    let mut remaining: usize = lines.iter().map(|line| line.chars).sum();
    let mut parts = Vec::new();
    let mut first = 0;
    while first < lines.len() {
        let next = if remaining <= rest_limit(sizes) {
            lines.len()
        } else {
            best_line(&lines, first, sizes)
        };
        remaining -= lines[first..next]
            .iter()
            .map(|line| line.chars)
            .sum::<usize>();
        parts.push(lines[first].range.start..lines[next - 1].range.end);
        first = next;
    }
    parts
}

/// Returns the index of the line that starts the next part.
fn best_line(lines: &[SplitLine], first: usize, sizes: ChunkSizes) -> usize {
    /// The cost of a part whose size is off by the whole target size.
    const DISTANCE_COST: usize = 20;
    let mut chars = 0;
    let mut best: Option<(usize, usize)> = None;
    for (index, line) in lines.iter().enumerate().skip(first) {
        if index > first {
            let too_small = if chars < sizes.target_chars / 2 {
                10 * DISTANCE_COST
            } else {
                0
            };
            let cost = line.cost
                + too_small
                + chars.abs_diff(sizes.target_chars) * DISTANCE_COST / sizes.target_chars;
            if best.is_none_or(|(least, _)| cost <= least) {
                best = Some((cost, index));
            }
        }
        chars += line.chars;
        if chars > sizes.max_chars {
            return best.map_or(first + 1, |(_, index)| index);
        }
    }
    best.map_or(lines.len(), |(_, index)| index)
}

fn scored_lines(text: &str, sizes: ChunkSizes) -> Vec<SplitLine> {
    let mut lines = Vec::new();
    let mut start = 0;
    let mut previous = "";
    for line in text.split_inclusive('\n') {
        let cost = split_cost(line, previous);
        for (index, part) in split(line, Shape::Prose, sizes).into_iter().enumerate() {
            let chars = line[part.clone()].chars().count();
            let cost = if index == 0 { cost } else { 200 };
            lines.push(SplitLine {
                range: start + part.start..start + part.end,
                chars,
                cost,
            });
        }
        start += line.len();
        previous = line;
    }
    lines
}

/// Returns the cost of a split between two lines.
fn split_cost(line: &str, previous: &str) -> usize {
    let indentation = code::indent(line).min(40) * 4;
    let no_blank_line = if previous.trim().is_empty() { 0 } else { 6 };
    let after_comment = if code::is_leading_comment(previous) {
        60
    } else {
        0
    };
    let closing = if line.trim().is_empty() || code::is_closing_line(line) {
        60
    } else {
        0
    };
    indentation + no_blank_line + after_comment + closing
}
