//! From settings to a team.

use std::collections::BTreeSet;
use std::sync::Arc;

use lango_domain::{AgentName, AgentSpec, AgentTree, Mode, Prompt, Tool, suggest};
use lango_team::{AgentFileMistake, Config, PromptSources, Roster, TeamChoice, build_agent_tree};

use crate::config::{ConfigError, Loaded};
use crate::environment::Environment;
use crate::settings::Settings;

/// A team, and what it was built from.
pub struct Team {
    pub tree: AgentTree,
    pub specs: Vec<AgentSpec>,
    /// Files of the user's that hold no agent.
    pub mistakes: Vec<AgentFileMistake>,
    prompts: PromptSources,
}

/// Every tool that Lango ships and the settings enable.
pub fn built_in_tools(_settings: &Settings) -> Vec<Tool> {
    Vec::new()
}

/// Builds the team that the settings describe around `tools`.
pub fn assemble_team(
    loaded: &Loaded,
    environment: &Environment,
    tools: Vec<Tool>,
) -> Result<Team, ConfigError> {
    let settings = &loaded.settings.agent.team;
    let roster = roster(loaded, environment)?;
    let prompts = match &settings.prompts_dir {
        Some(folder) => {
            let folder = loaded.resolve(environment, "agent.promptsDir", folder);
            PromptSources::from_folder(&folder).map_err(|error| ConfigError::new(error.to_string()))?
        }
        None => PromptSources::default(),
    };
    let tree = build_agent_tree(Config {
        mode: settings.mode(),
        tools,
        specs: roster.specs.clone(),
        routes: settings.routes.clone(),
        prompts: prompts.clone(),
        max_delegation_rounds: settings.max_delegation_rounds,
        remote_agents: Vec::new(),
        sub_agent_prompt: Some(prompt_function(&prompts, &roster.specs)),
    })
    .map_err(|error| ConfigError::new(error.to_string()))?;
    Ok(Team { tree, specs: roster.specs, mistakes: roster.mistakes, prompts })
}

fn roster(loaded: &Loaded, environment: &Environment) -> Result<Roster, ConfigError> {
    let settings = &loaded.settings.agent.team;
    let own = match &settings.agents_dir {
        Some(folder) => {
            let folder = loaded.resolve(environment, "agent.agentsDir", folder);
            Some(Roster::from_folder(&folder).map_err(|error| ConfigError::new(error.to_string()))?)
        }
        None => None,
    };
    match (settings.team, own) {
        (TeamChoice::Default, None) => Ok(Roster::built_in()),
        (TeamChoice::Default, Some(own)) => Ok(Roster::built_in().joined_by(own)),
        (TeamChoice::Custom, Some(own)) => Ok(own),
        (TeamChoice::Custom, None) => {
            Err(ConfigError::new("agent.team is `custom`, but agent.agentsDir is not set")
                .with_hint("name the folder that holds your agents in agent.agentsDir"))
        }
    }
}

/// How every specialist's prompt is put together: the shared sections around its instruction (S39).
fn prompt_function(prompts: &PromptSources, specs: &[AgentSpec]) -> lango_team::SubAgentPromptFunc {
    let prompts = prompts.clone();
    let with_tools: BTreeSet<AgentName> =
        specs.iter().filter(|spec| spec.takes_tools()).map(|spec| spec.name.clone()).collect();
    Arc::new(move |name, instruction| {
        prompts.specialist(name, instruction, with_tools.contains(name)).render()
    })
}

impl Team {
    /// The prompt of one agent of the team, section by section.
    pub fn prompt(&self, agent: &str) -> Result<Prompt, ConfigError> {
        if self.tree.root.name == *agent {
            return Ok(self.tree.root.prompt.clone());
        }
        let created = self.tree.specialists.iter().any(|specialist| specialist.name == *agent);
        match self.specs.iter().find(|spec| spec.name == *agent) {
            Some(spec) if created => {
                Ok(self.prompts.specialist(agent, &spec.instruction, spec.takes_tools()))
            }
            _ => Err(self.unknown_agent(agent)),
        }
    }

    fn unknown_agent(&self, agent: &str) -> ConfigError {
        if let Some(skipped) = self.tree.skipped.iter().find(|skipped| skipped.name == agent) {
            return ConfigError::new(format!("`{agent}` is not in the team: {}", skipped.reason))
                .with_hint("`--tools a,b` shows the team as it would be with those tools");
        }
        let known: Vec<&str> = self.tree.agents().map(|known| known.name.as_str()).collect();
        let error = ConfigError::new(format!("there is no agent `{agent}` in the team"));
        let defined = self.specs.iter().map(|spec| spec.name.as_str());
        let hint = suggest::did_you_mean(agent, defined.chain([self.tree.root.name.as_str()]));
        error.with_hint(hint.unwrap_or_else(|| format!("the team is {}", known.join(", "))))
    }

    /// What the user should know about the team's files: bad definitions, prompts for agents that do not exist.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self.mistakes.iter().map(ToString::to_string).collect();
        for name in self.prompts.customised_agents() {
            if !self.specs.iter().any(|spec| spec.name == *name) {
                warnings
                    .push(format!("agent.promptsDir has a folder for `{name}`, but there is no such agent"));
            }
        }
        if self.tree.mode == Mode::Multi {
            let words = lango_team::confusable_words(&self.shared_sections());
            if !words.is_empty() {
                let words = words.join(", ");
                warnings.push(format!(
                    "the orchestrator's prompt holds words that models take for agents: {words}"
                ));
            }
        }
        warnings
    }

    /// What the user can have written into the orchestrator's prompt.
    fn shared_sections(&self) -> String {
        self.prompts.orchestrator("").render()
    }
}
