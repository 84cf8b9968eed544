//! Decides if two texts state the same, by their significant words in any form and order.

use std::collections::HashSet;

use lango_domain::memory::MemoryKind;

use crate::observational_memory::RecallQuery;
use lango_text::normalize_words;
use lango_text::{analyze, analyze_query};

/// Most bytes of a text that are compared.
const MAX_BYTES: usize = 8_000;
/// Minimum number of significant words in a phrase.
const MIN_PHRASE_WORDS: usize = 2;
/// Words to ignore, in addition to the stop words of recall queries.
const STOP_WORDS: [&str; 10] = [
    "user",
    "users",
    "that",
    "fact",
    "about",
    "everything",
    "anything",
    "all",
    "alles",
    "todo",
];

/// The significant words of a text.
pub(super) struct Statement {
    /// For each word, the terms that match it.
    term_alternatives: Vec<Vec<String>>,
    terms: HashSet<String>,
    kinds: Vec<MemoryKind>,
    /// All words in order.
    word_sequence: Vec<String>,
}

/// The degree to which a text states another statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MatchLevel {
    None,
    /// The text contains the statement among others.
    Contains,
    /// The text states exactly that.
    Same,
}

impl Statement {
    pub fn parse(text: &str) -> Self {
        let text = &text[..text.floor_char_boundary(MAX_BYTES.min(text.len()))];
        let query = RecallQuery::parse(text);
        let is_significant = |word: &&str| !STOP_WORDS.contains(word);
        let content: Vec<&str> = query.content.split(' ').filter(is_significant).collect();
        let content = content.join(" ");
        let terms = analyze(text).into_iter().chain(analyze(&content)).collect();
        Self {
            term_alternatives: analyze_query(&content),
            terms,
            kinds: query.kinds,
            word_sequence: normalize_words(text),
        }
    }

    /// Adds a kind that is known apart from the text.
    pub fn with_kind(mut self, kind: MemoryKind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// Adds a subject that is stored apart from the text, such as the key of an entry.
    pub fn with_subject(mut self, subject: &str) -> Self {
        let subject = Self::parse(subject);
        self.terms.extend(subject.terms);
        self.kinds.extend(subject.kinds);
        self
    }

    /// Returns true if the statement has no significant words.
    pub fn is_empty(&self) -> bool {
        self.term_alternatives.is_empty()
    }

    /// Returns true if the other statement contains one of the significant words.
    pub fn shares_term_with(&self, other: &Self) -> bool {
        self.term_alternatives
            .iter()
            .any(|word| other.contains_any(word))
    }

    /// Returns the degree to which `text` states this statement.
    pub fn match_level(&self, text: &Self) -> MatchLevel {
        let has_kind =
            self.kinds.is_empty() || self.kinds.iter().any(|kind| text.kinds.contains(kind));
        if self.is_empty()
            || !has_kind
            || !self
                .term_alternatives
                .iter()
                .all(|word| text.contains_any(word))
        {
            return MatchLevel::None;
        }
        let has_no_other_words = text
            .term_alternatives
            .iter()
            .all(|word| self.contains_any(word));
        if has_no_other_words || self.is_phrase_of(text) {
            MatchLevel::Same
        } else {
            MatchLevel::Contains
        }
    }

    fn contains_any(&self, word: &[String]) -> bool {
        word.iter().any(|term| self.terms.contains(term))
    }

    /// Returns true if the words occur in the text unchanged and in sequence.
    fn is_phrase_of(&self, text: &Self) -> bool {
        let is_stop_word = |word: &&String| STOP_WORDS.contains(&word.as_str());
        let phrase =
            &self.word_sequence[self.word_sequence.iter().take_while(is_stop_word).count()..];
        let significant_count = self.term_alternatives.len() + usize::from(!self.kinds.is_empty());
        significant_count >= MIN_PHRASE_WORDS
            && !phrase.is_empty()
            && text
                .word_sequence
                .windows(phrase.len())
                .any(|window| window == phrase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(wanted: &str, text: &str) -> MatchLevel {
        Statement::parse(wanted).match_level(&Statement::parse(text))
    }

    /// B106
    #[test]
    fn match_levels() {
        for text in [
            "I prefer tea",
            "The user prefers tea.",
            "TEA is what I like!",
            "my favourite is tea",
            "I prefer tea, and coffee on Sundays",
        ] {
            assert_eq!(level("I prefer tea", text), MatchLevel::Same, "{text}");
        }
        for text in ["My brother Bob prefers tea", "I like green tea from Assam"] {
            assert_eq!(level("I prefer tea", text), MatchLevel::Contains, "{text}");
        }
        for text in [
            "tea is grown in Assam",
            "I prefer coffee",
            "the tea party is at six",
            "",
            "\u{0}",
        ] {
            assert_eq!(level("I prefer tea", text), MatchLevel::None, "{text}");
        }
        assert_eq!(level("my name is Ada", "My name is Ada"), MatchLevel::Same);
        assert_eq!(
            level("my name is Ada", "Ada works at Acme"),
            MatchLevel::None
        );
        assert_eq!(
            level("저는 녹차를 좋아해요", "저는 녹차를 좋아해요"),
            MatchLevel::Same
        );
        assert_eq!(level("Ich mag Käse", "ich mag käse"), MatchLevel::Same);
        assert_eq!(level("tea", "tea is grown in Assam"), MatchLevel::Contains);
        for nothing in ["", "it", "that", "\u{0}", "🙂"] {
            assert_eq!(
                level(nothing, "I prefer tea"),
                MatchLevel::None,
                "{nothing}"
            );
        }
    }
}
