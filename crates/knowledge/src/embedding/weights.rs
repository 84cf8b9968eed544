//! What features weigh: what is in every text tells little.

use super::EmbedPurpose;
use super::frequent_words::FREQUENT_WORDS;
use super::hash_terms::HashTerms;

/// Cells in each of the two rows of a sketch.
const CELLS: usize = 1 << 16;
/// As many texts the built-in frequencies stand for.
const ASSUMED_TEXTS: u32 = 1_000;
/// Frequencies of imagined texts are counted in such parts of one, because most are small.
const COUNT_SCALE: u32 = 100;

/// Two cells for each feature, shared with different others: of how often each was counted the smaller is never too
/// small, and rarely much too large. So of their weights the larger one counts.
///
/// They never change, so that stored vectors stay right. Weights that follow the searched texts were measured on
/// evals/retrieval and found nothing that these do not.
pub(super) struct FeatureWeights(Vec<f32>);

impl FeatureWeights {
    pub fn built_in() -> Self {
        let all = ASSUMED_TEXTS * COUNT_SCALE;
        let mut counts = vec![0_u32; 2 * CELLS];
        let mut terms = HashTerms::default();
        for (rank, word) in (0_u32..).zip(FREQUENT_WORDS.split_whitespace()) {
            let part = u64::from(all) * 20 / (21 + 2 * u64::from(rank));
            terms.analyze(word, EmbedPurpose::Passage);
            // As if words stood in texts independently of each other.
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

/// The usual logarithm of how rare something is.
fn idf(count: f64, all: f64) -> f32 {
    logarithm(1.0 + (all - count).max(0.0) / (count + 0.5)) as f32
}

/// The natural logarithm of a number from 1 on, made of operations that every machine does alike: vectors are
/// stored and carried about, and the machines' own logarithms differ in the last digit.
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
    fn the_logarithm_is_one() {
        for number in [1.0, 1.2, 1.5, 2.0, 10.0, 12_345.6, 1e9] {
            assert!(
                (logarithm(number) - f64::ln(number)).abs() < 1e-9,
                "{number}"
            );
        }
    }
}
