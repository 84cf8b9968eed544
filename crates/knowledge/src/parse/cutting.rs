//! Cutting what is too long, where it does the least harm.

use std::ops::Range;

use unicode_segmentation::GraphemeCursor;

use super::chunks::ChunkSizes;
use super::{Shape, code};

/// The parts of a text, each at most `sizes.most` characters long; together they are the whole text.
pub fn split(text: &str, shape: Shape, sizes: ChunkSizes) -> Vec<Range<usize>> {
    if text.chars().nth(sizes.max_chars).is_none() {
        return std::iter::once(0..text.len()).collect();
    }
    match shape {
        Shape::Heading | Shape::Prose => split_prose(text, sizes),
        Shape::Lines => split_lines(text, sizes),
    }
}

/// What is left is taken whole rather than cut into a proper part and a small rest.
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

/// The end of the first part: at a sentence, else at a space, else at any character.
fn best_split(text: &str, sizes: ChunkSizes) -> usize {
    // One character more than a part may have, to see what follows its end.
    let window: Vec<(usize, char)> = text.char_indices().take(sizes.max_chars + 1).collect();
    let least = (sizes.target_chars / 2).max(1);
    let near_aim = |index: &usize| index.abs_diff(sizes.target_chars);
    let candidates = || least..window.len();
    let at = candidates()
        .filter(|index| is_sentence_end(&window, *index))
        .min_by_key(near_aim)
        .or_else(|| {
            candidates()
                .filter(|index| window[*index].1.is_whitespace())
                .min_by_key(near_aim)
        });
    match at {
        Some(index) => window[index].0,
        None => grapheme_boundary(text, &window, sizes.target_chars),
    }
}

/// Whether a sentence ends right before the character `index`.
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

/// Between two characters as people see them, unless one of them is absurdly long.
fn grapheme_boundary(text: &str, window: &[(usize, char)], aim: usize) -> usize {
    let end = window.last().map_or(text.len(), |(offset, _)| *offset);
    let wanted = window.get(aim).map_or(end, |(offset, _)| *offset);
    let seen = &text[..end];
    let mut cursor = GraphemeCursor::new(wanted, seen.len(), true);
    if matches!(cursor.is_boundary(seen, 0), Ok(true)) {
        return wanted;
    }
    match cursor.prev_boundary(seen, 0) {
        Ok(Some(boundary)) if boundary * 2 > wanted => boundary,
        _ => wanted,
    }
}

/// A line, or a part of one that is too long on its own.
struct SplitLine {
    range: Range<usize>,
    chars: usize,
    /// How bad it is to begin a part here.
    cost: usize,
}

fn split_lines(text: &str, sizes: ChunkSizes) -> Vec<Range<usize>> {
    let rows = scored_lines(text, sizes);
    let mut left: usize = rows.iter().map(|row| row.chars).sum();
    let mut parts = Vec::new();
    let mut first = 0;
    while first < rows.len() {
        let next = if left <= rest_limit(sizes) {
            rows.len()
        } else {
            best_line(&rows, first, sizes)
        };
        left -= rows[first..next].iter().map(|row| row.chars).sum::<usize>();
        parts.push(rows[first].range.start..rows[next - 1].range.end);
        first = next;
    }
    parts
}

/// The row that the next part begins with.
fn best_line(rows: &[SplitLine], first: usize, sizes: ChunkSizes) -> usize {
    /// Being far from the wanted size counts as much as this much indentation.
    const DISTANCE_COST: usize = 20;
    let mut chars = 0;
    let mut best: Option<(usize, usize)> = None;
    for (index, row) in rows.iter().enumerate().skip(first) {
        if index > first {
            let small = if chars < sizes.target_chars / 2 {
                10 * DISTANCE_COST
            } else {
                0
            };
            let cost = row.cost
                + small
                + chars.abs_diff(sizes.target_chars) * DISTANCE_COST / sizes.target_chars;
            if best.is_none_or(|(least, _)| cost <= least) {
                best = Some((cost, index));
            }
        }
        chars += row.chars;
        if chars > sizes.max_chars {
            return best.map_or(first + 1, |(_, index)| index);
        }
    }
    best.map_or(rows.len(), |(_, index)| index)
}

fn scored_lines(text: &str, sizes: ChunkSizes) -> Vec<SplitLine> {
    let mut rows = Vec::new();
    let mut start = 0;
    let mut above = "";
    for line in text.split_inclusive('\n') {
        let cost = cost(line, above);
        for (index, part) in split(line, Shape::Prose, sizes).into_iter().enumerate() {
            let chars = line[part.clone()].chars().count();
            let cost = if index == 0 { cost } else { 200 };
            rows.push(SplitLine {
                range: start + part.start..start + part.end,
                chars,
                cost,
            });
        }
        start += line.len();
        above = line;
    }
    rows
}

fn cost(line: &str, above: &str) -> usize {
    let indentation = code::indent(line).min(40) * 4;
    let dense = if above.trim().is_empty() { 0 } else { 6 };
    let torn = if code::is_leading_comment(above) {
        60
    } else {
        0
    };
    let closing = if line.trim().is_empty() || code::is_closing_line(line) {
        60
    } else {
        0
    };
    indentation + dense + torn + closing
}
