//! `observationalMemory.*`.

use std::num::NonZeroUsize;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MemorySettings {
    /// Observes and remembers conversations. If off, there is no chronicler.
    pub enabled: bool,
    /// Tokens of a session's messages in a request from which observations replace the older messages.
    pub message_token_threshold: NonZeroUsize,
    /// Tokens of a session's observations from which they are condensed to reflections; at most 44,000.
    pub observation_token_threshold: NonZeroUsize,
    /// Tokens of new messages from which a model makes observations ahead. Rules check every turn.
    pub buffer_tokens: NonZeroUsize,
    /// Tokens of the newest messages that are never replaced.
    pub recent_tokens: usize,
    /// Most tokens that are recalled for a request; 0 disables automatic recall.
    pub recall_tokens: usize,
    /// Provider of the observing model; defaults to the active provider.
    pub provider: Option<String>,
    /// The observing model; defaults to the active model. Without a language model, rules observe.
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
    /// Together with the reflections and the observations between two checks, this keeps a digest
    /// within the engine's limit.
    const MAX_OBSERVED: usize = 44_000;

    pub(super) fn observation_tokens(&self) -> usize {
        self.observation_token_threshold
            .get()
            .min(Self::MAX_OBSERVED)
    }
}
