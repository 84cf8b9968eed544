//! `observationalMemory.*`.

use std::num::NonZeroUsize;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MemorySettings {
    /// Whether conversations are observed and remembered. Without it there is no chronicler.
    pub enabled: bool,
    /// When so many tokens of a session stand in requests as they were said, observations take the place of the older ones.
    pub message_token_threshold: NonZeroUsize,
    /// When the observations of a session hold so many tokens, they are condensed to reflections; at most 44,000.
    pub observation_token_threshold: NonZeroUsize,
    /// Observations are made ahead, whenever so many tokens were said. Rules look at every turn.
    pub buffer_tokens: NonZeroUsize,
    /// So many of the newest tokens always stay as they were said.
    pub recent_tokens: usize,
    /// So many tokens are recalled for a request at most; 0 recalls nothing by itself.
    pub recall_tokens: usize,
    /// The provider of the model that observes; the one in force by default.
    pub provider: Option<String>,
    /// The model that observes; the one in force by default. Without a language model, rules do it.
    pub model: Option<String>,
}

impl Default for MemorySettings {
    fn default() -> Self {
        const fn number(n: usize) -> NonZeroUsize {
            NonZeroUsize::MIN.saturating_add(n - 1)
        }
        Self {
            enabled: true,
            message_token_threshold: number(30_000),
            observation_token_threshold: number(40_000),
            buffer_tokens: number(6_000),
            recent_tokens: 6_000,
            recall_tokens: 600,
            provider: None,
            model: None,
        }
    }
}

impl MemorySettings {
    /// With the reflections and what comes between two looks, no digest holds more than the engine reads.
    const MAX_OBSERVED: usize = 44_000;

    pub(super) fn observation_tokens(&self) -> usize {
        self.observation_token_threshold
            .get()
            .min(Self::MAX_OBSERVED)
    }
}
