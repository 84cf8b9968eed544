//! Numbers that look random and are the same in every run.

pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// One of so many; the n-th is n times as rare as the first.
    pub fn skewed(&mut self, all: u64) -> u64 {
        let share = (self.next() % 1_000_000) as f64 / 1_000_000.0;
        (all as f64).powf(share) as u64
    }
}
