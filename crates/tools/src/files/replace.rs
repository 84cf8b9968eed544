//! Replaces a part of a text, without file access.

use super::similarity;
use super::text::{uses_crlf, with_crlf, with_lf};

/// Maximum number of line numbers listed for an ambiguous text.
const MAX_LISTED_LINES: usize = 10;

/// The part to replace.
#[derive(Debug)]
pub enum ReplaceTarget<'a> {
    /// This text, which must occur exactly once.
    Once(&'a str),
    Everywhere(&'a str),
    /// These lines, counted from 1, inclusive.
    Lines {
        first: u64,
        last: u64,
    },
}

/// The resulting text and the range of its new lines.
#[derive(Debug, PartialEq, Eq)]
pub struct Replacement {
    pub text: String,
    pub first: usize,
    pub last: usize,
}

/// Replaces `target` by `new`, or returns the reason reason it cannot.
pub fn replace(text: &str, target: &ReplaceTarget<'_>, new: &str) -> Result<Replacement, String> {
    let (spans, new) = match target {
        ReplaceTarget::Lines { first, last } => {
            let span = line_span(text, *first, *last)?;
            let new = fit_line_ends(text, new, span.1);
            (vec![span], new)
        }
        ReplaceTarget::Once(old) | ReplaceTarget::Everywhere(old) => {
            let (old, new) = find_old_text(text, old, new)?;
            let spans = match target {
                ReplaceTarget::Once(_) => vec![find_once(text, &old)?],
                _ => text
                    .match_indices(old.as_str())
                    .map(|(start, old)| (start, start + old.len()))
                    .collect(),
            };
            (spans, new)
        }
    };
    let replaced = assemble(text, &spans, &new);
    if replaced.text == text {
        return Err(
            "the edit changes nothing; fs_edit leaves the end of a file as it is, and the new text is \
            the same as the old"
                .to_owned(),
        );
    }
    Ok(replaced)
}

/// Returns the old and the new text with the line endings of the file, or an error if the old text
/// does not occur.
fn find_old_text(text: &str, old: &str, new: &str) -> Result<(String, String), String> {
    let candidates = [old.to_owned(), with_crlf(old), with_lf(old)];
    let Some(found) = candidates
        .into_iter()
        .find(|old| text.contains(old.as_str()))
    else {
        return Err(similarity::hint(text, old));
    };
    let has_plain_ends = found.contains('\n') && !found.contains("\r\n");
    let new = if uses_crlf(text.as_bytes()) && !has_plain_ends {
        with_crlf(new)
    } else {
        new.to_owned()
    };
    Ok((found, new))
}

/// Returns the span of a text that must occur once. Overlapping occurrences count separately.
fn find_once(text: &str, old: &str) -> Result<(usize, usize), String> {
    let mut positions = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(old).map(|at| at + from) {
        positions.push(at);
        if positions.len() > MAX_LISTED_LINES {
            break;
        }
        from = at + text[at..].chars().next().map_or(1, char::len_utf8);
    }
    if let [at] = positions[..] {
        return Ok((at, at + old.len()));
    }
    let more = if positions.len() > MAX_LISTED_LINES {
        " and more"
    } else {
        ""
    };
    let lines: Vec<String> = positions
        .iter()
        .take(MAX_LISTED_LINES)
        .map(|at| line_at(text, *at).to_string())
        .collect();
    let lines = lines.join(", ");
    Err(format!(
        "old_text occurs more than once, at lines {lines}{more}; give more of the text around it, or all=true"
    ))
}

/// Returns the byte span of a range of lines.
fn line_span(text: &str, first: u64, last: u64) -> Result<(usize, usize), String> {
    let (mut start, mut at, mut number) = (None, 0, 0);
    for line in text.split_inclusive('\n') {
        number += 1;
        if number == first {
            start = Some(at);
        }
        at += line.len();
        if number == last
            && let Some(start) = start
        {
            return Ok((start, at));
        }
    }
    let lines = super::text::count(number, "line");
    Err(format!(
        "it has {lines}, so lines {first}-{last} do not exist"
    ))
}

/// Adapts the new lines to the line endings of the text, and ends them with a newline if more lines
/// follow.
fn fit_line_ends(text: &str, new: &str, end: usize) -> String {
    let crlf = uses_crlf(text.as_bytes());
    let mut new = if crlf { with_crlf(new) } else { new.to_owned() };
    if !new.is_empty() && !new.ends_with('\n') && end < text.len() {
        new.push_str(if crlf { "\r\n" } else { "\n" });
    }
    new
}

fn assemble(text: &str, spans: &[(usize, usize)], new: &str) -> Replacement {
    let mut result = String::with_capacity(text.len() + new.len());
    let mut from = 0;
    let (mut first, mut last) = (0, 0);
    for (start, end) in spans {
        result.push_str(&text[from..*start]);
        if from == 0 {
            first = result.len();
        }
        result.push_str(new);
        last = result.len();
        from = *end;
    }
    result.push_str(&text[from..]);
    let last = if last > first { last - 1 } else { last };
    let (first, last) = (line_at(&result, first), line_at(&result, last));
    Replacement {
        text: preserve_final_newline(text, result),
        first,
        last,
    }
}

/// Keeps the final newline, or its absence, as in the old text.
fn preserve_final_newline(old: &str, mut new: String) -> String {
    if old.ends_with('\n') && !new.is_empty() && !new.ends_with('\n') {
        new.push_str(if uses_crlf(old.as_bytes()) {
            "\r\n"
        } else {
            "\n"
        });
    } else if !old.is_empty() && !old.ends_with('\n') && new.ends_with('\n') {
        new.pop();
        if new.ends_with('\r') {
            new.pop();
        }
    }
    new
}

fn line_at(text: &str, at: usize) -> usize {
    text.as_bytes()[..at]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced_text(text: &str, target: &ReplaceTarget<'_>, new: &str) -> String {
        replace(text, target, new).unwrap().text
    }

    #[test]
    fn replaces_one_or_all_occurrences() {
        let replaced = replace("a\nb\nc\n", &ReplaceTarget::Once("b"), "x\ny").unwrap();
        assert_eq!(
            replaced,
            Replacement {
                text: "a\nx\ny\nc\n".to_owned(),
                first: 2,
                last: 3
            }
        );
        assert_eq!(
            replaced_text("a a a", &ReplaceTarget::Everywhere("a"), "b"),
            "b b b"
        );
    }

    #[test]
    fn rejects_overlapping_and_repeated_occurrences() {
        let reason = replace("aaa", &ReplaceTarget::Once("aa"), "b").unwrap_err();
        assert!(reason.contains("at lines 1, 1;"), "{reason}");
        let reason = replace("x\ny\nx\n", &ReplaceTarget::Once("x"), "b").unwrap_err();
        assert!(reason.contains("at lines 1, 3; give more"), "{reason}");
    }

    #[test]
    fn replaces_and_removes_lines() {
        let middle = ReplaceTarget::Lines { first: 2, last: 3 };
        assert_eq!(replaced_text("a\nb\nc\nd\n", &middle, "x"), "a\nx\nd\n");
        assert_eq!(replaced_text("a\nb\nc\nd\n", &middle, ""), "a\nd\n");
        assert_eq!(replaced_text("a\nb\nc", &middle, "x\n"), "a\nx");
        assert_eq!(replaced_text("a\nb\nc\n", &middle, "x"), "a\nx\n");
        assert!(
            replace("a\n", &middle, "x")
                .unwrap_err()
                .contains("1 line,")
        );
    }

    #[test]
    fn keeps_crlf_line_endings() {
        assert_eq!(
            replaced_text("a\r\nb\r\nc\r\n", &ReplaceTarget::Once("a\nb"), "x\ny"),
            "x\r\ny\r\nc\r\n"
        );
        assert_eq!(
            replaced_text(
                "a\r\nb\r\n",
                &ReplaceTarget::Lines { first: 1, last: 1 },
                "x\ny"
            ),
            "x\r\ny\r\nb\r\n"
        );
        assert_eq!(
            replaced_text("a\r\nb\r\n", &ReplaceTarget::Once("b\r\n"), "c"),
            "a\r\nc\r\n"
        );
    }

    #[test]
    fn keeps_the_final_newline_state() {
        assert_eq!(
            replaced_text("a\nb\n", &ReplaceTarget::Once("b\n"), "c"),
            "a\nc\n"
        );
        assert_eq!(
            replaced_text("a\nb", &ReplaceTarget::Once("b"), "c\n"),
            "a\nc"
        );
        assert!(
            replace("a\nb", &ReplaceTarget::Once("b"), "b\n")
                .unwrap_err()
                .contains("changes nothing")
        );
    }
}
