//! What of a request the learned table weighs: words, pairs, pieces of words, concepts and marks, each as a number.

use super::concepts::{CONCEPTS, ConceptMatch};
use super::words::{RequestWord, is_unspaced, split_words, truncate};

/// How much each kind of feature counts as a whole, however many there are.
const WORD_WEIGHT: f32 = 1.2;
const PAIR_WEIGHT: f32 = 1.0;
const NGRAM_WEIGHT: f32 = 1.6;
const CONCEPT_WEIGHT: f32 = 1.2;
const CONCEPT_PAIR_WEIGHT: f32 = 0.8;
const SHAPE_WEIGHT: f32 = 0.6;

/// More concepts than this are not paired.
const MAX_PAIRED: usize = 14;

/// One thing that was noticed.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// Which one; the learned table knows it by this number.
    pub key: u32,
    pub value: f32,
    /// The words that it comes from, first and last; none for the whole.
    pub word_range: Option<(usize, usize)>,
}

/// A request, read.
pub struct RequestFeatures {
    pub words: Vec<RequestWord>,
    pub features: Vec<Feature>,
}

impl RequestFeatures {
    pub fn from_text(text: &str) -> Self {
        let text = truncate(text);
        let words = split_words(&text);
        let mut features = Vec::new();
        let found = CONCEPTS.find(&words);
        add(&mut features, WORD_WEIGHT, single_words(&words));
        add(&mut features, PAIR_WEIGHT, pairs(&words));
        add(&mut features, NGRAM_WEIGHT, char_ngrams(&words));
        add(&mut features, CONCEPT_WEIGHT, concepts(&found, &words));
        add(
            &mut features,
            CONCEPT_PAIR_WEIGHT,
            concept_pairs(&found, &words),
        );
        add(&mut features, SHAPE_WEIGHT, shape(&text, &words));
        Self { words, features }
    }
}

type UnweightedFeature = (u32, Option<(usize, usize)>);

/// One kind of feature, weighed as a whole.
fn add(features: &mut Vec<Feature>, weight: f32, mut noticed: Vec<UnweightedFeature>) {
    noticed.sort_by_key(|(key, _)| *key);
    noticed.dedup_by_key(|(key, _)| *key);
    let value = weight / (noticed.len().max(1) as f32).sqrt();
    features.extend(noticed.into_iter().map(|(key, from)| Feature {
        key,
        value,
        word_range: from,
    }));
}

fn single_words(words: &[RequestWord]) -> Vec<UnweightedFeature> {
    words
        .iter()
        .enumerate()
        .map(|(at, word)| (feature_key(b'w', &[&word.stem]), Some((at, at))))
        .collect()
}

/// Neighbours, words with one between them, and how the request begins and ends.
fn pairs(words: &[RequestWord]) -> Vec<UnweightedFeature> {
    let mut noticed = Vec::new();
    for (at, word) in words.iter().enumerate() {
        for (kind, reach) in [(b'p', 1), (b's', 2)] {
            if let Some(other) = words.get(at + reach) {
                noticed.push((
                    feature_key(kind, &[&word.stem, &other.stem]),
                    Some((at, at + reach)),
                ));
            }
        }
    }
    if let Some(first) = words.first() {
        noticed.push((feature_key(b'f', &[&first.stem]), Some((0, 0))));
    }
    if let Some(last) = words.last() {
        noticed.push((
            feature_key(b'l', &[&last.stem]),
            Some((words.len() - 1, words.len() - 1)),
        ));
    }
    noticed
}

/// Pieces of words: what survives misspelling, inflection and scripts without spaces.
fn char_ngrams(words: &[RequestWord]) -> Vec<UnweightedFeature> {
    let mut noticed = Vec::new();
    for (at, word) in words
        .iter()
        .enumerate()
        .filter(|(_, word)| !word.has_token_kind())
    {
        let unspaced = word.normalized.chars().any(is_unspaced);
        let bounded: Vec<char> = std::iter::once('_')
            .chain(word.normalized.chars())
            .chain(['_'])
            .collect();
        let lengths = if unspaced { 1..=3 } else { 3..=5 };
        for length in lengths {
            for piece in bounded.windows(length).filter(|piece| *piece != ['_']) {
                noticed.push((chars_key(b'c', piece), Some((at, at))));
            }
        }
    }
    noticed
}

/// Concepts and marks: both stand for many things of one kind.
fn concepts_and_kinds(
    found: &[ConceptMatch],
    words: &[RequestWord],
) -> Vec<(String, usize, usize)> {
    let concepts = found.iter().map(|found| {
        (
            CONCEPTS.name(found.concept).to_owned(),
            found.first,
            found.last,
        )
    });
    let marks = words
        .iter()
        .enumerate()
        .filter(|(_, word)| word.has_token_kind());
    concepts
        .chain(marks.map(|(at, word)| (word.stem.clone(), at, at)))
        .collect()
}

fn concepts(found: &[ConceptMatch], words: &[RequestWord]) -> Vec<UnweightedFeature> {
    let noticed = concepts_and_kinds(found, words).into_iter();
    noticed
        .map(|(kind, first, last)| (feature_key(b'k', &[&kind]), Some((first, last))))
        .collect()
}

fn concept_pairs(found: &[ConceptMatch], words: &[RequestWord]) -> Vec<UnweightedFeature> {
    let mut kinds = concepts_and_kinds(found, words);
    kinds.sort();
    kinds.dedup_by(|a, b| a.0 == b.0);
    kinds.truncate(MAX_PAIRED);
    let mut noticed = Vec::new();
    for (at, (one, first, _)) in kinds.iter().enumerate() {
        for (other, second, _) in &kinds[at + 1..] {
            noticed.push((
                feature_key(b'q', &[one, other]),
                Some((*first.min(second), *first.max(second))),
            ));
        }
    }
    noticed
}

/// How it is written: as a question, with a colon, with code, short or long.
fn shape(text: &str, words: &[RequestWord]) -> Vec<UnweightedFeature> {
    let mut shape = Vec::new();
    let trimmed = text.trim_end();
    for (name, holds) in [
        (
            "question",
            trimmed.ends_with('?') || trimmed.ends_with('？'),
        ),
        ("exclamation", trimmed.ends_with('!')),
        ("colon", text.contains(": ")),
        ("quote", text.contains('"') || text.contains('“')),
        ("lines", text.trim().contains('\n')),
        ("braces", text.contains('{') || text.contains("()")),
        ("unspaced", text.chars().any(is_unspaced)),
    ] {
        if holds {
            shape.push((feature_key(b'h', &[name]), None));
        }
    }
    let length = match words.len() {
        0..=2 => "tiny",
        3..=5 => "short",
        6..=10 => "middle",
        11..=20 => "long",
        _ => "very long",
    };
    shape.push((feature_key(b'n', &[length]), None));
    shape
}

fn feature_key(kind: u8, parts: &[&str]) -> u32 {
    let mut hash = FeatureHasher::new(kind);
    for part in parts {
        hash.bytes(part.as_bytes());
        hash.bytes(&[0]);
    }
    hash.key()
}

fn chars_key(kind: u8, chars: &[char]) -> u32 {
    let mut hash = FeatureHasher::new(kind);
    for c in chars {
        hash.bytes(&u32::from(*c).to_le_bytes());
    }
    hash.key()
}

/// FNV-1a: the table is committed, so the numbers must never depend on a library's version.
struct FeatureHasher(u64);

impl FeatureHasher {
    fn new(kind: u8) -> Self {
        let mut hash = Self(0xcbf2_9ce4_8422_2325);
        hash.bytes(&[kind]);
        hash
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    fn key(&self) -> u32 {
        (self.0 ^ (self.0 >> 32)) as u32
    }
}
