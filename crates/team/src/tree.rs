//! Builds a team from definitions and tools.

use std::collections::BTreeSet;
use std::sync::Arc;

use lango_domain::{
    Agent, AgentLocation, AgentName, AgentSpec, AgentTree, Prompt, Section, SkippedAgent, TeamMode,
    Tool,
};

use crate::capability::CapabilityMap;
use crate::claims::{ClaimError, Routes, ToolClaims};
use crate::instruction::{Briefing, CreatedAgent, orchestrator_instruction};
use crate::partition::{partition_tools, tools_for_spec};
use crate::prompts::PromptSources;
use crate::registry::AgentRegistry;

/// The default limit of delegation rounds (S34).
pub const DEFAULT_DELEGATION_ROUNDS: u32 = 5;

/// The limit for agents, so that the routing table does not fill a request (B41).
const MAX_AGENTS: usize = 64;

/// The cap for a specialist's whole prompt, in tokens (B41).
const MAX_PROMPT_TOKENS: usize = 32_000;

/// Returns the whole prompt of an agent, given its name and the instruction of its definition (S39).
pub type SubAgentPromptFunc = Arc<dyn Fn(&str, &str) -> String + Send + Sync>;

/// The input for [`build_agent_tree`].
pub struct Config {
    pub mode: TeamMode,
    pub tools: Vec<Tool>,
    pub specs: Vec<AgentSpec>,
    pub routes: Routes,
    pub prompts: PromptSources,
    /// 0 means [`DEFAULT_DELEGATION_ROUNDS`].
    pub max_delegation_rounds: u32,
    /// Remote agents. They follow the local ones and join whatever tools there are (S90).
    pub remote_agents: Vec<RemoteCard>,
    /// If not set, each specialist reads only the instruction of its definition.
    pub sub_agent_prompt: Option<SubAgentPromptFunc>,
}

impl Default for Config {
    /// Returns the configuration of the built-in team, without tools.
    fn default() -> Self {
        Self {
            mode: TeamMode::Multi,
            tools: Vec::new(),
            specs: AgentRegistry::built_in().specs,
            routes: Routes::new(),
            prompts: PromptSources::default(),
            max_delegation_rounds: 0,
            remote_agents: Vec::new(),
            sub_agent_prompt: None,
        }
    }
}

/// The card of a remote agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteCard {
    pub name: AgentName,
    /// From outside: data, never instructions (B92).
    pub description: String,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BuildError {
    #[error(transparent)]
    Claim(#[from] ClaimError),
    #[error("{0} agents are defined; a team has at most {MAX_AGENTS}")]
    TooManyAgents(usize),
    #[error("two agents have the name `{0}`")]
    DuplicateAgent(AgentName),
    #[error("two tools have the name `{0}`")]
    DuplicateTool(String),
}

/// Builds the team. In multi-agent mode, that is a root without tools and every specialist that has
/// tools or is always included (S01, S04); in single-agent mode, one agent with all tools (S02).
pub fn build_agent_tree(config: Config) -> Result<AgentTree, BuildError> {
    check_config(&config)?;
    match config.mode {
        TeamMode::Multi => build_team(config),
        TeamMode::Single => Ok(build_single_agent(config)),
    }
}

fn check_config(config: &Config) -> Result<(), BuildError> {
    ToolClaims::new(&config.specs, &config.routes)?;
    let count = config.specs.len() + config.remote_agents.len();
    if count > MAX_AGENTS {
        return Err(BuildError::TooManyAgents(count));
    }
    let mut seen = BTreeSet::new();
    if let Some(duplicate) = config
        .tools
        .iter()
        .find(|tool| !seen.insert(tool.name.as_str()))
    {
        return Err(BuildError::DuplicateTool(duplicate.name.clone()));
    }
    let names = config
        .specs
        .iter()
        .map(|spec| &spec.name)
        .chain(config.remote_agents.iter().map(|card| &card.name));
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(BuildError::DuplicateAgent(name.clone()));
        }
    }
    Ok(())
}

fn build_single_agent(config: Config) -> AgentTree {
    let capabilities =
        CapabilityMap::from_specs(&config.specs).capabilities(tool_names(&config.tools));
    let root = Agent {
        name: TeamMode::Single.root_name(),
        description: describe("Does everything by itself.", &capabilities),
        capabilities,
        keywords: Vec::new(),
        prompt: config.prompts.single(),
        tools: config.tools,
        location: AgentLocation::Local,
    };
    AgentTree {
        mode: TeamMode::Single,
        root,
        specialists: Vec::new(),
        skipped: Vec::new(),
        unmatched: Vec::new(),
    }
}

fn build_team(config: Config) -> Result<AgentTree, BuildError> {
    let claims = ToolClaims::new(&config.specs, &config.routes)?;
    let map = CapabilityMap::from_specs(&config.specs);
    let mut set = partition_tools(&config.specs, &claims, config.tools);
    let (mut specialists, mut created_specs, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
    for spec in &config.specs {
        let tools = tools_for_spec(&mut set, spec);
        if tools.is_empty() && !spec.always_include {
            skipped.push(spec);
            continue;
        }
        specialists.push(build_specialist(
            spec,
            tools,
            &map,
            config.sub_agent_prompt.as_ref(),
        ));
        created_specs.push(spec);
    }
    let briefing = Briefing {
        entries: specialists
            .iter()
            .zip(created_specs)
            .map(|(agent, spec)| CreatedAgent { agent, spec })
            .collect(),
        remote: &config.remote_agents,
        unassigned: tool_names(&set.unmatched).collect(),
        absent: skipped.iter().map(|spec| &spec.name).collect(),
        rounds: delegation_rounds(config.max_delegation_rounds),
    };
    let prompt = config
        .prompts
        .orchestrator(&orchestrator_instruction(&briefing));
    let skipped = skipped
        .into_iter()
        .map(|spec| skipped_agent(&spec.name))
        .collect();
    specialists.extend(config.remote_agents.into_iter().map(build_remote_agent));
    Ok(AgentTree {
        mode: TeamMode::Multi,
        root: build_orchestrator(prompt),
        specialists,
        skipped,
        unmatched: set.unmatched,
    })
}

fn build_orchestrator(prompt: Prompt) -> Agent {
    Agent {
        name: TeamMode::Multi.root_name(),
        description: "Talks with the user and delegates; holds no tools.".to_owned(),
        capabilities: Vec::new(),
        keywords: Vec::new(),
        prompt,
        tools: Vec::new(),
        location: AgentLocation::Local,
    }
}

fn build_specialist(
    spec: &AgentSpec,
    tools: Vec<Tool>,
    map: &CapabilityMap,
    prompt: Option<&SubAgentPromptFunc>,
) -> Agent {
    let capabilities = map.capabilities(tool_names(&tools));
    let instruction = prompt.map(|function| function(spec.name.as_str(), &spec.instruction));
    let instruction = instruction.as_deref().unwrap_or(&spec.instruction);
    Agent {
        name: spec.name.clone(),
        description: describe(&spec.description, &capabilities),
        capabilities,
        keywords: spec.keywords.clone(),
        prompt: Prompt::new([Section::with_max_tokens(
            Section::INSTRUCTION,
            instruction,
            MAX_PROMPT_TOKENS,
        )]),
        tools,
        location: AgentLocation::Local,
    }
}

/// Returns a remote agent, whose prompt and tools are in its own process.
fn build_remote_agent(card: RemoteCard) -> Agent {
    Agent {
        name: card.name,
        description: card.description,
        capabilities: Vec::new(),
        keywords: Vec::new(),
        prompt: Prompt::default(),
        tools: Vec::new(),
        location: AgentLocation::Remote,
    }
}

fn describe(description: &str, capabilities: &[String]) -> String {
    if capabilities.is_empty() {
        return description.to_owned();
    }
    format!(
        "{} Capabilities: {}.",
        description.trim_end(),
        capabilities.join(", ")
    )
}

fn skipped_agent(name: &AgentName) -> SkippedAgent {
    SkippedAgent {
        name: name.to_string(),
        reason: "no tools are assigned to it".to_owned(),
    }
}

fn tool_names(tools: &[Tool]) -> impl Iterator<Item = &str> {
    tools.iter().map(|tool| tool.name.as_str())
}

fn delegation_rounds(configured: u32) -> u32 {
    if configured == 0 {
        DEFAULT_DELEGATION_ROUNDS
    } else {
        configured
    }
}
