//! Splits a request into tokens that keep the original text: argument values must not be changed.

use super::words::normalize;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    text: &'a str,
    start: usize,
    end: usize,
    /// Lower case, without surrounding punctuation.
    pub normalized: String,
    /// True for text in quotes or backticks, which is always one token.
    pub is_quoted: bool,
    /// True if a comma or semicolon follows.
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

/// Splits a text into tokens.
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
        let normalized = normalize(raw.trim_matches(|c: char| !c.is_alphanumeric()));
        let ends_clause = raw.ends_with([',', ';']);
        tokens.push(Token {
            text,
            start,
            end,
            normalized,
            is_quoted,
            ends_clause,
        });
        at = end;
    }
    tokens
}

/// Returns the end of a quotation that starts at `start`.
fn quoted_end(text: &str, start: usize) -> Option<usize> {
    let open = text[start..].chars().next()?;
    let (_, close) = QUOTES.into_iter().find(|(quote, _)| *quote == open)?;
    let inside = start + open.len_utf8();
    let length = text[inside..].find(close)?;
    (length > 0).then_some(inside + length + close.len_utf8())
}

impl Token<'_> {
    /// Returns the original text of adjacent tokens, without enclosing quotes and trailing
    /// punctuation.
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
        // A final full stop ends the sentence and is not part of the value; but `.` and `..` are
        // values.
        let without_stop = trimmed
            .strip_suffix('.')
            .filter(|rest| rest.ends_with(char::is_alphanumeric));
        without_stop.unwrap_or(trimmed).to_owned()
    }
}
