//! Fuses lexical and vector hits into one list. Pure functions: the result does not depend on the
//! order of the hits, and equal scores are ordered by id.

mod dedupe;
mod neighbors;

use std::collections::BTreeMap;

pub use self::dedupe::{DedupedHit, dedupe};
pub use self::neighbors::{ChunkPosition, MergedPassage, boost_neighbors, merge_adjacent};

/// Weights of lexical and vector scores; only their ratio matters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FusionWeights {
    pub lexical: f32,
    pub vector: f32,
}

impl Default for FusionWeights {
    fn default() -> Self {
        Self {
            lexical: 0.45,
            vector: 0.55,
        }
    }
}

impl FusionWeights {
    /// Returns the weights scaled to a sum of 1. Invalid weights become equal ones.
    fn normalized(self) -> (f32, f32) {
        let usable = |weight: f32| {
            if weight.is_finite() {
                weight.max(0.0)
            } else {
                0.0
            }
        };
        let (lexical, vector) = (usable(self.lexical), usable(self.vector));
        let sum = lexical + vector;
        if sum > 0.0 && sum.is_finite() {
            (lexical / sum, vector / sum)
        } else {
            (0.5, 0.5)
        }
    }
}

/// A hit from one list or both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FusedHit {
    pub id: u64,
    /// From 0 to 1 in the result of `fuse`.
    pub score: f32,
    /// The scores before fusion.
    pub lexical: Option<f32>,
    pub vector: Option<f32>,
}

/// Fuses two lists into one, best first. Combines scores, not ranks, so that a hit that is far
/// better than the next one stays far better.
pub fn fuse(
    lexical: &[(u64, f32)],
    vector: &[(u64, f32)],
    weights: FusionWeights,
) -> Vec<FusedHit> {
    let (lexical, vector) = (best_score_by_id(lexical), best_score_by_id(vector));
    let (lexical_scale, vector_scale) = (Scale::from_zero(&lexical), Scale::from_least(&vector));
    let (lexical_share, vector_share) = weights.normalized();
    let mut ids: Vec<u64> = lexical.keys().chain(vector.keys()).copied().collect();
    ids.sort_unstable();
    ids.dedup();
    let mut fused: Vec<FusedHit> = ids
        .into_iter()
        .map(|id| {
            let (lexical, vector) = (lexical.get(&id).copied(), vector.get(&id).copied());
            let part = |score: Option<f32>, scale: &Scale| {
                score.map_or(0.0, |score| scale.normalize(score))
            };
            let score = lexical_share * part(lexical, &lexical_scale)
                + vector_share * part(vector, &vector_scale);
            FusedHit {
                id,
                score,
                lexical,
                vector,
            }
        })
        .collect();
    sort_by_score(&mut fused);
    fused
}

fn sort_by_score(hits: &mut [FusedHit]) {
    hits.sort_by(|one, other| {
        other
            .score
            .total_cmp(&one.score)
            .then(one.id.cmp(&other.id))
    });
}

/// Returns the best score of each id, without scores that are not finite.
fn best_score_by_id(hits: &[(u64, f32)]) -> BTreeMap<u64, f32> {
    let mut best = BTreeMap::new();
    for (id, score) in hits.iter().filter(|(_, score)| score.is_finite()) {
        let highest = best.entry(*id).or_insert(*score);
        *highest = highest.max(*score);
    }
    best
}

/// Scales the scores of a list to 0 to 1. Uses `f64`, in which the difference of two scores
/// cannot overflow.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    /// For BM25, where 0 means that no term matched.
    fn from_zero(hits: &BTreeMap<u64, f32>) -> Self {
        let high = hits.values().copied().fold(0.0, f32::max);
        Self {
            low: 0.0,
            high: f64::from(high),
        }
    }

    /// For similarities, where the value of unrelated texts differs between models: the end of the
    /// list is used for it, one step below the last hit, which is still better than no hit.
    fn from_least(hits: &BTreeMap<u64, f32>) -> Self {
        let low = f64::from(hits.values().copied().fold(f32::INFINITY, f32::min));
        let high = f64::from(hits.values().copied().fold(f32::NEG_INFINITY, f32::max));
        let step = (high - low) / hits.len().max(1) as f64;
        Self {
            low: low - step,
            high,
        }
    }

    fn normalize(&self, score: f32) -> f32 {
        let span = self.high - self.low;
        if span > 0.0 {
            ((f64::from(score) - self.low) / span).clamp(0.0, 1.0) as f32
        } else {
            1.0
        }
    }
}
