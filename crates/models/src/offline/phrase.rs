//! Phrases that tools carry: "read [the] [file] {path:word}". A request that has a phrase's form is a call with its arguments.
//!
//! Plain words must stand there; `[word]` may; `(a|b c)` is one of several; `{argument}` takes words as they were
//! typed, `{argument:word}` exactly one. `{argument=result}` takes no words: it is what the step before gave, and
//! `{argument=summary}` its beginning.

use super::lexer::Token;

/// A word this long is recognised with one slip in it.
const MIN_MISSPELLED_LEN: usize = 4;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhrasePattern {
    parts: Vec<PatternPart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PatternPart {
    /// One of these rows of words; an empty row lets it be left out.
    Literal(Vec<Vec<String>>),
    Slot {
        argument: String,
        is_one_word: bool,
    },
    FromPrevious {
        argument: String,
        source: FillSource,
    },
}

/// What an argument is filled with when the request does not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillSource {
    Result,
    Summary,
}

/// What a phrase took from a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhraseMatch {
    pub arguments: Vec<(String, ArgumentValue)>,
    /// Words of the phrase that stood there.
    pub literal: usize,
    /// Words that went into arguments.
    pub captured: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentValue {
    Text(String),
    FromPrevious(FillSource),
}

impl PhrasePattern {
    pub fn parse(phrase: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = phrase.trim();
        while !rest.is_empty() {
            let (part, left) = match rest.chars().next() {
                Some('[') => split_enclosed(rest, ']', |inside| {
                    PatternPart::Literal(vec![normalize_words(inside), Vec::new()])
                }),
                Some('(') => split_enclosed(rest, ')', |inside| {
                    PatternPart::Literal(inside.split('|').map(normalize_words).collect())
                }),
                Some('{') => split_enclosed(rest, '}', parse_slot),
                _ => {
                    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                    (
                        PatternPart::Literal(vec![normalize_words(&rest[..end])]),
                        &rest[end..],
                    )
                }
            };
            parts.push(part);
            rest = left.trim_start();
        }
        Self { parts }
    }

    /// What it takes from these tokens, if they are of its form as a whole.
    pub fn match_tokens(&self, tokens: &[Token<'_>]) -> Option<PhraseMatch> {
        match_parts(&self.parts, tokens)
    }
}

fn split_enclosed(
    text: &str,
    close: char,
    make: impl FnOnce(&str) -> PatternPart,
) -> (PatternPart, &str) {
    let inside = &text[1..];
    let end = inside.find(close).unwrap_or(inside.len());
    let after = inside.get(end + close.len_utf8()..).unwrap_or_default();
    (make(&inside[..end]), after)
}

fn normalize_words(text: &str) -> Vec<String> {
    text.split_whitespace()
        .map(super::words::normalize)
        .collect()
}

fn parse_slot(inside: &str) -> PatternPart {
    if let Some((argument, filling)) = inside.split_once('=') {
        let filling = if filling == "summary" {
            FillSource::Summary
        } else {
            FillSource::Result
        };
        return PatternPart::FromPrevious {
            argument: argument.to_owned(),
            source: filling,
        };
    }
    let (argument, one_word) = match inside.split_once(':') {
        Some((argument, _)) => (argument, true),
        None => (inside, false),
    };
    PatternPart::Slot {
        argument: argument.to_owned(),
        is_one_word: one_word,
    }
}

fn match_parts(parts: &[PatternPart], tokens: &[Token<'_>]) -> Option<PhraseMatch> {
    let Some((part, rest)) = parts.split_first() else {
        return tokens.is_empty().then(PhraseMatch::default);
    };
    match part {
        PatternPart::Literal(rows) => rows.iter().find_map(|row| {
            let (said, left) = tokens.split_at_checked(row.len())?;
            let same = row
                .iter()
                .zip(said)
                .all(|(word, token)| is_same_word(word, token));
            let mut taken = if same {
                match_parts(rest, left)?
            } else {
                return None;
            };
            taken.literal += row.len();
            Some(taken)
        }),
        PatternPart::FromPrevious {
            argument,
            source: filling,
        } => {
            let mut taken = match_parts(rest, tokens)?;
            taken
                .arguments
                .push((argument.clone(), ArgumentValue::FromPrevious(*filling)));
            Some(taken)
        }
        PatternPart::Slot {
            argument,
            is_one_word: one_word,
        } => {
            let most = if *one_word { 1 } else { tokens.len() };
            (1..=most.min(tokens.len())).find_map(|length| {
                let mut taken = match_parts(rest, &tokens[length..])?;
                let value = ArgumentValue::Text(Token::join(&tokens[..length]));
                taken.arguments.push((argument.clone(), value));
                taken.captured += length;
                Some(taken)
            })
        }
    }
}

/// The word itself, with another ending, or with one slip that makes no other word of it: letters that changed places, a
/// letter too many or too few.
fn is_same_word(word: &str, token: &Token<'_>) -> bool {
    if token.is_quoted {
        return false;
    }
    let said = token.normalized.as_str();
    said == word || is_inflected(word, said) || is_typo(word, said)
}

fn is_inflected(word: &str, said: &str) -> bool {
    let base = word.strip_suffix('e').unwrap_or(word);
    ["s", "es", "ed", "ing"].iter().any(|ending| {
        said.strip_suffix(ending)
            .is_some_and(|rest| rest == word || (rest == base && base.len() > 2))
    })
}

fn is_typo(word: &str, said: &str) -> bool {
    let letters = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    let same_start = word.chars().next() == said.chars().next();
    let (long, swapped) = (
        word.len() >= MIN_MISSPELLED_LEN,
        letters(word) == letters(said),
    );
    let missing = word.len() > MIN_MISSPELLED_LEN && word.len() != said.len();
    same_start && long && (swapped || missing) && strsim::osa_distance(word, said) == 1
}
