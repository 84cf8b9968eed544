//! The settings under `server.a2a.*`.

use std::num::NonZeroUsize;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The settings under `server.a2a`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct A2aSettings {
    /// Enables the A2A server, which accepts tasks from other agents.
    #[serde(rename = "enabled")]
    pub is_enabled: bool,
    /// Public URL of this server in the agent card, such as `https://lango.example.org`. Defaults to
    /// the host of the request.
    pub public_url: Option<String>,
    /// Enables A2A version 0.3 in addition to 1.0. The agent card then has the fields of both
    /// versions, which strict clients may reject.
    pub older_version: bool,
    /// Audience of the agent card: `everyone`, or `callers` with a token.
    pub card: CardAudience,
    /// Maximum number of stored tasks for one principal. The oldest finished tasks are deleted first.
    pub tasks: NonZeroUsize,
    /// Maximum number of push notification URLs of one task; 0 disables push notifications.
    pub push_addresses: usize,
    /// Time in seconds within which a message with the same id is treated as a retry and starts no
    /// new task.
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
