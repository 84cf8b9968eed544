//! What one turn may take. Enforced here, not asked for in a prompt (B56).

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::time::Duration;

use lango_domain::event::Usage;
use lango_domain::failure::FailureCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The engine's part of `agent.*`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EngineSettings {
    /// What one turn may take; at a limit it ends and says what was done.
    pub limits: TurnLimits,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TurnLimits {
    /// Replies of the orchestrator that delegate; stands in `agent.maxDelegationRounds`, where the prompt has it from.
    #[serde(skip)]
    pub rounds: NonZeroU32,
    /// Calls of a model in one turn, all agents together.
    pub model_calls: NonZeroU32,
    /// So many identical calls in a row by one agent end the turn.
    pub repeats: NonZeroU32,
    /// Seconds that a turn may last.
    pub seconds: NonZeroU64,
    /// Seconds that one call of a tool may last.
    pub tool_seconds: NonZeroU64,
    /// Bytes of one tool's result that a model reads; longer ones lose their middle.
    pub tool_output_bytes: NonZeroUsize,
    /// Tokens of one turn, in and out; unlimited when not set.
    pub tokens: Option<NonZeroU64>,
    /// US dollars of one turn, as far as prices are known; unlimited when not set.
    #[serde(deserialize_with = "deserialize_positive")]
    pub usd: Option<f64>,
}

fn deserialize_positive<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    match Option::<f64>::deserialize(deserializer)? {
        Some(usd) if usd.is_nan() || usd <= 0.0 => {
            Err(serde::de::Error::custom("a limit is more than nothing"))
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

/// What a turn has taken so far.
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

    /// For a reply that came without its usage.
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
    pub(crate) fn check_model_call(&self, spent: &TurnSpend) -> Result<(), FailureCode> {
        match spent {
            _ if spent.model_calls >= self.model_calls.get() => Err(FailureCode::LimitCalls),
            _ if self.tokens.is_some_and(|limit| spent.tokens >= limit.get()) => {
                Err(FailureCode::LimitTokens)
            }
            _ if self.usd.is_some_and(|limit| spent.usd >= limit) => Err(FailureCode::LimitMoney),
            _ => Ok(()),
        }
    }

    pub(crate) fn check_round(&self, spent: &TurnSpend) -> Result<(), FailureCode> {
        if spent.rounds >= self.rounds.get() {
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
        let check = |spent: TurnSpend| limits.check_model_call(&spent);
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
        let mut spent = TurnSpend::default();
        spent.count_usage(&Usage {
            input: 7,
            output: 3,
            cost_usd: Some(0.25),
            ..Usage::default()
        });
        spent.count_usage(&Usage {
            input: u64::MAX,
            output: 1,
            cost_usd: None,
            ..Usage::default()
        });
        assert_eq!((spent.tokens, spent.usd), (u64::MAX, 0.25));
    }
}
