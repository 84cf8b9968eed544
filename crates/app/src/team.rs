//! From settings to a team.

use std::collections::BTreeSet;
use std::sync::Arc;

use lango_domain::{AgentName, AgentSpec, AgentTree, Prompt, TeamMode, Tool, suggest};
use lango_remote::{RemoteMember, RemoteStatus, RemoteTeam};
use lango_team::{
    AgentFileError, AgentRegistry, BuildError, ClaimError, Config, PromptSources, RemoteCard,
    TeamChoice, build_agent_tree,
};

use crate::config::{ConfigError, FolderSource, LoadedConfig};
use crate::environment::Environment;
use crate::remote_agents::connect_remote_agents;

/// A team, and what it was built from.
pub struct AssembledTeam {
    pub tree: AgentTree,
    pub specs: Vec<AgentSpec>,
    /// Files of the user's that hold no agent.
    pub file_errors: Vec<AgentFileError>,
    /// Agents elsewhere, whether or not they could be reached.
    pub remote_statuses: Vec<RemoteStatus>,
    prompts: PromptSources,
    remote_warnings: Vec<String>,
}

/// Builds the team that the settings describe around `tools`, with whoever can be reached elsewhere.
pub fn assemble_team(
    loaded: &LoadedConfig,
    environment: &Environment,
    tools: Vec<Tool>,
) -> Result<AssembledTeam, ConfigError> {
    assemble_team_with(
        loaded,
        environment,
        tools,
        &connect_remote_agents(loaded, environment)?,
    )
}

/// The same, with these colleagues as they stand now.
pub fn assemble_team_with(
    loaded: &LoadedConfig,
    environment: &Environment,
    tools: Vec<Tool>,
    colleagues: &RemoteTeam,
) -> Result<AssembledTeam, ConfigError> {
    let settings = &loaded.settings.agent.team;
    let roster = load_registry(loaded, environment)?;
    let prompts = load_prompts(loaded, environment)?;
    let tree = build_agent_tree(Config {
        mode: settings.mode(),
        tools,
        specs: roster.specs.clone(),
        routes: settings.routes.clone(),
        prompts: prompts.clone(),
        max_delegation_rounds: settings.max_delegation_rounds,
        remote_agents: remote_cards(colleagues),
        sub_agent_prompt: Some(prompt_function(&prompts, &roster.specs)),
    })
    .map_err(|error| build_error(loaded, &roster.errors, error))?;
    let (remotes, about_remotes) = (colleagues.statuses(), remote_warnings(loaded, colleagues));
    Ok(AssembledTeam {
        tree,
        specs: roster.specs,
        file_errors: roster.errors,
        remote_statuses: remotes,
        prompts,
        remote_warnings: about_remotes,
    })
}

fn remote_cards(colleagues: &RemoteTeam) -> Vec<RemoteCard> {
    let card = |member: RemoteMember| RemoteCard {
        name: member.name,
        description: member.description,
    };
    colleagues.agents().into_iter().map(card).collect()
}

/// What the user should know about agents elsewhere.
fn remote_warnings(loaded: &LoadedConfig, colleagues: &RemoteTeam) -> Vec<String> {
    let settings = &loaded.settings;
    let mut warnings = colleagues.warnings();
    if settings.agent.team.mode() == TeamMode::Single
        && settings.a2a.enabled
        && !settings.a2a.remote_agents.is_empty()
    {
        warnings.push(
            "agent.multiAgent is false: nobody delegates, so no remote agent joins".to_owned(),
        );
    }
    for status in colleagues.statuses() {
        if !lango_team::confusable_words(status.name.as_str()).is_empty() {
            let name = status.name;
            warnings.push(format!(
                "a2a.remoteAgents: models take the name `{name}` for a kind of agent; another one is safer"
            ));
        }
    }
    warnings
}

/// The error with where its cause was written, and with the files that could not be read: they may be the cause.
fn build_error(
    loaded: &LoadedConfig,
    mistakes: &[AgentFileError],
    error: BuildError,
) -> ConfigError {
    let (key, hint) = match &error {
        BuildError::Claim(ClaimError::UnknownAgent { agent, hint }) => (Some(agent), hint.clone()),
        BuildError::Claim(
            ClaimError::TakesNoTools { agent } | ClaimError::EmptyPrefix { agent },
        ) => (Some(agent), None),
        _ => (None, None),
    };
    let origin = key.and_then(|agent| loaded.origin(&format!("agent.routes.{agent}")));
    let place = origin.map_or(String::new(), |origin| format!("{origin}: "));
    let mut lines = vec![format!("{place}{error}")];
    lines.extend(mistakes.iter().map(ToString::to_string));
    ConfigError {
        message: lines.join("\n"),
        hint,
    }
}

fn load_prompts(
    loaded: &LoadedConfig,
    environment: &Environment,
) -> Result<PromptSources, ConfigError> {
    let Some(folder) = &loaded.settings.agent.team.prompts_dir else {
        return Ok(PromptSources::default());
    };
    match loaded.folder_source(environment, "agent.promptsDir", folder)? {
        FolderSource::Project(files) => PromptSources::from_files(files).map_err(to_config_error),
        FolderSource::User(folder) => PromptSources::from_folder(&folder).map_err(to_config_error),
    }
}

fn to_config_error(error: impl std::error::Error) -> ConfigError {
    ConfigError::new(error.to_string())
}

pub(crate) fn load_registry(
    loaded: &LoadedConfig,
    environment: &Environment,
) -> Result<AgentRegistry, ConfigError> {
    let settings = &loaded.settings.agent.team;
    let own = match &settings.agents_dir {
        Some(folder) => Some(
            match loaded.folder_source(environment, "agent.agentsDir", folder)? {
                FolderSource::Project(files) => AgentRegistry::from_files(files),
                FolderSource::User(folder) => {
                    AgentRegistry::from_folder(&folder).map_err(to_config_error)?
                }
            },
        ),
        None => None,
    };
    match (settings.team, own) {
        (TeamChoice::Default, None) => Ok(AgentRegistry::built_in()),
        (TeamChoice::Default, Some(own)) => Ok(AgentRegistry::built_in().merge(own)),
        (TeamChoice::Custom, Some(own)) => Ok(own),
        (TeamChoice::Custom, None) => Err(ConfigError::new(
            "agent.team is `custom`, but agent.agentsDir is not set",
        )
        .with_hint("name the folder that holds your agents in agent.agentsDir")),
    }
}

/// How every specialist's prompt is put together: the shared sections around its instruction (S39).
fn prompt_function(prompts: &PromptSources, specs: &[AgentSpec]) -> lango_team::SubAgentPromptFunc {
    let prompts = prompts.clone();
    let with_tools: BTreeSet<AgentName> = specs
        .iter()
        .filter(|spec| spec.can_hold_tools())
        .map(|spec| spec.name.clone())
        .collect();
    Arc::new(move |name, instruction| {
        prompts
            .specialist(name, instruction, with_tools.contains(name))
            .render()
    })
}

impl AssembledTeam {
    /// The agent of that name, whether or not it got tools.
    pub fn find_agent(&self, agent: &str) -> Option<&AgentName> {
        let names = self
            .specs
            .iter()
            .map(|spec| &spec.name)
            .chain([&self.tree.root.name]);
        names.into_iter().find(|name| **name == *agent)
    }

    /// The prompt of one agent of the team, section by section.
    pub fn prompt(&self, agent: &str) -> Result<Prompt, ConfigError> {
        if self.tree.root.name == *agent {
            return Ok(self.tree.root.prompt.clone());
        }
        let created = self
            .tree
            .specialists
            .iter()
            .any(|specialist| specialist.name == *agent);
        match self.specs.iter().find(|spec| spec.name == *agent) {
            Some(spec) if created => {
                Ok(self
                    .prompts
                    .specialist(agent, &spec.instruction, spec.can_hold_tools()))
            }
            None if created => Err(ConfigError::new(format!(
                "`{agent}` is a remote agent: its prompt is where it lives"
            ))),
            _ => Err(self.unknown_agent_error(agent)),
        }
    }

    fn unknown_agent_error(&self, agent: &str) -> ConfigError {
        if let Some(skipped) = self
            .tree
            .skipped
            .iter()
            .find(|skipped| skipped.name == agent)
        {
            return ConfigError::new(format!("`{agent}` is not in the team: {}", skipped.reason))
                .with_hint("`--tools a,b` shows the team as it would be with those tools");
        }
        let is_of_agent =
            |mistake: &&AgentFileError| mistake.file.file_stem().is_some_and(|stem| stem == agent);
        if let Some(mistake) = self.file_errors.iter().find(is_of_agent) {
            return ConfigError::new(format!("`{agent}` is not in the team: {mistake}"));
        }
        let created: Vec<&str> = self
            .tree
            .agents()
            .map(|known| known.name.as_str())
            .collect();
        let skipped = self
            .tree
            .skipped
            .iter()
            .map(|skipped| skipped.name.as_str());
        let hint = suggest::did_you_mean(agent, created.iter().copied().chain(skipped));
        ConfigError::new(format!("there is no agent `{agent}` in the team"))
            .with_hint(hint.unwrap_or_else(|| format!("the team is {}", created.join(", "))))
    }

    /// What the user should know about the team's files: bad or unwise definitions, prompts that mean nothing.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self.file_errors.iter().map(ToString::to_string).collect();
        for name in self.prompts.customized_agents() {
            if !self.specs.iter().any(|spec| spec.name == *name) {
                warnings.push(format!(
                    "agent.promptsDir has a folder for `{name}`, but there is no such agent"
                ));
            }
        }
        let ignored = self.prompts.ignored.iter().map(|file| file.display());
        warnings.extend(
            ignored
                .map(|file| format!("{file}: this name means nothing here; the file is not used")),
        );
        warnings.extend(self.remote_warnings.iter().cloned());
        if self.tree.mode == TeamMode::Multi {
            warnings.extend(self.misleading_words());
            if self.tree.specialists.is_empty() {
                warnings
                    .push("the team has no specialists; the orchestrator can only talk".to_owned());
            }
        }
        warnings
    }

    /// Words in the orchestrator's prompt that models take for agents, where the user brought them in.
    fn misleading_words(&self) -> Vec<String> {
        let mut found = AgentRegistry {
            specs: self.specs.clone(),
            errors: Vec::new(),
        }
        .warnings();
        let shared = self.prompts.orchestrator("").render();
        let absent = self.tree.skipped.iter().map(|skipped| skipped.name.clone());
        let absent = absent.filter(|name| lango_team::contains_word(&shared, name));
        let words: Vec<String> = lango_team::confusable_words(&shared)
            .into_iter()
            .chain(absent)
            .collect();
        if !words.is_empty() {
            let words = words.join(", ");
            found.push(format!("agent.promptsDir brings words into the orchestrator's prompt that models take for agents: {words}"));
        }
        found
    }
}
