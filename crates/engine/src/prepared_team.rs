//! A team made ready to run: what each agent reads and may call, prepared once so that it is byte-stable (B40).

use std::collections::HashMap;
use std::sync::Arc;

use jsonschema::Validator;
use lango_domain::event::{Author, Event};
use lango_domain::model::{Message, ToolDeclaration};
use lango_domain::{
    Agent, AgentLocation, AgentName, AgentTree, Safety, TeamMode, Tool, token_estimate,
};
use serde_json::Value;

use crate::recovery::{self, UnfinishedTurn};
use crate::{message_history, transfer};

/// Cheap to clone: what was prepared is shared.
#[derive(Clone)]
pub(crate) struct PreparedTeam {
    inner: Arc<PreparedTeamInner>,
    /// Whom a turn begins with.
    root: AgentName,
    mode: TeamMode,
}

struct PreparedTeamInner {
    tree: AgentTree,
    agents: HashMap<AgentName, PreparedAgent>,
    /// Who holds a tool.
    owners: HashMap<String, AgentName>,
}

/// What is prepared for one agent.
pub(crate) struct PreparedAgent {
    pub system: Arc<str>,
    pub declarations: Arc<[ToolDeclaration]>,
    /// Tokens that the stable part of every request takes.
    prompt_tokens: usize,
    /// By tool; what cannot be compiled says why.
    validators: HashMap<String, Result<Validator, String>>,
}

impl PreparedTeam {
    pub fn new(tree: AgentTree) -> Self {
        let specialists: Vec<AgentName> = tree
            .specialists
            .iter()
            .map(|agent| agent.name.clone())
            .collect();
        let mut members = HashMap::new();
        let mut owners = HashMap::new();
        for agent in tree.agents() {
            let transfers = agent.name == tree.root.name && tree.mode == TeamMode::Multi;
            members.insert(
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
                agents: members,
                owners,
            }),
            root,
            mode,
        }
    }

    /// One agent of the same crew without the others; none for one that works elsewhere.
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

    /// The turn at the end of a log that has no end.
    pub fn find_unfinished_turn(&self, log: &[Arc<Event>]) -> Option<UnfinishedTurn> {
        recovery::find_unfinished_turn(log, |author, tool| match author {
            Author::Agent(agent) => self
                .tool(agent, tool)
                .map_or_else(Safety::default, |tool| tool.safety),
            _ => Safety::default(),
        })
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

    pub fn owner(&self, tool: &str) -> Option<&AgentName> {
        self.inner.owners.get(tool)
    }

    /// The tool of that name, if this agent holds it.
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

    /// What is wrong with these arguments: where, and why (B58).
    pub fn check_arguments(
        &self,
        agent: &AgentName,
        tool: &str,
        arguments: &Value,
    ) -> Result<(), String> {
        if !arguments.is_object() {
            return Err("the arguments must be one JSON object".to_owned());
        }
        match self
            .inner
            .agents
            .get(agent)
            .and_then(|member| member.validators.get(tool))
        {
            Some(Ok(validator)) => validation_errors(validator, arguments),
            Some(Err(why)) => Err(format!("the tool's own schema is not valid: {why}")),
            None => Ok(()),
        }
    }

    /// The bytes of a request, about, and its tokens; none for one that is too small to matter.
    pub fn request_size(&self, agent: &AgentName, messages: &[Message]) -> (usize, usize) {
        let weight = self
            .inner
            .agents
            .get(agent)
            .map_or(0, |member| member.prompt_tokens);
        let all = |of: &dyn Fn(&str) -> usize| {
            messages
                .iter()
                .map(|message| message_history::measure(message, of))
                .sum::<usize>()
        };
        let bytes = weight * 4 + all(&str::len);
        (
            bytes,
            if bytes < 16_000 {
                0
            } else {
                weight + all(&token_estimate::estimate)
            },
        )
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
        let validator = |tool: &Tool| {
            jsonschema::validator_for(&tool.parameters).map_err(|error| error.to_string())
        };
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
            validators: agent
                .tools
                .iter()
                .map(|tool| (tool.name.clone(), validator(tool)))
                .collect(),
        }
    }
}

impl PreparedAgent {
    /// What is left for messages in a window: a quarter of it, at most 8,000 tokens, is kept free for the reply, and a
    /// fifth because tokens are estimated.
    pub fn budget(&self, window: usize) -> usize {
        let reply = (window / 4).min(8_000);
        (window.saturating_sub(reply) / 5 * 4).saturating_sub(self.prompt_tokens)
    }
}

/// The first few complaints; a model mends one thing at a time anyway.
fn validation_errors(validator: &Validator, arguments: &Value) -> Result<(), String> {
    let complaints: Vec<String> = validator
        .iter_errors(arguments)
        .take(3)
        .map(|error| {
            let path: String = error
                .instance_path()
                .to_string()
                .chars()
                .take(200)
                .collect();
            let place = if path.is_empty() {
                "the arguments".to_owned()
            } else {
                path
            };
            let reason: String = error.to_string().chars().take(300).collect();
            format!("{place}: {reason}")
        })
        .collect();
    if complaints.is_empty() {
        Ok(())
    } else {
        Err(complaints.join("; "))
    }
}
