//! Token estimates, corrected by what providers say afterwards.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use lango_domain::AgentName;

/// Small requests say little, and never come near a window.
const MIN_SAMPLE_TOKENS: usize = 2_000;

/// How many real tokens an estimated one was, by agent: each may ask another model.
#[derive(Debug, Default)]
pub(crate) struct Calibration(Mutex<BTreeMap<AgentName, f64>>);

impl Calibration {
    pub fn learn(&self, agent: &AgentName, estimated: usize, real: u64) {
        if estimated < MIN_SAMPLE_TOKENS || real == 0 {
            return;
        }
        let seen = (real as f64 / estimated as f64).clamp(0.5, 4.0);
        let mut factors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let factor = factors.entry(agent.clone()).or_insert(seen);
        *factor = *factor * 0.5 + seen * 0.5;
    }

    /// A budget of real tokens in estimated ones. The factor moves in tenths, so that the cut of a history, and with it
    /// the beginning of requests, does not move with every reply; what was estimated too high is left as it is.
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
    fn estimates_that_were_too_low_shrink_the_budget() {
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
