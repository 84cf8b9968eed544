//! The settings in `agent` that define the team.

use std::path::PathBuf;

use lango_domain::TeamMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claims::Routes;
use crate::tree::DEFAULT_DELEGATION_ROUNDS;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TeamSettings {
    /// true: an orchestrator that delegates to specialists; false: a single agent with all tools.
    pub multi_agent: bool,
    /// The agents of the team: `default` for the built-in ones and yours, `custom` for only those in
    /// `agentsDir`.
    pub team: TeamChoice,
    /// A folder with your own agents, one markdown file each.
    pub agents_dir: Option<PathBuf>,
    /// A folder whose AGENTS.md, SAFETY.md, CONVERSATION_RULES.md and TOOL_USAGE.md replace the built-in
    /// prompt sections. `agents/<name>/IDENTITY.md` in it replaces an agent's instruction. Blank files are
    /// ignored.
    pub prompts_dir: Option<PathBuf>,
    /// Additional tool-name prefixes for an agent, as in `{ operator = ["github_"] }`.
    pub routes: Routes,
    /// The number of times one request may be delegated before the turn ends; 0 means the default.
    pub max_delegation_rounds: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TeamChoice {
    #[default]
    Default,
    Custom,
}

impl Default for TeamSettings {
    fn default() -> Self {
        Self {
            multi_agent: true,
            team: TeamChoice::Default,
            agents_dir: None,
            prompts_dir: None,
            routes: Routes::new(),
            max_delegation_rounds: DEFAULT_DELEGATION_ROUNDS,
        }
    }
}

impl TeamSettings {
    /// Returns the number of times one request may be delegated.
    pub fn delegation_rounds(&self) -> u32 {
        if self.max_delegation_rounds == 0 {
            DEFAULT_DELEGATION_ROUNDS
        } else {
            self.max_delegation_rounds
        }
    }

    pub fn mode(&self) -> TeamMode {
        if self.multi_agent {
            TeamMode::Multi
        } else {
            TeamMode::Single
        }
    }
}
