//! Weights of features: the more texts contain a feature, the less it weighs.

use super::EmbedPurpose;
use super::frequent_words::FREQUENT_WORDS;
use super::hash_terms::HashTerms;

/// Cells in each of the two rows of the count-min sketch.
const CELLS: usize = 1 << 16;
/// The number of texts that the built-in frequencies assume.
const ASSUMED_TEXTS: u32 = 1_000;
/// Counts are multiplied by this factor, because most frequencies are small.
const COUNT_SCALE: u32 = 100;

/// A count-min sketch: each feature has two cells, which it shares with different features. The
/// smaller count is never too small and rarely much too large, so the larger weight applies.
///
/// The weights never change, so that stored vectors stay valid. Weights derived from the indexed
/// texts gave no better results on evals/retrieval.
pub(super) struct FeatureWeights(Vec<f32>);

impl FeatureWeights {
    pub fn built_in() -> Self {
        let all = ASSUMED_TEXTS * COUNT_SCALE;
        let mut counts = vec![0_u32; 2 * CELLS];
        let mut terms = HashTerms::default();
        for (rank, word) in (0_u32..).zip(FREQUENT_WORDS.split_whitespace()) {
            let part = u64::from(all) * 20 / (21 + 2 * u64::from(rank));
            terms.analyze(word, EmbedPurpose::Passage);
            // Assumes that words occur independently of each other.
            let either = |count: u32| {
                let both = u64::from(count) * part / u64::from(all);
                (u64::from(count) + part - both) as u32
            };
            terms.for_each_feature(
                |_| false,
                |hash, _| {
                    cells(hash)
                        .into_iter()
                        .for_each(|cell| counts[cell] = either(counts[cell]))
                },
            );
        }
        let weight = |&count: &u32| {
            idf(
                f64::from(count) / f64::from(COUNT_SCALE),
                f64::from(ASSUMED_TEXTS),
            )
        };
        Self(counts.iter().map(weight).collect())
    }

    pub fn get(&self, hash: u64) -> f32 {
        let [one, other] = cells(hash);
        self.0[one].max(self.0[other])
    }
}

fn cells(hash: u64) -> [usize; 2] {
    let low = (CELLS - 1) as u64;
    [(hash & low) as usize, ((hash >> 16) & low) as usize + CELLS]
}

/// Returns the inverse document frequency.
fn idf(count: f64, all: f64) -> f32 {
    logarithm(1.0 + (all - count).max(0.0) / (count + 0.5)) as f32
}

/// Returns the natural logarithm of a number of at least 1. Uses only operations with the same
/// result on every machine: vectors are stored and moved between machines, and `f64::ln` may
/// differ in the last digit.
fn logarithm(number: f64) -> f64 {
    let (mut rest, mut halvings) = (number, 0.0);
    while rest > 1.5 {
        rest *= 0.5;
        halvings += 1.0;
    }
    let z = (rest - 1.0) / (rest + 1.0);
    let square = z * z;
    let series = (0..12).rev().fold(0.0, |sum, term| {
        sum * square + 1.0 / f64::from(2 * term + 1)
    });
    halvings * std::f64::consts::LN_2 + 2.0 * z * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithm_matches_the_standard_library() {
        for number in [1.0, 1.2, 1.5, 2.0, 10.0, 12_345.6, 1e9] {
            assert!(
                (logarithm(number) - f64::ln(number)).abs() < 1e-9,
                "{number}"
            );
        }
    }
}
