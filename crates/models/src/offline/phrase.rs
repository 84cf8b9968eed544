//! Phrases of tools, such as "read [the] [file] {path:word}". A request that matches a phrase
//! becomes a call with its arguments.
//!
//! Plain words are required; `[word]` is optional; `(a|b c)` is a choice; `{argument}` captures
//! words as typed, `{argument:word}` exactly one. `{argument=result}` captures no words: it is the
//! result of the step before, and `{argument=summary}` the start of it. `{argument=request}` is the whole
//! request, for tools that read it themselves; the words of `{_}` are then no argument of their own.
//! `{argument="value"}` captures no words either: it is this value.

use super::lexer::Token;

/// The name of a slot whose words are no argument.
const ANY_WORDS: &str = "_";
/// Minimum length of a word that may have one typo.
const MIN_MISSPELLED_LEN: usize = 4;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhrasePattern {
    parts: Vec<PatternPart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PatternPart {
    /// Alternative word sequences; an empty sequence makes the part optional.
    Literal(Vec<Vec<String>>),
    Slot {
        argument: String,
        is_one_word: bool,
    },
    FromPrevious {
        argument: String,
        source: FillSource,
    },
    WholeRequest {
        argument: String,
    },
    /// A value that the phrase itself sets.
    Constant {
        argument: String,
        value: String,
    },
}

/// Source of an argument that is not in the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillSource {
    Result,
    Summary,
}

/// A match of a phrase with a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhraseMatch {
    pub arguments: Vec<(String, ArgumentValue)>,
    /// Number of matched words of the phrase.
    pub literal: usize,
    /// Number of words captured in arguments.
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

    /// Returns true if the phrase takes everything after its first words, whatever it is.
    pub fn takes_all(&self) -> bool {
        let is_whole = |part: &PatternPart| matches!(part, PatternPart::WholeRequest { .. });
        matches!(self.parts.first(), Some(PatternPart::Literal(_)))
            && self.parts.iter().any(is_whole)
    }

    /// Matches all tokens against the phrase.
    pub fn match_tokens(&self, tokens: &[Token<'_>]) -> Option<PhraseMatch> {
        let mut matched = match_parts(&self.parts, tokens)?;
        for part in &self.parts {
            if let PatternPart::WholeRequest { argument } = part {
                let value = ArgumentValue::Text(Token::join(tokens));
                matched.arguments.push((argument.clone(), value));
            }
        }
        Some(matched)
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
    if let Some((argument, source)) = inside.split_once('=') {
        if let Some(value) = source
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'))
        {
            return PatternPart::Constant {
                argument: argument.to_owned(),
                value: value.to_owned(),
            };
        }
        if source == "request" {
            let argument = argument.to_owned();
            return PatternPart::WholeRequest { argument };
        }
        let source = if source == "summary" {
            FillSource::Summary
        } else {
            FillSource::Result
        };
        return PatternPart::FromPrevious {
            argument: argument.to_owned(),
            source,
        };
    }
    let (argument, is_one_word) = match inside.split_once(':') {
        Some((argument, _)) => (argument, true),
        None => (inside, false),
    };
    PatternPart::Slot {
        argument: argument.to_owned(),
        is_one_word,
    }
}

fn match_parts(parts: &[PatternPart], tokens: &[Token<'_>]) -> Option<PhraseMatch> {
    let Some((part, rest)) = parts.split_first() else {
        return tokens.is_empty().then(PhraseMatch::default);
    };
    match part {
        PatternPart::Literal(rows) => rows.iter().find_map(|row| {
            let (head, tail) = tokens.split_at_checked(row.len())?;
            let same = row
                .iter()
                .zip(head)
                .all(|(word, token)| is_same_word(word, token));
            if !same {
                return None;
            }
            let mut matched = match_parts(rest, tail)?;
            matched.literal += row.len();
            Some(matched)
        }),
        PatternPart::FromPrevious { argument, source } => {
            let mut matched = match_parts(rest, tokens)?;
            matched
                .arguments
                .push((argument.clone(), ArgumentValue::FromPrevious(*source)));
            Some(matched)
        }
        PatternPart::Constant { argument, value } => {
            let mut matched = match_parts(rest, tokens)?;
            let value = ArgumentValue::Text(value.clone());
            matched.arguments.push((argument.clone(), value));
            Some(matched)
        }
        PatternPart::WholeRequest { .. } => match_parts(rest, tokens),
        PatternPart::Slot {
            argument,
            is_one_word,
        } => {
            let max_words = if *is_one_word { 1 } else { tokens.len() };
            (1..=max_words.min(tokens.len())).find_map(|length| {
                let mut matched = match_parts(rest, &tokens[length..])?;
                if argument != ANY_WORDS {
                    let value = ArgumentValue::Text(Token::join(&tokens[..length]));
                    matched.arguments.push((argument.clone(), value));
                }
                matched.captured += length;
                Some(matched)
            })
        }
    }
}

/// Returns true for the word itself, an inflected form, or a typo that is not another word: swapped
/// letters, one letter too many or too few.
fn is_same_word(word: &str, token: &Token<'_>) -> bool {
    if token.is_quoted {
        return false;
    }
    let typed = token.normalized.as_str();
    typed == word || is_inflected(word, typed) || is_typo(word, typed)
}

fn is_inflected(word: &str, typed: &str) -> bool {
    let base = word.strip_suffix('e').unwrap_or(word);
    ["s", "es", "ed", "ing"].iter().any(|ending| {
        typed
            .strip_suffix(ending)
            .is_some_and(|rest| rest == word || (rest == base && base.len() > 2))
    })
}

fn is_typo(word: &str, typed: &str) -> bool {
    let letters = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    let same_start = word.chars().next() == typed.chars().next();
    let (long, swapped) = (
        word.len() >= MIN_MISSPELLED_LEN,
        letters(word) == letters(typed),
    );
    let missing = word.len() > MIN_MISSPELLED_LEN && word.len() != typed.len();
    same_start && long && (swapped || missing) && strsim::osa_distance(word, typed) == 1
}
