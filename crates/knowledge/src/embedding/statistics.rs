//! How many texts have a feature: what is everywhere tells little.

use super::Purpose;
use super::frequent::FREQUENT;
use super::terms::Terms;

/// Cells in each of the two rows of a sketch.
const CELLS: usize = 1 << 16;
const FORMAT: u32 = 0x4c53_0001;

/// Two counters for each feature, shared with different others: the smaller one is never too small, and rarely much
/// too large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sketch(Vec<u32>);

impl Sketch {
    fn new() -> Self {
        Self(vec![0; 2 * CELLS])
    }

    pub fn get(&self, hash: u64) -> u32 {
        let [one, other] = cells(hash);
        self.0[one].min(self.0[other])
    }

    fn change(&mut self, hash: u64, change: impl Fn(u32) -> u32) {
        for cell in cells(hash) {
            self.0[cell] = change(self.0[cell]);
        }
    }
}

fn cells(hash: u64) -> [usize; 2] {
    let low = (CELLS - 1) as u64;
    [(hash & low) as usize, ((hash >> 16) & low) as usize + CELLS]
}

/// How many texts there are, and how many of them have each feature. 512 KiB.
///
/// They weigh queries only, so they may grow with the index without making any stored vector wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    texts: u32,
    pub(super) sketch: Sketch,
}

impl Default for Statistics {
    fn default() -> Self {
        Self { texts: 0, sketch: Sketch::new() }
    }
}

impl Statistics {
    /// How many texts are counted.
    pub fn texts(&self) -> u32 {
        self.texts
    }

    /// Counts a text that is now searched.
    pub fn observe(&mut self, text: &str) {
        self.texts = self.texts.saturating_add(1);
        self.change(text, |count| count.saturating_add(1));
    }

    /// Takes back a text that was counted.
    pub fn forget(&mut self, text: &str) {
        self.texts = self.texts.saturating_sub(1);
        self.change(text, |count| count.saturating_sub(1));
    }

    fn change(&mut self, text: &str, change: impl Fn(u32) -> u32) {
        let mut terms = Terms::default();
        terms.read(text, Purpose::Passage);
        let mut hashes = Vec::new();
        terms.features(|_| false, |hash, _| hashes.push(hash));
        hashes.sort_unstable();
        hashes.dedup();
        hashes.into_iter().for_each(|hash| self.sketch.change(hash, &change));
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let numbers = [FORMAT, self.texts].into_iter().chain(self.sketch.0.iter().copied());
        numbers.flat_map(u32::to_le_bytes).collect()
    }

    /// Nothing where the bytes are not statistics of this form; they can be counted anew.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.as_chunks::<4>();
        let mut numbers = numbers.iter().map(|&bytes| u32::from_le_bytes(bytes));
        if !rest.is_empty() || numbers.next() != Some(FORMAT) {
            return None;
        }
        let texts = numbers.next()?;
        let cells: Vec<u32> = numbers.collect();
        (cells.len() == 2 * CELLS).then_some(Self { texts, sketch: Sketch(cells) })
    }
}

/// As many texts the built-in frequencies stand for.
const IMAGINED_TEXTS: u32 = 1_000;
/// Frequencies of imagined texts are counted in such parts of one, because most are small.
const PARTS: u32 = 100;
/// How many observed texts outweigh the imagined ones.
const BELIEF: f64 = 200.0;
/// What a feature of a query counts for when no text has it: it finds nothing, but it could have come since.
const ABSENT: f32 = 0.25;

/// What features weigh before any text is known.
pub(super) struct Weights {
    sketch: Sketch,
    /// The weight for each cell of the sketch, because passages need it for every feature.
    table: Vec<f32>,
}

impl Weights {
    pub fn built_in() -> Self {
        let all = IMAGINED_TEXTS * PARTS;
        let mut sketch = Sketch::new();
        let mut terms = Terms::default();
        for (rank, word) in (0_u32..).zip(FREQUENT.split_whitespace()) {
            let part = u64::from(all) * 20 / (21 + 2 * u64::from(rank));
            terms.read(word, Purpose::Passage);
            // As if words stood in texts independently of each other.
            let either = |count: u32| {
                let both = u64::from(count) * part / u64::from(all);
                (u64::from(count) + part - both) as u32
            };
            terms.features(|_| false, |hash, _| sketch.change(hash, either));
        }
        let weight = |&count: &u32| rarity(f64::from(count) / f64::from(PARTS), f64::from(IMAGINED_TEXTS));
        let table = sketch.0.iter().map(weight).collect();
        Self { sketch, table }
    }

    /// The weight of a feature in a passage. Never changes, so that stored vectors stay right.
    pub fn passage(&self, hash: u64) -> f32 {
        let [one, other] = cells(hash);
        self.table[one].max(self.table[other])
    }

    /// The weight of a feature in a query, as the texts and the imagined ones together have it.
    pub fn query(&self, hash: u64, statistics: &Statistics) -> f32 {
        if statistics.texts == 0 {
            return self.passage(hash);
        }
        let count = statistics.sketch.get(hash);
        let imagined = f64::from(self.sketch.get(hash)) / f64::from(IMAGINED_TEXTS * PARTS);
        let weight =
            rarity(f64::from(count) + imagined * BELIEF, f64::from(statistics.texts.max(count)) + BELIEF);
        if count == 0 { weight * ABSENT } else { weight }
    }
}

/// The usual logarithm of how rare something is.
fn rarity(count: f64, all: f64) -> f32 {
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
    let series = (0..12).rev().fold(0.0, |sum, term| sum * square + 1.0 / f64::from(2 * term + 1));
    halvings * std::f64::consts::LN_2 + 2.0 * z * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_one() {
        for number in [1.0, 1.2, 1.5, 2.0, 10.0, 12_345.6, 1e9] {
            assert!((logarithm(number) - f64::ln(number)).abs() < 1e-9, "{number}");
        }
    }
}
