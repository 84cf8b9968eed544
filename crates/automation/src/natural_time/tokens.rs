//! The words of a sentence, with their places.

use std::ops::Range;

/// A word in lower case without accents, and its place in the sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub word: String,
    pub start: usize,
    pub end: usize,
    /// True inside quotation marks: it belongs to the text, never to the time.
    pub is_quoted: bool,
    /// True if the first letter is a capital.
    pub is_capitalized: bool,
    /// True if all letters are capitals, and there are at least two.
    pub is_uppercase: bool,
    /// True if a full stop follows: "24. Dezember".
    pub has_stop: bool,
}

const QUOTES: [(char, char); 6] = [
    ('"', '"'),
    ('`', '`'),
    ('“', '”'),
    ('„', '“'),
    ('«', '»'),
    ('‘', '’'),
];

/// Beginnings of words that are words of their own: "d'appeler", "un'ora".
const ELISIONS: [&str; 16] = [
    "d'", "l'", "un'", "all'", "dell'", "nell'", "dall'", "quest'", "jusqu'", "qu'", "s'", "j'",
    "n'", "c'", "m'", "t'",
];

/// Splits a sentence into words. `:`, `.`, `-` and apostrophes belong to a word if they are inside it; `/`,
/// `,` and `+` if they are between digits, and `/` and `_` in the name of a time zone.
pub(super) fn tokenize(sentence: &str) -> Vec<Token> {
    let quoted = quoted_ranges(sentence);
    let mut tokens = Vec::new();
    let mut start = None;
    let mut last = ' ';
    let mut chars = sentence.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map_or(' ', |(_, next)| *next);
        let joins = start.is_some_and(|start| is_inner(&sentence[start..at], c, last, next));
        // A minus sign is part of its number, so that "-5 minutes" is not read as 5 minutes.
        let is_sign = start.is_none() && c == '-' && last == ' ' && next.is_ascii_digit();
        if c.is_alphanumeric() || joins || is_sign {
            start.get_or_insert(at);
        } else if let Some(start) = start.take() {
            push_tokens(&mut tokens, sentence, start..at);
        }
        last = c;
    }
    if let Some(start) = start {
        push_tokens(&mut tokens, sentence, start..sentence.len());
    }
    for token in &mut tokens {
        let is_inside = |range: &Range<usize>| range.contains(&token.start);
        token.is_quoted = quoted.iter().any(is_inside);
    }
    tokens
}

/// Returns true if a character that is no letter belongs to the word before and after it.
fn is_inner(word: &str, c: char, last: char, next: char) -> bool {
    let is_between_digits = last.is_ascii_digit() && next.is_ascii_digit();
    match c {
        ':' | '.' | '-' | '\'' | '’' | '_' => next.is_alphanumeric(),
        ',' => is_between_digits,
        '+' => next.is_ascii_digit(),
        '/' => is_between_digits || (super::zone::is_area(word) && next.is_alphabetic()),
        _ => false,
    }
}

fn push_tokens(tokens: &mut Vec<Token>, sentence: &str, range: Range<usize>) {
    let word = fold(&sentence[range.clone()]);
    let elision = ELISIONS
        .iter()
        .find(|elision| word.starts_with(**elision) && word.len() > elision.len());
    let Some(elision) = elision else {
        tokens.push(token(sentence, range));
        return;
    };
    // Accents make places in the folded word differ from those in the sentence; elisions have none.
    let letters = elision.chars().count();
    let length: usize = sentence[range.clone()]
        .chars()
        .take(letters)
        .map(char::len_utf8)
        .sum();
    let middle = range.start + length;
    tokens.push(token(sentence, range.start..middle));
    tokens.push(token(sentence, middle..range.end));
}

fn token(sentence: &str, range: Range<usize>) -> Token {
    let text = &sentence[range.clone()];
    let letters = || text.chars().filter(|c| c.is_alphabetic());
    Token {
        word: fold(text),
        is_quoted: false,
        is_capitalized: text.starts_with(char::is_uppercase),
        is_uppercase: letters().count() >= 2 && letters().all(char::is_uppercase),
        has_stop: sentence[range.end..].starts_with('.'),
        start: range.start,
        end: range.end,
    }
}

fn quoted_ranges(sentence: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut at = 0;
    while let Some(c) = sentence[at..].chars().next() {
        let inside = at + c.len_utf8();
        let close = QUOTES
            .iter()
            .find(|(open, _)| *open == c)
            .and_then(|(_, close)| sentence[inside..].find(*close));
        at = match close {
            Some(length) => {
                ranges.push(inside..inside + length);
                let close = sentence[inside + length..].chars().next();
                inside + length + close.map_or(0, char::len_utf8)
            }
            None => inside,
        };
    }
    ranges
}

/// Returns a text in lower case, without the accents of the supported languages.
pub(super) fn fold(text: &str) -> String {
    let folded = text.chars().flat_map(char::to_lowercase).map(|c| match c {
        'à' | 'á' | 'â' | 'ã' | 'ä' => 'a',
        'ç' => 'c',
        'è' | 'é' | 'ê' | 'ë' => 'e',
        'ì' | 'í' | 'î' | 'ï' => 'i',
        'ñ' => 'n',
        'ò' | 'ó' | 'ô' | 'õ' | 'ö' => 'o',
        'ù' | 'ú' | 'û' | 'ü' => 'u',
        '’' => '\'',
        c => c,
    });
    folded.collect()
}

/// Returns the sentence without ranges of its words, which are in order.
pub(super) fn without(sentence: &str, tokens: &[Token], ranges: &[Range<usize>]) -> String {
    let mut rest = sentence.to_owned();
    for range in ranges.iter().rev() {
        let (Some(first), Some(last)) = (tokens.get(range.start), tokens.get(range.end - 1)) else {
            continue;
        };
        rest = without_bytes(&rest, first.start..last.end);
    }
    rest.trim().to_owned()
}

fn without_bytes(text: &str, range: Range<usize>) -> String {
    let before = text[..range.start].trim_end();
    let after = &text[range.end..];
    // A full stop after a day ("24.12.") goes with it, but one that ends the sentence stays.
    let after = match after.strip_prefix('.') {
        Some(rest) if !rest.trim().is_empty() => rest,
        _ => after,
    };
    let after =
        after.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | ':'));
    let joint = match after.chars().next() {
        _ if before.is_empty() => "",
        Some('.' | ',' | ';' | '!' | '?' | ')') => "",
        Some(_) => " ",
        None => "",
    };
    format!("{}{joint}{after}", before.trim_end_matches([',', ';']))
}
