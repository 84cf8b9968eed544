//! Removes near-duplicates from hits.

use unicode_segmentation::UnicodeSegmentation;

use super::FusedHit;
use lango_text::fingerprint;

/// Words per shingle.
const SHINGLE_WORDS: usize = 3;
/// Jaccard similarity from which two texts are near-duplicates.
const DUPLICATE_SIMILARITY: f64 = 0.85;

/// A hit and its near-duplicates.
#[derive(Clone, Debug, PartialEq)]
pub struct DedupedHit {
    pub hit: FusedHit,
    /// Ids of the removed hits, best first.
    pub duplicates: Vec<u64>,
}

/// Returns the best hit of every group of near-duplicates, in the order of `hits`, which are
/// sorted best first.
pub fn dedupe<'a>(hits: &[FusedHit], text_of: impl Fn(u64) -> &'a str) -> Vec<DedupedHit> {
    let mut unique: Vec<(Shingles, DedupedHit)> = Vec::new();
    for hit in hits {
        let shingles = Shingles::from_text(text_of(hit.id));
        match unique
            .iter_mut()
            .find(|(other, _)| other.is_near_duplicate(&shingles))
        {
            Some((_, best)) => best.duplicates.push(hit.id),
            None => unique.push((
                shingles,
                DedupedHit {
                    hit: *hit,
                    duplicates: Vec::new(),
                },
            )),
        }
    }
    unique.into_iter().map(|(_, hit)| hit).collect()
}

/// The hashed shingles of a text, sorted and unique, so that two sets compare in one pass.
struct Shingles(Vec<u64>);

impl Shingles {
    fn from_text(text: &str) -> Self {
        let lower = text.to_lowercase();
        let words: Vec<u64> = lower
            .unicode_words()
            .map(|word| fingerprint(word.as_bytes()))
            .collect();
        let mut hashes: Vec<u64> = match words.len() {
            // No words: only an identical text is a duplicate.
            0 => vec![fingerprint(text.trim().as_bytes())],
            1..SHINGLE_WORDS => vec![combine_hashes(&words)],
            _ => words.windows(SHINGLE_WORDS).map(combine_hashes).collect(),
        };
        hashes.sort_unstable();
        hashes.dedup();
        Self(hashes)
    }

    fn is_near_duplicate(&self, other: &Self) -> bool {
        let (few, many) = (
            self.0.len().min(other.0.len()),
            self.0.len().max(other.0.len()),
        );
        if (few as f64) < DUPLICATE_SIMILARITY * many as f64 {
            return false;
        }
        // Solves `shared >= DUPLICATE_SIMILARITY * (few + many - shared)` for `shared`.
        let needed = (DUPLICATE_SIMILARITY * (few + many) as f64 / (1.0 + DUPLICATE_SIMILARITY))
            .ceil() as usize;
        self.has_overlap(other, needed)
    }

    /// Returns true if at least `needed` shingles occur in both. Stops as soon as too many are
    /// missing, because most texts have little in common.
    fn has_overlap(&self, other: &Self, needed: usize) -> bool {
        let Some(mut spare) = self.0.len().checked_sub(needed) else {
            return false;
        };
        let mut others = other.0.iter().peekable();
        for hash in &self.0 {
            while others.next_if(|other| *other < hash).is_some() {}
            if others.next_if_eq(&hash).is_none() {
                let Some(left) = spare.checked_sub(1) else {
                    return false;
                };
                spare = left;
            }
        }
        true
    }
}

fn combine_hashes(words: &[u64]) -> u64 {
    words.iter().fold(0, |sum: u64, word| {
        (sum ^ word)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    })
}
