//! Leaving a colleague alone for a while after it failed again and again.

use std::time::Duration;

use tokio::time::Instant;

const MAX_FAILURES: u32 = 3;
const OPEN_DURATION: Duration = Duration::from_secs(60);

/// Failures in a row, and since when nobody is let through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CircuitBreaker {
    failures: u32,
    opened_at: Option<Instant>,
    last_error: String,
}

impl CircuitBreaker {
    /// Why nobody is let through now. When the time is over one is, and decides for the others.
    pub fn open_reason(&mut self, now: Instant) -> Option<String> {
        let opened = self.opened_at?;
        let left = (opened + OPEN_DURATION).saturating_duration_since(now);
        if left.is_zero() {
            self.opened_at = Some(now);
            return None;
        }
        let (failures, seconds) = (self.failures, left.as_secs().max(1));
        Some(format!(
            "it failed {failures} times in a row and is left alone for another {seconds} s (the last time: {})",
            self.last_error
        ))
    }

    pub fn record_success(&mut self) {
        *self = Self::default();
    }

    pub fn record_failure(&mut self, why: &str, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        why.clone_into(&mut self.last_error);
        if self.failures >= MAX_FAILURES {
            self.opened_at = Some(now);
        }
    }

    /// What went wrong lately, for people.
    pub fn last_error(&self) -> Option<&str> {
        self.opened_at.map(|_| self.last_error.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_failures_in_a_row_open_it_for_a_while() {
        let start = Instant::now();
        let mut circuit = CircuitBreaker::default();
        circuit.record_failure("a", start);
        circuit.record_failure("a", start);
        circuit.record_success();
        circuit.record_failure("a", start);
        circuit.record_failure("a", start);
        assert_eq!(circuit.open_reason(start), None);
        circuit.record_failure("no connection", start);
        let why = circuit
            .open_reason(start + Duration::from_secs(18))
            .unwrap();
        assert!(
            why.contains("3 times") && why.contains("42 s") && why.contains("no connection"),
            "{why}"
        );
        // One is let through; while it tries, the others are not.
        let later = start + OPEN_DURATION;
        assert_eq!(circuit.open_reason(later), None);
        assert!(circuit.open_reason(later).is_some());
        circuit.record_success();
        assert_eq!(circuit.open_reason(later), None);
    }
}
