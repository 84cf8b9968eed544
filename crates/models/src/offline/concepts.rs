//! Concepts: words of the same role in several languages, so that weights trained on one word apply
//! to the others.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::words::{RequestWord, is_unspaced, normalize, split_words, stem};

/// Maximum number of words per request that are checked for misspellings.
const MAX_GUESSES: usize = 12;
/// Minimum length of a word that is checked for misspellings; shorter words are too similar to
/// others.
const MIN_MISSPELLED_LEN: usize = 5;
const MAX_UNSPACED_LEN: usize = 8;

/// The concepts and their words.
pub struct Concepts {
    names: Vec<String>,
    entries: HashMap<String, Vec<u8>>,
    /// Single words by first letter, for misspellings.
    by_initial: HashMap<char, Vec<(String, u8)>>,
}

/// A concept in a request, with its word range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConceptMatch {
    pub concept: u8,
    pub first: usize,
    pub last: usize,
}

pub static CONCEPTS: LazyLock<Concepts> =
    LazyLock::new(|| Concepts::parse(include_str!("concepts.txt")));

impl Concepts {
    fn parse(text: &str) -> Self {
        let mut concepts = Self {
            names: Vec::new(),
            entries: HashMap::new(),
            by_initial: HashMap::new(),
        };
        let lines = text
            .lines()
            .filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        for (number, line) in lines.enumerate() {
            let (name, entries) = line.split_once(':').unwrap_or_default();
            concepts.names.push(name.to_owned());
            for entry in entries
                .split(',')
                .map(str::trim)
                .filter(|entry| !entry.is_empty())
            {
                concepts.add(entry, number as u8);
            }
        }
        concepts
    }

    fn add(&mut self, entry: &str, concept: u8) {
        // The full tokenizer runs only for entries that need it: there are thousands of entries.
        let is_plain = entry.chars().all(|c| c.is_alphabetic() || c == ' ');
        let stems: Vec<String> = if is_plain {
            entry
                .split(' ')
                .map(|word| stem(&normalize(word)))
                .collect()
        } else {
            split_words(entry)
                .into_iter()
                .map(|word| word.stem)
                .collect()
        };
        let key = stems.join(" ");
        if stems.len() == 1
            && key.len() >= MIN_MISSPELLED_LEN
            && let Some(initial) = key.chars().next()
        {
            self.by_initial
                .entry(initial)
                .or_default()
                .push((key.clone(), concept));
        }
        let concepts = self.entries.entry(key).or_default();
        if !concepts.contains(&concept) {
            concepts.push(concept);
        }
    }

    pub fn name(&self, concept: u8) -> &str {
        self.names
            .get(usize::from(concept))
            .map_or("", String::as_str)
    }

    /// Returns every concept in a request.
    pub fn find(&self, words: &[RequestWord]) -> Vec<ConceptMatch> {
        let mut found = Vec::new();
        let mut guesses = 0;
        for (at, word) in words.iter().enumerate() {
            if word.has_token_kind() {
                continue;
            }
            let before = found.len();
            self.find_in_word(at, word, &mut found);
            if let Some(next) = words.get(at + 1) {
                self.push_matches(
                    &format!("{} {}", word.stem, next.stem),
                    at,
                    at + 1,
                    &mut found,
                );
            }
            if found.len() == before
                && guesses < MAX_GUESSES
                && word.stem.len() >= MIN_MISSPELLED_LEN
            {
                guesses += 1;
                found.extend(
                    self.find_misspelled(&word.stem)
                        .map(|concept| ConceptMatch {
                            concept,
                            first: at,
                            last: at,
                        }),
                );
            }
        }
        found
    }

    fn find_in_word(&self, at: usize, word: &RequestWord, found: &mut Vec<ConceptMatch>) {
        self.push_matches(&word.stem, at, at, found);
        if word.normalized.chars().any(is_unspaced) {
            let starts: Vec<usize> = word
                .normalized
                .char_indices()
                .map(|(start, _)| start)
                .collect();
            for &start in &starts {
                let ends = word.normalized[start..]
                    .char_indices()
                    .map(|(length, c)| start + length + c.len_utf8());
                for end in ends.take(MAX_UNSPACED_LEN) {
                    if end - start < word.normalized.len() {
                        self.push_matches(&word.normalized[start..end], at, at, found);
                    }
                }
            }
        }
    }

    fn push_matches(&self, key: &str, first: usize, last: usize, found: &mut Vec<ConceptMatch>) {
        for &concept in self.entries.get(key).into_iter().flatten() {
            let concept_match = ConceptMatch {
                concept,
                first,
                last,
            };
            if !found.contains(&concept_match) {
                found.push(concept_match);
            }
        }
    }

    /// Returns the concept of a word with one typo.
    fn find_misspelled(&self, stem: &str) -> Option<u8> {
        let candidates = self.by_initial.get(&stem.chars().next()?)?;
        let similar = candidates.iter().find(|(entry, _)| {
            entry.len().abs_diff(stem.len()) <= 1 && strsim::osa_distance(entry, stem) == 1
        });
        similar.map(|(_, concept)| *concept)
    }
}
