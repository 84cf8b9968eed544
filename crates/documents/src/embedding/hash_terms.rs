//! Splits a text into terms for feature hashing: words with their character n-grams, and short
//! runs of characters in scripts without spaces between words.
//!
//! Lexical search already finds equal words. These terms add what it misses: other forms and
//! spellings of a word, parts of compounds, words written apart or together.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{decompose_compatible, is_combining_mark};

use super::EmbedPurpose;

/// Padding around a word, so that n-grams at its ends differ from n-grams within.
const WORD_START: char = '\u{2}';
const WORD_END: char = '\u{3}';
/// Longer words are truncated; they are URLs, keys and the like.
const MAX_WORD_LEN: usize = 40;
const MIN_GRAM_LEN: usize = 3;
const MAX_GRAM_LEN: usize = 5;
/// Shorter words get no n-grams.
const MIN_LETTERS: usize = 3;
/// The longest run of unspaced characters that is one feature.
const MAX_GLYPHS_LEN: usize = 3;

const WORD_WEIGHT: f32 = 1.0;
/// Total weight of all n-grams of a word, measured as the length of their vector.
const GRAMS_WEIGHT: f32 = 3.0;
const JOINED_WEIGHT: f32 = 0.6;
const GLYPHS_WEIGHT: [f32; MAX_GLYPHS_LEN] = [0.3, 1.0, 0.7];

#[derive(Clone, Copy, PartialEq)]
enum TermKind {
    Word,
    /// Two adjacent words written as one.
    Joined,
    Glyphs,
}

#[derive(Clone, Copy)]
struct Term {
    hash: u64,
    kind: TermKind,
    start: usize,
    end: usize,
    count: u32,
}

/// The distinct terms of one text. Reused for the next text to save allocations.
#[derive(Default)]
pub(super) struct HashTerms {
    letters: Vec<char>,
    terms: Vec<Term>,
    known: HashMap<u64, usize, BuildHasherDefault<IdentityHasher>>,
    stem: Vec<char>,
}

/// The state of a scan through a text.
struct ScanState {
    start: usize,
    is_glyphs: bool,
    previous: Option<(usize, usize)>,
    purpose: EmbedPurpose,
    /// True if only a hyphen separates the previous word from this one.
    is_hyphenated: bool,
}

impl HashTerms {
    /// Replaces the terms with those of `text`.
    pub fn analyze(&mut self, text: &str, purpose: EmbedPurpose) {
        self.letters.clear();
        self.terms.clear();
        self.known.clear();
        let mut state = ScanState {
            start: 0,
            is_glyphs: false,
            previous: None,
            purpose,
            is_hyphenated: false,
        };
        if text.is_ascii() {
            text.bytes()
                .for_each(|byte| self.push_char(char::from(byte.to_ascii_lowercase()), &mut state));
        } else {
            for c in text.nfkc() {
                fold(c, |c| self.push_char(c, &mut state));
            }
        }
        self.finish(&mut state);
    }

    /// Calls `each` with every feature of the text and its weight. Words for which `is_frequent`
    /// returns true get no n-grams, because those would only add noise.
    pub fn for_each_feature(
        &self,
        is_frequent: impl Fn(u64) -> bool,
        mut each: impl FnMut(u64, f32),
    ) {
        for term in &self.terms {
            let tally = (term.count as f32).sqrt();
            match term.kind {
                TermKind::Glyphs => each(
                    term.hash,
                    tally * GLYPHS_WEIGHT[(term.end - term.start - 1).min(2)],
                ),
                TermKind::Joined => each(term.hash, tally * JOINED_WEIGHT),
                TermKind::Word => {
                    each(term.hash, tally * WORD_WEIGHT);
                    let padded = &self.letters[term.start..term.end];
                    if !is_frequent(term.hash) && has_grams(padded) {
                        let weight =
                            tally * GRAMS_WEIGHT / (gram_count(padded.len()) as f32).sqrt();
                        for_each_gram(padded, |hash| each(hash, weight));
                    }
                }
            }
        }
    }

    fn push_char(&mut self, c: char, state: &mut ScanState) {
        let is_letter = if c.is_ascii() {
            c.is_ascii_alphanumeric()
        } else {
            is_word_character(c)
        };
        if !is_letter {
            self.finish(state);
            state.is_hyphenated = c == '-' && !state.is_hyphenated;
            return;
        }
        let is_glyph = is_unspaced(c);
        if is_glyph != state.is_glyphs {
            self.finish(state);
            state.is_glyphs = is_glyph;
        }
        if self.letters.len() == state.start && !is_glyph {
            self.letters.push(WORD_START);
        }
        self.letters.push(c);
    }

    fn finish(&mut self, state: &mut ScanState) {
        let end = self.letters.len();
        if end == state.start {
            return;
        }
        if state.is_glyphs {
            self.push_glyphs(state.start, end);
            state.previous = None;
        } else {
            self.push_word(state);
        }
        state.is_hyphenated = false;
        state.start = self.letters.len();
    }

    fn push_word(&mut self, state: &mut ScanState) {
        self.letters.truncate(state.start + 1 + MAX_WORD_LEN);
        self.letters.push(WORD_END);
        let (start, end) = (state.start, self.letters.len());
        let hash = self.word_hash(&[(start + 1, end - 1)]);
        self.add_term(Term {
            hash,
            kind: TermKind::Word,
            start,
            end,
            count: 1,
        });
        let own = (start + 1, end - 1);
        let is_joined = state.is_hyphenated || state.purpose == EmbedPurpose::Query;
        if let Some(previous) = state.previous.filter(|_| is_joined) {
            let hash = self.word_hash(&[previous, own]);
            self.add_term(Term {
                hash,
                kind: TermKind::Joined,
                start,
                end,
                count: 1,
            });
        }
        state.previous = Some(own);
    }

    fn push_glyphs(&mut self, start: usize, end: usize) {
        for first in start..end {
            for last in first + 1..=end.min(first + MAX_GLYPHS_LEN) {
                let hash = mix(self.letters[first..last]
                    .iter()
                    .fold(GLYPHS_SEED, |hash, &c| hash_char(hash, c)));
                self.add_term(Term {
                    hash,
                    kind: TermKind::Glyphs,
                    start: first,
                    end: last,
                    count: 1,
                });
            }
        }
    }

    fn word_hash(&mut self, parts: &[(usize, usize)]) -> u64 {
        self.stem.clear();
        for &(start, end) in parts {
            self.stem.extend_from_slice(&self.letters[start..end]);
        }
        light_stem(&mut self.stem);
        mix(self
            .stem
            .iter()
            .fold(WORD_SEED, |hash, &c| hash_char(hash, c)))
    }

    fn add_term(&mut self, term: Term) {
        let next = self.terms.len();
        let at = *self.known.entry(term.hash).or_insert(next);
        match self.terms.get_mut(at) {
            Some(known) => {
                known.count += 1;
                // A word that occurs in the text takes precedence over two words that form it.
                if term.kind == TermKind::Word {
                    *known = Term {
                        count: known.count,
                        ..term
                    };
                }
            }
            None => self.terms.push(term),
        }
    }
}

/// Returns true if a word gets n-grams. Numbers get none: a part of a number is another number.
fn has_grams(padded: &[char]) -> bool {
    padded.len() >= MIN_LETTERS + 2
        && padded.len() < MAX_WORD_LEN + 2
        && padded.iter().filter(|c| c.is_numeric()).count() * 2 < padded.len() - 2
}

fn gram_count(padded: usize) -> usize {
    (MIN_GRAM_LEN..=MAX_GRAM_LEN)
        .map(|length| (padded + 1).saturating_sub(length))
        .sum()
}

fn for_each_gram(padded: &[char], mut each: impl FnMut(u64)) {
    for first in 0..=padded.len() - MIN_GRAM_LEN {
        let mut hash = GRAM_SEED;
        for (at, &c) in padded[first..].iter().take(MAX_GRAM_LEN).enumerate() {
            hash = hash_char(hash, c);
            if at + 1 >= MIN_GRAM_LEN {
                each(mix(hash));
            }
        }
    }
}

/// Removes common English endings and replaces British endings with American ones. Light on
/// purpose: n-grams match the forms that it keeps apart.
fn light_stem(word: &mut Vec<char>) {
    if word.len() < 4 || !word.iter().all(char::is_ascii_lowercase) {
        return;
    }
    let ends = |word: &[char], ending: &str| {
        word.len() > ending.len()
            && word[word.len() - ending.len()..]
                .iter()
                .copied()
                .eq(ending.chars())
    };
    let length = word.len();
    if ends(word, "ies") && length > 4 {
        word.truncate(length - 3);
        word.push('y');
    } else if ["sses", "xes", "ches", "shes"]
        .iter()
        .any(|ending| ends(word, ending))
    {
        word.truncate(length - 2);
    } else if ends(word, "s") && !["ss", "us", "is"].iter().any(|ending| ends(word, ending)) {
        word.truncate(length - 1);
    }
    let length = word.len();
    let cut = match length {
        6.. if ends(word, "ing") => 3,
        5.. if ends(word, "ed") => 2,
        4.. if ends(word, "e") => 1,
        _ => 0,
    };
    word.truncate(length - cut);
    let length = word.len();
    let is_doubled = cut > 1 && length > 3 && word[length - 1] == word[length - 2];
    if is_doubled && !"lsz".contains(word[length - 1]) {
        word.pop();
    }
    let length = word.len();
    if length >= 6 && ends(word, "is") {
        word.truncate(length - 1);
        word.push('z');
    } else if length >= 5 && ends(word, "our") {
        word.truncate(length - 3);
        word.extend(['o', 'r']);
    }
}

/// Calls `each` with the character in lower case and without the accents that people omit.
fn fold(c: char, mut each: impl FnMut(char)) {
    if c.is_ascii() {
        return each(c.to_ascii_lowercase());
    }
    for lower in c.to_lowercase() {
        match lower {
            'ß' => "ss".chars().for_each(&mut each),
            'æ' => "ae".chars().for_each(&mut each),
            'œ' => "oe".chars().for_each(&mut each),
            'ø' => each('o'),
            'ł' => each('l'),
            // In later scripts, combining marks change the meaning.
            ..'\u{530}' => decompose_compatible(lower, |part| {
                if !('\u{300}'..='\u{36f}').contains(&part) {
                    each(part);
                }
            }),
            _ => each(lower),
        }
    }
}

fn is_word_character(c: char) -> bool {
    c.is_alphanumeric() || is_combining_mark(c)
}

/// Returns true for scripts without spaces between words, or, as in Korean, with endings attached
/// to the words.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1100}'..='\u{11ff}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{318f}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Hash seeds, one per kind of feature, so that features of different kinds do not collide.
const WORD_SEED: u64 = 0x243f_6a88_85a3_08d3;
const GRAM_SEED: u64 = 0x1319_8a2e_0370_7344;
const GLYPHS_SEED: u64 = 0xa409_3822_299f_31d0;

fn hash_char(hash: u64, c: char) -> u64 {
    (hash ^ u64::from(u32::from(c)))
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(27)
}

fn mix(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ (hash >> 32)
}

/// A hasher for keys that are hashes already.
#[derive(Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|&byte| self.0 = self.0.rotate_left(8) ^ u64::from(byte));
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stem(word: &str) -> String {
        let mut letters: Vec<char> = word.chars().collect();
        light_stem(&mut letters);
        letters.into_iter().collect()
    }

    #[test]
    fn forms_of_a_word_have_one_stem() {
        let same = [
            ["colour", "colors"],
            ["query", "queries"],
            ["running", "runs"],
            ["making", "make"],
            ["organise", "organized"],
            ["boxes", "box"],
            ["classes", "class"],
            ["calling", "called"],
        ];
        for [one, other] in same {
            assert_eq!(stem(one), stem(other), "{one} {other}");
        }
        for word in ["bus", "this", "über", "a1b2s", "his", "for"] {
            assert_eq!(stem(word), word);
        }
    }

    #[test]
    fn terms_do_not_depend_on_unicode_composition() {
        let hashes = |text: &str| {
            let mut terms = HashTerms::default();
            terms.analyze(text, EmbedPurpose::Passage);
            let mut hashes = Vec::new();
            terms.for_each_feature(|_| false, |hash, _| hashes.push(hash));
            hashes
        };
        assert_eq!(hashes("Café"), hashes("cafe\u{301}"));
        assert_eq!(
            hashes("데이터"),
            hashes("데이터".nfd().collect::<String>().as_str())
        );
        assert_eq!(hashes("ＡＢＣＤ"), hashes("abcd"));
        assert_ne!(hashes("か"), hashes("が"));
        assert!(hashes(" \u{0} — … ").is_empty());
    }
}
