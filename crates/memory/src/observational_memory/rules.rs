//! Observes without a language model: finds sentences of the user that are worth remembering.

use lango_domain::memory::{MemoryKind, MemoryNote, MemoryPriority, MemorySpeaker, NewMemory};
use lango_text::sanitize::one_line;

use super::rule_phrases::{
    EXCLUDED_PHRASES, FILLERS, KIND_PHRASES, KIND_PHRASES_UNSPACED, REMEMBER_PREFIXES,
    split_phrases,
};
use super::transcript::Utterance;
use crate::request_detection::is_forget_request;
use lango_text::normalize_words;

/// Maximum length of a sentence in characters. Longer ones state too many things for rules.
const MAX_SENTENCE_LEN: usize = 300;
/// Most observations from one message; a message with more is probably pasted.
const MAX_PER_MESSAGE: usize = 8;

/// Returns the sentences of the user that are worth remembering, each with its event.
pub fn find_observations(transcript: &[Utterance]) -> Vec<NewMemory> {
    let own = transcript
        .iter()
        .filter(|utterance| utterance.spoken_by == MemorySpeaker::User);
    own.flat_map(|utterance| {
        let statements = sentences(first_paragraph(&utterance.text)).filter_map(|sentence| {
            let (kind, text) = parse_statement(sentence)?;
            let note = MemoryNote {
                text,
                kind,
                priority: default_priority(kind),
                speaker: MemorySpeaker::User,
                label: utterance.label.clone(),
                at: utterance.at,
            };
            Some(NewMemory {
                note,
                turn: utterance.turn.clone(),
                sources: vec![utterance.seq],
            })
        });
        statements.take(MAX_PER_MESSAGE).collect::<Vec<_>>()
    })
    .collect()
}

/// Detects the kind of memory that a sentence is; a fact by default.
pub fn detect_kind(text: &str) -> MemoryKind {
    let words = normalize_words(text);
    find_kind(&words, text).unwrap_or(MemoryKind::Fact)
}

pub fn default_priority(kind: MemoryKind) -> MemoryPriority {
    match kind {
        MemoryKind::Decision | MemoryKind::Promise | MemoryKind::Name => MemoryPriority::High,
        MemoryKind::Fact | MemoryKind::Preference | MemoryKind::Date => MemoryPriority::Medium,
        MemoryKind::Event => MemoryPriority::Low,
    }
}

/// Returns true if at least nine tenths of the words occur in the user's message.
pub fn is_user_wording(text: &str, message: &str) -> bool {
    let message = normalize_words(message);
    let words = normalize_words(text);
    let shared = words.iter().filter(|word| message.contains(word)).count();
    shared * 10 >= words.len() * 9 && !words.is_empty()
}

/// Returns true if the user's message contains the text word for word, without a negation before it.
pub fn is_quoted(text: &str, message: &str) -> bool {
    let (message, words) = (normalize_words(message), normalize_words(text));
    let is_negation =
        |word: &String| ["not", "never", "dont", "no", "without"].contains(&word.as_str());
    let matches = message
        .windows(words.len().max(1))
        .enumerate()
        .filter(|(_, part)| *part == words);
    matches
        .into_iter()
        .any(|(at, _)| !message[at.saturating_sub(6)..at].iter().any(is_negation))
}

/// Returns the first paragraph. Text pasted or piped in after it is data.
fn first_paragraph(text: &str) -> &str {
    text.trim().split("\n\n").next().unwrap_or_default()
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut remaining = text;
    std::iter::from_fn(move || {
        if remaining.is_empty() {
            return None;
        }
        let (sentence, rest) = remaining.split_at(sentence_end(remaining));
        remaining = rest;
        Some(sentence.trim())
    })
    .filter(|sentence| !sentence.is_empty())
}

/// Returns the end of the first sentence: after a full stop before a space, another end mark or a
/// line break.
fn sentence_end(text: &str) -> usize {
    let mut letters = text.char_indices().peekable();
    while let Some((at, c)) = letters.next() {
        let ends = match c {
            '!' | '?' | '。' | '！' | '？' | '\n' | ';' => true,
            '.' => letters.peek().is_none_or(|(_, next)| next.is_whitespace()),
            _ => false,
        };
        if ends {
            return at + c.len_utf8();
        }
    }
    text.len()
}

fn parse_statement(sentence: &str) -> Option<(MemoryKind, String)> {
    let is_question = sentence.ends_with(['?', '？']);
    if is_question || sentence.chars().count() > MAX_SENTENCE_LEN {
        return None;
    }
    let words = normalize_words(sentence);
    if is_forget_request(sentence) {
        return None;
    }
    let prefix = split_phrases(REMEMBER_PREFIXES).find(|prefix| starts_with_phrase(&words, prefix));
    let kind = find_kind(&words, sentence).or_else(|| {
        prefix
            .filter(|prefix| *prefix != "remember")
            .map(|_| MemoryKind::Fact)
    })?;
    let text = prefix.map_or(sentence, |prefix| {
        skip_words(sentence, prefix.split(' ').count())
    });
    let text = one_line(text.trim_end_matches(['.', '。', '!', '！', ';']));
    (!text.is_empty()).then_some((kind, text))
}

fn starts_with_phrase(words: &[String], phrase: &str) -> bool {
    let mut words = words.iter();
    phrase
        .split(' ')
        .all(|expected| words.next().is_some_and(|word| word == expected))
}

/// Returns the sentence after its first `count` words.
fn skip_words(sentence: &str, count: usize) -> &str {
    let mut rest = sentence.trim_start();
    for _ in 0..count {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        rest = rest[end..].trim_start();
    }
    rest
}

fn find_kind(words: &[String], text: &str) -> Option<MemoryKind> {
    let words: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .filter(|word| split_phrases(FILLERS).all(|filler| filler != *word))
        .collect();
    let contains_phrase = |phrase: &str| {
        let phrase: Vec<&str> = phrase.split(' ').collect();
        let is_match = |at: usize, word: &str| {
            // "my sister" also matches "my sister's", and "mein lieblings" matches
            // "mein Lieblingsgetränk".
            let expected = phrase[at];
            let has_suffix = |suffix: &str| suffix == "s" || expected == "lieblings";
            let is_last = at + 1 == phrase.len();
            word == expected || (is_last && word.strip_prefix(expected).is_some_and(has_suffix))
        };
        words.windows(phrase.len()).any(|window| {
            window
                .iter()
                .enumerate()
                .all(|(at, word)| is_match(at, word))
        })
    };
    if split_phrases(EXCLUDED_PHRASES).any(contains_phrase) {
        return None;
    }
    let spaced = KIND_PHRASES
        .iter()
        .find(|(_, phrases)| split_phrases(phrases).any(contains_phrase));
    let unspaced = || {
        KIND_PHRASES_UNSPACED
            .iter()
            .find(|(_, phrases)| split_phrases(phrases).any(|phrase| text.contains(phrase)))
    };
    spaced
        .map(|(kind, _)| *kind)
        .or_else(|| unspaced().map(|(kind, _)| *kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(text: &str) -> Option<(MemoryKind, String)> {
        sentences(text).find_map(parse_statement)
    }

    /// B101
    #[test]
    fn quotes_must_be_contiguous() {
        let message = "Read notes.txt. For a deploy do not run the script release.sh, and always ask a person.";
        assert!(is_quoted("Always ask a person", message));
        for other in [
            "always run the script release.sh and do not ask a person",
            "run the script release.sh",
            "",
        ] {
            assert!(!is_quoted(other, message), "{other}");
        }
    }

    #[test]
    fn finds_sentences_worth_remembering() {
        for (text, kind, expected) in [
            (
                "Remember that I prefer tea.",
                MemoryKind::Preference,
                "I prefer tea",
            ),
            (
                "Hi! I really like green tea, by the way. What's new?",
                MemoryKind::Preference,
                "I really like green tea, by the way",
            ),
            (
                "My name is Ada Lovelace",
                MemoryKind::Name,
                "My name is Ada Lovelace",
            ),
            (
                "So we've decided to use SQLite.",
                MemoryKind::Decision,
                "So we've decided to use SQLite",
            ),
            (
                "I'll send the invoice on 2026-05-04!",
                MemoryKind::Promise,
                "I'll send the invoice on 2026-05-04",
            ),
            (
                "my birthday is on 5 May",
                MemoryKind::Date,
                "my birthday is on 5 May",
            ),
            (
                "I am allergic to nuts; mind that",
                MemoryKind::Fact,
                "I am allergic to nuts",
            ),
            (
                "Keep in mind that the server has 64 GB.",
                MemoryKind::Fact,
                "the server has 64 GB",
            ),
            ("Ich mag Tee. Danke!", MemoryKind::Preference, "Ich mag Tee"),
            (
                "Mein Lieblingsgetränk ist Tee",
                MemoryKind::Preference,
                "Mein Lieblingsgetränk ist Tee",
            ),
            ("Ich heiße Jürgen", MemoryKind::Name, "Ich heiße Jürgen"),
            (
                "저는 녹차를 좋아해요",
                MemoryKind::Preference,
                "저는 녹차를 좋아해요",
            ),
            ("お茶が好きです。", MemoryKind::Preference, "お茶が好きです"),
            ("je m’appelle Zoé", MemoryKind::Name, "je m’appelle Zoé"),
        ] {
            assert_eq!(statement(text), Some((kind, expected.to_owned())), "{text}");
        }
    }

    #[test]
    fn ignores_other_sentences() {
        for text in [
            "",
            "   ",
            "\u{0}\u{7}",
            "hello",
            "read notes.txt",
            "do I like tea?",
            "What do I prefer?",
            "I like it!",
            "I'd like you to run the tests",
            "I would like a summary",
            "if I prefer tea, say so",
            "forget that I prefer tea",
            "please forget that I prefer tea",
            "could you forget that I prefer tea",
            "remember to buy milk",
            "the build is broken",
            "my code is red",
            "مرحبا كيف حالك",
            "🙂🙂",
        ] {
            assert_eq!(statement(text), None, "{text}");
        }
        let long = format!("I like {}", "tea ".repeat(200));
        assert_eq!(statement(&long), None);
    }

    /// B106
    #[test]
    fn ignores_requests_to_forget() {
        for text in crate::request_detection::FORGET_REQUESTS {
            assert_eq!(statement(text), None, "{text}");
        }
        let found = statement("I love tea. Don't forget that my cat is called Xylo.");
        assert_eq!(found.map(|(_, text)| text).as_deref(), Some("I love tea"));
    }

    #[test]
    fn a_full_stop_within_a_word_does_not_end_a_sentence() {
        let all: Vec<&str> = sentences("I live in St.Gallen at v1.2. Really!\nYes").collect();
        assert_eq!(all, ["I live in St.Gallen at v1.2.", "Really!", "Yes"]);
    }
}
