//! Finds the few that fit among some thousand short texts, in memory: facts, lessons, observations.
//!
//! A score says how much of the question a text covers, each word counting by how rare it is. So it can be compared
//! with a threshold, whatever else is on the list.

use std::collections::{BTreeMap, HashMap};

use crate::lexical::{analyze, analyze_query};

/// What a word counts that only begins like the one asked for.
const PREFIX_MATCH_WEIGHT: f32 = 0.6;
/// Words shorter than this are alike only when they are the same.
const MIN_PREFIX_CHARS: usize = 4;
/// Terms that begin alike, looked at for one word.
const MAX_SIMILAR: usize = 64;
/// How quickly repeating a word stops counting, and how much long texts are held back, as in BM25.
const K1: f32 = 1.2;
const B: f32 = 0.5;

#[derive(Clone, Debug, Default)]
pub struct ShortTextIndex {
    /// For each term, which texts have it how often.
    terms: BTreeMap<String, Vec<(u64, u32)>>,
    /// How many terms each text has.
    lengths: HashMap<u64, u32>,
    total_length: u64,
}

impl ShortTextIndex {
    pub fn from_texts<T: AsRef<str>>(texts: impl IntoIterator<Item = (u64, T)>) -> Self {
        let mut list = Self::default();
        for (id, text) in texts {
            list.add(id, text.as_ref());
        }
        list
    }

    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Puts a text on the list, in the place of the one with that number.
    pub fn add(&mut self, id: u64, text: &str) {
        self.remove(id);
        let mut counts: HashMap<String, u32> = HashMap::new();
        let terms = analyze(text);
        let length = u32::try_from(terms.len()).unwrap_or(u32::MAX);
        for term in terms {
            *counts.entry(term).or_default() += 1;
        }
        for (term, count) in counts {
            self.terms.entry(term).or_default().push((id, count));
        }
        self.lengths.insert(id, length);
        self.total_length += u64::from(length);
    }

    /// Looks at every term: lists are read far more often than shortened.
    pub fn remove(&mut self, id: u64) {
        let Some(length) = self.lengths.remove(&id) else {
            return;
        };
        self.total_length -= u64::from(length);
        self.terms.retain(|_, texts| {
            texts.retain(|(text, _)| *text != id);
            !texts.is_empty()
        });
    }

    /// The texts that cover most of the question, best first, with how much of it: from 0, nothing, to 1.
    pub fn search(&self, question: &str, most: usize) -> Vec<(u64, f32)> {
        let words = analyze_query(question);
        let mut scores: HashMap<u64, f32> = HashMap::new();
        let mut whole = 0.0;
        for word in &words {
            let found = self.match_word(word);
            let rarity = self.idf(found.len());
            whole += rarity;
            for (id, share) in found {
                *scores.entry(id).or_default() += rarity * share;
            }
        }
        let mut best: Vec<_> = scores
            .into_iter()
            .map(|(id, score)| (id, score / whole))
            .collect();
        best.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(b.cmp(a)));
        best.truncate(most);
        best
    }

    /// How rare a word is that so many texts have; one that none has counts as the rarest.
    fn idf(&self, texts: usize) -> f32 {
        let (all, with) = (self.lengths.len() as f32, texts.max(1) as f32);
        (1.0 + (all - with + 0.5).max(0.5) / (with + 0.5)).ln()
    }

    fn match_word(&self, word: &[String]) -> HashMap<u64, f32> {
        let mut found: HashMap<u64, f32> = HashMap::new();
        let mut take = |texts: &[(u64, u32)], weight: f32| {
            for (id, count) in texts {
                let share = found.entry(*id).or_default();
                *share = share.max(weight * self.saturation(*id, *count));
            }
        };
        for term in word {
            if let Some(texts) = self.terms.get(term) {
                take(texts, 1.0);
            }
            for (_, texts) in self.terms_sharing_prefix(term) {
                take(texts, PREFIX_MATCH_WEIGHT);
            }
        }
        found
    }

    fn terms_sharing_prefix<'a>(
        &'a self,
        term: &'a str,
    ) -> impl Iterator<Item = (&'a String, &'a Vec<(u64, u32)>)> {
        let letters = term.chars().count();
        let shared = letters * 3 / 4;
        let is_long = letters >= MIN_PREFIX_CHARS && shared >= MIN_PREFIX_CHARS - 1;
        let end = term
            .char_indices()
            .nth(shared)
            .map_or(term.len(), |(at, _)| at);
        let beginning = &term[..end];
        let from = self.terms.range(beginning.to_owned()..);
        from.take_while(move |(other, _)| is_long && other.starts_with(beginning))
            .filter(move |(other, _)| {
                *other != term && other.chars().count() <= letters + letters / 2
            })
            .take(MAX_SIMILAR)
    }

    /// From 0 to 1: once is nearly all of it, more often in a short text is more.
    fn saturation(&self, id: u64, count: u32) -> f32 {
        let usual = (self.total_length as f32 / self.lengths.len().max(1) as f32).max(1.0);
        let length = self.lengths.get(&id).copied().unwrap_or_default() as f32;
        let held_back = K1 * (1.0 - B + B * length / usual);
        let count = count as f32;
        (count * (1.0 + K1) / (count + held_back)).min(1.0 + K1) / (1.0 + K1) * 0.5 + 0.5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> ShortTextIndex {
        ShortTextIndex::from_texts([
            (1, "I prefer tea in the morning"),
            (2, "The office closes at six"),
            (3, "내일 회의는 세 시입니다"),
            (4, "Die Übergabe der Schlüssel ist am Freitag"),
            (5, "🦀 is the mascot of Rust"),
            (6, "tea tea tea: the tea shop closes at noon"),
        ])
    }

    fn first(question: &str) -> Option<u64> {
        list().search(question, 3).first().map(|(id, _)| *id)
    }

    #[test]
    fn words_of_any_language_find_their_text() {
        for (question, expected) in [
            ("what do I prefer in the morning", Some(1)),
            ("when does the office close?", Some(2)),
            ("회의 시간", Some(3)),
            ("wann ist die Ubergabe der Schlussel", Some(4)),
            ("🦀", Some(5)),
            ("tea shops", Some(6)),
            ("quantum chromodynamics", None),
            ("", None),
            ("\u{0}\u{7}", None),
        ] {
            assert_eq!(first(question), expected, "{question}");
        }
    }

    #[test]
    fn a_score_says_how_much_of_the_question_is_covered() {
        let list = list();
        let score = |question: &str, id| {
            list.search(question, 9)
                .iter()
                .find(|(found, _)| *found == id)
                .unwrap()
                .1
        };
        assert!(
            score("office closes", 2) > 0.7,
            "{}",
            score("office closes", 2)
        );
        let partly = score(
            "who paid for the new office in Reykjavik with borrowed money",
            2,
        );
        assert!(partly < 0.3, "{partly}");
        assert!(
            list.search("tea office prefer six noon", 9)
                .iter()
                .all(|(_, score)| (0.0..=1.0).contains(score))
        );
    }

    #[test]
    fn words_that_begin_alike_count_less() {
        let list = ShortTextIndex::from_texts([(1, "the configurations of nginx"), (2, "nginx")]);
        let best = list.search("nginx configurator", 2);
        assert_eq!(best[0].0, 1, "{best:?}");
    }

    #[test]
    fn a_text_is_replaced_and_removed() {
        let mut list = list();
        list.add(1, "I prefer coffee");
        assert_eq!(list.search("coffee", 1)[0].0, 1);
        assert!(list.search("tea", 9).iter().all(|(id, _)| *id != 1));
        list.remove(1);
        list.remove(1);
        assert!(list.search("coffee", 9).is_empty());
        assert_eq!(list.len(), 5);
    }
}
