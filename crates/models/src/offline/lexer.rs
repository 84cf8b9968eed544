//! A request cut into tokens, each still as it was typed: what goes into an argument must not be changed.

use super::words::normalize;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    text: &'a str,
    start: usize,
    end: usize,
    /// Lower case and without punctuation around it.
    pub normalized: String,
    /// In quotes or backticks: one token, whatever stands inside.
    pub is_quoted: bool,
    /// A comma or a semicolon follows.
    pub ends_clause: bool,
}

const QUOTES: [(char, char); 7] = [
    ('`', '`'),
    ('\'', '\''),
    ('"', '"'),
    ('“', '”'),
    ('«', '»'),
    ('„', '“'),
    ('「', '」'),
];
const PUNCTUATION: [char; 8] = ['.', ',', ';', ':', '!', '?', '。', '、'];

/// The tokens of a text.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(skipped) = text[at..].find(|c: char| !c.is_whitespace()) {
        let start = at + skipped;
        let quoted = quoted_end(text, start);
        let word_end = |from: usize| {
            text[from..]
                .find(char::is_whitespace)
                .map_or(text.len(), |length| from + length)
        };
        let end = word_end(quoted.unwrap_or(start));
        let raw = &text[start..end];
        let is_quoted =
            quoted.is_some_and(|close| text[close..end].chars().all(|c| PUNCTUATION.contains(&c)));
        let plain = normalize(raw.trim_matches(|c: char| !c.is_alphanumeric()));
        let ends_clause = raw.ends_with([',', ';']);
        tokens.push(Token {
            text,
            start,
            end,
            normalized: plain,
            is_quoted,
            ends_clause,
        });
        at = end;
    }
    tokens
}

/// Where a quotation that begins at `start` has ended.
fn quoted_end(text: &str, start: usize) -> Option<usize> {
    let open = text[start..].chars().next()?;
    let (_, close) = QUOTES.into_iter().find(|(quote, _)| *quote == open)?;
    let inside = start + open.len_utf8();
    let length = text[inside..].find(close)?;
    (length > 0).then_some(inside + length + close.len_utf8())
}

impl Token<'_> {
    /// The text of neighbouring tokens as it was typed, without quotes around it and punctuation behind it.
    pub fn join(tokens: &[Token<'_>]) -> String {
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else {
            return String::new();
        };
        let raw = &first.text[first.start..last.end];
        if tokens.len() == 1 && first.is_quoted {
            let inside = raw.trim_end_matches(PUNCTUATION);
            let mut chars = inside.chars();
            chars.next();
            chars.next_back();
            return chars.as_str().to_owned();
        }
        let trimmed = raw.trim_end_matches([',', ';', '!', '?', '。', '、']);
        // A full stop ends a sentence, not a value; but `.` and `..` are values.
        let without_stop = trimmed
            .strip_suffix('.')
            .filter(|rest| rest.ends_with(char::is_alphanumeric));
        without_stop.unwrap_or(trimmed).to_owned()
    }
}
