//! Stops calling a remote agent or a tool server for a while after repeated failures.

use std::time::Duration;

use tokio::time::Instant;

const MAX_FAILURES: u32 = 3;
const OPEN_DURATION: Duration = Duration::from_secs(60);

/// Consecutive failures, and the time since when calls are blocked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CircuitBreaker {
    failures: u32,
    opened_at: Option<Instant>,
    last_error: String,
}

impl CircuitBreaker {
    /// Returns the reason why calls are blocked now. After the pause one call is let through, and
    /// its result decides about the next ones.
    pub fn open_reason(&mut self, now: Instant) -> Option<String> {
        let opened_at = self.opened_at?;
        let remaining = (opened_at + OPEN_DURATION).saturating_duration_since(now);
        if remaining.is_zero() {
            self.opened_at = Some(now);
            return None;
        }
        let (failures, seconds) = (self.failures, remaining.as_secs().max(1));
        Some(format!(
            "it failed {failures} times in a row and is paused for another {seconds} s (last error: {})",
            self.last_error
        ))
    }

    pub fn record_success(&mut self) {
        *self = Self::default();
    }

    pub fn record_failure(&mut self, error: &str, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        error.clone_into(&mut self.last_error);
        if self.failures >= MAX_FAILURES {
            self.opened_at = Some(now);
        }
    }

    /// Returns the last error while calls are blocked.
    pub fn last_error(&self) -> Option<&str> {
        self.opened_at.map(|_| self.last_error.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_consecutive_failures_open_the_circuit() {
        let start = Instant::now();
        let mut circuit = CircuitBreaker::default();
        circuit.record_failure("a", start);
        circuit.record_failure("a", start);
        circuit.record_success();
        circuit.record_failure("a", start);
        circuit.record_failure("a", start);
        assert_eq!(circuit.open_reason(start), None);
        circuit.record_failure("no connection", start);
        let reason = circuit
            .open_reason(start + Duration::from_secs(18))
            .unwrap();
        assert!(
            reason.contains("3 times")
                && reason.contains("42 s")
                && reason.contains("no connection"),
            "{reason}"
        );
        // One call is let through; until it ends, the others are blocked.
        let later = start + OPEN_DURATION;
        assert_eq!(circuit.open_reason(later), None);
        assert!(circuit.open_reason(later).is_some());
        circuit.record_success();
        assert_eq!(circuit.open_reason(later), None);
    }
}
