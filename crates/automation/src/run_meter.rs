//! Counts what a run spends, in all of its turns and attempts.

use std::num::NonZeroU64;
use std::sync::{Mutex, PoisonError};

use lango_domain::automation::RunBudget;
use lango_domain::event::{Event, EventBody};

/// The spending of a run. `None` until the turns of earlier attempts are counted.
#[derive(Default)]
pub(crate) struct RunMeter(Mutex<Option<RunSpend>>);

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RunSpend {
    pub tokens: u64,
    pub usd: f64,
}

/// The rest of a budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BudgetRest {
    pub tokens: Option<NonZeroU64>,
    pub usd: Option<f64>,
}

impl RunSpend {
    /// Adds an event, if it says what a model call has cost.
    pub fn add(&mut self, event: &Event) {
        if let EventBody::Usage(usage) = &event.body {
            self.tokens = self
                .tokens
                .saturating_add(usage.input)
                .saturating_add(usage.output);
            self.usd += usage.cost_usd.unwrap_or(0.0);
        }
    }

    /// Returns what is left of a budget; `None` if it is spent.
    fn rest(self, budget: &RunBudget) -> Option<BudgetRest> {
        let tokens = match budget.tokens {
            None => None,
            Some(limit) => Some(NonZeroU64::new(limit.saturating_sub(self.tokens))?),
        };
        let usd = match budget.usd {
            None => None,
            Some(limit) => Some(limit - self.usd)
                .filter(|rest| *rest > 0.0)
                .map(Some)?,
        };
        Some(BudgetRest { tokens, usd })
    }
}

impl RunMeter {
    /// Returns true if earlier attempts are counted.
    pub fn is_started(&self) -> bool {
        self.spend().is_some()
    }

    /// Starts with what earlier attempts have spent. Another turn of the run may have started it already.
    pub fn start(&self, spent: RunSpend) {
        self.spend().get_or_insert(spent);
    }

    pub fn add(&self, event: &Event) {
        self.spend().get_or_insert_default().add(event);
    }

    pub fn rest(&self, budget: &RunBudget) -> Option<BudgetRest> {
        self.spend().unwrap_or_default().rest(budget)
    }

    fn spend(&self) -> std::sync::MutexGuard<'_, Option<RunSpend>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B121: a budget is for the whole run.
    #[test]
    fn the_rest_of_a_budget_is_what_the_run_has_not_spent() {
        let budget = RunBudget {
            tokens: Some(100),
            usd: Some(1.0),
        };
        let rest = |tokens, usd| RunSpend { tokens, usd }.rest(&budget);
        let left = rest(40, 0.25).unwrap();
        assert_eq!(
            (left.tokens.map(NonZeroU64::get), left.usd),
            (Some(60), Some(0.75))
        );
        assert_eq!(rest(100, 0.0), None);
        assert_eq!(rest(101, 0.0), None);
        assert_eq!(rest(0, 1.0), None);
        let free = RunSpend {
            tokens: 9,
            usd: 9.0,
        }
        .rest(&RunBudget::default());
        assert_eq!(
            free,
            Some(BudgetRest {
                tokens: None,
                usd: None
            })
        );
    }
}
