//! The settings `a2a.*`.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use lango_domain::secret::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `a2a`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RemoteSettings {
    /// Let the remote agents below join the team.
    pub enabled: bool,
    /// Remote agents that support A2A 1.0 or 0.3; they join the team after the local agents.
    pub remote_agents: Vec<RemoteAgentSettings>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RemoteAgentSettings {
    /// Name of the agent in the team.
    pub name: String,
    /// URL of the agent card, or of the agent: then the card is searched below `/.well-known/`.
    pub agent_card_url: String,
    /// Sent as `Authorization: Bearer …`; prefer `${NAME}`, which reads an environment variable,
    /// over the token itself.
    pub token: Option<Secret>,
    /// Additional headers for every request; like tokens, they are never shown.
    pub headers: BTreeMap<String, Secret>,
    /// Further origins, such as `https://api.example.com`, that may get the token and the headers.
    pub allowed_origins: Vec<String>,
    /// Time limit of one task in seconds.
    pub seconds: NonZeroU64,
}

impl Default for RemoteAgentSettings {
    fn default() -> Self {
        Self {
            name: String::new(),
            agent_card_url: String::new(),
            token: None,
            headers: BTreeMap::new(),
            allowed_origins: Vec::new(),
            seconds: NonZeroU64::MIN.saturating_add(599),
        }
    }
}

impl RemoteAgentSettings {
    /// Returns all secrets, which must not be shown.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        self.token.iter().chain(self.headers.values())
    }
}
