//! A linear model over the offline model's own features: softmax, AdaGrad, a little decay; the same data gives the
//! same bytes.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};
use lango_models::offline::features::{Feature, RequestFeatures};
use lango_models::offline::weights::{LABELS, RoutingWeights, Scores};
use lango_team::AgentRegistry;

use super::data::{self, Sample};

const EPOCHS: usize = 20;
const LEARNING_RATE: f32 = 0.35;
const WEIGHT_DECAY: f32 = 6e-3;
/// Features that occur less often are dropped.
const MIN_FEATURE_COUNT: u32 = 2;
/// Number of features to commit; those with the largest weights are kept.
const MAX_FEATURES: usize = 60_000;

pub fn run() -> Result<()> {
    let mut samples = data::read("train")?;
    samples.extend(built_in_samples());
    eprintln!("{} requests", samples.len());
    let bytes = train_model(&samples);
    let file = crate::root().join(super::WEIGHTS_FILE);
    fs::write(&file, &bytes).with_context(|| format!("cannot write {}", file.display()))?;
    println!("{}: {} bytes", super::WEIGHTS_FILE, bytes.len());
    Ok(())
}

/// Trains the weights and returns their committed form.
pub fn train_model(samples: &[Sample]) -> Vec<u8> {
    let read: Vec<(usize, Vec<Feature>)> = samples
        .iter()
        .map(|sample| {
            (
                sample.label,
                RequestFeatures::from_text(&sample.text).features,
            )
        })
        .collect();
    let mut model = LinearModel::new(&read);
    let read: Vec<(usize, Vec<(usize, f32)>)> = read
        .iter()
        .map(|(label, features)| (*label, model.known_features(features)))
        .collect();
    let mut order: Vec<usize> = (0..read.len()).collect();
    let mut chance = TrainingRng(0x5eed);
    for _ in 0..EPOCHS {
        chance.shuffle(&mut order);
        for &at in &order {
            let (label, features) = &read[at];
            model.update(*label, features);
        }
    }
    model.to_bytes()
}

/// Adds the definitions of the built-in agents as samples.
pub fn built_in_samples() -> Vec<Sample> {
    let mut samples = Vec::new();
    for spec in AgentRegistry::built_in().specs {
        let Some(label) = LABELS.iter().position(|label| spec.name == **label) else {
            continue;
        };
        for text in spec
            .examples
            .iter()
            .chain(&spec.keywords)
            .filter(|text| text.as_str() != "question")
        {
            let (language, source) = ("en".to_owned(), "table".to_owned());
            samples.push(Sample {
                label,
                language,
                text: text.clone(),
                source,
            });
        }
    }
    samples
}

struct LinearModel {
    /// Maps a key to the index of its weights.
    rows: BTreeMap<u32, usize>,
    bias: Scores,
    weights: Vec<Scores>,
    /// AdaGrad: the sum of squared gradients of each weight.
    squared_gradients: Vec<Scores>,
    squared_bias_gradients: Scores,
    /// Number of occurrences of each feature.
    feature_counts: Vec<u32>,
}

impl LinearModel {
    /// Creates weights for features that occur more than once; rarer ones do not generalize.
    fn new(samples: &[(usize, Vec<Feature>)]) -> Self {
        let mut met: BTreeMap<u32, u32> = BTreeMap::new();
        for feature in samples.iter().flat_map(|(_, features)| features) {
            *met.entry(feature.key).or_default() += 1;
        }
        met.retain(|_, times| *times >= MIN_FEATURE_COUNT);
        let none = [0.0; LABELS.len()];
        Self {
            rows: met
                .keys()
                .enumerate()
                .map(|(place, key)| (*key, place))
                .collect(),
            bias: none,
            weights: vec![none; met.len()],
            squared_gradients: vec![none; met.len()],
            squared_bias_gradients: none,
            feature_counts: met.into_values().collect(),
        }
    }

    fn known_features(&self, features: &[Feature]) -> Vec<(usize, f32)> {
        features
            .iter()
            .filter_map(|feature| Some((*self.rows.get(&feature.key)?, feature.value)))
            .collect()
    }

    /// Selects the features with the largest weights.
    fn to_bytes(&self) -> Vec<u8> {
        let tells = |place: usize| {
            let weights = self.weights[place];
            let average = weights.iter().sum::<f32>() / weights.len() as f32;
            let largest = weights.iter().fold(0.0_f32, |largest, weight| {
                largest.max((weight - average).abs())
            });
            largest * (self.feature_counts[place] as f32).sqrt()
        };
        let mut telling: Vec<(u32, usize)> = self
            .rows
            .iter()
            .map(|(key, place)| (*key, *place))
            .collect();
        telling.sort_by(|a, b| tells(b.1).total_cmp(&tells(a.1)));
        telling.truncate(MAX_FEATURES);
        let weights = telling
            .into_iter()
            .map(|(key, place)| (key, self.weights[place]))
            .collect();
        RoutingWeights::to_bytes(&self.bias, &weights)
    }

    fn update(&mut self, label: usize, features: &[(usize, f32)]) {
        let errors = self.label_errors(label, features);
        for (at, error) in errors.iter().enumerate() {
            self.squared_bias_gradients[at] += error * error;
            self.bias[at] -=
                LEARNING_RATE * 0.2 * error / (self.squared_bias_gradients[at].sqrt() + 1e-6);
        }
        for &(place, value) in features {
            let (weights, seen) = (&mut self.weights[place], &mut self.squared_gradients[place]);
            for (at, error) in errors.iter().enumerate() {
                let slope = error * value + WEIGHT_DECAY * weights[at];
                seen[at] += slope * slope;
                weights[at] -= LEARNING_RATE * slope / (seen[at].sqrt() + 1e-3);
            }
        }
    }

    /// Returns the error of each label's probability.
    fn label_errors(&self, label: usize, features: &[(usize, f32)]) -> Scores {
        let mut scores = self.bias;
        for &(place, value) in features {
            let weights = &self.weights[place];
            scores
                .iter_mut()
                .zip(weights)
                .for_each(|(score, weight)| *score += weight * value);
        }
        let largest = scores.iter().copied().fold(f32::MIN, f32::max);
        let mut shares = scores.map(|score| (score - largest).exp());
        let total: f32 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= total);
        shares[label] -= 1.0;
        shares
    }
}

/// A small random number generator, so that the weights never depend on a library's version.
struct TrainingRng(u64);

impl TrainingRng {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn shuffle(&mut self, order: &mut [usize]) {
        for at in (1..order.len()).rev() {
            order.swap(at, (self.next() % (at as u64 + 1)) as usize);
        }
    }
}
