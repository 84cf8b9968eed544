//! Agent cards: the self-description of an agent.

use std::collections::BTreeMap;
use std::fmt;

use lango_text::sanitize::truncated_line;
use serde_json::Value;

use super::json_fields::Metadata;
use super::security::{SecurityRequirement, SecurityScheme};
use super::version::ProtocolVersion;

#[derive(Clone, Debug, PartialEq)]
pub struct AgentCard {
    pub name: String,
    pub description: String,
    /// The agent's own version, not the protocol's.
    pub version: String,
    pub provider: Option<AgentProvider>,
    pub documentation_url: Option<String>,
    pub icon_url: Option<String>,
    /// In the agent's order of preference.
    pub interfaces: Vec<AgentInterface>,
    pub capabilities: AgentCapabilities,
    pub skills: Vec<AgentSkill>,
    pub input_modes: Vec<String>,
    pub output_modes: Vec<String>,
    pub security_schemes: BTreeMap<String, SecurityScheme>,
    /// Alternatives: any one is enough.
    pub security: Vec<SecurityRequirement>,
    /// Kept as raw JSON; they are not verified.
    pub signatures: Vec<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentProvider {
    pub organization: String,
    pub url: String,
}

/// A URL at which the agent is reachable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentInterface {
    pub url: String,
    pub binding: Binding,
    /// The raw version, such as `1.0` or `0.3.0`.
    pub version: String,
    pub tenant: Option<String>,
}

impl AgentInterface {
    /// Returns the version if it is supported. 0.2 counts as 0.3, because our requests are the same
    /// in both.
    pub fn supported_version(&self) -> Option<ProtocolVersion> {
        let is_0_2 = self.version == "0.2" || self.version.starts_with("0.2.");
        if is_0_2 {
            Some(ProtocolVersion::V0_3)
        } else {
            ProtocolVersion::parse(&self.version)
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    JsonRpc,
    HttpJson,
    Grpc,
    Other(String),
}

impl Binding {
    pub fn parse(text: &str) -> Self {
        match text.to_ascii_uppercase().as_str() {
            "JSONRPC" => Self::JsonRpc,
            "HTTP+JSON" => Self::HttpJson,
            "GRPC" => Self::Grpc,
            _ => Self::Other(truncated_line(text, 60)),
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::HttpJson => "HTTP+JSON",
            Self::Grpc => "GRPC",
            Self::Other(name) => name,
        }
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentCapabilities {
    pub streaming: bool,
    pub push_notifications: bool,
    pub extended_card: bool,
    pub extensions: Vec<AgentExtension>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AgentExtension {
    pub uri: String,
    pub description: String,
    /// True if clients must support it to use the agent.
    pub required: bool,
    pub params: Metadata,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentSkill {
    pub id: String,
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
    pub examples: Vec<String>,
    pub input_modes: Vec<String>,
    pub output_modes: Vec<String>,
}

/// A parsed card, with violations of the protocol that do not prevent reading it.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedCard {
    pub card: AgentCard,
    pub problems: Vec<String>,
}
