//! One attempt of a step, with its timeout.

use std::time::Duration;

use lango_domain::Label;

use super::duration::format_duration;
use super::step_executor::{StepExecutor, StepFailure, StepOutcome, StepRequest};

/// Runs one attempt with its timeout.
pub(super) struct StepAttempt<'a> {
    pub executor: &'a dyn StepExecutor,
    pub timeout: Option<Duration>,
    /// The time that a stopped step has to end.
    pub grace: Duration,
}

impl StepAttempt<'_> {
    pub async fn run(&self, request: StepRequest<'_>) -> StepOutcome {
        let cancel = request.cancel.clone();
        let mut work = self.executor.execute(request);
        let Some(timeout) = self.timeout else {
            return work.await;
        };
        if let Ok(outcome) = tokio::time::timeout(timeout, &mut work).await {
            return outcome;
        }
        cancel.cancel();
        let message = format!("it did not end within {}", format_duration(timeout));
        let late = tokio::time::timeout(self.grace, work).await;
        let label = match late {
            // It ended just then: the result counts.
            Ok(outcome @ StepOutcome::Done(_)) => return outcome,
            Ok(StepOutcome::Failed(failure)) => failure.label,
            _ => Label::default(),
        };
        StepOutcome::Failed(StepFailure {
            label,
            ..StepFailure::new(message)
        })
    }
}
