//! `a2a.*`.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use lango_domain::secret::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `a2a`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RemoteSettings {
    /// Whether the agents below join the team.
    pub enabled: bool,
    /// Agents in other processes that speak A2A, 1.0 or 0.3; they join the team behind the local ones.
    pub remote_agents: Vec<RemoteAgentSettings>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RemoteAgentSettings {
    /// What the agent is called in the team.
    pub name: String,
    /// Where its card is, or where the agent is: then the card is looked for below `/.well-known/`.
    pub agent_card_url: String,
    /// Sent as `Authorization: Bearer …`; better written as `${NAME}` than as itself.
    pub token: Option<Secret>,
    /// Further headers for every request; like tokens, they are never shown.
    pub headers: BTreeMap<String, Secret>,
    /// Origins beside that of the card, such as `https://api.example.com`, that may get the token and the headers.
    pub allowed_origins: Vec<String>,
    /// Seconds that one task may take there.
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
    /// Everything that must not be shown.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        self.token.iter().chain(self.headers.values())
    }
}
