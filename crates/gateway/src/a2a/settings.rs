//! `server.a2a.*`.

use std::num::NonZeroUsize;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `server.a2a`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct A2aSettings {
    /// Whether other agents can give tasks over A2A.
    #[serde(rename = "enabled")]
    pub is_enabled: bool,
    /// The address that others reach this server at, as in `https://lango.example.org`; the card names it. Without one, the
    /// card names the host that it was asked of.
    pub public_url: Option<String>,
    /// Whether version 0.3 is spoken beside 1.0. The card then has the fields of both, which a strict reader may refuse.
    pub older_version: bool,
    /// Who may read the card: `everyone`, or `callers` with a token.
    pub card: CardAudience,
    /// Tasks of one principal that are kept; the oldest that are over make room.
    pub tasks: NonZeroUsize,
    /// Addresses that one task's news are sent to; 0 sends none.
    pub push_addresses: usize,
    /// A message that is sent again within so many seconds is the same one, and begins nothing new.
    pub repeat_seconds: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CardAudience {
    #[default]
    Everyone,
    Callers,
}

impl Default for A2aSettings {
    fn default() -> Self {
        const fn size(n: usize) -> NonZeroUsize {
            NonZeroUsize::MIN.saturating_add(n - 1)
        }
        Self {
            is_enabled: true,
            public_url: None,
            older_version: true,
            card: CardAudience::Everyone,
            tasks: size(1_000),
            push_addresses: 4,
            repeat_seconds: 3_600,
        }
    }
}

impl A2aSettings {
    pub(crate) fn repeat_window(&self) -> Duration {
        Duration::from_secs(self.repeat_seconds)
    }
}
