//! Reads what a sentence asks for, once its time is taken out.

use super::message::{TimeError, TimeProblem};
use super::sentence::find_frame;
use super::tokens::{Token, tokenize};
use super::vocabulary::{Vocabulary, longest_match};
use super::{LANGUAGES, TimePhrase};

/// Verbs that only say that something is scheduled.
const SCHEDULING_VERBS: &str =
    "schedule|programa|planifica|planifie|programme|pianifica|programma|agende|programe|plane";

/// Quotation marks around a text.
const QUOTES: [(char, char); 5] = [('"', '"'), ('`', '`'), ('“', '”'), ('„', '“'), ('«', '»')];

/// Describes what the rest of a sentence asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SentenceWork {
    Reminder(String),
    Prompt(String),
}

impl TimePhrase {
    /// Returns what is to be done. Fails if the sentence only says when.
    pub fn work(&self, sentence: &str) -> Result<SentenceWork, TimeError> {
        let tokens = tokenize(&self.rest);
        let shown = || lango_text::sanitize::truncated_line(sentence, 120);
        if let Some(frame) = find_frame(&tokens, self.words) {
            let text = reminder_text(&self.rest, &tokens, frame.range.end, self.words);
            return match text {
                Some(text) => Ok(SentenceWork::Reminder(text)),
                None if frame.is_wake => {
                    Ok(SentenceWork::Reminder(self.words.wake_text.to_owned()))
                }
                None => Err(TimeError::new(self.words, TimeProblem::NoWork, &[&shown()])),
            };
        }
        let start = longest_match(&tokens, 0, self.words.polite).unwrap_or(0);
        let verb = longest_match(&tokens, start, SCHEDULING_VERBS).unwrap_or(0);
        match text_between(&self.rest, &tokens, start + verb, self.words) {
            Some(text) => Ok(SentenceWork::Prompt(text)),
            None => Err(TimeError::new(self.words, TimeProblem::NoTask, &[&shown()])),
        }
    }

    /// Returns the words of the rest, if the time was given apart from the work and they mean nothing.
    pub fn unread_rest(&self) -> Option<TimeError> {
        let tokens = tokenize(&self.rest);
        let is_sentence = LANGUAGES
            .iter()
            .any(|words| find_frame(&tokens, words).is_some());
        let unread = text_between(&self.rest, &tokens, 0, self.words)?;
        (!is_sentence).then(|| TimeError::new(self.words, TimeProblem::NotUnderstood, &[&unread]))
    }
}

/// Returns the text after "remind me", without words that only join it.
fn reminder_text(rest: &str, tokens: &[Token], start: usize, words: &Vocabulary) -> Option<String> {
    let skip = |at: usize, entries: &str| at + longest_match(tokens, at, entries).unwrap_or(0);
    let start = skip(start, words.polite);
    let start = skip(start, words.connective);
    let start = skip(start, words.polite);
    text_between(rest, tokens, start, words)
}

/// Returns the text from a word on, without polite words at its end and without quotes around it.
fn text_between(rest: &str, tokens: &[Token], start: usize, words: &Vocabulary) -> Option<String> {
    let mut end = tokens.len();
    while let Some(before) = polite_start(tokens, end, words) {
        end = before;
    }
    let first = tokens.get(start).filter(|_| start < end)?;
    let stop = match tokens.get(end) {
        Some(polite) => polite.start,
        None => rest.len(),
    };
    // A quotation mark before the first word belongs to the text.
    let from = rest[..first.start]
        .char_indices()
        .next_back()
        .filter(|(_, c)| QUOTES.iter().any(|(open, _)| open == c))
        .map_or(first.start, |(at, _)| at);
    let text = rest[from..stop]
        .trim()
        .trim_end_matches(['.', '!', ',', '?'])
        .trim();
    let text = QUOTES
        .iter()
        .find_map(|(open, close)| text.strip_prefix(*open)?.strip_suffix(*close))
        .filter(|inside| !inside.contains(['"', '`', '“', '”', '«', '»']))
        .unwrap_or(text);
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns the place of polite words that end at `end`.
fn polite_start(tokens: &[Token], end: usize, words: &Vocabulary) -> Option<usize> {
    (1..=4).find_map(|count| {
        let start = end.checked_sub(count)?;
        let length = longest_match(&tokens[..end], start, words.polite)?;
        (start + length == end).then_some(start)
    })
}
