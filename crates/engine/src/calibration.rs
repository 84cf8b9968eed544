//! Calibration of token estimates by the usage that providers report.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use lango_domain::AgentName;

/// Smaller requests are too inaccurate to learn from, and never come near a window.
const MIN_SAMPLE_TOKENS: usize = 2_000;

/// The number of real tokens per estimated token, by agent, because agents may use different models.
#[derive(Debug, Default)]
pub(crate) struct Calibration(Mutex<BTreeMap<AgentName, f64>>);

impl Calibration {
    pub fn learn(&self, agent: &AgentName, estimated: usize, real: u64) {
        if estimated < MIN_SAMPLE_TOKENS || real == 0 {
            return;
        }
        let observed = (real as f64 / estimated as f64).clamp(0.5, 4.0);
        let mut factors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let factor = factors.entry(agent.clone()).or_insert(observed);
        *factor = *factor * 0.5 + observed * 0.5;
    }

    /// Converts a budget of real tokens to estimated tokens. The factor moves in tenths, so that the
    /// truncation of a history, and with it the prefix of requests, does not change with every reply. A
    /// budget is never enlarged.
    pub fn to_estimated_tokens(&self, agent: &AgentName, budget: usize) -> usize {
        let factors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let factor = factors
            .get(agent)
            .map_or(1.0, |factor| (factor * 10.0).ceil() / 10.0)
            .max(1.0);
        (budget as f64 / factor) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_estimates_shrink_the_budget() {
        let (calibration, agent) = (Calibration::default(), AgentName::new("operator").unwrap());
        assert_eq!(calibration.to_estimated_tokens(&agent, 1_000), 1_000);
        calibration.learn(&agent, 10, 1_000);
        assert_eq!(
            calibration.to_estimated_tokens(&agent, 1_000),
            1_000,
            "too small to learn from"
        );
        calibration.learn(&agent, 10_000, 19_700);
        assert_eq!(calibration.to_estimated_tokens(&agent, 1_000), 500);
        for _ in 0..20 {
            calibration.learn(&agent, 10_000, 5_000);
        }
        assert_eq!(
            calibration.to_estimated_tokens(&agent, 1_000),
            1_000,
            "never more than the window"
        );
    }
}
