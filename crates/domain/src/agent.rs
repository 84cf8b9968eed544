//! Agents: their definitions ([`AgentSpec`]) and the built team ([`AgentTree`]).

use std::borrow::Borrow;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::prompt::Prompt;
use crate::tool::Tool;

/// The exact name of an agent: `[a-z][a-z0-9_-]{0,62}`.
///
/// Invariant: every name in an event or a schema is well formed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentName(String);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "`{0}` is not an agent name: use a lower-case letter, then at most 62 of a-z, 0-9, `_` and `-`"
)]
pub struct InvalidAgentName(String);

impl AgentName {
    /// The root of a multi-agent team.
    pub const ORCHESTRATOR: &'static str = "lango-orchestrator";
    /// The only agent in single-agent mode.
    pub const SINGLE: &'static str = "lango-agent";
    /// Names that no definition may use.
    pub const RESERVED: [&'static str; 3] = [Self::ORCHESTRATOR, Self::SINGLE, "user"];

    pub fn new(name: impl Into<String>) -> Result<Self, InvalidAgentName> {
        let name = name.into();
        if Self::is_well_formed(&name) {
            Ok(Self(name))
        } else {
            Err(InvalidAgentName(name))
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn is_well_formed(name: &str) -> bool {
        let bytes = name.as_bytes();
        (1..=63).contains(&bytes.len())
            && bytes[0].is_ascii_lowercase()
            && bytes
                .iter()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-'))
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for AgentName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for AgentName {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl TryFrom<String> for AgentName {
    type Error = InvalidAgentName;
    fn try_from(name: String) -> Result<Self, Self::Error> {
        Self::new(name)
    }
}

impl From<AgentName> for String {
    fn from(name: AgentName) -> Self {
        name.0
    }
}

/// The layout of a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TeamMode {
    /// An orchestrator without tools and its specialists.
    Multi,
    /// One agent that owns every tool.
    Single,
}

impl TeamMode {
    /// Returns the name of the agent that every turn starts with.
    pub fn root_name(self) -> AgentName {
        AgentName(match self {
            Self::Multi => AgentName::ORCHESTRATOR.to_owned(),
            Self::Single => AgentName::SINGLE.to_owned(),
        })
    }
}

/// The definition of one specialist, as in its markdown file.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentSpec {
    pub name: AgentName,
    /// Position in lists and in the routing table. Definitions without an order follow, sorted by name.
    pub order: Option<u32>,
    pub description: String,
    pub instruction: String,
    pub prefixes: Vec<Prefix>,
    pub keywords: Vec<String>,
    /// The keywords that are decisive on their own.
    pub decisive: Vec<String>,
    pub accepts: String,
    pub returns: String,
    pub cannot: Vec<String>,
    pub examples: Vec<String>,
    /// True if the agent is created even without tools.
    pub always_include: bool,
    pub origin: SpecOrigin,
}

/// The origin of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpecOrigin {
    /// Embedded in the binary.
    BuiltIn,
    /// A file of the user.
    User(PathBuf),
    /// Made for a tool server of the settings. Claims of the user come first.
    ToolServer,
}

impl AgentSpec {
    /// The planning agent, which is always created and never has a tool (S04, S11).
    pub const PLANNER: &'static str = "planner";

    /// Returns the texts of the definition that the routing table contains.
    pub fn routing_texts(&self) -> Vec<String> {
        let capabilities = self
            .prefixes
            .iter()
            .filter_map(|prefix| prefix.capability.clone());
        let single = [&self.description, &self.accepts, &self.returns]
            .into_iter()
            .cloned();
        let lists = [&self.keywords, &self.cannot, &self.examples]
            .into_iter()
            .flatten()
            .cloned();
        single.chain(capabilities).chain(lists).collect()
    }

    pub fn can_hold_tools(&self) -> bool {
        self.name != *Self::PLANNER
    }
}

/// The prefix of the tool names that an agent claims; `*` claims all tools that no other agent claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix {
    pub text: String,
    /// The capability of tools with this prefix, as text for the routing table.
    pub capability: Option<String>,
}

impl Prefix {
    pub const ANY: &'static str = "*";
}

/// An agent of a built team, with its prompt and tools.
#[derive(Debug)]
pub struct Agent {
    pub name: AgentName,
    /// For the agent that delegates. Contains capabilities, never tool names.
    pub description: String,
    pub capabilities: Vec<String>,
    pub keywords: Vec<String>,
    /// The whole system prompt; byte-stable as long as the team exists.
    pub prompt: Prompt,
    pub tools: Vec<Tool>,
    pub location: AgentLocation,
}

/// The location where an agent runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentLocation {
    Local,
    /// In another process; its output is untrusted data (B92).
    Remote,
}

/// A specialist that is defined but not part of the team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SkippedAgent {
    pub name: String,
    pub reason: String,
}

/// A team: the root and its specialists. Tools are moved in, so each has exactly one owner.
#[derive(Debug)]
pub struct AgentTree {
    pub mode: TeamMode,
    pub root: Agent,
    pub specialists: Vec<Agent>,
    pub skipped: Vec<SkippedAgent>,
    /// Tools that no agent claims, so that no agent can call them.
    pub unmatched: Vec<Tool>,
}

impl AgentTree {
    /// Returns the root and every specialist.
    pub fn agents(&self) -> impl Iterator<Item = &Agent> {
        std::iter::once(&self.root).chain(&self.specialists)
    }

    pub fn agent(&self, name: &str) -> Option<&Agent> {
        self.agents().find(|agent| agent.name == *name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_names_outside_the_pattern() {
        for good in [
            "a",
            "operator",
            "memory-manager",
            "x_1",
            &format!("a{}", "b".repeat(62)),
        ] {
            assert!(AgentName::new(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "Operator",
            "1a",
            "-a",
            "a b",
            "ä",
            "a\n",
            &"a".repeat(64),
        ] {
            assert!(AgentName::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn both_roots_have_well_formed_names() {
        for mode in [TeamMode::Multi, TeamMode::Single] {
            assert!(AgentName::new(mode.root_name().as_str()).is_ok());
        }
    }
}
