//! The same text in two places is one hit.

use unicode_segmentation::UnicodeSegmentation;

use super::FusedHit;
use crate::fingerprint;

/// So many words in a row are compared.
const SHINGLE_WORDS: usize = 3;
/// Texts that share this part of their shingles are the same text.
const DUPLICATE_SIMILARITY: f64 = 0.85;

/// A hit and those that say the same.
#[derive(Clone, Debug, PartialEq)]
pub struct DedupedHit {
    pub hit: FusedHit,
    /// Best first; not shown, but told.
    pub duplicates: Vec<u64>,
}

/// Keeps the best of every group of near-duplicates; hits come best first and stay so.
pub fn dedupe<'a>(hits: &[FusedHit], text_of: impl Fn(u64) -> &'a str) -> Vec<DedupedHit> {
    let mut kept: Vec<(Shingles, DedupedHit)> = Vec::new();
    for hit in hits {
        let shingles = Shingles::from_text(text_of(hit.id));
        match kept
            .iter_mut()
            .find(|(known, _)| known.is_near_duplicate(&shingles))
        {
            Some((_, folded)) => folded.duplicates.push(hit.id),
            None => kept.push((
                shingles,
                DedupedHit {
                    hit: *hit,
                    duplicates: Vec::new(),
                },
            )),
        }
    }
    kept.into_iter().map(|(_, folded)| folded).collect()
}

/// Sorted and without repetition, so that two can be compared in one pass.
struct Shingles(Vec<u64>);

impl Shingles {
    fn from_text(text: &str) -> Self {
        let lower = text.to_lowercase();
        let words: Vec<u64> = lower
            .unicode_words()
            .map(|word| fingerprint(word.as_bytes()))
            .collect();
        let mut hashes: Vec<u64> = match words.len() {
            // Nothing but signs: alike only when they are the same.
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
        // From `shared >= ALIKE * (few + many - shared)`.
        let needed = (DUPLICATE_SIMILARITY * (few + many) as f64 / (1.0 + DUPLICATE_SIMILARITY))
            .ceil() as usize;
        self.has_overlap(other, needed)
    }

    /// Most texts are nothing alike: it ends as soon as too many are missing.
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
