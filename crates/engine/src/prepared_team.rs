//! A team prepared to run: prompts and tool declarations. Built once, so that requests are
//! byte-stable (B40).

use std::collections::HashMap;
use std::sync::Arc;

use lango_domain::event::{Author, Event};
use lango_domain::model::{Message, ToolDeclaration};
use lango_domain::secret::hide_secret_arguments;
use lango_domain::{Agent, AgentLocation, AgentName, AgentTree, Safety, TeamMode, Tool};
use lango_text::token_estimate;
use serde_json::Value;

use crate::json_schema::{self, SchemaViolation};
use crate::recovery::{self, UnfinishedTurn};
use crate::{message_history, transfer};

/// A prepared team. Clones share the prepared agents.
#[derive(Clone)]
pub(crate) struct PreparedTeam {
    inner: Arc<PreparedTeamInner>,
    /// The agent that a turn starts with.
    root: AgentName,
    mode: TeamMode,
}

struct PreparedTeamInner {
    tree: AgentTree,
    agents: HashMap<AgentName, PreparedAgent>,
    /// The agent that owns each tool.
    owners: HashMap<String, AgentName>,
}

/// The prepared parts of one agent.
pub(crate) struct PreparedAgent {
    pub system: Arc<str>,
    pub declarations: Arc<[ToolDeclaration]>,
    /// Estimated tokens of the constant part of every request.
    prompt_tokens: usize,
}

impl PreparedTeam {
    pub fn new(tree: AgentTree) -> Self {
        let specialists: Vec<AgentName> = tree
            .specialists
            .iter()
            .map(|agent| agent.name.clone())
            .collect();
        let mut agents = HashMap::new();
        let mut owners = HashMap::new();
        for agent in tree.agents() {
            let transfers = agent.name == tree.root.name && tree.mode == TeamMode::Multi;
            agents.insert(
                agent.name.clone(),
                PreparedAgent::new(agent, transfers.then_some(&specialists)),
            );
            owners.extend(
                agent
                    .tools
                    .iter()
                    .map(|tool| (tool.name.clone(), agent.name.clone())),
            );
        }
        let (root, mode) = (tree.root.name.clone(), tree.mode);
        Self {
            inner: Arc::new(PreparedTeamInner {
                tree,
                agents,
                owners,
            }),
            root,
            mode,
        }
    }

    /// Returns a team of one of its agents. Returns `None` for a remote agent.
    pub fn single_agent(&self, agent: &str) -> Option<Self> {
        let agent = self
            .inner
            .tree
            .agent(agent)
            .filter(|agent| agent.location == AgentLocation::Local)?;
        Some(Self {
            inner: Arc::clone(&self.inner),
            root: agent.name.clone(),
            mode: TeamMode::Single,
        })
    }

    /// Returns the last turn of a log if it has no end.
    pub fn find_unfinished_turn(&self, log: &[Arc<Event>]) -> Option<UnfinishedTurn> {
        let safety = |author: &Author, tool: &str| match author {
            Author::Agent(agent) => self
                .tool(agent, tool)
                .map_or_else(Safety::default, |tool| tool.safety),
            _ => Safety::default(),
        };
        recovery::find_unfinished_turn(log, safety, |agent| self.is_remote(agent))
    }

    pub fn root(&self) -> &AgentName {
        &self.root
    }

    pub fn mode(&self) -> TeamMode {
        self.mode
    }

    pub fn prepared_agent(&self, agent: &AgentName) -> Option<&PreparedAgent> {
        self.inner.agents.get(agent)
    }

    pub fn specialists(&self) -> impl Iterator<Item = &AgentName> {
        let specialists = match self.mode {
            TeamMode::Multi => self.inner.tree.specialists.as_slice(),
            TeamMode::Single => &[],
        };
        specialists.iter().map(|agent| &agent.name)
    }

    pub fn is_remote(&self, agent: &AgentName) -> bool {
        self.inner
            .tree
            .agent(agent.as_str())
            .is_some_and(|agent| agent.location == AgentLocation::Remote)
    }

    /// Returns the names of all agents and of all tools.
    pub fn agents_and_tools(&self) -> (Vec<String>, Vec<String>) {
        let agents = self.inner.tree.agents();
        let agents = agents.map(|agent| agent.name.to_string()).collect();
        let mut tools: Vec<String> = self.inner.owners.keys().cloned().collect();
        tools.sort();
        (agents, tools)
    }

    pub fn owner(&self, tool: &str) -> Option<&AgentName> {
        self.inner.owners.get(tool)
    }

    /// Returns the tool of that name if this agent owns it.
    pub fn tool(&self, agent: &AgentName, name: &str) -> Option<&Tool> {
        self.agent(agent)?
            .tools
            .iter()
            .find(|tool| tool.name == name)
    }

    pub fn tool_names(&self, agent: &AgentName) -> Vec<&str> {
        let tools = self
            .agent(agent)
            .map(|agent| agent.tools.as_slice())
            .unwrap_or_default();
        tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    /// Validates the arguments of a call. The error names the location and the reason (B58).
    pub fn check_arguments(
        &self,
        agent: &AgentName,
        tool: &str,
        arguments: &Value,
    ) -> Result<(), String> {
        if !arguments.is_object() {
            return Err("the arguments must be one JSON object".to_owned());
        }
        let Some(tool) = self.tool(agent, tool) else {
            return Ok(());
        };
        // An error may quote a value, but not a secret one. The tool checks that itself.
        let hidden = hide_secret_arguments(&tool.parameters, arguments);
        let arguments = hidden.as_ref().unwrap_or(arguments);
        let violations = json_schema::validate(&tool.parameters, arguments);
        if violations.is_empty() {
            return Ok(());
        }
        let errors: Vec<String> = violations.iter().map(violation_text).collect();
        Err(errors.join("; "))
    }

    /// Returns the approximate bytes of a request and its estimated tokens. The tokens are 0 if the
    /// request is too small to matter.
    pub fn request_size(&self, agent: &AgentName, messages: &[Message]) -> (usize, usize) {
        let prompt_tokens = self
            .inner
            .agents
            .get(agent)
            .map_or(0, |agent| agent.prompt_tokens);
        let total = |size: &dyn Fn(&str) -> usize| {
            messages
                .iter()
                .map(|message| message_history::measure(message, size))
                .sum::<usize>()
        };
        let bytes = prompt_tokens * 4 + total(&str::len);
        let tokens = if bytes < 16_000 {
            0
        } else {
            prompt_tokens + total(&token_estimate::estimate)
        };
        (bytes, tokens)
    }

    fn agent(&self, name: &AgentName) -> Option<&Agent> {
        self.inner.tree.agent(name.as_str())
    }
}

impl PreparedAgent {
    fn new(agent: &Agent, may_transfer_to: Option<&Vec<AgentName>>) -> Self {
        let transfer = may_transfer_to.map(|agents| transfer::transfer_declaration(agents));
        let own = agent.tools.iter().map(|tool| ToolDeclaration {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
            phrases: tool.phrases.clone(),
        });
        let system: Arc<str> = agent.prompt.render().into();
        let declarations: Arc<[ToolDeclaration]> = transfer.into_iter().chain(own).collect();
        let declared = declarations
            .iter()
            .map(|tool| format!("{} {} {}", tool.name, tool.description, tool.parameters));
        Self {
            prompt_tokens: token_estimate::estimate(&system)
                + declared
                    .map(|text| token_estimate::estimate(&text))
                    .sum::<usize>(),
            system,
            declarations,
        }
    }

    /// Returns the tokens that a window has for messages. A quarter of the window, at most 8,000 tokens,
    /// is reserved for the reply, and a fifth of the rest because token counts are estimates.
    pub fn budget(&self, window: usize) -> usize {
        let reply = (window / 4).min(8_000);
        (window.saturating_sub(reply) / 5 * 4).saturating_sub(self.prompt_tokens)
    }
}

/// Names the location and the reason. Both are shortened: they may contain whole arguments.
fn violation_text(violation: &SchemaViolation) -> String {
    let shorten = |text: &str, max| text.chars().take(max).collect::<String>();
    let location = match violation.path.as_str() {
        "" => "the arguments".to_owned(),
        path => shorten(path, 200),
    };
    format!("{location}: {}", shorten(&violation.message, 300))
}
