//! The features of a request: words, word pairs, character n-grams, concepts and token kinds, each
//! identified by a hash.

use super::concepts::{CONCEPTS, ConceptMatch};
use super::words::{RequestWord, is_unspaced, split_words, truncate};

/// Total weight of each kind of feature, independent of the number of features.
const WORD_WEIGHT: f32 = 1.2;
const PAIR_WEIGHT: f32 = 1.0;
const NGRAM_WEIGHT: f32 = 1.6;
const CONCEPT_WEIGHT: f32 = 1.2;
const CONCEPT_PAIR_WEIGHT: f32 = 0.8;
const SHAPE_WEIGHT: f32 = 0.6;

/// Maximum number of concepts that are paired.
const MAX_PAIRED: usize = 14;

/// One feature of a request.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// Hash that identifies the feature in the weights.
    pub key: u32,
    pub value: f32,
    /// First and last word that it comes from; none for features of the whole request.
    pub word_range: Option<(usize, usize)>,
}

/// The words and features of a request.
pub struct RequestFeatures {
    pub words: Vec<RequestWord>,
    pub features: Vec<Feature>,
}

impl RequestFeatures {
    pub fn from_text(text: &str) -> Self {
        let text = truncate(text);
        let words = split_words(&text);
        let mut features = Vec::new();
        let matches = CONCEPTS.find(&words);
        add(&mut features, WORD_WEIGHT, single_words(&words));
        add(&mut features, PAIR_WEIGHT, pairs(&words));
        add(&mut features, NGRAM_WEIGHT, char_ngrams(&words));
        add(&mut features, CONCEPT_WEIGHT, concepts(&matches, &words));
        add(
            &mut features,
            CONCEPT_PAIR_WEIGHT,
            concept_pairs(&matches, &words),
        );
        add(&mut features, SHAPE_WEIGHT, shape(&text, &words));
        Self { words, features }
    }
}

type UnweightedFeature = (u32, Option<(usize, usize)>);

/// Adds the features of one kind, which share `weight`.
fn add(features: &mut Vec<Feature>, weight: f32, mut unweighted: Vec<UnweightedFeature>) {
    unweighted.sort_by_key(|(key, _)| *key);
    unweighted.dedup_by_key(|(key, _)| *key);
    let value = weight / (unweighted.len().max(1) as f32).sqrt();
    features.extend(unweighted.into_iter().map(|(key, word_range)| Feature {
        key,
        value,
        word_range,
    }));
}

fn single_words(words: &[RequestWord]) -> Vec<UnweightedFeature> {
    words
        .iter()
        .enumerate()
        .map(|(at, word)| (feature_key(b'w', &[&word.stem]), Some((at, at))))
        .collect()
}

/// Returns adjacent words, words with one between them, and the first and last word.
fn pairs(words: &[RequestWord]) -> Vec<UnweightedFeature> {
    let mut features = Vec::new();
    for (at, word) in words.iter().enumerate() {
        for (kind, distance) in [(b'p', 1), (b's', 2)] {
            if let Some(other) = words.get(at + distance) {
                features.push((
                    feature_key(kind, &[&word.stem, &other.stem]),
                    Some((at, at + distance)),
                ));
            }
        }
    }
    if let Some(first) = words.first() {
        features.push((feature_key(b'f', &[&first.stem]), Some((0, 0))));
    }
    if let Some(last) = words.last() {
        features.push((
            feature_key(b'l', &[&last.stem]),
            Some((words.len() - 1, words.len() - 1)),
        ));
    }
    features
}

/// Returns character n-grams, which survive typos, inflection and scripts without spaces.
fn char_ngrams(words: &[RequestWord]) -> Vec<UnweightedFeature> {
    let mut features = Vec::new();
    for (at, word) in words
        .iter()
        .enumerate()
        .filter(|(_, word)| !word.has_token_kind())
    {
        let unspaced = word.normalized.chars().any(is_unspaced);
        let delimited: Vec<char> = std::iter::once('_')
            .chain(word.normalized.chars())
            .chain(['_'])
            .collect();
        let lengths = if unspaced { 1..=3 } else { 3..=5 };
        for length in lengths {
            for ngram in delimited.windows(length).filter(|ngram| *ngram != ['_']) {
                features.push((chars_key(b'c', ngram), Some((at, at))));
            }
        }
    }
    features
}

/// Returns the concepts and token kinds: both represent many words of one kind.
fn concepts_and_kinds(
    matches: &[ConceptMatch],
    words: &[RequestWord],
) -> Vec<(String, usize, usize)> {
    let concepts = matches.iter().map(|found| {
        (
            CONCEPTS.name(found.concept).to_owned(),
            found.first,
            found.last,
        )
    });
    let tokens = words
        .iter()
        .enumerate()
        .filter(|(_, word)| word.has_token_kind());
    concepts
        .chain(tokens.map(|(at, word)| (word.stem.clone(), at, at)))
        .collect()
}

fn concepts(matches: &[ConceptMatch], words: &[RequestWord]) -> Vec<UnweightedFeature> {
    let kinds = concepts_and_kinds(matches, words).into_iter();
    kinds
        .map(|(kind, first, last)| (feature_key(b'k', &[&kind]), Some((first, last))))
        .collect()
}

fn concept_pairs(matches: &[ConceptMatch], words: &[RequestWord]) -> Vec<UnweightedFeature> {
    let mut kinds = concepts_and_kinds(matches, words);
    kinds.sort();
    kinds.dedup_by(|a, b| a.0 == b.0);
    kinds.truncate(MAX_PAIRED);
    let mut features = Vec::new();
    for (at, (one, first, _)) in kinds.iter().enumerate() {
        for (other, second, _) in &kinds[at + 1..] {
            features.push((
                feature_key(b'q', &[one, other]),
                Some((*first.min(second), *first.max(second))),
            ));
        }
    }
    features
}

/// Returns features of the form: question, colon, code, length.
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

/// FNV-1a hash. The weights are committed, so the keys must not depend on a library version.
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
