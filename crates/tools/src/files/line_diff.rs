//! Unified diffs of texts by line, with bounded work.
//!
//! The algorithm is the greedy one of Myers, "An O(ND) Difference Algorithm and Its Variations"
//! (1986), over lines that are replaced by numbers.

use std::collections::HashMap;
use std::ops::Range;

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// Edits that are found at once. Time and memory grow with the square of this number.
const MAX_EDITS: usize = 1_000;
/// Number of times that edits are found. The rest of texts that differ in more lines is shown as one
/// change: a person reads no diff of this length.
const MAX_ROUNDS: usize = 10;

/// Lines of the old text that are replaced by lines of the new one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LineChange {
    old: Range<usize>,
    new: Range<usize>,
}

impl LineChange {
    fn shifted(self, (old, new): (usize, usize)) -> Self {
        Self {
            old: self.old.start + old..self.old.end + old,
            new: self.new.start + new..self.new.end + new,
        }
    }
}

/// Returns a unified diff with `name` in its header; empty for equal texts.
pub fn unified(name: &str, old: &str, new: &str) -> String {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let changes = line_changes(&old, &new);
    if changes.is_empty() {
        return String::new();
    }
    let mut text = format!("--- {name}\n+++ {name}\n");
    let is_near = |a: &LineChange, b: &LineChange| b.old.start - a.old.end <= 2 * CONTEXT;
    for hunk in changes.chunk_by(is_near) {
        write_hunk(&mut text, hunk, &old, &new);
    }
    text
}

fn write_hunk(text: &mut String, changes: &[LineChange], old: &[&str], new: &[&str]) {
    let (Some(first), Some(last)) = (changes.first(), changes.last()) else {
        return;
    };
    let before = first.old.start.min(CONTEXT);
    let after = (old.len() - last.old.end).min(CONTEXT);
    let old_range = first.old.start - before..last.old.end + after;
    let new_range = first.new.start - before..last.new.end + after;
    let header = format!(
        "@@ -{} +{} @@\n",
        hunk_range(&old_range),
        hunk_range(&new_range)
    );
    text.push_str(&header);
    let mut next = old_range.start;
    for change in changes {
        write_lines(text, ' ', &old[next..change.old.start]);
        write_lines(text, '-', &old[change.old.clone()]);
        write_lines(text, '+', &new[change.new.clone()]);
        next = change.old.end;
    }
    write_lines(text, ' ', &old[next..old_range.end]);
}

/// Writes a range as `diff -u` does: line numbers begin at 1, and an empty range names the line
/// before it.
fn hunk_range(range: &Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        count => format!("{},{count}", range.start + 1),
    }
}

fn write_lines(text: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        text.push(sign);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// Returns the changes between two texts in order.
fn line_changes(old: &[&str], new: &[&str]) -> Vec<LineChange> {
    let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| {
        pairs.take_while(|(old, new)| old == new).count()
    };
    let start = same(&mut old.iter().zip(new));
    let end = same(&mut old[start..].iter().rev().zip(new[start..].iter().rev()));
    let old_middle = &old[start..old.len() - end];
    let new_middle = &new[start..new.len() - end];
    if old_middle.is_empty() && new_middle.is_empty() {
        return Vec::new();
    }
    let mut numbers = HashMap::new();
    let old_numbers = number_lines(&mut numbers, old_middle);
    let new_numbers = number_lines(&mut numbers, new_middle);
    let mut changes = Vec::new();
    let mut done = (start, start);
    for _ in 0..MAX_ROUNDS {
        let rest = (
            &old_numbers[done.0 - start..],
            &new_numbers[done.1 - start..],
        );
        let (found, end) = furthest_changes(rest.0, rest.1);
        for change in found {
            push_change(&mut changes, change.shifted(done));
        }
        done = (done.0 + end.0, done.1 + end.1);
    }
    let rest = LineChange {
        old: done.0..old.len() - end,
        new: done.1..new.len() - end,
    };
    if !rest.old.is_empty() || !rest.new.is_empty() {
        push_change(&mut changes, rest);
    }
    changes
}

/// Adds a change, joined with the previous one if they are adjacent.
fn push_change(changes: &mut Vec<LineChange>, change: LineChange) {
    match changes.last_mut() {
        Some(last) if last.old.end == change.old.start && last.new.end == change.new.start => {
            (last.old.end, last.new.end) = (change.old.end, change.new.end);
        }
        _ => changes.push(change),
    }
}

/// Replaces lines by numbers, equal ones by the same number, so that they compare fast.
fn number_lines<'a>(numbers: &mut HashMap<&'a str, usize>, lines: &[&'a str]) -> Vec<usize> {
    let mut result = Vec::with_capacity(lines.len());
    for line in lines {
        let next = numbers.len();
        result.push(*numbers.entry(line).or_insert(next));
    }
    result
}

/// The furthest position in the old text on each diagonal. Diagonal 0 is in the middle.
struct Furthest(Vec<i32>);

impl Furthest {
    fn get(&self, diagonal: i32) -> i32 {
        self.0[self.index(diagonal)]
    }

    fn set(&mut self, diagonal: i32, x: i32) {
        let index = self.index(diagonal);
        self.0[index] = x;
    }

    fn index(&self, diagonal: i32) -> usize {
        (self.0.len() as i32 / 2 + diagonal) as usize
    }

    /// Returns the diagonal from which an edit reaches `diagonal` furthest.
    fn origin(&self, diagonal: i32, edits: i32) -> i32 {
        let by_insertion = diagonal == -edits
            || (diagonal != edits && self.get(diagonal - 1) < self.get(diagonal + 1));
        if by_insertion {
            diagonal + 1
        } else {
            diagonal - 1
        }
    }

    /// Returns the position in the old text after that edit.
    fn after_edit(&self, diagonal: i32, edits: i32) -> i32 {
        let origin = self.origin(diagonal, edits);
        self.get(origin) + i32::from(origin < diagonal)
    }

    /// Copies the diagonals that a path of `edits` edits needs.
    fn around_middle(&self, edits: i32) -> Self {
        Self(self.0[self.index(-edits)..=self.index(edits)].to_vec())
    }
}

/// Returns the fewest changes that turn the start of `old` into the start of `new`, and how many lines
/// those starts have. They are the whole texts unless there are too many edits.
fn furthest_changes(old: &[usize], new: &[usize]) -> (Vec<LineChange>, (usize, usize)) {
    let limit = MAX_EDITS.min(old.len() + new.len()) as i32;
    let mut furthest = Furthest(vec![0; 2 * limit as usize + 3]);
    let mut history = Vec::new();
    for edits in 0..=limit {
        history.push(furthest.around_middle(edits));
        for diagonal in (-edits..=edits).step_by(2) {
            let mut x = match edits {
                0 => 0,
                _ => furthest.after_edit(diagonal, edits),
            };
            let at = |x: i32| old.get(x as usize).zip(new.get((x - diagonal) as usize));
            while at(x).is_some_and(|(old, new)| old == new) {
                x += 1;
            }
            furthest.set(diagonal, x);
            if x as usize >= old.len() && (x - diagonal) as usize >= new.len() {
                let end = (old.len(), new.len());
                return (trace_back(&history, end), end);
            }
        }
    }
    let ends = (-limit..=limit).step_by(2).map(|diagonal| {
        let x = furthest.get(diagonal);
        (x as usize, (x - diagonal) as usize)
    });
    let ends = ends.filter(|(x, y)| *x <= old.len() && *y <= new.len());
    let end = ends.max_by_key(|(x, y)| x + y).unwrap_or_default();
    (trace_back(&history, end), end)
}

/// Follows the shortest path from its end to its start and joins adjacent edits.
fn trace_back(history: &[Furthest], (x, y): (usize, usize)) -> Vec<LineChange> {
    let (mut x, mut y) = (x as i32, y as i32);
    let mut changes: Vec<LineChange> = Vec::new();
    for edits in (1..history.len()).rev() {
        let diagonal = x - y;
        let origin = history[edits].origin(diagonal, edits as i32);
        (x, y) = (
            history[edits].get(origin),
            history[edits].get(origin) - origin,
        );
        let edit = LineChange {
            old: x as usize..x as usize + usize::from(origin < diagonal),
            new: y as usize..y as usize + usize::from(origin > diagonal),
        };
        match changes.last_mut() {
            Some(next) if next.old.start == edit.old.end && next.new.start == edit.new.end => {
                (next.old.start, next.new.start) = (edit.old.start, edit.new.start);
            }
            _ => changes.push(edit),
        }
    }
    changes.reverse();
    changes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn writes_hunks_as_diff_does() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n";
        let new = "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n12";
        let expected = "--- a\n+++ a\n@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n\
             @@ -8,5 +9,4 @@\n 8\n 9\n 10\n-11\n-12\n+12\n\\ No newline at end of file\n";
        assert_eq!(unified("a", old, new), expected);
        assert_eq!(unified("a", "", "x\n"), "--- a\n+++ a\n@@ -0,0 +1 @@\n+x\n");
        assert_eq!(unified("a", "x\n", ""), "--- a\n+++ a\n@@ -1 +0,0 @@\n-x\n");
        assert_eq!(unified("a", "x\n", "x\n"), "");
    }

    #[test]
    fn many_edits_leave_equal_lines_between_them() {
        let old: String = (0..3_000).map(|line| format!("{line}\n")).collect();
        let added: String = (0..5_000).map(|line| format!("new {line}\n")).collect();
        let new = format!("first\n{}{added}", &old[2..]);
        let text = unified("a", &old, &new);
        assert_eq!(
            text.lines().filter(|line| line.starts_with("@@")).count(),
            2
        );
        assert_eq!(
            text.lines().filter(|line| line.starts_with('+')).count(),
            5_002
        );
    }

    #[test]
    fn work_is_bounded() {
        let lines = |text: &str| text.repeat(60_000);
        let text = unified("a", &lines("a\nb\n"), &lines("b\nc\na\n"));
        assert!(text.lines().count() > 120_000);
    }

    /// Applies changes to a text.
    fn apply(old: &[&str], new: &[&str], changes: &[LineChange]) -> Vec<String> {
        let mut result = Vec::new();
        let mut next = 0;
        for change in changes {
            result.extend_from_slice(&old[next..change.old.start]);
            result.extend_from_slice(&new[change.new.clone()]);
            next = change.old.end;
        }
        result.extend_from_slice(&old[next..]);
        result.into_iter().map(str::to_owned).collect()
    }

    /// The length of the longest common subsequence, by the textbook table.
    fn common(old: &[&str], new: &[&str]) -> usize {
        let mut row = vec![0; new.len() + 1];
        for a in old {
            let mut diagonal = 0;
            for (index, b) in new.iter().enumerate() {
                let above = row[index + 1];
                row[index + 1] = if a == b {
                    diagonal + 1
                } else {
                    above.max(row[index])
                };
                diagonal = above;
            }
        }
        row[new.len()]
    }

    proptest! {
        #[test]
        fn changes_turn_old_into_new_and_are_the_fewest(
            old in prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 0..20),
            new in prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 0..20),
        ) {
            let changes = line_changes(&old, &new);
            prop_assert_eq!(apply(&old, &new, &changes), new.clone());
            let edits: usize = changes.iter().map(|change| change.old.len() + change.new.len()).sum();
            prop_assert_eq!(edits, old.len() + new.len() - 2 * common(&old, &new));
        }
    }
}
