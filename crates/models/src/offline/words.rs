//! Splits a request into normalized words. Tokens that are not words (a URL, a path, a time) are
//! replaced by their kind.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization;

use super::token_kinds;

/// Longer requests are reduced to their start and end; the middle is mostly quoted content.
const HEAD_BYTES: usize = 1_500;
const TAIL_BYTES: usize = 500;

/// One word of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestWord {
    /// Lower case, without accents and endings; a token kind is written as `<kind>`.
    pub stem: String,
    /// Lower case and without accents.
    pub normalized: String,
    /// Byte range in the text.
    pub range: Range<usize>,
}

impl RequestWord {
    pub fn has_token_kind(&self) -> bool {
        self.stem.starts_with('<')
    }
}

/// Returns the words of a text in order.
pub fn split_words(text: &str) -> Vec<RequestWord> {
    let mut words = Vec::new();
    for range in token_ranges(text) {
        let token = &text[range.clone()];
        if let Some(kind) = token_kinds::token_kind(token) {
            words.push(RequestWord {
                stem: format!("<{kind}>"),
                normalized: normalize(token),
                range,
            });
            continue;
        }
        words.extend(split_plain_words(text, range));
    }
    words
}

/// Returns the whole text, or its start and end if it is long.
pub fn truncate(text: &str) -> String {
    if text.len() <= HEAD_BYTES + TAIL_BYTES {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(HEAD_BYTES);
    let tail = text.ceil_char_boundary(text.len() - TAIL_BYTES);
    format!("{} {}", &text[..head], &text[tail..])
}

/// Returns the ranges of whitespace-delimited tokens; a code span is one token.
fn token_ranges(text: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
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
        ranges.push(start..end);
        rest = end;
    }
    ranges
}

fn code_span_end(text: &str, start: usize) -> Option<usize> {
    let inside = text[start..].strip_prefix('`')?;
    let length = inside.find('`')?;
    (length > 0).then_some(start + 1 + length + 1)
}

fn split_plain_words(text: &str, range: Range<usize>) -> Vec<RequestWord> {
    let mut words = Vec::new();
    let mut start = None;
    let part_of_word = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '’') || is_combining(c);
    let token = &text[range.clone()];
    for (at, c) in token.char_indices().chain([(token.len(), ' ')]) {
        match (part_of_word(c), start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                start = None;
                let plain = normalize(&token[from..at]);
                if !plain.is_empty() {
                    let at = range.start + from..range.start + at;
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

/// Returns the text in lower case, with compatibility forms resolved, without accents and
/// apostrophes.
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

/// Returns true for accents of Latin, Greek and Cyrillic letters; the sound marks of Japanese stay.
fn is_combining(c: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&c)
}

/// Removes inflectional endings.
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
    for (ending, replacement, min_len) in ENDINGS {
        if let Some(base) = word.strip_suffix(ending)
            && base.len() >= min_len
            && !base.ends_with('s')
        {
            return trim_final_e(&format!("{base}{replacement}"));
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

/// Returns true for scripts without spaces between words, or with suffixes attached to them.
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
    fn non_words_become_token_kinds() {
        let text = "read ~/notes/a.txt, run `ls -l` at 8:30 and open https://example.org/x?y=1!";
        assert_eq!(
            stems(text),
            [
                "read", "<path>", "run", "<code>", "at", "<clock>", "and", "open", "<url>"
            ]
        );
    }

    #[test]
    fn long_texts_keep_both_ends() {
        let text = format!("summarise {} thanks", "ä".repeat(100_000));
        let truncated = truncate(&text);
        assert!(
            truncated.starts_with("summarise")
                && truncated.ends_with("thanks")
                && truncated.len() < 2_100
        );
    }
}
