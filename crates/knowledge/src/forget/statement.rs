//! Whether two texts say the same: decided by the words that tell something, in whatever form and order.

use std::collections::HashSet;

use lango_domain::memory::MemoryKind;

use crate::lexical::{analyze, analyze_query};
use crate::memory::{RecallQuery, normalize_words};

/// So much of a text is compared.
const MAX_BYTES: usize = 8_000;
/// A phrase of fewer words is no statement.
const MIN_PHRASE_WORDS: usize = 2;
/// Words that say nothing about what is meant, beside those that no question is asked with.
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

/// The telling words of a text.
pub(super) struct Statement {
    /// One for each word: the terms that may stand for it.
    term_alternatives: Vec<Vec<String>>,
    terms: HashSet<String>,
    kinds: Vec<MemoryKind>,
    /// Every word, in a row.
    word_sequence: Vec<String>,
}

/// How much a text has to do with what is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MatchLevel {
    None,
    /// All of it stands there, among other things.
    Contains,
    /// It says just that.
    Same,
}

impl Statement {
    pub fn parse(text: &str) -> Self {
        let text = &text[..text.floor_char_boundary(MAX_BYTES.min(text.len()))];
        let question = RecallQuery::parse(text);
        let is_telling = |word: &&str| !STOP_WORDS.contains(word);
        let content: Vec<&str> = question.content.split(' ').filter(is_telling).collect();
        let content = content.join(" ");
        let terms = analyze(text).into_iter().chain(analyze(&content)).collect();
        Self {
            term_alternatives: analyze_query(&content),
            terms,
            kinds: question.kinds,
            word_sequence: normalize_words(text),
        }
    }

    /// Where its kind is known from elsewhere.
    pub fn with_kind(mut self, kind: MemoryKind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// What it is about, where that is said beside it: it need not be repeated in the text.
    pub fn with_subject(mut self, subject: &str) -> Self {
        let subject = Self::parse(subject);
        self.terms.extend(subject.terms);
        self.kinds.extend(subject.kinds);
        self
    }

    /// Whether it tells anything that can be looked for.
    pub fn is_empty(&self) -> bool {
        self.term_alternatives.is_empty()
    }

    /// Whether one of its telling words stands there, too.
    pub fn shares_term_with(&self, other: &Self) -> bool {
        self.term_alternatives
            .iter()
            .any(|word| other.contains_any(word))
    }

    /// How much of this statement another text says.
    pub fn match_level(&self, text: &Self) -> MatchLevel {
        let is_of_kind =
            self.kinds.is_empty() || self.kinds.iter().any(|kind| text.kinds.contains(kind));
        if self.is_empty()
            || !is_of_kind
            || !self
                .term_alternatives
                .iter()
                .all(|word| text.contains_any(word))
        {
            return MatchLevel::None;
        }
        let says_no_more = text
            .term_alternatives
            .iter()
            .all(|word| self.contains_any(word));
        if says_no_more || self.is_phrase_of(text) {
            MatchLevel::Same
        } else {
            MatchLevel::Contains
        }
    }

    fn contains_any(&self, word: &[String]) -> bool {
        word.iter().any(|term| self.terms.contains(term))
    }

    /// Whether its words stand in the text as they are, one behind the other.
    fn is_phrase_of(&self, text: &Self) -> bool {
        let empty = |word: &&String| STOP_WORDS.contains(&word.as_str());
        let phrase = &self.word_sequence[self.word_sequence.iter().take_while(empty).count()..];
        let telling = self.term_alternatives.len() + usize::from(!self.kinds.is_empty());
        telling >= MIN_PHRASE_WORDS
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

    fn fit(wanted: &str, text: &str) -> MatchLevel {
        Statement::parse(wanted).match_level(&Statement::parse(text))
    }

    /// B106
    #[test]
    fn the_same_is_known_in_other_words_and_no_more_than_that() {
        for text in [
            "I prefer tea",
            "The user prefers tea.",
            "TEA is what I like!",
            "my favourite is tea",
            "I prefer tea, and coffee on Sundays",
        ] {
            assert_eq!(fit("I prefer tea", text), MatchLevel::Same, "{text}");
        }
        for text in ["My brother Bob prefers tea", "I like green tea from Assam"] {
            assert_eq!(fit("I prefer tea", text), MatchLevel::Contains, "{text}");
        }
        for text in [
            "tea is grown in Assam",
            "I prefer coffee",
            "the tea party is at six",
            "",
            "\u{0}",
        ] {
            assert_eq!(fit("I prefer tea", text), MatchLevel::None, "{text}");
        }
        assert_eq!(fit("my name is Ada", "My name is Ada"), MatchLevel::Same);
        assert_eq!(fit("my name is Ada", "Ada works at Acme"), MatchLevel::None);
        assert_eq!(
            fit("저는 녹차를 좋아해요", "저는 녹차를 좋아해요"),
            MatchLevel::Same
        );
        assert_eq!(fit("Ich mag Käse", "ich mag käse"), MatchLevel::Same);
        assert_eq!(fit("tea", "tea is grown in Assam"), MatchLevel::Contains);
        for nothing in ["", "it", "that", "\u{0}", "🙂"] {
            assert_eq!(fit(nothing, "I prefer tea"), MatchLevel::None, "{nothing}");
        }
    }
}
