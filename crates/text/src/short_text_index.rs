//! An in-memory index for a few thousand short texts: entries, learnings, observations.
//!
//! A score is the share of the query that a text covers, each word weighted by its rarity. It can
//! therefore be compared with a threshold, regardless of the other texts.

use std::collections::{BTreeMap, HashMap};

use crate::{analyze, analyze_query};

/// The weight of a word that only shares a prefix with a word of the query.
const PREFIX_MATCH_WEIGHT: f32 = 0.6;
/// Shorter words only match exactly.
const MIN_PREFIX_CHARS: usize = 4;
/// The number of terms with the same prefix that are considered for one word.
const MAX_SIMILAR: usize = 64;
/// Saturation of repeated words, as in BM25.
const K1: f32 = 1.2;
/// Length normalization, as in BM25.
const B: f32 = 0.5;

#[derive(Clone, Debug, Default)]
pub struct ShortTextIndex {
    /// For each term, the texts that contain it, with counts.
    terms: BTreeMap<String, Vec<(u64, u32)>>,
    /// The number of terms of each text.
    lengths: HashMap<u64, u32>,
    total_length: u64,
}

impl ShortTextIndex {
    pub fn from_texts<T: AsRef<str>>(texts: impl IntoIterator<Item = (u64, T)>) -> Self {
        let mut index = Self::default();
        for (id, text) in texts {
            index.add(id, text.as_ref());
        }
        index
    }

    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Adds a text and replaces one with the same id.
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

    /// Removes a text. Iterates over all terms, because removals are far less frequent than searches.
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

    /// Returns the texts that cover most of the query, best first, with scores from 0 to 1.
    pub fn search(&self, query: &str, limit: usize) -> Vec<(u64, f32)> {
        let words = analyze_query(query);
        let mut scores: HashMap<u64, f32> = HashMap::new();
        let mut total = 0.0;
        for word in &words {
            let matches = self.match_word(word);
            let idf = self.idf(matches.len());
            total += idf;
            for (id, share) in matches {
                *scores.entry(id).or_default() += idf * share;
            }
        }
        let mut best: Vec<_> = scores
            .into_iter()
            .map(|(id, score)| (id, score / total))
            .collect();
        best.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(b.cmp(a)));
        best.truncate(limit);
        best
    }

    /// Returns the inverse document frequency of a word in `texts` texts. A word in no text counts as
    /// one in a single text.
    fn idf(&self, texts: usize) -> f32 {
        let (all, with) = (self.lengths.len() as f32, texts.max(1) as f32);
        (1.0 + (all - with + 0.5).max(0.5) / (with + 0.5)).ln()
    }

    fn match_word(&self, word: &[String]) -> HashMap<u64, f32> {
        let mut matches: HashMap<u64, f32> = HashMap::new();
        let mut add = |texts: &[(u64, u32)], weight: f32| {
            for (id, count) in texts {
                let share = matches.entry(*id).or_default();
                *share = share.max(weight * self.saturation(*id, *count));
            }
        };
        for term in word {
            if let Some(texts) = self.terms.get(term) {
                add(texts, 1.0);
            }
            for (_, texts) in self.terms_sharing_prefix(term) {
                add(texts, PREFIX_MATCH_WEIGHT);
            }
        }
        matches
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
        let prefix = &term[..end];
        self.terms
            .range(prefix.to_owned()..)
            .take_while(move |(other, _)| is_long && other.starts_with(prefix))
            .filter(move |(other, _)| {
                *other != term && other.chars().count() <= letters + letters / 2
            })
            .take(MAX_SIMILAR)
    }

    /// Returns the weight of a repeated term, from 0.5 to 1: a single occurrence counts most, further
    /// ones count more in short texts.
    fn saturation(&self, id: u64, count: u32) -> f32 {
        let average = (self.total_length as f32 / self.lengths.len().max(1) as f32).max(1.0);
        let length = self.lengths.get(&id).copied().unwrap_or_default() as f32;
        let damping = K1 * (1.0 - B + B * length / average);
        let count = count as f32;
        (count * (1.0 + K1) / (count + damping)).min(1.0 + K1) / (1.0 + K1) * 0.5 + 0.5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_index() -> ShortTextIndex {
        ShortTextIndex::from_texts([
            (1, "I prefer tea in the morning"),
            (2, "The office closes at six"),
            (3, "내일 회의는 세 시입니다"),
            (4, "Die Übergabe der Schlüssel ist am Freitag"),
            (5, "🦀 is the mascot of Rust"),
            (6, "tea tea tea: the tea shop closes at noon"),
        ])
    }

    fn first(query: &str) -> Option<u64> {
        sample_index().search(query, 3).first().map(|(id, _)| *id)
    }

    #[test]
    fn finds_words_of_any_language() {
        for (query, expected) in [
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
            assert_eq!(first(query), expected, "{query}");
        }
    }

    #[test]
    fn scores_the_covered_share_of_the_query() {
        let index = sample_index();
        let score = |query: &str, id| {
            index
                .search(query, 9)
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
        let partial = score(
            "who paid for the new office in Reykjavik with borrowed money",
            2,
        );
        assert!(partial < 0.3, "{partial}");
        assert!(
            index
                .search("tea office prefer six noon", 9)
                .iter()
                .all(|(_, score)| (0.0..=1.0).contains(score))
        );
    }

    #[test]
    fn matches_words_with_a_common_prefix() {
        let index = ShortTextIndex::from_texts([(1, "the configurations of nginx"), (2, "nginx")]);
        let best = index.search("nginx configurator", 2);
        assert_eq!(best[0].0, 1, "{best:?}");
    }

    #[test]
    fn replaces_and_removes_texts() {
        let mut index = sample_index();
        index.add(1, "I prefer coffee");
        assert_eq!(index.search("coffee", 1)[0].0, 1);
        assert!(index.search("tea", 9).iter().all(|(id, _)| *id != 1));
        index.remove(1);
        index.remove(1);
        assert!(index.search("coffee", 9).is_empty());
        assert_eq!(index.len(), 5);
    }
}
