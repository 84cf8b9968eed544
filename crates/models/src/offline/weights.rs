//! The trained routing weights: a weight for each feature and label. Written by
//! `cargo xtask train routing`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::features::Feature;

/// The label of requests that need no agent.
pub const DIRECT: &str = "direct";

/// The built-in agents and [`DIRECT`].
pub const LABELS: [&str; 8] = [
    "operator",
    "navigator",
    "vault",
    "librarian",
    "automator",
    "planner",
    "chronicler",
    DIRECT,
];

/// One score for each label.
pub type Scores = [f32; LABELS.len()];

/// Sorted feature keys with one row of quantized weights each, and the scale of the weights.
pub struct RoutingWeights {
    bias: Scores,
    scale: f32,
    keys: &'static [[u8; NUMBER_BYTES]],
    rows: &'static [[u8; LABELS.len()]],
}

pub static ROUTING_WEIGHTS: LazyLock<RoutingWeights> =
    LazyLock::new(|| RoutingWeights::from_bytes(include_bytes!("routing.bin")));

const NUMBER_BYTES: usize = 4;
const HEADER_BYTES: usize = (LABELS.len() + 1) * NUMBER_BYTES;

impl RoutingWeights {
    /// Parses the file: bias and scale as little-endian floats, the sorted keys, then one row of
    /// signed bytes for each key.
    pub fn from_bytes(bytes: &'static [u8]) -> Self {
        let (head, rest) = bytes.split_at_checked(HEADER_BYTES).unwrap_or_default();
        let number = |at: usize| {
            head.as_chunks()
                .0
                .get(at)
                .map_or(0.0, |bytes| f32::from_le_bytes(*bytes))
        };
        let (keys, rows) = rest.split_at(rest.len() / (NUMBER_BYTES + LABELS.len()) * NUMBER_BYTES);
        Self {
            bias: std::array::from_fn(number),
            scale: number(LABELS.len()),
            keys: keys.as_chunks().0,
            rows: rows.as_chunks().0,
        }
    }

    /// Encodes trained weights, by key, as a file.
    pub fn to_bytes(bias: &Scores, weights: &BTreeMap<u32, Scores>) -> Vec<u8> {
        let largest = weights
            .values()
            .flatten()
            .fold(1e-6_f32, |largest, weight| largest.max(weight.abs()));
        let scale = largest / 127.0;
        let head = bias
            .iter()
            .chain([&scale])
            .flat_map(|number| number.to_le_bytes());
        let keys = weights.keys().flat_map(|key| key.to_le_bytes());
        let rows = weights
            .values()
            .flatten()
            .map(|weight| ((weight / scale).round() as i8) as u8);
        head.chain(keys).chain(rows).collect()
    }

    pub fn scores(&self, features: &[Feature]) -> Scores {
        let mut scores = self.bias;
        for feature in features {
            for (score, weight) in scores.iter_mut().zip(self.feature_scores(feature)) {
                *score += weight;
            }
        }
        scores
    }

    /// Returns the score of one feature for each label.
    pub fn feature_scores(&self, feature: &Feature) -> Scores {
        let found = self
            .keys
            .binary_search_by_key(&feature.key, |key| u32::from_le_bytes(*key));
        let row = found.ok().and_then(|at| self.rows.get(at));
        row.map_or([0.0; LABELS.len()], |row| {
            row.map(|weight| f32::from(weight as i8) * self.scale * feature.value)
        })
    }
}
