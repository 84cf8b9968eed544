//! Whether two texts say the same: decided by the words that tell something, in whatever form and order.

use std::collections::HashSet;

use lango_domain::memory::Kind;

use crate::lexical::{analyze, analyze_query};
use crate::memory::{RecallQuery, plain_words};

/// So much of a text is compared.
const MOST_BYTES: usize = 8_000;
/// A phrase of fewer words is no statement.
const LEAST_PHRASE: usize = 2;
/// Words that say nothing about what is meant, beside those that no question is asked with.
const EMPTY: [&str; 10] =
    ["user", "users", "that", "fact", "about", "everything", "anything", "all", "alles", "todo"];

/// The telling words of a text.
pub(super) struct Statement {
    /// One for each word: the terms that may stand for it.
    words: Vec<Vec<String>>,
    terms: HashSet<String>,
    kinds: Vec<Kind>,
    /// Every word, in a row.
    plain: Vec<String>,
}

/// How much a text has to do with what is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    None,
    /// All of it stands there, among other things.
    Within,
    /// It says just that.
    Same,
}

impl Statement {
    pub fn of(text: &str) -> Self {
        let text = &text[..text.floor_char_boundary(MOST_BYTES.min(text.len()))];
        let question = RecallQuery::read(text);
        let is_telling = |word: &&str| !EMPTY.contains(word);
        let content: Vec<&str> = question.content.split(' ').filter(is_telling).collect();
        let content = content.join(" ");
        let terms = analyze(text).into_iter().chain(analyze(&content)).collect();
        Self { words: analyze_query(&content), terms, kinds: question.kinds, plain: plain_words(text) }
    }

    /// Where its kind is known from elsewhere.
    pub fn with_kind(mut self, kind: Kind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// What it is about, where that is said beside it: it need not be repeated in the text.
    pub fn about(mut self, subject: &str) -> Self {
        let subject = Self::of(subject);
        self.terms.extend(subject.terms);
        self.kinds.extend(subject.kinds);
        self
    }

    /// Whether it tells anything that can be looked for.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether one of its telling words stands there, too.
    pub fn shares_a_word_with(&self, other: &Self) -> bool {
        self.words.iter().any(|word| other.holds(word))
    }

    /// How much of this statement another text says.
    pub fn fit(&self, text: &Self) -> Fit {
        let is_of_kind = self.kinds.is_empty() || self.kinds.iter().any(|kind| text.kinds.contains(kind));
        if self.is_empty() || !is_of_kind || !self.words.iter().all(|word| text.holds(word)) {
            return Fit::None;
        }
        let says_no_more = text.words.iter().all(|word| self.holds(word));
        if says_no_more || self.is_phrase_of(text) { Fit::Same } else { Fit::Within }
    }

    fn holds(&self, word: &[String]) -> bool {
        word.iter().any(|term| self.terms.contains(term))
    }

    /// Whether its words stand in the text as they are, one behind the other.
    fn is_phrase_of(&self, text: &Self) -> bool {
        let empty = |word: &&String| EMPTY.contains(&word.as_str());
        let phrase = &self.plain[self.plain.iter().take_while(empty).count()..];
        let telling = self.words.len() + usize::from(!self.kinds.is_empty());
        telling >= LEAST_PHRASE
            && !phrase.is_empty()
            && text.plain.windows(phrase.len()).any(|window| window == phrase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(wanted: &str, text: &str) -> Fit {
        Statement::of(wanted).fit(&Statement::of(text))
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
            assert_eq!(fit("I prefer tea", text), Fit::Same, "{text}");
        }
        for text in ["My brother Bob prefers tea", "I like green tea from Assam"] {
            assert_eq!(fit("I prefer tea", text), Fit::Within, "{text}");
        }
        for text in ["tea is grown in Assam", "I prefer coffee", "the tea party is at six", "", "\u{0}"] {
            assert_eq!(fit("I prefer tea", text), Fit::None, "{text}");
        }
        assert_eq!(fit("my name is Ada", "My name is Ada"), Fit::Same);
        assert_eq!(fit("my name is Ada", "Ada works at Acme"), Fit::None);
        assert_eq!(fit("저는 녹차를 좋아해요", "저는 녹차를 좋아해요"), Fit::Same);
        assert_eq!(fit("Ich mag Käse", "ich mag käse"), Fit::Same);
        assert_eq!(fit("tea", "tea is grown in Assam"), Fit::Within);
        for nothing in ["", "it", "that", "\u{0}", "🙂"] {
            assert_eq!(fit(nothing, "I prefer tea"), Fit::None, "{nothing}");
        }
    }
}
