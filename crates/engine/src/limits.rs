//! The limits of a turn. The engine enforces them, not a prompt (B56).

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::time::Duration;

use lango_domain::event::Usage;
use lango_domain::failure::FailureCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The engine's settings in `agent`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EngineSettings {
    /// The limits of one turn. A turn that reaches one ends with a summary of its steps.
    pub limits: TurnLimits,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TurnLimits {
    /// Replies of the orchestrator that delegate. Set by `agent.maxDelegationRounds`, which the prompt
    /// also uses.
    #[serde(skip)]
    pub rounds: NonZeroU32,
    /// Model calls per turn, of all agents together.
    pub model_calls: NonZeroU32,
    /// Identical calls in a row by one agent that end the turn.
    pub repeats: NonZeroU32,
    /// Seconds a turn may take.
    pub seconds: NonZeroU64,
    /// Seconds one tool call may take.
    pub tool_seconds: NonZeroU64,
    /// Bytes of a tool's result that a model reads; the middle of a longer result is omitted.
    pub tool_output_bytes: NonZeroUsize,
    /// Input and output tokens per turn; unlimited if not set.
    pub tokens: Option<NonZeroU64>,
    /// Cost of a turn in US dollars, as far as prices are known; unlimited if not set.
    #[serde(deserialize_with = "deserialize_positive")]
    pub usd: Option<f64>,
}

fn deserialize_positive<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    match Option::<f64>::deserialize(deserializer)? {
        Some(usd) if usd.is_nan() || usd <= 0.0 => {
            Err(serde::de::Error::custom("the limit must be greater than 0"))
        }
        usd => Ok(usd),
    }
}

impl Default for TurnLimits {
    fn default() -> Self {
        const fn n32(n: u32) -> NonZeroU32 {
            NonZeroU32::MIN.saturating_add(n - 1)
        }
        const fn n64(n: u64) -> NonZeroU64 {
            NonZeroU64::MIN.saturating_add(n - 1)
        }
        Self {
            rounds: n32(5),
            model_calls: n32(40),
            repeats: n32(5),
            seconds: n64(600),
            tool_seconds: n64(120),
            tool_output_bytes: NonZeroUsize::MIN.saturating_add(40_000 - 1),
            tokens: None,
            usd: None,
        }
    }
}

/// The usage of a turn so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TurnSpend {
    rounds: u32,
    model_calls: u32,
    tokens: u64,
    usd: f64,
}

impl TurnSpend {
    pub fn count_round(&mut self) {
        self.rounds += 1;
    }

    pub fn count_model_call(&mut self) {
        self.model_calls += 1;
    }

    /// Counts the tokens of a reply that came without usage.
    pub fn count_tokens(&mut self, tokens: u64) {
        self.tokens = self.tokens.saturating_add(tokens);
    }

    pub fn count_usage(&mut self, usage: &Usage) {
        self.tokens = self
            .tokens
            .saturating_add(usage.input)
            .saturating_add(usage.output);
        self.usd += usage.cost_usd.unwrap_or(0.0);
    }
}

impl TurnLimits {
    pub(crate) fn check_model_call(&self, spend: &TurnSpend) -> Result<(), FailureCode> {
        match spend {
            _ if spend.model_calls >= self.model_calls.get() => Err(FailureCode::LimitCalls),
            _ if self.tokens.is_some_and(|limit| spend.tokens >= limit.get()) => {
                Err(FailureCode::LimitTokens)
            }
            _ if self.usd.is_some_and(|limit| spend.usd >= limit) => Err(FailureCode::LimitMoney),
            _ => Ok(()),
        }
    }

    pub(crate) fn check_round(&self, spend: &TurnSpend) -> Result<(), FailureCode> {
        if spend.rounds >= self.rounds.get() {
            Err(FailureCode::LimitRounds)
        } else {
            Ok(())
        }
    }

    pub(crate) fn turn_timeout(&self) -> Duration {
        Duration::from_secs(self.seconds.get())
    }

    pub fn tool_timeout(&self) -> Duration {
        Duration::from_secs(self.tool_seconds.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B56
    #[test]
    fn each_limit_has_its_code() {
        let limits = TurnLimits {
            tokens: NonZeroU64::new(100),
            usd: Some(0.5),
            ..TurnLimits::default()
        };
        let check = |spend: TurnSpend| limits.check_model_call(&spend);
        assert_eq!(check(TurnSpend::default()), Ok(()));
        assert_eq!(
            check(TurnSpend {
                model_calls: 40,
                ..TurnSpend::default()
            }),
            Err(FailureCode::LimitCalls)
        );
        assert_eq!(
            check(TurnSpend {
                tokens: 100,
                ..TurnSpend::default()
            }),
            Err(FailureCode::LimitTokens)
        );
        assert_eq!(
            check(TurnSpend {
                usd: 0.5,
                ..TurnSpend::default()
            }),
            Err(FailureCode::LimitMoney)
        );
        assert_eq!(
            limits.check_round(&TurnSpend {
                rounds: 4,
                ..TurnSpend::default()
            }),
            Ok(())
        );
        assert_eq!(
            limits.check_round(&TurnSpend {
                rounds: 5,
                ..TurnSpend::default()
            }),
            Err(FailureCode::LimitRounds)
        );
    }

    /// B56: an unknown price is not a price of zero, and never counts as spent.
    #[test]
    fn usage_adds_up() {
        let mut spend = TurnSpend::default();
        spend.count_usage(&Usage {
            input: 7,
            output: 3,
            cost_usd: Some(0.25),
            ..Usage::default()
        });
        spend.count_usage(&Usage {
            input: u64::MAX,
            output: 1,
            cost_usd: None,
            ..Usage::default()
        });
        assert_eq!((spend.tokens, spend.usd), (u64::MAX, 0.25));
    }
}
