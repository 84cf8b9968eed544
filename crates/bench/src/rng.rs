//! A deterministic random number generator, so that every run uses the same data.

pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// Returns a number up to `max` with a skewed distribution: n is n times as rare as 1.
    pub fn skewed(&mut self, max: u64) -> u64 {
        let share = (self.next() % 1_000_000) as f64 / 1_000_000.0;
        (max as f64).powf(share) as u64
    }
}
