//! A request as the offline model reads it: plain words, and marks for what is not a word (an address, a path, a time).

use std::ops::Range;

use unicode_normalization::UnicodeNormalization;

use super::token_kinds;

/// A request longer than this is judged by its beginning and its end; what lies between is usually what it is about.
const HEAD_BYTES: usize = 1_500;
const TAIL_BYTES: usize = 500;

/// One word of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestWord {
    /// Lower case, without accents and endings; a mark has its name in `<…>`.
    pub stem: String,
    /// Lower case and without accents.
    pub normalized: String,
    /// Where it stands in the text.
    pub range: Range<usize>,
}

impl RequestWord {
    pub fn has_token_kind(&self) -> bool {
        self.stem.starts_with('<')
    }
}

/// The words of a text in order.
pub fn split_words(text: &str) -> Vec<RequestWord> {
    let mut words = Vec::new();
    for piece in token_ranges(text) {
        let token = &text[piece.clone()];
        if let Some(mark) = token_kinds::token_kind(token) {
            words.push(RequestWord {
                stem: format!("<{mark}>"),
                normalized: normalize(token),
                range: piece,
            });
            continue;
        }
        words.extend(split_plain_words(text, piece));
    }
    words
}

/// What of a text is read: all of it, or its beginning and its end.
pub fn truncate(text: &str) -> String {
    if text.len() <= HEAD_BYTES + TAIL_BYTES {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(HEAD_BYTES);
    let tail = text.ceil_char_boundary(text.len() - TAIL_BYTES);
    format!("{} {}", &text[..head], &text[tail..])
}

/// Whitespace-delimited pieces; a code span is one piece.
fn token_ranges(text: &str) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut rest = 0;
    while rest < text.len() {
        let from = &text[rest..];
        let skipped = from.len() - from.trim_start().len();
        let start = rest + skipped;
        if start >= text.len() {
            break;
        }
        let end = code_span_end(text, start).unwrap_or_else(|| {
            text[start..]
                .find(char::is_whitespace)
                .map_or(text.len(), |length| start + length)
        });
        pieces.push(start..end);
        rest = end;
    }
    pieces
}

fn code_span_end(text: &str, start: usize) -> Option<usize> {
    let inside = text[start..].strip_prefix('`')?;
    let length = inside.find('`')?;
    (length > 0).then_some(start + 1 + length + 1)
}

fn split_plain_words(text: &str, piece: Range<usize>) -> Vec<RequestWord> {
    let mut words = Vec::new();
    let mut start = None;
    let part_of_word = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '’') || is_combining(c);
    let token = &text[piece.clone()];
    for (at, c) in token.char_indices().chain([(token.len(), ' ')]) {
        match (part_of_word(c), start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                start = None;
                let plain = normalize(&token[from..at]);
                if !plain.is_empty() {
                    let at = piece.start + from..piece.start + at;
                    words.push(RequestWord {
                        stem: token_kinds::word_kind(&plain).unwrap_or_else(|| stem(&plain)),
                        normalized: plain,
                        range: at,
                    });
                }
            }
            _ => {}
        }
    }
    words
}

/// Lower case, compatibility forms resolved, without accents and apostrophes.
pub fn normalize(text: &str) -> String {
    if text.is_ascii() {
        return text
            .chars()
            .filter(|c| *c != '\'')
            .map(|c| c.to_ascii_lowercase())
            .collect();
    }
    let lower = text
        .nfkd()
        .filter(|c| !is_combining(*c) && !matches!(c, '\'' | '’'))
        .flat_map(char::to_lowercase);
    lower.nfc().collect::<String>().replace('ß', "ss")
}

/// Accents of Latin, Greek and Cyrillic letters; the sound marks of Japanese stay.
fn is_combining(c: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&c)
}

/// Without the endings that do not change what a word points to.
pub fn stem(word: &str) -> String {
    const ENDINGS: [(&str, &str, usize); 6] = [
        ("ies", "y", 2),
        ("ing", "", 4),
        ("ed", "", 4),
        ("es", "", 4),
        ("s", "", 3),
        ("ly", "", 4),
    ];
    if !word.is_ascii() {
        return word.to_owned();
    }
    for (ending, instead, shortest) in ENDINGS {
        if let Some(base) = word.strip_suffix(ending)
            && base.len() >= shortest
            && !base.ends_with('s')
        {
            return trim_final_e(&format!("{base}{instead}"));
        }
    }
    trim_final_e(word)
}

fn trim_final_e(word: &str) -> String {
    if word.len() > 2 {
        word.trim_end_matches('e').to_owned()
    } else {
        word.to_owned()
    }
}

/// Scripts that are written without spaces, or whose endings grow on the word.
pub fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stems(text: &str) -> Vec<String> {
        split_words(text)
            .into_iter()
            .map(|word| word.stem)
            .collect()
    }

    #[test]
    fn accents_case_and_endings_do_not_matter() {
        assert_eq!(stems("Schedules SCHEDULING scheduled"), ["schedul"; 3]);
        assert_eq!(stems("Réunion reunion"), ["reunion"; 2]);
        assert_eq!(stems("what's"), ["what"]);
        assert_eq!(stems("한국어 日本語"), ["한국어", "日本語"]);
    }

    #[test]
    fn what_is_no_word_becomes_a_mark() {
        let text = "read ~/notes/a.txt, run `ls -l` at 8:30 and open https://example.org/x?y=1!";
        assert_eq!(
            stems(text),
            [
                "read", "<path>", "run", "<code>", "at", "<clock>", "and", "open", "<url>"
            ]
        );
    }

    #[test]
    fn a_long_text_is_judged_by_both_ends() {
        let text = format!("summarise {} thanks", "ä".repeat(100_000));
        let judged = truncate(&text);
        assert!(
            judged.starts_with("summarise") && judged.ends_with("thanks") && judged.len() < 2_100
        );
    }
}
