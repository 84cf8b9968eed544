//! The words of a sentence, with their places.

use std::ops::Range;

/// A word in lower case without accents, and its place in the sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub word: String,
    pub start: usize,
    pub end: usize,
}

/// Splits a sentence into words. `:`, `.`, `-` and apostrophes belong to a word if they are inside it.
pub(super) fn tokenize(sentence: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut chars = sentence.char_indices().peekable();
    let mut start = None;
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let joins = matches!(c, ':' | '.' | '-' | '\'' | '’')
            && start.is_some()
            && next.is_some_and(char::is_alphanumeric);
        if c.is_alphanumeric() || joins {
            start.get_or_insert(at);
        } else if let Some(start) = start.take() {
            tokens.push(token(sentence, start, at));
        }
    }
    tokens.extend(start.map(|start| token(sentence, start, sentence.len())));
    tokens
}

fn token(sentence: &str, start: usize, end: usize) -> Token {
    Token {
        word: fold(&sentence[start..end]),
        start,
        end,
    }
}

/// Returns a word in lower case, without the accents of the supported languages.
fn fold(word: &str) -> String {
    let folded = word.chars().flat_map(char::to_lowercase).map(|c| match c {
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

/// Returns the sentence without a range of its words.
pub(super) fn without(sentence: &str, tokens: &[Token], range: &Range<usize>) -> String {
    let (Some(first), Some(last)) = (tokens.get(range.start), tokens.get(range.end - 1)) else {
        return sentence.trim().to_owned();
    };
    let before = sentence[..first.start].trim_end();
    let after = &sentence[last.end..];
    let after =
        after.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | ':'));
    let joint = match after.chars().next() {
        _ if before.is_empty() => "",
        Some(c) if c.is_alphanumeric() || matches!(c, '"' | '\'' | '(') => " ",
        _ => "",
    };
    let rest = format!("{}{joint}{after}", before.trim_end_matches([',', ';']));
    rest.trim().to_owned()
}
