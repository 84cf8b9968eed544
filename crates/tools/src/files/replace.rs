//! One text in place of another, decided without touching a file.

use super::similarity;
use super::text::{uses_crlf, with_crlf, with_lf};

/// So many places are named when there are too many.
const MAX_LISTED_LINES: usize = 10;

/// What is replaced.
#[derive(Debug)]
pub enum ReplaceTarget<'a> {
    /// This text, which must be there exactly once.
    Once(&'a str),
    Everywhere(&'a str),
    /// These lines, counted from 1, both included.
    Lines {
        first: u64,
        last: u64,
    },
}

/// The text afterwards, and the lines of it that are new.
#[derive(Debug, PartialEq, Eq)]
pub struct Replacement {
    pub text: String,
    pub first: usize,
    pub last: usize,
}

/// The text with something else in that place, or why not.
pub fn replace(text: &str, place: &ReplaceTarget<'_>, new: &str) -> Result<Replacement, String> {
    let (spans, new) = match place {
        ReplaceTarget::Lines { first, last } => {
            let span = line_span(text, *first, *last)?;
            let new = fit_line_ends(text, new, span.1);
            (vec![span], new)
        }
        ReplaceTarget::Once(old) | ReplaceTarget::Everywhere(old) => {
            let (old, new) = find_old_text(text, old, new)?;
            let spans = match place {
                ReplaceTarget::Once(_) => vec![find_once(text, &old)?],
                _ => text
                    .match_indices(old.as_str())
                    .map(|(at, old)| (at, at + old.len()))
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

/// Old and new text with the line ends of the file, if the old text is there at all.
fn find_old_text(text: &str, old: &str, new: &str) -> Result<(String, String), String> {
    let candidates = [old.to_owned(), with_crlf(old), with_lf(old)];
    let Some(old_here) = candidates
        .into_iter()
        .find(|old| text.contains(old.as_str()))
    else {
        return Err(similarity::hint(text, old));
    };
    let has_plain_ends = old_here.contains('\n') && !old_here.contains("\r\n");
    let new = if uses_crlf(text.as_bytes()) && !has_plain_ends {
        with_crlf(new)
    } else {
        new.to_owned()
    };
    Ok((old_here, new))
}

/// The only place of a text; places that overlap are several.
fn find_once(text: &str, old: &str) -> Result<(usize, usize), String> {
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(old).map(|at| at + from) {
        places.push(at);
        if places.len() > MAX_LISTED_LINES {
            break;
        }
        from = at + text[at..].chars().next().map_or(1, char::len_utf8);
    }
    if let [at] = places[..] {
        return Ok((at, at + old.len()));
    }
    let more = if places.len() > MAX_LISTED_LINES {
        " and more"
    } else {
        ""
    };
    let lines: Vec<String> = places
        .iter()
        .take(MAX_LISTED_LINES)
        .map(|at| line_at(text, *at).to_string())
        .collect();
    let lines = lines.join(", ");
    Err(format!(
        "old_text occurs more than once, at lines {lines}{more}; give more of the text around it, or all=true"
    ))
}

/// Where these lines begin and end.
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
        "it has {lines}, so lines {first}-{last} are not there"
    ))
}

/// New lines with the ends that lines of this text have; what follows must begin a line.
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

/// Whether a text ends with a line end is not what an edit is about: it stays.
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

    fn replaced_text(text: &str, place: &ReplaceTarget<'_>, new: &str) -> String {
        replace(text, place, new).unwrap().text
    }

    #[test]
    fn one_text_takes_the_place_of_another() {
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
    fn places_that_overlap_are_several() {
        let why = replace("aaa", &ReplaceTarget::Once("aa"), "b").unwrap_err();
        assert!(why.contains("at lines 1, 1;"), "{why}");
        let why = replace("x\ny\nx\n", &ReplaceTarget::Once("x"), "b").unwrap_err();
        assert!(why.contains("at lines 1, 3; give more"), "{why}");
    }

    #[test]
    fn lines_are_replaced_removed_and_missed() {
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
    fn line_ends_of_windows_are_kept() {
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
    fn the_last_line_end_stays_as_it_was() {
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
